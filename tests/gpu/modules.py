#!/usr/bin/env python3
"""Modules on a real GPU: published part by part, put back in another process, nothing copied twice.

    PATH=<bundle>/bin:$PATH WEIGHTCACHE_LIBRARY=<bundle>/lib/libweightcache.so.0 \\
        PYTHONPATH=python python3 tests/gpu/modules.py [GiB]

Starts a daemon of its own. Prints one line for each check, and how much GPU memory publishing took
beyond the module's own, in MiB, as the driver counts it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time

import torch
from torch import nn

MIB = 1 << 20
READER = """
import sys, time, torch, weightcache.torch
with torch.device("meta"):
    model = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192, bias=False, dtype=torch.bfloat16)
                                  for _ in range(int(sys.argv[1]))])
    model.tied = model[0].weight
torch.cuda.init()
start = time.perf_counter()
weightcache.torch.load_model(model, "gpu")
took = time.perf_counter() - start
assert all(p.is_cuda for p in model.parameters())
assert model.tied is model[0].weight
print(took, *[float(p.float().sum()) for p in model.parameters()])
"""


class Lowest(threading.Thread):
    """The least free GPU memory that was seen, in bytes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.free = torch.cuda.mem_get_info()[0]
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.0005):
            self.free = min(self.free, torch.cuda.mem_get_info()[0])


def main() -> None:
    gib = float(sys.argv[1]) if len(sys.argv) > 1 else 8
    layers = max(2, int(gib * 1024 / 128))
    folder = tempfile.mkdtemp(prefix="wc-gpu-")
    os.environ["WEIGHTCACHE_SOCKET"] = f"{folder}/run/socket"
    subprocess.run(["weightcache", "serve", "--detach"], check=True, stdout=subprocess.DEVNULL)
    try:
        check(layers)
    finally:
        subprocess.run(["weightcache", "stop", "--drop"], check=False, stdout=subprocess.DEVNULL)


def check(layers: int) -> None:
    import weightcache
    import weightcache.torch

    torch.manual_seed(1)
    model = nn.Sequential(
        *[
            nn.Linear(8192, 8192, bias=False, dtype=torch.bfloat16, device="cuda")
            for _ in range(layers)
        ]
    )
    model.tied = model[0].weight
    expected = [float(p.float().sum()) for p in model.parameters()]
    torch.cuda.empty_cache()
    torch.cuda.synchronize()
    before = torch.cuda.mem_get_info()[0]
    watch = Lowest()
    watch.start()
    start = time.perf_counter()
    done = weightcache.torch.publish(model, "gpu", source_id="gpu")
    took = time.perf_counter() - start
    watch.over.set()
    watch.join()
    extra = (before - watch.free) / MIB
    print(f"published {done.bytes / (1 << 30):.1f} GiB in {took:.2f} s, extra {extra:.0f} MiB")
    assert extra <= 1024 + 64, extra
    assert [float(p.float().sum()) for p in model.parameters()] == expected
    assert weightcache.resident_bytes("cuda:0") >= done.bytes
    print("the module computes from published memory")
    told = subprocess.run(
        [sys.executable, "-c", READER, str(layers)], check=True, text=True, capture_output=True
    ).stdout.split()
    assert [float(one) for one in told[1:]] == expected
    print(f"another process got the same in {float(told[0]) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
