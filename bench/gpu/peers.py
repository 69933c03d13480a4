#!/usr/bin/env python3
"""Other loaders on the same files: time until the last tensor is on the GPU.

    peers.py CHECKPOINT...

Each loader and checkpoint in a process of its own, three rounds, the best of them. A loader that
is not installed, or fails, is told and passed over. bench/gpu/run installs what scripts/bundle-gpu
--peers has brought along.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 3


def safetensors(files: list[str]) -> list[object]:
    from safetensors.torch import load_file

    return [load_file(file, device="cuda:0") for file in files]


def runai(files: list[str]) -> list[object]:
    from runai_model_streamer import SafetensorsStreamer

    kept: list[object] = []
    with SafetensorsStreamer() as streamer:
        streamer.stream_files(files)
        for _, tensor in streamer.get_tensors():
            kept.append(tensor.to("cuda:0"))
    return kept


def fastsafetensors(files: list[str]) -> list[object]:
    from fastsafetensors import SafeTensorsFileLoader

    loader = SafeTensorsFileLoader(None, "cuda:0", nogds=True)
    loader.add_filenames({0: files})
    memory = loader.copy_files_to_device()
    return [memory, *(memory.get_tensor(name) for name in loader.get_keys())]


def instanttensor(files: list[str]) -> list[object]:
    from instanttensor import safe_open

    with safe_open(files, framework="pt", device=0) as opened:
        return [tensor for _, tensor in opened.tensors()]


LOADERS = {
    "safetensors": (safetensors, {}),
    "runai-model-streamer": (runai, {}),
    "fastsafetensors": (fastsafetensors, {}),
    "instanttensor": (instanttensor, {}),
    "instanttensor, MMAP": (instanttensor, {"INSTANTTENSOR_BACKEND": "MMAP"}),
    "instanttensor, BUFFERED": (instanttensor, {"INSTANTTENSOR_BACKEND": "BUFFERED"}),
}


def measure(name: str, folder: str) -> None:
    """In a child: prints the rounds' GB/s as JSON."""
    import torch

    load = LOADERS[name][0]
    files = sorted(map(str, Path(folder).glob("*.safetensors")))
    total = sum(os.path.getsize(file) for file in files)
    torch.zeros(1, device="cuda:0")
    rounds = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        kept = load(files)
        torch.cuda.synchronize()
        rounds.append(total / (time.perf_counter() - start) / 1e9)
        del kept
        torch.cuda.empty_cache()
    print(json.dumps(rounds))


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        return measure(*sys.argv[2:])
    for folder in sys.argv[1:]:
        for name, (_, environment) in LOADERS.items():
            done = subprocess.run(
                [sys.executable, __file__, "--measure", name, folder],
                capture_output=True, text=True, env={**os.environ, **environment},
            )  # fmt: skip
            if done.returncode != 0:
                why = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
                print(f"{folder:<44} {name:<24} not measured: {why}", flush=True)
                continue
            rounds = json.loads(done.stdout.strip().splitlines()[-1])
            told = " ".join(f"{each:.1f}" for each in rounds)
            print(f"{folder:<44} {name:<24} {max(rounds):6.1f} GB/s   rounds: {told}", flush=True)


if __name__ == "__main__":
    main()
