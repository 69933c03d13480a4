"""Drop-in for ``safetensors``: the same signatures, the tensors from the cache.

    from weightcache.safetensors import safe_open, load_file

A file that is not resident is loaded and published first; without a daemon it is read from disk,
with one warning (``WEIGHTCACHE=require`` forbids that, ``WEIGHTCACHE=off`` asks no daemon).
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from typing import Any

from weightcache._slices import Slice
from weightcache.attachment import Attachment
from weightcache.disk import DiskTensors
from weightcache.errors import AlreadyExists
from weightcache.loading import load

__all__ = ["load_file", "safe_open"]


def _weights(
    filename: str | os.PathLike[str], framework: str, device: Any
) -> Attachment | DiskTensors:
    path = os.path.abspath(os.fspath(filename))
    where = "cpu" if device is None else device
    try:
        return load(path, device=where, framework=framework, on_unavailable="load")
    except AlreadyExists:
        # Many checkpoints' files are called alike.
        stem = os.path.basename(path).removesuffix(".safetensors")
        name = f"{stem}-{hashlib.sha256(path.encode()).hexdigest()[:12]}"
        return load(
            path, name=name, device=where, framework=framework, on_unavailable="load", replace=True
        )


class safe_open:
    """Opens a safetensors file; ``framework``: ``"pt"``, ``"np"``, ``"jax"``. ``backend`` is how
    safetensors would read, and has no meaning here."""

    def __init__(
        self,
        filename: str | os.PathLike[str],
        framework: str,
        device: Any = "cpu",
        *,
        backend: str = "mmap",
    ) -> None:
        self._filename = filename
        self._weights = _weights(filename, framework, device)

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *_: object) -> None:
        self._weights.close()

    def keys(self) -> list[str]:
        """The names, sorted, as safetensors gives them."""
        return sorted(self._weights)

    def offset_keys(self) -> list[str]:
        """The names in the order of the file."""
        return list(self._weights)

    def metadata(self) -> dict[str, str] | None:
        """The texts under ``__metadata__``."""
        with open(self._filename, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
        found: dict[str, str] | None = header.get("__metadata__")
        return found

    def get_tensor(self, name: str) -> Any:
        return self._weights[name]

    def get_tensors(self) -> dict[str, Any]:
        return self._weights.tensors()

    def get_slice(self, name: str) -> Slice:
        return self._weights.get_slice(name)


def load_file(
    filename: str | os.PathLike[str], device: str | int = "cpu", *, backend: str = "mmap"
) -> dict[str, Any]:
    """Every tensor of a file, as PyTorch's, on a device. ``backend`` has no meaning here."""
    with _weights(filename, "pt", device) as weights:
        return weights.tensors()
