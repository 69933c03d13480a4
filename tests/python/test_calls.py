"""attach and load: what is found, what fails and how, what the environment decides."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time

import pytest
import torch
from conftest import write_checkpoint

import weightcache
from weightcache import errors


def test_the_first_load_loads_and_the_next_finds_it_resident(daemon, every_type):
    path, content = every_type
    first = weightcache.load(path, device="cpu", framework="pt")
    second = weightcache.load(path, device="cpu", framework="pt")
    assert (first.loaded_from, second.loaded_from) == ("loaded", "resident")
    assert first.name == "types" and first.generation == 1 and first.device == "cpu"
    assert first.bytes >= sum(map(len, content.values()))
    assert first.bytes == weightcache.resident_bytes("cpu") == weightcache.entries("types")[0].bytes
    assert first.fingerprint["form"] == "raw"
    assert 0 < first.attach_seconds < 1


def test_a_miss_is_loaded_waited_for_or_an_error(daemon, every_type):
    path, _ = every_type
    with pytest.raises(weightcache.NotFound):
        weightcache.load(path, device="cpu", on_miss="fail")
    with pytest.raises(weightcache.TimedOut):
        weightcache.load(path, device="cpu", on_miss="wait", wait=0.2)
    with pytest.raises(weightcache.InvalidArgument, match='"perhaps"'):
        weightcache.load(path, device="cpu", on_miss="perhaps")
    loader = threading.Timer(0.2, lambda: weightcache.load(path, device="cpu"))
    loader.start()
    assert len(weightcache.attach(path, wait=30, framework="pt")) > 0
    loader.join()


def test_an_expectation_that_does_not_hold_names_each_field_with_both_values(daemon, every_type):
    path, _ = every_type
    weightcache.load(path, device="cpu")
    with pytest.raises(weightcache.Mismatch) as caught:
        weightcache.attach("types", expect={"form": {"engine": "x", "dtype": "bfloat16"}})
    assert "form" in str(caught.value)
    assert weightcache.attach("types", expect={"form": "raw"}).name == "types"


def test_no_daemon_is_disconnected_or_goes_on_from_disk_with_one_warning(no_daemon, every_type):
    path, content = every_type
    with pytest.raises(weightcache.Disconnected) as caught:
        weightcache.load(path, device="cpu")
    assert str(no_daemon.socket) in str(caught.value)
    assert isinstance(caught.value, ConnectionError)
    with pytest.warns(RuntimeWarning, match="read from disk") as warned:
        weights = weightcache.load(path, device="cpu", on_unavailable="load")
    assert len(warned) == 1
    assert weights.loaded_from == "disk" and isinstance(weights.reason, weightcache.Disconnected)
    tensor = weights["t.bf16"]
    assert bytes(tensor.reshape(-1).view(torch.uint8).numpy()) == content["t.bf16"]
    assert weights["empty"].shape == (0, 3) and weights["scalar"].shape == ()
    with pytest.raises(weightcache.NotFound):
        weights["nothing"]


def test_the_environment_switches_the_cache_off_or_requires_it(daemon, every_type, monkeypatch):
    path, _ = every_type
    monkeypatch.setenv("WEIGHTCACHE", "off")
    assert weightcache.load(path, device="cpu").loaded_from == "disk"
    assert weightcache.entries() == []
    monkeypatch.setenv("WEIGHTCACHE", "require")
    monkeypatch.setenv("WEIGHTCACHE_SOCKET", str(daemon.socket) + "-none")
    with pytest.raises(weightcache.Disconnected):
        weightcache.load(path, device="cpu", on_unavailable="load")
    monkeypatch.setenv("WEIGHTCACHE", "maybe")
    with pytest.raises(weightcache.InvalidArgument, match='"maybe"'):
        weightcache.load(path, device="cpu")


def test_other_content_under_a_taken_name_is_refused_or_replaces(daemon, folder):
    write_checkpoint(folder / "a" / "m" / "model.safetensors", {"x": ("U8", [100])}, seed=1)
    write_checkpoint(folder / "b" / "m" / "model.safetensors", {"x": ("U8", [100])}, seed=2)
    weightcache.load(folder / "a" / "m", device="cpu")
    with pytest.raises(weightcache.AlreadyExists):
        weightcache.load(folder / "b" / "m", device="cpu")
    assert weightcache.load(folder / "b" / "m", device="cpu", replace=True).generation == 2


def test_a_broken_file_is_corrupt_and_leaves_nothing(daemon, folder):
    path = folder / "model.safetensors"
    write_checkpoint(path, {"x": ("U8", [100])})
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(weightcache.Corrupt, match=r"model\.safetensors"):
        weightcache.load(path, device="cpu")
    assert weightcache.entries() == []


def test_there_is_one_exception_for_each_code():
    from weightcache._library import lib

    lib.wc_error_name.restype = __import__("ctypes").c_char_p
    assert len(errors.BY_NUMBER) == 16
    for number, kind in errors.BY_NUMBER.items():
        assert lib.wc_error_name(number).decode() == kind.code
        again = pickle.loads(pickle.dumps(kind("what happened", "EIO")))
        assert type(again) is kind and str(again) == f"{kind.code}: what happened (EIO)"


def test_progress_is_told_to_a_function_or_shown(daemon, folder, capsys):
    write_checkpoint(folder / "m" / "model.safetensors", {"x": ("U8", [1 << 20])})
    told: list[weightcache.Report] = []
    weightcache.load(folder / "m", device="cpu", progress=told.append)
    assert told and told[-1].done_bytes == told[-1].total_bytes > 1 << 20
    weightcache.Connection().evict("m")
    weightcache.load(folder / "m", device="cpu", progress=True)
    assert "load" in capsys.readouterr().err


def test_ctrl_c_ends_a_wait_at_once(daemon):
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        weightcache.attach("never", wait=None)
    assert time.monotonic() - start < 10
    timer.join()


def test_a_daemon_that_ends_takes_nothing_from_a_running_model(daemon, every_type):
    path, content = every_type
    weights = weightcache.load(path, device="cpu", framework="pt")
    daemon.end(signal.SIGKILL)
    for name in ("t.u8", "t.f64"):
        assert bytes(weights[name].reshape(-1).view(torch.uint8).numpy()) == content[name]
    weights.close()


FORK = """
import os, sys, torch, weightcache
weights = weightcache.attach("types", framework="pt")
kept = weights["t.f32"]
expected = kept.clone()
child = os.fork()
if child == 0:
    assert torch.equal(kept, expected)
    assert torch.equal(weightcache.attach("types", framework="pt")["t.f32"], expected)
    del kept, weights
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert torch.equal(kept, expected) and torch.equal(weights["t.f32"], expected)
"""

SPAWN = """
import multiprocessing, sys, torch, weightcache

def total(name):
    return float(weightcache.attach("types", framework="pt")[name].sum())

if __name__ == "__main__":
    expected = total("t.i32")
    for method in ("spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(total, ["t.i32"] * 4) == [expected] * 4
"""


def test_a_forked_child_reads_on_and_attaches_anew(daemon, every_type, run):
    weightcache.load(every_type[0], device="cpu")
    run(FORK)


def test_spawned_workers_attach_on_their_own(daemon, every_type, folder, no_daemon):
    import subprocess
    import sys

    weightcache.load(every_type[0], device="cpu")
    script = folder / "spawn.py"
    script.write_text(SPAWN)
    subprocess.run([sys.executable, script], env=daemon.env, check=True, timeout=120)
