"""What a look-up gives, in each framework, and how long it lives."""

from __future__ import annotations

import ctypes
import gc
import threading

import numpy as np
import pytest
import torch
from conftest import EVERY_TYPE, eventually

import weightcache
from weightcache import _frameworks
from weightcache import _structs as structs
from weightcache._frameworks import TORCH_NAMES


def raw(tensor: torch.Tensor) -> bytes:
    return bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy())


def test_every_type_of_the_format_is_the_frameworks_own_or_bytes(daemon, every_type):
    path, content = every_type
    with weightcache.load(path, device="cpu", framework="pt") as weights:
        for name, (dtype, shape) in EVERY_TYPE.items():
            tensor = weights[name]
            own = getattr(torch, TORCH_NAMES.get(dtype, ""), None)
            assert tensor.dtype == (own or torch.uint8), name
            assert raw(tensor) == content[name], name
            assert weights.info(name).dtype == dtype
            if own is not None and dtype != "F4":
                assert list(tensor.shape) == shape


def test_numpy_gets_its_own_types_those_of_ml_dtypes_and_bytes(daemon, every_type):
    path, content = every_type
    with weightcache.load(path, device="cpu", framework="np") as weights:
        for name in EVERY_TYPE:
            assert weights[name].tobytes() == content[name], name
        assert weights["t.f32"].dtype == np.float32
        assert weights["scalar"].shape == ()
        assert weights["half"].dtype.name == "bfloat16" and weights["half"].shape == (2, 3)
        assert weights["scalar.half"].shape == ()
        assert weights["t.f6_e2m3"].dtype == np.uint8


def test_a_private_array_may_be_written_and_a_shared_one_may_not(daemon, every_type):
    path, content = every_type
    private = weightcache.load(path, device="cpu", framework="np")
    shared = weightcache.attach("types", framework="np", access="shared")
    private["t.f32"][:] = 0
    assert shared["t.f32"].tobytes() == content["t.f32"]
    assert not shared["t.f32"].flags.writeable
    with pytest.raises(ValueError):
        shared["t.f32"][:] = 0


def test_it_is_a_mapping_in_the_files_order(daemon, every_type):
    path, content = every_type
    with weightcache.load(path, device="cpu", framework="pt") as weights:
        assert len(weights) == len(content)
        assert list(weights) == list(weights.keys()) == list(dict(weights.items()))
        assert sorted(weights) == sorted(content)
        assert set(weights.tensors()) == set(content)
        assert "scalar" in weights and "nothing" not in weights and 3 not in weights
        assert weights.get("nothing") is None
        assert [tuple(t.shape) for t in weights.values()] == [
            tuple(weights[name].shape) for name in weights
        ]
        with pytest.raises(KeyError) as caught:
            weights["scalarr"]
        assert isinstance(caught.value, weightcache.NotFound)
        assert '"scalar"' in str(caught.value)  # the nearest name


def test_slices_are_as_safetensors_has_them(daemon, every_type):
    path, _ = every_type
    with weightcache.load(path, device="cpu", framework="pt") as weights:
        part = weights.get_slice("t.f32")
        assert part.get_shape() == [4, 8] and part.get_dtype() == "F32"
        assert torch.equal(part[1:3, ::2], weights["t.f32"][1:3, ::2])


def test_tensors_outlive_the_block_and_the_last_one_ends_the_lease(daemon, every_type):
    path, content = every_type
    with weightcache.load(path, device="cpu", framework="pt") as weights:
        kept = weights["t.f32"]
        view = kept[1:]
    with pytest.raises(weightcache.InvalidArgument, match="closed"):
        weights["t.f32"]
    assert raw(kept) == content["t.f32"]
    assert daemon.leases() == 1
    del kept
    gc.collect()
    assert daemon.leases() == 1  # the view keeps it
    assert raw(view) == content["t.f32"][32:]
    del view
    gc.collect()
    eventually(lambda: daemon.leases() == 0, "the lease has ended")


def test_a_strict_close_counts_the_living(daemon, every_type):
    path, _ = every_type
    weights = weightcache.load(path, device="cpu", framework="pt")
    kept = [weights["t.f32"], weights["scalar"]]
    with pytest.raises(weightcache.Busy, match="2 of its tensors live"):
        weights.close(strict=True)
    del kept
    gc.collect()
    weights.close(strict=True)
    weights.close()  # twice does nothing
    assert daemon.leases() == 0


