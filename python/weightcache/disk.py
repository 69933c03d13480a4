"""A checkpoint read without the cache: what stands in where no daemon can serve."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator, Mapping
from ctypes import c_void_p
from dataclasses import dataclass
from typing import Any

from weightcache import _structs as structs
from weightcache._frameworks import DTYPE_NAMES, TORCH_NAMES
from weightcache._library import lib, read, text
from weightcache._slices import Slice
from weightcache.errors import NotFound, Unsupported


@dataclass(frozen=True)
class FileTensor:
    """Where a tensor lies on disk."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: str
    offset: int
    bytes: int


def checkpoint_tensors(source: str | os.PathLike[str]) -> tuple[str, list[FileTensor]]:
    """The directory, and every tensor in it. Reads and checks all headers; needs no daemon."""
    handle = c_void_p()
    options = structs.CheckpointOptions()
    lib.wc_checkpoint_open(text(source), ctypes.byref(options), ctypes.byref(handle))
    try:
        about = read(lib.wc_checkpoint_read, structs.CheckpointInfo, handle)
        found = []
        for index in range(about.tensors):
            it = read(lib.wc_checkpoint_tensor_at, structs.FileTensor, handle, index)
            found.append(
                FileTensor(
                    ctypes.string_at(it.name, it.name_bytes).decode(),
                    DTYPE_NAMES[it.dtype],
                    tuple(it.shape[: it.rank]),
                    it.file.decode(),
                    it.offset,
                    it.bytes,
                )
            )
        return about.directory.decode(), found
    finally:
        lib.wc_checkpoint_free(handle)


class DiskTensors(Mapping[str, Any]):
    """The same mapping as an :class:`~weightcache.Attachment`, over private maps of the files;
    PyTorch tensors only. ``reason`` is why the cache did not serve."""

    loaded_from = "disk"

    def __init__(
        self, source: str | os.PathLike[str], device: Any = None, reason: BaseException | str = ""
    ) -> None:
        folder, found = checkpoint_tensors(source)
        self.name = os.fspath(source)
        self.device = str(device or "cpu")
        self.reason = reason
        self._folder = folder
        self._tensors = {tensor.name: tensor for tensor in found}
        self._maps: dict[str, mmap.mmap] = {}

    def __len__(self) -> int:
        return len(self._tensors)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __getitem__(self, name: str) -> Any:
        import torch

        it = self.info(name)
        own = getattr(torch, TORCH_NAMES.get(it.dtype, ""), None)
        if own is None:
            raise Unsupported(f'tensor "{name}": this PyTorch has no type for {it.dtype}')
        if it.bytes == 0:
            return torch.empty(it.shape, dtype=own, device=self.device)
        raw = torch.frombuffer(
            self._map(it.file), dtype=torch.uint8, count=it.bytes, offset=it.offset
        )
        if it.offset % own.itemsize:
            raw = raw.clone()  # a type must start on its own boundary
        shape = list(it.shape)
        if it.dtype == "F4":
            shape[-1] //= 2
        return raw.view(own).reshape(shape).to(self.device)

    def info(self, name: str) -> FileTensor:
        """Where a tensor lies on disk."""
        try:
            return self._tensors[name]
        except KeyError:
            raise NotFound(f'"{self.name}" has no tensor "{name}"') from None

    def get_tensor(self, name: str) -> Any:
        return self[name]

    def get_slice(self, name: str) -> Slice:
        it = self.info(name)
        return Slice(lambda: self[name], it.dtype, it.shape)

    def tensors(self, framework: str | None = None) -> dict[str, Any]:
        return dict(self.items())

    def close(self, *, strict: bool = False) -> None:
        """The maps end with their last tensor."""
        self._maps.clear()

    def __enter__(self) -> DiskTensors:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _map(self, file: str) -> mmap.mmap:
        if file not in self._maps:
            with open(os.path.join(self._folder, file), "rb") as opened:
                self._maps[file] = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY)
        return self._maps[file]
