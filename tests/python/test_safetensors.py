"""The drop-in against the package that it stands for, on the same files."""

from __future__ import annotations

import inspect

import pytest
import safetensors
import safetensors.torch
import torch
from conftest import write_checkpoint

import weightcache
from weightcache.safetensors import load_file, safe_open

SHAPES = {"a": ("F32", [4, 6]), "b": ("BF16", [3]), "c": ("I64", []), "d": ("U8", [0, 2])}


@pytest.fixture
def file(folder):
    path = folder / "model.safetensors"
    write_checkpoint(path, SHAPES, metadata={"format": "pt"})
    return path


def test_load_file_gives_the_same(daemon, file):
    ours, theirs = load_file(file), safetensors.torch.load_file(file)
    assert ours.keys() == theirs.keys()
    for name in theirs:
        assert ours[name].dtype == theirs[name].dtype and torch.equal(ours[name], theirs[name])
    assert [entry.name for entry in weightcache.entries()] == ["model"]


@pytest.mark.parametrize("framework", ["pt", "np"])
def test_safe_open_gives_the_same(daemon, file, framework):
    names = [name for name in SHAPES if framework == "pt" or name != "b"]
    with (
        safe_open(file, framework=framework, device="cpu") as ours,
        safetensors.safe_open(file, framework=framework, device="cpu") as theirs,
    ):
        assert sorted(ours.keys()) == sorted(theirs.keys())
        assert list(ours.offset_keys()) == list(theirs.offset_keys())
        assert ours.metadata() == theirs.metadata() == {"format": "pt"}
        for name in names:
            assert (ours.get_tensor(name) == theirs.get_tensor(name)).all()
            assert ours.get_tensor(name).dtype == theirs.get_tensor(name).dtype
        assert ours.get_tensors().keys() == set(theirs.keys())
        mine, other = ours.get_slice("a"), theirs.get_slice("a")
        assert mine.get_shape() == other.get_shape() and mine.get_dtype() == other.get_dtype()
        assert (mine[1:3, :2] == other[1:3, :2]).all()


def test_files_of_one_name_in_many_folders_do_not_meet(daemon, folder):
    for number in (1, 2):
        write_checkpoint(folder / str(number) / "model.safetensors", SHAPES, seed=number)
    first = load_file(folder / "1" / "model.safetensors")
    second = load_file(folder / "2" / "model.safetensors")
    assert not torch.equal(first["a"], second["a"])
    for number in (1, 2):
        theirs = safetensors.torch.load_file(folder / str(number) / "model.safetensors")
        assert torch.equal(load_file(folder / str(number) / "model.safetensors")["a"], theirs["a"])


def test_without_a_daemon_the_file_is_read(no_daemon, file):
    with pytest.warns(RuntimeWarning):
        ours = load_file(file)
    assert torch.equal(ours["a"], safetensors.torch.load_file(file)["a"])


def test_the_signatures_are_the_same():
    for ours, theirs in [(load_file, safetensors.torch.load_file)]:
        assert list(inspect.signature(ours).parameters) == list(
            inspect.signature(theirs).parameters
        )
    public = {name for name in dir(safetensors.safe_open) if not name.startswith("_")}
    assert public <= set(dir(safe_open))
