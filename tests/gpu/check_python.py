"""What tests/gpu/python runs: the package against a real GPU, with small models."""

from __future__ import annotations

import json
import subprocess
import sys
import traceback
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, LlamaConfig

import weightcache
import weightcache.transformers

DEVICE = "cuda:0"
WORK = Path(sys.argv[1])


def model_folder() -> Path:
    path = WORK / "llama"
    if not path.exists():
        torch.manual_seed(1)
        config = LlamaConfig(
            hidden_size=512, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=8,
            num_key_value_heads=4, vocab_size=2048,
        )  # fmt: skip
        model = AutoModelForCausalLM.from_config(config).to(torch.bfloat16)
        model.save_pretrained(path, max_shard_size="10MB")
    return path


def check_tensors_are_the_files_bytes() -> None:
    from safetensors.torch import load_file

    path = model_folder()
    weights = weightcache.load(path, device=DEVICE, framework="pt")
    for file in path.glob("*.safetensors"):
        for name, tensor in load_file(file).items():
            got = weights[name]
            assert got.device == torch.device(DEVICE) and got.dtype == tensor.dtype
            assert torch.equal(got.cpu(), tensor), name
    assert weightcache.resident_bytes(DEVICE) == weights.bytes


def check_transformers_gives_the_same_tokens_in_place() -> None:
    path = model_folder()
    prompt = torch.tensor([[1, 5, 9]], device=DEVICE)

    def greedy(model: torch.nn.Module) -> list[int]:
        return model.generate(prompt, max_new_tokens=16, do_sample=False).tolist()

    own = AutoModelForCausalLM.from_pretrained(path).to(DEVICE)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    model = weightcache.transformers.from_pretrained(
        AutoModelForCausalLM, path, device=DEVICE, on_unavailable="fail"
    )
    grown = torch.cuda.memory_allocated() - before
    report = model.weightcache
    assert report.copied_bytes == 0 and report.shared_bytes > 10 << 20, report
    assert grown < 1 << 20, f"PyTorch has taken {grown} bytes of its own"
    for name, parameter in own.named_parameters():
        assert torch.equal(parameter, model.get_parameter(name)), name
    assert greedy(model) == greedy(own)


def check_a_stream_is_the_files_bytes() -> None:
    path = model_folder()
    weights = weightcache.attach(path, framework="pt")
    busy = torch.randn(4096, 4096, device=DEVICE)
    for ahead in (1 << 30, 1 << 20):
        for _ in range(3):
            busy = busy @ busy / 4096  # work in the queue, whose memory is used again
            for name, tensor in weightcache.iter_tensors(path, device=DEVICE, ahead=ahead):
                assert torch.equal(tensor, weights[name]), name
    half = weightcache.iter_tensors(
        path, lambda name, shape: (slice(None), slice(7, 99)) if "q_proj" in name else None,
        device=DEVICE,
    )  # fmt: skip
    for name, tensor in half:
        assert torch.equal(tensor, weights[name][:, 7:99]), name


def check_a_write_is_a_clear_fault_and_harms_nobody() -> None:
    path = model_folder()
    source = (
        "import sys, torch, weightcache\n"
        "weights = weightcache.attach(sys.argv[1], framework='pt')\n"
        "try:\n"
        "    weights['lm_head.weight'].zero_(); torch.cuda.synchronize()\n"
        "except RuntimeError as error:\n"
        "    print(str(error).splitlines()[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", source, str(path)], capture_output=True, text=True)
    assert "illegal memory access" in done.stdout, done.stdout + done.stderr
    weights = weightcache.attach(path, framework="pt")
    assert weights["lm_head.weight"].abs().sum() > 0


def main() -> None:
    failed = []
    for name, check in list(globals().items()):
        if not name.startswith("check_"):
            continue
        try:
            check()
            print(f"ok      {name[6:].replace('_', ' ')}", flush=True)
        except Exception:
            failed.append(name)
            print(f"FAILED  {name[6:].replace('_', ' ')}\n{traceback.format_exc()}", flush=True)
    print(json.dumps({"failed": failed}))
    sys.exit(bool(failed))


main()
