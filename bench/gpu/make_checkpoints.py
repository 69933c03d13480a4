#!/usr/bin/env python3
"""Makes the checkpoints of the GPU benchmarks: random bytes in valid safetensors files.

    make_checkpoints.py DIR dense|experts ...

dense    16.1 GB, 291 tensors in 4 shards: the shape of an 8-billion-parameter model in BF16
experts  32.1 GB, 18,867 tensors in 8 shards: the shape of a mixture of experts

"""

from __future__ import annotations

import json
import os
import struct
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BLOCK = os.urandom(8 << 20)
BF16 = 2


def dense() -> list[tuple[str, list[int]]]:
    hidden, inner, vocabulary = 4096, 14336, 128256
    tensors = [("model.embed_tokens.weight", [vocabulary, hidden])]
    for layer in range(32):
        at = f"model.layers.{layer}."
        tensors += [
            (at + "input_layernorm.weight", [hidden]),
            (at + "mlp.down_proj.weight", [hidden, inner]),
            (at + "mlp.gate_proj.weight", [inner, hidden]),
            (at + "mlp.up_proj.weight", [inner, hidden]),
            (at + "post_attention_layernorm.weight", [hidden]),
            (at + "self_attn.k_proj.weight", [1024, hidden]),
            (at + "self_attn.o_proj.weight", [hidden, hidden]),
            (at + "self_attn.q_proj.weight", [hidden, hidden]),
            (at + "self_attn.v_proj.weight", [1024, hidden]),
        ]
    return tensors + [("model.norm.weight", [hidden]), ("lm_head.weight", [vocabulary, hidden])]


def experts() -> list[tuple[str, list[int]]]:
    hidden, inner, layers, count = 2048, 384, 48, 128
    tensors = [("model.embed_tokens.weight", [151936, hidden])]
    for layer in range(layers):
        at = f"model.layers.{layer}."
        tensors += [
            (at + "input_layernorm.weight", [hidden]),
            (at + "mlp.gate.weight", [count, hidden]),
            (at + "post_attention_layernorm.weight", [hidden]),
            (at + "self_attn.q_proj.weight", [4096, hidden]),
            (at + "self_attn.k_proj.weight", [512, hidden]),
            (at + "self_attn.v_proj.weight", [512, hidden]),
            (at + "self_attn.o_proj.weight", [hidden, 4096]),
            (at + "self_attn.q_norm.weight", [128]),
            (at + "self_attn.k_norm.weight", [128]),
        ]
        for expert in range(count):
            inside = f"{at}mlp.experts.{expert}."
            tensors += [
                (inside + "down_proj.weight", [hidden, inner]),
                (inside + "gate_proj.weight", [inner, hidden]),
                (inside + "up_proj.weight", [inner, hidden]),
            ]
    return tensors + [("model.norm.weight", [hidden]), ("lm_head.weight", [151936, hidden])]


SHAPES = {"dense": (dense, 4), "experts": (experts, 8)}


def bytes_of(shape: list[int]) -> int:
    count = BF16
    for dimension in shape:
        count *= dimension
    return count


def write_shard(path: Path, tensors: list[tuple[str, list[int]]]) -> None:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, shape in tensors:
        size = bytes_of(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb", buffering=0) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        view = memoryview(BLOCK)
        while at > 0:  # a block that starts elsewhere each time, so that no two blocks are equal
            start = (at * 2654435761) % (len(BLOCK) // 2)
            at -= file.write(view[start : start + min(at, len(BLOCK) // 2)])


def make(folder: Path, kind: str) -> None:
    shapes, shards = SHAPES[kind]
    tensors = shapes()
    total = sum(bytes_of(shape) for _, shape in tensors)
    groups: list[list[tuple[str, list[int]]]] = [[]]
    filled = 0
    for tensor in tensors:
        if filled >= total / shards * len(groups) and len(groups) < shards:
            groups.append([])
        groups[-1].append(tensor)
        filled += bytes_of(tensor[1])
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"model-{n + 1:05}-of-{len(groups):05}.safetensors" for n in range(len(groups))]
    index = {name: file for file, group in zip(names, groups) for name, _ in group}
    document = {"metadata": {"total_size": total}, "weight_map": index}
    (folder / "model.safetensors.index.json").write_text(json.dumps(document))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write_shard, [folder / name for name in names], groups))
    print(f"{folder}: {len(tensors)} tensors, {total / 1e9:.1f} GB, {len(groups)} shards")


if __name__ == "__main__":
    for wanted in sys.argv[2:]:
        make(Path(sys.argv[1]) / wanted, wanted)
