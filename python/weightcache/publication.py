"""Filling an entry with what a program made itself: begin, reserve, write, describe, publish."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_uint32, c_void_p
from dataclasses import dataclass
from typing import Any

from weightcache import _structs as structs
from weightcache._frameworks import DTYPES
from weightcache._library import Cancellation, interruptible, lib, read, text
from weightcache._progress import Bar, Report
from weightcache.connection import Connection, Entry, device_text, nanoseconds
from weightcache.errors import InvalidArgument

_BOOL, _INT, _FLOAT, _TEXT, _BYTES = 1, 2, 3, 4, 5
ALIGNMENT = 512
"""Where a tensor may start, in bytes of its segment; a view inside another's starts anywhere."""


@dataclass(frozen=True)
class Segment:
    """Reserved memory: ``address`` is a host address or a device address, writable until
    :meth:`Publication.publish` and readable until the publication is closed."""

    index: int
    address: int
    bytes: int


class Publication:
    """The right to fill an entry. ``resident`` tells that the content is there already, under this
    name from now on: attach to it, nothing is to be filled. Closed without :meth:`publish`, it is
    abandoned and its memory given back. For one thread at a time.

    ``fingerprint`` says what the content is: ``{"source": {"source_id": ...}, "form": {...},
    "partition": {...}}``; equal documents mean equal bytes. ``wait``: seconds to wait behind
    somebody who fills the same; None: without limit; 0: :class:`~weightcache.Busy` at once.
    """

    def __init__(
        self,
        name: str,
        fingerprint: Mapping[str, Any],
        *,
        device: Any = "cpu",
        rank: int = 0,
        world: int = 1,
        replace: bool = False,
        total_bytes: int = 0,
        wait: float | None = None,
        source: str | os.PathLike[str] | None = None,
        progress: bool | Callable[[Report], None] = False,
        connection: Connection | None = None,
        socket: str | os.PathLike[str] | None = None,
    ) -> None:
        self.name = name
        self._handle = c_void_p()
        self._connection = connection or Connection(socket)
        self._cancellation = Cancellation()
        with Bar(progress, f"publish {name}") as bar:
            options = structs.PublishOptions(
                name=text(name),
                fingerprint=text(json.dumps(fingerprint)),
                device=text(device_text(device)),
                source=text(source),
                rank=rank,
                world=world,
                replace=int(replace),
                no_wait=int(wait == 0),
                total_bytes=total_bytes,
                wait_ns=0 if wait is None else nanoseconds(wait),
                progress=bar.function,
                cancellation=self._cancellation.handle,
            )
            interruptible(
                lambda: lib.wc_publication_begin(
                    self._connection.handle, ctypes.byref(options), ctypes.byref(self._handle)
                ),
                self._cancellation,
            )
        self.resident = not self._handle

    def reserve(self, size: int) -> Segment:
        """A further segment of at least so many bytes, every page of it there when this returns."""
        index, address = c_uint32(), c_void_p()
        interruptible(
            lambda: lib.wc_publication_reserve(
                self._open(), size, ctypes.byref(index), ctypes.byref(address)
            ),
            self._cancellation,
        )
        return Segment(index.value, address.value or 0, size)

    def write(self, segment: Segment, offset: int, address: int, size: int) -> None:
        """Copies bytes of this process's host memory to a place in a segment."""
        lib.wc_publication_write(self._open(), segment.index, offset, address, size)

    def describe(
        self,
        name: str,
        dtype: str,
        shape: Sequence[int],
        segment: Segment,
        offset: int,
        *,
        strides: Sequence[int] | None = None,
        parameter: bool = True,
        persistent: bool = True,
        requires_grad: bool = False,
    ) -> None:
        """Names a tensor; ``dtype`` as safetensors calls it, ``strides`` in elements."""
        if dtype not in DTYPES:
            raise InvalidArgument(f'tensor "{name}": there is no dtype "{dtype}"')
        numbers = ctypes.c_int64 * len(shape)
        description = structs.TensorDescription(
            name=text(name),
            shape=numbers(*shape),
            strides=None if strides is None else numbers(*strides),
            rank=len(shape),
            dtype=DTYPES[dtype],
            segment=segment.index,
            offset=offset,
            kind=0 if parameter else 1,
            flags=int(persistent) | int(requires_grad) << 1,
        )
        lib.wc_publication_tensor(self._open(), ctypes.byref(description))

    def attribute(
        self, path: str, name: str, value: bool | int | float | str | bytes, *, of_tensor: bool
    ) -> None:
        """Records a value beside the tensors, of a tensor or of a module's path ("" the root)."""
        item = structs.Attribute(path=text(path), name=text(name), of_tensor=int(of_tensor))
        if isinstance(value, bool):
            item.type, item.integer = _BOOL, int(value)
        elif isinstance(value, int):
            item.type, item.integer = _INT, value
        elif isinstance(value, float):
            item.type, item.real = _FLOAT, value
        else:
            data = value.encode() if isinstance(value, str) else value
            held = ctypes.create_string_buffer(data, len(data) + 1)
            item.type = _TEXT if isinstance(value, str) else _BYTES
            item.data = ctypes.cast(held, c_void_p)
            item.data_bytes = len(data)
        lib.wc_publication_attribute(self._open(), ctypes.byref(item))

    def tell(self, done_bytes: int, total_bytes: int) -> None:
        """Progress, for those who wait."""
        lib.wc_publication_progress(self._open(), done_bytes, total_bytes)

    def publish(self) -> Entry:
        """The one atomic step: what was described is visible to everybody from now on, or, after an
        error, nothing is."""
        result = c_void_p()
        lib.wc_publication_publish(self._open(), ctypes.byref(result))
        try:
            return Entry.of(read(lib.wc_load_result_entry, structs.EntryInfo, result))
        finally:
            lib.wc_load_result_free(result)

    def close(self) -> None:
        """Frees it, and unmaps what it reserved."""
        if self._handle:
            handle, self._handle = self._handle, c_void_p()
            lib.wc_publication_free(handle)

    def __enter__(self) -> Publication:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    def _open(self) -> c_void_p:
        if not self._handle:
            raise InvalidArgument(f'"{self.name}" is resident already, or its publication is over')
        return self._handle
