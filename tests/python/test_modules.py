"""publish and load_model: a module comes back whole, or says what does not fit."""

from __future__ import annotations

import gc
import signal

import pytest
import torch
from conftest import eventually
from torch import nn

import weightcache
import weightcache.torch as wt
from weightcache._module import extents, slots


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(6, 4), requires_grad=False)
        self.register_buffer("running", torch.empty(3))
        self.register_buffer("inv_freq", torch.empty(5), persistent=False)
        self.plain = torch.empty(2, 3)
        self.caches = [torch.empty(4), {"sin": torch.empty(2)}]
        self.scale = 1.0


class Model(nn.Module):
    """Something of everything that engines make."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.inner = Inner()
        self.head = nn.Linear(4, 10, bias=True, dtype=torch.bfloat16)
        self.lm = nn.Linear(4, 10, bias=False)
        self.lm.weight = self.embed.weight
        self.original_inv_freq = self.inner.inv_freq
        self.scalar = nn.Parameter(torch.empty(()))
        self.empty = nn.Parameter(torch.empty(0, 7))
        self.fp8 = nn.Parameter(torch.empty(4, 4, dtype=torch.float8_e4m3fn), requires_grad=False)
        self.dims = None


def filled() -> Model:
    torch.manual_seed(3)
    model = Model()
    with torch.no_grad():
        for slot in slots(model):
            raw = slot.tensor
            if raw.numel():
                raw.copy_(torch.randn(raw.shape).to(raw.dtype))
        # What post-processing does: views of one fused tensor, transposes, extra tensors, marks.
        fused = torch.randn(12, 4)
        model.inner.weight.data = fused[:6]
        model.q = nn.Parameter(fused[6:9], requires_grad=False)
        model.whole = nn.Parameter(fused, requires_grad=False)
        model.inner.turned = nn.Parameter(torch.randn(4, 6).t(), requires_grad=False)
        model.inner.register_buffer("extra", torch.arange(4), persistent=False)
        model.inner.extra_plain = torch.arange(5)
    model.inner.format_ue8m0 = True
    model.inner.input_scale = None
    model.head.weight.block = [128, 128]
    model.head.scale = ("a", torch.float16)
    return model


MARKS = ("format_ue8m0", "input_scale", "block", "scale")


def skeleton() -> Model:
    with torch.device("meta"):
        return Model()


def raw(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).numpy()) if flat.numel() else b""


def content(model: nn.Module) -> dict[str, tuple[object, ...]]:
    return {
        slot.name: (
            slot.kind,
            slot.persistent,
            slot.tensor.dtype,
            tuple(slot.tensor.shape),
            tuple(slot.tensor.stride()) if slot.tensor.numel() else (),
            slot.tensor.requires_grad,
            raw(slot.tensor),
        )
        for slot in slots(model)
    }


def publish(model: nn.Module, name: str = "m", source: str = "m@1", **more: object):
    return wt.publish(model, name, source_id=source, **more)


def test_a_module_comes_back_whole(daemon):
    model = filled()
    before = content(model)
    done = publish(model, attributes=MARKS, form={"engine": "mine", "engine_version": "1"})
    assert done.outcome == "published" and done.entry.state == "published"
    assert content(model) == before
    other = skeleton()
    told = wt.load_model(other, "m")
    assert content(other) == before
    assert not told.missing_keys and not told.unexpected_keys
    assert told.registered == [
        "inner.extra", "inner.extra_plain", "inner.turned", "q", "whole",
    ]  # fmt: skip
    assert told.bytes == weightcache.resident_bytes("cpu") >= done.bytes
    assert other.lm.weight is other.embed.weight
    assert other.original_inv_freq is other.inner.inv_freq
    assert "inner.extra" not in other.state_dict() and "inner.inv_freq" not in other.state_dict()
    assert other.whole.data_ptr() == other.inner.weight.data_ptr()
    assert other.q.data_ptr() == other.whole.data_ptr() + 6 * 4 * 4
    assert other.inner.format_ue8m0 is True and other.inner.input_scale is None
    assert "input_scale" in other.inner.__dict__
    assert other.head.weight.block == [128, 128]
    assert other.head.scale == ("a", torch.float16)


def test_what_a_reader_writes_disturbs_nobody(daemon):
    model = filled()
    publish(model)
    first, second = skeleton(), skeleton()
    wt.load_model(first, "m")
    wt.load_model(second, "m")
    expected = content(second)
    with torch.no_grad():
        first.head.weight.zero_()
        model.head.weight.fill_(1)
    assert content(second) == expected


def test_each_byte_is_published_once_and_what_nothing_uses_is_left_out(daemon):
    model = nn.Module()
    big = torch.randn(1 << 20)
    model.part = nn.Parameter(big[1000:2000])
    model.same = model.part
    model.inside = nn.Parameter(big[1500:1600].view(10, 10))
    assert [extent.bytes for extent in extents(slots(model))] == [4000]
    assert publish(model).bytes == 4000
    assert weightcache.entries("m")[0].bytes < 1 << 16


def test_it_goes_in_segments_of_the_extra_memory_allowed(daemon):
    model = nn.Sequential(*[nn.Linear(64, 64, bias=False) for _ in range(8)])
    before = content(model)
    pointers = [layer.weight.data_ptr() for layer in model]
    done = publish(model, extra_bytes=2 * 64 * 64 * 4)
    assert done.entry.segments == 4
    assert content(model) == before
    assert not set(pointers) & {layer.weight.data_ptr() for layer in model}
    with pytest.raises(weightcache.InvalidArgument, match="more extra_bytes"):
        publish(nn.Sequential(*[nn.Linear(1, 1) for _ in range(300)]), "n", "n", extra_bytes=1)


def test_parts_that_were_moved_keep_no_second_copy(daemon):
    model = nn.Sequential(*[nn.Linear(64, 64, bias=False) for _ in range(4)])
    weak = [torch.multiprocessing.reductions.StorageWeakRef(p.untyped_storage())
            for p in model.parameters()]  # fmt: skip
    publish(model, extra_bytes=1)
    assert all(one.expired() for one in weak)


def test_without_rebinding_the_module_stays_where_it_is(daemon):
    model = filled()
    pointer = model.head.weight.data_ptr()
    publish(model, rebind=False)
    assert model.head.weight.data_ptr() == pointer
    assert daemon.leases() == 0


def test_a_second_publisher_of_the_same_content_copies_nothing(daemon):
    first, second = filled(), filled()
    publish(first)
    done = publish(second)
    assert done.outcome == "resident" and len(weightcache.entries()) == 1
    assert content(second) == content(first)
    other = nn.Linear(3, 3)
    before = content(other)
    with pytest.raises(weightcache.Mismatch, match='"weight"'):
        publish(other)
    assert content(other) == before


def test_the_lease_ends_with_the_module(daemon):
    model = filled()
    publish(model)
    assert daemon.leases() == 1
    del model
    gc.collect()
    eventually(lambda: daemon.leases() == 0, "the lease has ended")


def test_a_module_that_differs_is_refused_and_left_alone(daemon):
    publish(filled())
    other = skeleton()
    other.head = nn.Linear(4, 11, dtype=torch.float16, device="meta")
    with pytest.raises(weightcache.Mismatch) as caught:
        wt.load_model(other, "m")
    said = str(caught.value)
    assert '"head.weight" is BF16, the module has F16' in said
    assert '"head.weight" has shape [10, 4], the module [11, 4]' in said
    assert '"head.bias"' in said
    assert other.embed.weight.is_meta


def test_a_tensor_that_would_stay_on_the_meta_device_is_refused_strict_or_not(daemon):
    publish(filled())
    other = skeleton()
    other.more = nn.ModuleList([nn.Linear(2, 2, device="meta") for _ in range(8)])
    for strict in (True, False):
        with pytest.raises(weightcache.Mismatch) as caught:
            wt.load_model(other, "m", strict=strict)
        assert '"more.0.weight"' in str(caught.value) and "and 6 more" in str(caught.value)
    assert other.embed.weight.is_meta


def test_missing_and_unexpected_names_are_told_as_load_state_dict_does(daemon):
    publish(filled())
    other = skeleton()
    del other.head
    other.own = nn.Linear(2, 2)
    with pytest.raises(weightcache.Mismatch) as caught:
        wt.load_model(other, "m")
    assert 'missing key(s): "own.weight", "own.bias"' in str(caught.value)
    assert 'unexpected key(s): "head.weight", "head.bias"' in str(caught.value)
    kept = other.own.weight.clone()
    told = wt.load_model(other, "m", strict=False)
    assert told.missing_keys == ["own.weight", "own.bias"]
    assert told.unexpected_keys == ["head.weight", "head.bias"]
    assert torch.equal(other.own.weight, kept)


def test_a_module_with_memory_of_its_own_keeps_its_parameters(daemon):
    publish(filled())
    other = Model()
    parameter = other.head.weight
    wt.load_model(other, "m")
    assert other.head.weight is parameter
    assert content(other) == content(filled())


def test_what_has_no_plain_bytes_is_refused_by_name(daemon):
    class Odd(nn.Module):
        def __init__(self, tensor: torch.Tensor) -> None:
            super().__init__()
            self.register_buffer("odd", tensor)

    for tensor, error in (
        (torch.empty(2, device="meta"), weightcache.InvalidArgument),
        (torch.eye(2).to_sparse(), weightcache.Unsupported),
        (torch.zeros(2, dtype=torch.complex128), weightcache.Unsupported),
        (torch.zeros(2, dtype=torch.complex64).conj(), weightcache.Unsupported),
        (torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.qint8), weightcache.Unsupported),
    ):
        with pytest.raises(error, match='"odd"'):
            publish(Odd(tensor))
    module = nn.Module()
    module.pair = (torch.ones(1), torch.ones(1))
    with pytest.raises(weightcache.Unsupported, match='"pair"'):
        publish(module)
    assert weightcache.entries() == []


def test_the_gate_is_asked_before_anything_is_connected(no_daemon):
    class Config:
        def __init__(self) -> None:
            self.quantization_config = {"quant_method": "awq", "bits": 4}

    model = nn.Linear(2, 2)
    with pytest.raises(weightcache.UnsupportedQuantization, match=r"publish: .*awq"):
        publish(model, quantization="awq")
    with pytest.raises(weightcache.UnsupportedQuantization, match="attach"):
        wt.load_model(model, "m", quantization={"quant_method": "fp8"})
    model.config = Config()
    with pytest.raises(weightcache.UnsupportedQuantization, match="publish"):
        publish(model)
    with pytest.raises(weightcache.UnsupportedQuantization, match="attach"):
        wt.load_model(model, "m")
    with pytest.raises(weightcache.Disconnected):
        publish(nn.Linear(2, 2))


def test_block_wise_fp8_may_be_shared(daemon):
    config = {"quant_method": "fp8", "weight_block_size": [128, 128], "factor": 0.5}
    model = filled()
    publish(model, quantization=config)
    other = skeleton()
    wt.load_model(other, "m", quantization=config)
    with weightcache.attach("m") as attached:
        form = attached.fingerprint["form"]
    assert form["quantization"] == "fp8"
    assert form["quantization_config"]["factor"] == "0.5"


def test_an_expectation_names_each_field_with_both_values(daemon):
    publish(
        filled(), form={"engine": "mine", "dtype": "bfloat16"},
        partition={"tensor": {"rank": 1, "size": 2}},
    )  # fmt: skip
    expect = {
        "source": {"source_id": "m@2"},
        "form": {"engine": "mine", "dtype": "float16"},
        "partition": {"tensor": {"rank": 0, "size": 2}},
    }
    with pytest.raises(weightcache.Mismatch) as caught:
        wt.load_model(skeleton(), "m", expect=expect)
    for field in ('form.dtype is "bfloat16", expected "float16"',
                  'source.source_id is "m@1", expected "m@2"',
                  "partition.tensor.rank is 1, expected 0"):  # fmt: skip
        assert field in str(caught.value)


def test_another_content_under_the_name_needs_replace(daemon):
    publish(filled())
    other = nn.Linear(2, 2)
    before = content(other)
    with pytest.raises(weightcache.AlreadyExists):
        publish(other, source="other")
    assert content(other) == before
    assert publish(other, source="other", replace=True).entry.generation == 2


def test_a_publication_that_fails_gives_the_module_back(daemon, monkeypatch):
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(4)])
    before = content(model)
    calls = 0

    def fail(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(weightcache.Publication, "tell", fail)
    with pytest.raises(KeyboardInterrupt):
        publish(model, extra_bytes=1)
    assert content(model) == before
    eventually(lambda: weightcache.entries() == [], "the entry has gone")


def test_a_daemon_that_dies_before_the_end_costs_the_module_nothing(daemon, monkeypatch):
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(4)])
    before = content(model)
    real = weightcache.Publication.publish

    def killed(self):
        daemon.end(signal.SIGKILL)
        return real(self)

    monkeypatch.setattr(weightcache.Publication, "publish", killed)
    with pytest.raises(weightcache.Disconnected):
        publish(model)
    assert content(model) == before


def test_attributes_are_declared_by_names_that_exist_and_values_that_can_cross(daemon):
    model = filled()
    with pytest.raises(weightcache.InvalidArgument, match='"nothing"'):
        publish(model, attributes=["nothing"])
    model.inner.scale = object()
    with pytest.raises(weightcache.InvalidArgument, match=r'"inner\.scale".*object'):
        publish(model, attributes=["scale"])
    assert weightcache.entries() == []


def test_a_module_without_tensors_has_nothing_to_publish(daemon):
    with pytest.raises(weightcache.InvalidArgument, match="no tensor"):
        publish(nn.ReLU())


def test_the_environment_can_switch_it_off(daemon, monkeypatch):
    monkeypatch.setenv("WEIGHTCACHE", "off")
    with pytest.raises(weightcache.Disconnected, match="WEIGHTCACHE=off"):
        publish(nn.Linear(2, 2))
    with pytest.raises(weightcache.Disconnected, match="WEIGHTCACHE=off"):
        wt.load_model(nn.Linear(2, 2), "m")


KILLED = """
import os, signal, sys, torch, weightcache, weightcache.torch
model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)])
def tell(self, done, total):
    os.kill(os.getpid(), signal.SIGKILL)
weightcache.Publication.tell = tell
weightcache.torch.publish(model, "m", source_id="s")
"""


def test_a_publisher_that_is_killed_leaves_nothing(daemon, run):
    run(KILLED, expect=-signal.SIGKILL)
    eventually(lambda: weightcache.entries() == [], "the entry has gone")
    publish(nn.Linear(2, 2))


ANOTHER = """
import sys, torch, weightcache.torch
with torch.device("meta"):
    model = torch.nn.Linear(8, 8)
weightcache.torch.load_model(model, "m")
print(float(model(torch.ones(8)).sum()))
"""


def test_another_process_computes_the_same(daemon, run):
    model = nn.Linear(8, 8)
    publish(model)
    assert float(run(ANOTHER).stdout) == pytest.approx(float(model(torch.ones(8)).sum()))
