"""An engine's start: Transformers with 8 billion parameters, with and without resident weights.

    python bench/python/transformers_start.py [--device cuda:0] [--layers 32] [--room FOLDER]

Makes a Llama-shaped checkpoint in BF16 from its configuration (random weights; 16 GB with 32
layers) and measures, each in a process of its own: `from_pretrained` from the call to a model on
the device, and the whole process from `python` to the first token; with Transformers alone (hot
files), with the raw entry resident, and with no weights to load at all (the module made empty on
the device). The first two must give the same tokens.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from common import fresh, spread, workplace

import weightcache

PROMPT = [1, 15, 27, 99, 3]

START = """
import json, sys, time
began = time.perf_counter()
import torch
from transformers import AutoConfig, AutoModelForCausalLM, LlamaForCausalLM
how, path, device = sys.argv[1:4]
if how not in ("alone", "nothing"): import weightcache.transformers
if device != "cpu": torch.zeros(1, device=device)
imported = time.perf_counter()
report = ""
if how == "alone":
    model = AutoModelForCausalLM.from_pretrained(path, device_map=device)
elif how == "resident":
    model = weightcache.transformers.from_pretrained(
        AutoModelForCausalLM, path, device=device, on_unavailable="fail", on_miss="fail")
    report = model.weightcache
    assert report.copied_bytes == 0 and report.loaded_from == "resident", report
else:
    config = AutoConfig.from_pretrained(path)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.to_empty(device=device)
if device != "cpu": torch.cuda.synchronize()
loaded = time.perf_counter()
tokens = torch.tensor([PROMPT], device=device)
with torch.inference_mode():
    if how == "nothing":
        for _ in range(1): model(tokens)
        said = []
    else:
        said = model.generate(tokens, max_new_tokens=1, do_sample=False).tolist()[0]
first = time.perf_counter()
more = []
if how != "nothing":
    more = model.generate(tokens, max_new_tokens=16, do_sample=False).tolist()[0]
print(json.dumps({"imports": imported - began, "load": loaded - imported,
                  "token": first - loaded, "to_first": first - began, "tokens": more}))
""".replace("PROMPT", str(PROMPT))


def shapes(layers: int) -> dict[str, list[int]]:
    hidden, inner, vocabulary = 4096, 14336, 128256
    found = {"model.embed_tokens.weight": [vocabulary, hidden]}
    for layer in range(layers):
        at = f"model.layers.{layer}."
        found |= {
            at + "input_layernorm.weight": [hidden],
            at + "mlp.down_proj.weight": [hidden, inner],
            at + "mlp.gate_proj.weight": [inner, hidden],
            at + "mlp.up_proj.weight": [inner, hidden],
            at + "post_attention_layernorm.weight": [hidden],
            at + "self_attn.k_proj.weight": [1024, hidden],
            at + "self_attn.o_proj.weight": [hidden, hidden],
            at + "self_attn.q_proj.weight": [hidden, hidden],
            at + "self_attn.v_proj.weight": [1024, hidden],
        }
    return found | {"model.norm.weight": [hidden], "lm_head.weight": [vocabulary, hidden]}


def make(folder: Path, layers: int, device: str) -> int:
    """A checkpoint as `save_pretrained` lays it out, its values sane (standard deviation 0.02)."""
    import torch
    from safetensors.torch import save_file

    named = shapes(layers)
    groups: list[dict[str, list[int]]] = [{}]
    filled = 0
    for name, shape in named.items():
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        if filled + size > 5 << 30:
            groups.append({})
            filled = 0
        groups[-1][name] = shape
        filled += size
    folder.mkdir(parents=True)
    index = {}
    total = 0
    generator = torch.Generator(device).manual_seed(1)
    for number, group in enumerate(groups):
        file = f"model-{number + 1:05}-of-{len(groups):05}.safetensors"
        tensors = {}
        for name, shape in group.items():
            made = torch.randn(shape, generator=generator, device=device, dtype=torch.bfloat16)
            made = torch.ones_like(made) if "norm" in name else made * 0.02
            tensors[name] = made.cpu()
            total += made.numel() * 2
            index[name] = file
        save_file(tensors, folder / file, metadata={"format": "pt"})
    document = {"metadata": {"total_size": total}, "weight_map": index}
    (folder / "model.safetensors.index.json").write_text(json.dumps(document))
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
        "intermediate_size": 14336, "num_hidden_layers": layers, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "hidden_act": "silu", "dtype": "bfloat16",
        "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--room", default="/dev/shm")
    said = parser.parse_args()
    with workplace(said.room) as folder:
        path = folder / "llama"
        total = make(path, said.layers, said.device)
        print(f"{total / 1e9:.1f} GB, {len(shapes(said.layers))} tensors")
        found = {"alone": fresh(START, "alone", path, said.device, times=said.times)}
        weightcache.load(path, device=said.device, framework="pt").close()
        found["resident"] = fresh(START, "resident", path, said.device, times=said.times)
        found["nothing"] = fresh(START, "nothing", path, said.device, times=said.times)
        for how, runs in found.items():
            print(
                f"{how:9} from_pretrained {spread(runs, 'load', 1, 's')}; python to first token "
                f"{spread(runs, 'process_s', 1, 's')}; of it imports "
                f"{spread(runs, 'imports', 1, 's')}, token {spread(runs, 'token', 1e3, 'ms')}"
            )
        tokens = {tuple(run["tokens"]) for how, runs in found.items() if how != "nothing"
                  for run in runs}  # fmt: skip
        print("greedy tokens are the same" if len(tokens) == 1 else f"TOKENS DIFFER: {tokens}")
        raise SystemExit(len(tokens) != 1)


if __name__ == "__main__":
    main()