def test_a_capsule_that_nobody_takes_gives_its_tensor_back(daemon, every_type):
    from weightcache._frameworks import capsules

    path, _ = every_type
    weights = weightcache.load(path, device="cpu", framework="pt")
    for versioned in (False, True):
        made = capsules(weights, 0, 3, 0, versioned)
        assert weights.living == 3
        del made
        assert weights.living == 0


def test_both_ways_into_pytorch_give_the_same_tensors(daemon, every_type, monkeypatch):
    made = _frameworks.framework("pt")
    if made._exchange is None:
        pytest.skip("this PyTorch has no functions for exchange in C")
    weights = weightcache.load(every_type[0], device="cpu", framework="pt")
    quick = weights.tensors()
    monkeypatch.setattr(made, "_exchange", None)
    slow = weights.tensors()
    assert list(quick) == list(slow)
    for name, tensor in quick.items():
        other = slow[name]
        assert (tensor.dtype, tensor.shape, tensor.stride(), tensor.data_ptr()) == (
            other.dtype, other.shape, other.stride(), other.data_ptr()), name  # fmt: skip
    del quick, slow, tensor, other
    assert weights.living == 0


class Exchange(ctypes.Structure):
    """As far as it is used."""

    To = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("previous", ctypes.c_void_p), ("allocator", ctypes.c_void_p),
                ("from_object", ctypes.c_void_p), ("to_object", To)]  # fmt: skip


@pytest.mark.parametrize("deletes", [False, True])
def test_a_framework_that_refuses_a_tensor_keeps_none(daemon, every_type, deletes):
    weights = weightcache.load(every_type[0], device="cpu", framework="pt")
    seen = []

    def refuse(managed, _out):
        seen.append(weights.living)
        if deletes:
            _frameworks.lib.wc_dlpack_delete(managed, 1)
        return -1

    exchange = Exchange(major=1, minor=3, to_object=Exchange.To(refuse))
    with pytest.raises(weightcache.Unsupported, match="managed_tensor_to_py_object_no_sync"):
        _frameworks._made_in_c(
            weights, 0, len(weights), structs.DlpackOptions(), ctypes.addressof(exchange)
        )
    assert seen == [len(weights)] and weights.living == 0
    exchange.major = 2
    with pytest.raises(weightcache.Unsupported, match="DLPack 2, not 1"):
        _frameworks._made_in_c(weights, 0, 1, structs.DlpackOptions(), ctypes.addressof(exchange))
    with pytest.raises(weightcache.InvalidArgument, match="the entry has"):
        _frameworks.capsules(weights, 1, len(weights), 0, False)


def test_attaching_in_one_thread_while_another_detaches(daemon, every_type):
    path, content = every_type
    weightcache.load(path, device="cpu", framework="pt").close()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(30):
                with weightcache.attach("types", framework="pt") as weights:
                    kept = weights.tensors()
                assert raw(kept["t.i64"]) == content["t.i64"]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    gc.collect()
    eventually(lambda: daemon.leases() == 0, "the leases have ended")


def test_tensors_may_live_until_the_interpreter_has_ended(daemon, every_type, run):
    path, _ = every_type
    for framework, module in (("pt", "torch"), ("np", "numpy")):
        run(
            f"""
import {module}, sys, weightcache
kept = weightcache.load(sys.argv[1], device="cpu", framework="{framework}").tensors()
weights = weightcache.attach("types", framework="{framework}")
class Cycle: pass
cycle = Cycle(); cycle.self = cycle; cycle.kept = weights["t.f32"]
""",
            path,
        )
    eventually(lambda: daemon.leases() == 0, "the leases have ended")


def test_without_a_framework_only_what_is_imported_is_used(daemon, every_type, run):
    path, _ = every_type
    source = """
import sys
import weightcache
weights = weightcache.load(sys.argv[1], device="cpu")
assert "torch" not in sys.modules and "numpy" not in sys.modules
try:
    weights["t.f32"]
except weightcache.Unsupported as error:
    print(error)
import numpy
weights = weightcache.attach("types")
assert type(weights["t.f32"]) is numpy.ndarray
assert "torch" not in sys.modules
"""
    assert "no framework is imported" in run(source, path).stdout


def test_a_framework_that_is_not_installed_or_unknown_is_told(daemon, every_type, monkeypatch):
    path, _ = every_type
    with pytest.raises(weightcache.InvalidArgument, match='"tf"'):
        weightcache.load(path, device="cpu", framework="tf")
    monkeypatch.setitem(__import__("sys").modules, "jax", None)
    with pytest.raises(weightcache.Unsupported, match="not installed"):
        weightcache.attach("types", framework="jax")
