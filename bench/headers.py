"""How long it takes to open, read and fully check a large checkpoint's headers.

Makes 30 shards with 36,000 tensors and their index (the data is a hole in each file), then, in this
same run, measures the project's reader (the program given) and PyPI's `safetensors` opening the same
files and listing names and shapes: each in a fresh process every time (from after its start, and the
imports), and again within one. Prints both, the ratios of like to like, and the targets; exits with 1
when one is missed.

    python bench/headers.py build/release/bench/headers_bench [--python PYTHON] [--times N]
"""

from __future__ import annotations

import argparse
import json
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

SHARDS = 30
TENSORS = 36_000
TARGET_MS = 25.0
TARGET_RATIO = 3.0

REFERENCE = """
import sys, time
from pathlib import Path
import numpy  # at the first opening, otherwise
from safetensors import safe_open
folder = Path(sys.argv[1])
for _ in range(int(sys.argv[2])):
    start = time.perf_counter_ns()
    shapes = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "np") as file:
            for name in file.keys():
                shapes[name] = file.get_slice(name).get_shape()
    took = time.perf_counter_ns() - start
    assert len(shapes) == int(sys.argv[3])
    print(took)
"""


def make(folder: Path) -> None:
    """A mixture of experts, as its publishers cut it: names of some 60 bytes, BF16 and scales."""
    weight_map: dict[str, str] = {}
    per_shard = TENSORS // SHARDS
    total = 0
    for shard in range(SHARDS):
        file = f"model-{shard + 1:05}-of-{SHARDS:05}.safetensors"
        header: dict[str, object] = {"__metadata__": {"format": "pt"}}
        offset = 0
        for at in range(per_shard):
            number = shard * per_shard + at
            layer, rest = divmod(number, 600)
            expert, part = divmod(rest, 6)
            kind = ("gate_proj", "up_proj", "down_proj")[part // 2]
            scale = part % 2 == 1
            name = f"model.layers.{layer}.mlp.experts.{expert}.{kind}.weight"
            shape = [2048, 7168] if not scale else [16, 56]
            size = shape[0] * shape[1] * (4 if scale else 1)
            header[name + ("_scale_inv" if scale else "")] = {
                "dtype": "F32" if scale else "F8_E4M3",
                "shape": shape,
                "data_offsets": [offset, offset + size],
            }
            weight_map[name + ("_scale_inv" if scale else "")] = file
            offset += size
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        with open(folder / file, "wb") as out:
            out.write(struct.pack("<Q", len(text)) + text)
            out.truncate(8 + len(text) + offset)
        total += offset
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


def milliseconds(output: str) -> list[float]:
    return [int(line) / 1e6 for line in output.split()]


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def ours(program: str, folder: Path, times: int) -> tuple[float, float]:
    """Median of first openings in fresh processes, and of later ones in one process."""
    fresh = []
    for _ in range(times):
        tensors, took = run(program, str(folder), "1").split()
        assert int(tensors) == TENSORS, tensors
        fresh.append(int(took) / 1e6)
    again = milliseconds(run(program, str(folder), str(times + 1)).split("\n", 2)[2])
    return statistics.median(fresh), statistics.median(again)


def theirs(python: str, folder: Path, times: int) -> tuple[float, float]:
    """The same of the reference."""
    def opened(count: int) -> list[float]:
        return milliseconds(run(python, "-c", REFERENCE, str(folder), str(count), str(TENSORS)))
    fresh = [opened(1)[0] for _ in range(times)]
    return statistics.median(fresh), statistics.median(opened(times + 1)[1:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="headers_bench, as built")
    parser.add_argument("--python", default=sys.executable, help="a Python with safetensors, numpy")
    parser.add_argument("--times", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wc-headers-") as name:
        folder = Path(name)
        make(folder)
        our_first, our_again = ours(options.program, folder, options.times)
        their_first, their_again = theirs(options.python, folder, options.times)
    first, again = their_first / our_first, their_again / our_again
    print(f"{SHARDS} shards, {TENSORS} tensors, median of {options.times}")
    print("                        fresh process   again in one")
    print(f"weightcache             {our_first:10.2f} ms  {our_again:10.2f} ms   "
          f"(target, fresh: at most {TARGET_MS:.0f} ms)")
    print(f"safetensors (PyPI)      {their_first:10.2f} ms  {their_again:10.2f} ms")
    print(f"ratio                   {first:10.1f}     {again:10.1f}      "
          f"(target: at least {TARGET_RATIO:.0f})")
    missed = our_first > TARGET_MS or min(first, again) < TARGET_RATIO
    print("a target is missed" if missed else "both targets are met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
