"""What the Python benchmarks share: a daemon of their own, checkpoints, processes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

BLOCK = os.urandom(8 << 20)


@contextlib.contextmanager
def workplace(room: str | None = None) -> Iterator[Path]:
    """A folder with a daemon in it, both gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="weightcache-bench-", dir=room))
    os.environ["WEIGHTCACHE_SOCKET"] = str(folder / "run" / "socket")
    log = open(folder / "log", "wb")
    daemon = subprocess.Popen([program(), "serve"], stdout=log, stderr=log)
    try:
        subprocess.run([program(), "status"], check=False, capture_output=True)
        while subprocess.run([program(), "status"], capture_output=True).returncode != 0:
            if daemon.poll() is not None:
                raise SystemExit((folder / "log").read_text())
            time.sleep(0.02)
        yield folder
    finally:
        subprocess.run([program(), "stop", "--drop"], capture_output=True)
        daemon.wait(60)
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


def program() -> str:
    from weightcache.__main__ import program as found

    return found()


def write(path: Path, shapes: dict[str, list[int]], dtype: str = "BF16") -> int:
    """A safetensors file of random bytes; how many."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, shape in shapes.items():
        size = 2
        for dimension in shape:
            size *= dimension
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    total = at
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb", buffering=0) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        view = memoryview(BLOCK)
        while at > 0:
            at -= file.write(view[: min(at, len(BLOCK))])
    return total


def fresh(source: str, *arguments: object, times: int = 3) -> list[dict[str, float]]:
    """What a Python program prints as JSON in its last line, run in processes of its own."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", source, *map(str, arguments)], capture_output=True, text=True
        )
        took = time.perf_counter() - start
        if done.returncode != 0:
            raise SystemExit(f"a benchmark's process failed:\n{done.stdout}\n{done.stderr}")
        told = json.loads(done.stdout.strip().splitlines()[-1])
        found.append({**told, "process_s": took})
    return found


def middle(found: list[dict[str, float]], what: str) -> float:
    return statistics.median(one[what] for one in found)


def spread(found: list[dict[str, float]], what: str, scale: float, unit: str) -> str:
    values = sorted(one[what] * scale for one in found)
    return f"{statistics.median(values):.3g} {unit} ({values[0]:.3g} to {values[-1]:.3g})"
