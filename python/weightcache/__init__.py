"""Model weights that stay in memory when the engine does not.

    import weightcache
    with weightcache.attach("Llama-3-8B") as weights:      # names to tensors, in place
        model.load_state_dict(weights, assign=True)        # they outlive the block

:func:`attach` maps what is resident, :func:`load` loads it first where it is not.
:mod:`weightcache.safetensors` stands in for the package of that name, and
:mod:`weightcache.quantization` says which quantized weights may be shared.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from weightcache._library import lib as _lib
from weightcache._progress import Report
from weightcache.attachment import Attachment, TensorInfo, attach
from weightcache.connection import Connection, Entry, entries, resident_bytes
from weightcache.disk import DiskTensors
from weightcache.errors import (
    AlreadyExists,
    Busy,
    Cancelled,
    Corrupt,
    Denied,
    DeviceError,
    Disconnected,
    Exhausted,
    Internal,
    InvalidArgument,
    Io,
    Mismatch,
    NotFound,
    TimedOut,
    Unsupported,
    UnsupportedQuantization,
    VersionMismatch,
    WeightcacheError,
)
from weightcache.loading import load
from weightcache.publication import Publication
from weightcache.streaming import iter_tensors

if TYPE_CHECKING:
    from weightcache import quantization, safetensors, torch, transformers

__version__: str = _lib.wc_version().decode()

__all__ = [
    "AlreadyExists", "Attachment", "Busy", "Cancelled", "Connection", "Corrupt", "Denied",
    "DeviceError", "Disconnected", "DiskTensors", "Entry", "Exhausted", "Internal",
    "InvalidArgument", "Io", "Mismatch", "NotFound", "Publication", "Report", "TensorInfo",
    "TimedOut", "Unsupported", "UnsupportedQuantization", "VersionMismatch", "WeightcacheError",
    "attach", "entries", "iter_tensors", "load", "quantization", "resident_bytes", "safetensors",
    "torch",
    "transformers",
]  # fmt: skip

_SUBMODULES = ("quantization", "safetensors", "torch", "transformers")


def __getattr__(name: str) -> Any:
    # On first use: none of them is needed to attach, and some import a framework.
    if name in _SUBMODULES:
        return importlib.import_module(f"weightcache.{name}")
    raise AttributeError(f"module 'weightcache' has no attribute {name!r}")
