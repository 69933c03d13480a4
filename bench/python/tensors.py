"""Tensors from Python: attaching to all of many, to the first, reading them all, streaming them.

    python bench/python/tensors.py [--device cpu|cuda:0] [--gib 4] [--times 5] [--room FOLDER]

Prints, for resident weights on that device: `attach` of 36,000 tensors to a dict of torch tensors
(beside it DLPack alone, by capsules, and the floor: what PyTorch takes to make its objects); attach and the first tensor; attach and every tensor read once (an
8-way sum over its bytes as 64-bit words) against `safetensors.torch.load_file` of the hot file and
the same reading; `iter_tensors` against `load_file`.
"""

from __future__ import annotations

import argparse

from common import fresh, middle, spread, workplace, write

import weightcache

TENSORS = 36_000

DICT = """
import json, sys, time, torch, weightcache
if sys.argv[2] != "cpu": torch.zeros(1, device=sys.argv[2])
start = time.perf_counter()
weights = weightcache.attach(sys.argv[1], framework="pt")
tensors = weights.tensors()
took = time.perf_counter() - start
assert len(tensors) == int(sys.argv[3])
del tensors, weights
from weightcache._frameworks import capsules, framework
weights = weightcache.attach(sys.argv[1], framework="pt")
start = time.perf_counter()
made = list(map(torch.utils.dlpack.from_dlpack, capsules(weights, 0, len(weights), 0, False)))
dlpack = time.perf_counter() - start
del made
start = time.perf_counter()
made = framework("pt").tensors(weights, 0, len(weights))
print(json.dumps({"dict": took, "dlpack": dlpack, "floor": time.perf_counter() - start}))
"""

FIRST = """
import json, sys, time, torch, weightcache
if sys.argv[2] != "cpu": torch.zeros(1, device=sys.argv[2])
start = time.perf_counter()
weights = weightcache.attach(sys.argv[1], framework="pt")
tensor = weights[sys.argv[3]]
print(json.dumps({"first": time.perf_counter() - start}))
"""

READ = """
import json, sys, time, torch, weightcache
from safetensors.torch import load_file
def read(tensors):
    total = sum(int(t.reshape(-1).view(torch.int64).sum()) for t in tensors.values())
    if sys.argv[2] != "cpu": torch.cuda.synchronize()
    return total
if sys.argv[2] != "cpu": torch.zeros(1, device=sys.argv[2])
start = time.perf_counter()
if sys.argv[1] == "attach":
    tensors = weightcache.attach("reading", framework="pt").tensors()
else:
    tensors = load_file(sys.argv[3], device=sys.argv[2])
made = time.perf_counter() - start
total = read(tensors)
print(json.dumps({"made": made, "all": time.perf_counter() - start, "total": total}))
"""

STREAM = """
import json, sys, time, torch, weightcache
from safetensors.torch import load_file
device = sys.argv[2]
if device != "cpu": torch.zeros(1, device=device)
start = time.perf_counter()
size = 0
if sys.argv[1] == "stream":
    for name, tensor in weightcache.iter_tensors(sys.argv[3], device=device):
        size += tensor.numel() * tensor.element_size()
else:
    for tensor in load_file(sys.argv[3], device=device).values():
        size += tensor.numel() * tensor.element_size()
        if device == "cpu": tensor.clone()  # out of the file's map, as the other one is
if device != "cpu": torch.cuda.synchronize()
took = time.perf_counter() - start
print(json.dumps({"rate": size / took / 1e9}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--gib", type=float, default=2.0)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--room", default="/dev/shm")
    said = parser.parse_args()
    with workplace(said.room) as folder:
        many = folder / "many" / "model.safetensors"
        write(
            many, {f"layers.{n // 300}.experts.{n % 300}.weight": [64, 8] for n in range(TENSORS)}
        )
        weightcache.load(many.parent, device=said.device, framework="pt").close()
        first = next(iter(weightcache.attach("many")))
        found = fresh(DICT, "many", said.device, TENSORS, times=said.times)
        print(f"attach {TENSORS} tensors to a dict: {spread(found, 'dict', 1e3, 'ms')}; target 60; "
              f"DLPack alone: {spread(found, 'dlpack', 1e3, 'ms')} by capsules; the floor, PyTorch's "
              f"objects and nothing else: {spread(found, 'floor', 1e3, 'ms')}")  # fmt: skip
        found = fresh(FIRST, "many", said.device, first, times=said.times)
        print(f"attach and the first tensor: {spread(found, 'first', 1e3, 'ms')}; target 5")

        file = folder / "reading" / "model.safetensors"
        count = max(1, int(said.gib * 2**30) // (4096 * 4096 * 2))
        size = write(file, {f"layers.{n}.weight": [4096, 4096] for n in range(count)})
        weightcache.load(file.parent, device=said.device, framework="pt").close()
        ours, theirs = [], []
        for _ in range(said.times):  # in turns: the machine's moods meet both
            ours += fresh(READ, "attach", said.device, file, times=1)
            theirs += fresh(READ, "file", said.device, file, times=1)
        assert len({one["total"] for one in ours + theirs}) == 1, "not the same bytes were read"
        ratio = middle(theirs, "all") / middle(ours, "all")
        print(
            f"attach and read {size / 1e9:.1f} GB once: {spread(ours, 'all', 1, 's')}; load_file "
            f"and the same reading: {spread(theirs, 'all', 1, 's')}; ratio {ratio:.2f}, target 2; "
            f"before the reading: {spread(ours, 'made', 1e3, 'ms')}, "
            f"{spread(theirs, 'made', 1e3, 'ms')}"
        )
        weightcache.Connection().evict("reading")
        ours, theirs = [], []
        for _ in range(said.times):
            ours += fresh(STREAM, "stream", said.device, file, times=1)
            theirs += fresh(STREAM, "file", said.device, file, times=1)
        print(f"iter_tensors, {size / 1e9:.1f} GB: {spread(ours, 'rate', 1, 'GB/s')}; load_file: "
              f"{spread(theirs, 'rate', 1, 'GB/s')}")  # fmt: skip


if __name__ == "__main__":
    main()
