"""A private daemon for each test, and checkpoints written with nothing of the package's own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PATIENCE_S = 60
BYTES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "F8_E4M3FNUZ": 1,
         "F8_E5M2FNUZ": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4,
         "C64": 8, "F64": 8, "I64": 8, "U64": 8, "F4": 0.5, "F6_E2M3": 0.75,
         "F6_E3M2": 0.75}  # fmt: skip


def write_checkpoint(
    path: Path,
    tensors: dict[str, tuple[str, list[int]]],
    seed: int = 1,
    metadata: dict[str, str] | None = None,
) -> dict[str, bytes]:
    """One safetensors file; the bytes of each tensor."""
    header: dict[str, object] = {} if metadata is None else {"__metadata__": metadata}
    content: dict[str, bytes] = {}
    offset = 0
    for number, (name, (dtype, shape)) in enumerate(tensors.items()):
        count = 1
        for size in shape:
            count *= size
        size = int(count * BYTES[dtype])
        block = bytes((i * 31 + seed * 7 + number * 13) % 120 for i in range(size))
        if dtype == "BOOL":
            block = bytes(byte & 1 for byte in block)
        content[name] = block
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(content.values()))
    return content


class Daemon:
    """`weightcache serve`, and the command line beside it."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "run" / "socket"
        self.env = {**os.environ, "WEIGHTCACHE_SOCKET": str(self.socket)}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        from weightcache.__main__ import program

        self.log = open(self.socket.parent.parent / "log", "ab")
        self.process = subprocess.Popen(
            [program(), "serve"], env=self.env, stdout=self.log, stderr=self.log
        )
        import weightcache

        def answers() -> bool:
            try:
                weightcache.Connection(self.socket)
                return True
            except weightcache.Disconnected:
                return False

        eventually(answers, "the daemon answers")

    def end(self, number: int = signal.SIGTERM) -> None:
        if self.process is not None:
            if number == signal.SIGKILL:  # of both: neither may start the other again
                self.process.send_signal(signal.SIGSTOP)
                children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
                for child in children.read_text().split():
                    os.kill(int(child), number)
            self.process.send_signal(number)
            self.process.wait(PATIENCE_S)
            self.process = None
            self.log.close()

    def leases(self) -> int:
        import weightcache

        return sum(entry.leases for entry in weightcache.Connection(self.socket).entries())


def eventually(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true in {PATIENCE_S} s"
        time.sleep(0.01)


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="wc-py-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def no_daemon(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Daemon:
    for name in [name for name in os.environ if name.startswith("WEIGHTCACHE")]:
        if name != "WEIGHTCACHE_LIBRARY":
            monkeypatch.delenv(name)
    made = Daemon(folder)
    monkeypatch.setenv("WEIGHTCACHE_SOCKET", str(made.socket))
    return made


@pytest.fixture
def daemon(no_daemon: Daemon) -> Iterator[Daemon]:
    no_daemon.start()
    yield no_daemon
    no_daemon.end(signal.SIGTERM)


@pytest.fixture
def run(no_daemon: Daemon) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs Python source in a process of its own."""

    def run_source(
        source: str, *arguments: object, expect: int = 0
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-c", source, *map(str, arguments)],
            text=True,
            capture_output=True,
            env=no_daemon.env,
            timeout=PATIENCE_S,
        )
        assert done.returncode == expect, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run_source


EVERY_TYPE = {
    f"t.{dtype.lower()}": (dtype, [4, 8]) for dtype in BYTES
} | {"scalar": ("F32", []), "empty": ("F16", [0, 3]), "half": ("BF16", [2, 3]),
     "scalar.half": ("BF16", [])}  # fmt: skip


@pytest.fixture
def every_type(folder: Path) -> tuple[Path, dict[str, bytes]]:
    """A checkpoint with a tensor of each type of the format."""
    path = folder / "types" / "model.safetensors"
    return path.parent, write_checkpoint(path, EVERY_TYPE)
