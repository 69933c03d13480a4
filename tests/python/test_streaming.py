"""iter_tensors: what it gives, that it reads no more than what is wanted, and what it refuses."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import torch
from conftest import write_checkpoint
from safetensors.torch import load_file, save_file

import weightcache
from weightcache import streaming


@pytest.fixture
def model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two shards; blocks that are small, so that tensors have several."""
    monkeypatch.setattr(streaming, "_BLOCK", 1000)
    torch.manual_seed(1)
    path = folder / "m"
    path.mkdir()
    first = {f"layers.{n}.weight": torch.randn(16, 48) for n in range(5)}
    second = {
        "cube": torch.randn(4, 6, 8).half(), "scalar": torch.tensor(3.0),
        "empty": torch.empty(0, 7), "bias": torch.randn(33).bfloat16(),
    }  # fmt: skip
    save_file(first, path / "model-00001-of-00002.safetensors")
    save_file(second, path / "model-00002-of-00002.safetensors")
    return path


def everything(path: Path) -> dict[str, torch.Tensor]:
    return {
        name: tensor
        for file in sorted(path.glob("*.safetensors"))
        for name, tensor in load_file(file).items()
    }


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What is asked of the system, all of it."""
    told: list[int] = []
    lock, real = threading.Lock(), os.preadv

    def preadv(fd, buffers, offset):
        got = real(fd, buffers, offset)
        with lock:
            told.append(got)
        return got

    monkeypatch.setattr(os, "preadv", preadv)
    return told


@pytest.mark.parametrize(("ahead", "threads"), [(1 << 30, 0), (1, 1), (5000, 3)])
def test_it_gives_every_tensor_as_safetensors_does(no_daemon, model, ahead, threads):
    expected = everything(model)
    got = dict(weightcache.iter_tensors(model, ahead=ahead, threads=threads))
    assert got.keys() == expected.keys()
    for name, tensor in expected.items():
        assert got[name].dtype == tensor.dtype and torch.equal(got[name], tensor), name


PARTS = [
    (slice(2, 5),), (slice(None), slice(3, 9)), (slice(1, 3), slice(2, 4)), slice(3),
    (slice(0, 2), slice(None), slice(1, 7)), (slice(None), slice(1, 2), slice(-3, None)),
    (slice(5, 2),),
]  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_what_slicing_gives_and_nothing_else_is_read(model, bytes_read, part):
    expected = everything(model)["cube"][part]
    got = dict(weightcache.iter_tensors(model, lambda name, _: part if name == "cube" else None))
    assert list(got) == ["cube"]
    assert torch.equal(got["cube"], expected) and got["cube"].is_contiguous()
    assert sum(bytes_read) == expected.numel() * 2


@pytest.mark.parametrize("dimension", [0, 1])
def test_eight_ranks_together_read_the_model_once(model, bytes_read, dimension):
    expected = everything(model)

    def of_rank(rank):
        def select(name, shape):
            if not name.startswith("layers"):
                return rank == 0
            step = shape[dimension] // 8
            cut = slice(rank * step, (rank + 1) * step)
            return (cut,) if dimension == 0 else (slice(None), cut)

        return select

    ranks = [dict(weightcache.iter_tensors(model, of_rank(rank))) for rank in range(8)]
    assert sum(bytes_read) == sum(t.numel() * t.element_size() for t in expected.values())
    for name in (name for name in expected if name.startswith("layers")):
        whole = torch.cat([rank[name] for rank in ranks], dimension)
        assert torch.equal(whole, expected[name])
    assert [len(rank) for rank in ranks] == [len(expected)] + [5] * 7


def test_memory_is_bounded_by_ahead(model, bytes_read):
    size = 16 * 48 * 4
    stream = weightcache.iter_tensors(model, ahead=2 * size, threads=2)
    for number, (name, tensor) in enumerate(stream):
        if name.startswith("layers"):
            assert tensor.numel() * 4 == size
            # What was given, and at most what may be ahead of it.
            assert sum(bytes_read) <= (number + 1 + 2) * size


def test_an_iteration_that_is_given_up_leaves_no_thread_and_no_file(model):
    before = set(os.listdir("/proc/self/fd"))
    stream = weightcache.iter_tensors(model)
    next(stream)
    stream.close()
    assert set(os.listdir("/proc/self/fd")) <= before
    assert not [t for t in threading.enumerate() if t.name.startswith("weightcache")]


@pytest.mark.parametrize(
    "answer", [3, "all", (slice(None, None, 2),), (0,), (slice(1),) * 4], ids=repr
)
def test_what_select_may_not_answer(model, answer):
    with pytest.raises(weightcache.InvalidArgument, match='"cube"'):
        weightcache.iter_tensors(model, lambda name, _: answer if name == "cube" else None)


def test_a_file_that_shrinks_or_changes_is_corrupt(model):
    stream = weightcache.iter_tensors(model, ahead=1, threads=1)
    next(stream)
    file = model / "model-00001-of-00002.safetensors"
    with open(file, "r+b") as opened:
        opened.truncate(file.stat().st_size - 16 * 48 * 4 * 2)
    with pytest.raises(weightcache.Corrupt, match=r"00001-of-00002\.safetensors.*ends at"):
        list(stream)


def test_a_file_that_is_written_meanwhile_is_corrupt(model):
    stream = weightcache.iter_tensors(model)
    next(stream)
    with open(model / "model-00001-of-00002.safetensors", "r+b") as opened:
        opened.seek(-1, os.SEEK_END)
        opened.write(b"x")
    with pytest.raises(weightcache.Corrupt, match="was changed"):
        list(stream)


def test_what_is_no_checkpoint_and_what_pytorch_has_no_type_for(folder):
    with pytest.raises(weightcache.NotFound):
        weightcache.iter_tensors(folder / "nothing")
    with pytest.raises(weightcache.InvalidArgument):
        weightcache.iter_tensors(folder, ahead=0)
    write_checkpoint(folder / "f6.safetensors", {"six": ("F6_E2M3", [4, 4]), "x": ("U8", [3])})
    with pytest.raises(weightcache.Unsupported, match="F6_E2M3"):
        weightcache.iter_tensors(folder / "f6.safetensors")
    wanted = weightcache.iter_tensors(folder / "f6.safetensors", lambda name, _: name == "x")
    assert [name for name, _ in wanted] == ["x"]
