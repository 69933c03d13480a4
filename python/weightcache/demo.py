"""``weightcache demo``: a first minute, with a daemon of its own and without a compiler.

Makes a small checkpoint of random bytes in a temporary folder (or takes the one that is named), and
shows what the package does with it. Leaves nothing behind.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

__all__ = ["main"]

_LAYERS = 16
_SIZE = 2048  # each layer a matrix of this many 2-byte values squared: 128 MiB in all

_READER = """
import sys, time
start = time.perf_counter()
import weightcache
weights = weightcache.attach(sys.argv[1])
took = weights.attach_seconds * 1e3
print(f"  another process attached {len(weights)} tensors in {took:.1f} ms, "
      f"{(time.perf_counter() - start) * 1e3:.0f} ms after its first import")
print(f"  the first: {weights.info(next(iter(weights)))}"[:100])
"""


def main(arguments: list[str]) -> int:
    """Runs it. ``arguments``: nothing, or a checkpoint (a directory or a file). Returns the exit
    status."""
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        print("usage: weightcache demo [CHECKPOINT]", file=sys.stderr)
        return 0 if arguments[0] in ("-h", "--help") else 2
    from weightcache.__main__ import program

    room = Path(tempfile.mkdtemp(prefix="weightcache-demo-"))
    socket = room / "run" / "socket"
    os.environ["WEIGHTCACHE_SOCKET"] = str(socket)
    os.environ.pop("WEIGHTCACHE", None)
    daemon = None
    try:
        checkpoint = Path(arguments[0]) if arguments else _checkpoint(room / "demo-model")
        _say(f"1. A checkpoint: {checkpoint}")
        _say("2. The daemon, which keeps memory for others: weightcache serve")
        with open(room / "log", "wb") as log:
            daemon = subprocess.Popen([program(), "serve"], stdout=log, stderr=log)
        _wait_for(daemon, room / "log")
        return _show(program(), checkpoint)
    finally:
        if daemon is not None:
            subprocess.run([program(), "stop", "--drop"], capture_output=True, check=False)
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.terminate()
                daemon.wait()
        shutil.rmtree(room, ignore_errors=True)


def _show(program: str, checkpoint: Path) -> int:
    import weightcache

    def load() -> weightcache.Attachment:
        start = time.perf_counter()
        weights = weightcache.load(checkpoint, device="cpu")
        took = time.perf_counter() - start
        rate = weights.bytes / took / 1e9
        read = f"{rate:.1f} GB/s" if weights.loaded_from == "loaded" else "nothing was read"
        print(
            f"  {weights.loaded_from}: {weights.bytes / 2**20:.0f} MiB, {took * 1e3:.1f} ms, {read}"
        )
        return weights

    _say("3. weightcache.load(checkpoint): read once, into memory that outlives its reader")
    weights = load()
    name = weights.name
    _say("4. The same once more, as an engine that restarts would")
    load().close()
    _say(f'5. weightcache.attach("{name}"), as any process does: no copy')
    sys.stdout.flush()
    reader = subprocess.run([sys.executable, "-c", _READER, name], check=False)
    if reader.returncode != 0:
        return reader.returncode
    _say("6. Who holds what: weightcache leases")
    sys.stdout.flush()
    subprocess.run([program, "leases"], check=True)
    _say("7. Is every byte the one on the disk? weightcache verify")
    sys.stdout.flush()
    verified = subprocess.run([program, "verify", name, str(checkpoint)], check=False)
    weights.close()
    _say("That was all. With PyTorch: weightcache.attach(name)[tensor]; docs/TUTORIAL.md goes on.")
    return verified.returncode


def _say(text: str) -> None:
    bold, plain = ("\x1b[1m", "\x1b[0m") if sys.stdout.isatty() else ("", "")
    print(f"\n{bold}{text}{plain}")


def _checkpoint(folder: Path) -> Path:
    """A safetensors file of random bytes."""
    size = 2 * _SIZE * _SIZE
    header = {
        f"layers.{n}.weight": {
            "dtype": "BF16",
            "shape": [_SIZE, _SIZE],
            "data_offsets": [n * size, (n + 1) * size],
        }
        for n in range(_LAYERS)
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    folder.mkdir()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _ in range(_LAYERS):
            file.write(os.urandom(size))
    return folder


def _wait_for(daemon: subprocess.Popen[bytes], log: Path) -> None:
    import weightcache

    deadline = time.monotonic() + 30
    while True:
        try:
            weightcache.Connection()
            return
        except weightcache.Disconnected as error:
            if daemon.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the daemon did not start: {error}\n{log.read_text()}") from None
            time.sleep(0.02)
