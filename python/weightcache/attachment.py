"""A published entry in this process: a mapping of names to tensors, in place."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence, ValuesView
from ctypes import c_size_t, c_void_p
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from weightcache import _structs as structs
from weightcache._frameworks import DTYPE_NAMES, Framework, framework
from weightcache._library import Cancellation, interruptible, lib, read, text
from weightcache._progress import Bar, Report
from weightcache._slices import Slice
from weightcache.connection import Connection, Entry, nanoseconds, selector
from weightcache.errors import Busy, InvalidArgument, NotFound

_ACCESS = {None: 0, "shared": 1, "private": 2}
_BATCH = 4096  # tensors asked for at once when all are wanted one after another


@dataclass(frozen=True)
class TensorInfo:
    """What is recorded of a tensor. ``strides`` are in elements; equal ``segment`` and ``offset``
    mean the same memory."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    segment: int
    offset: int
    bytes: int
    parameter: bool
    persistent: bool
    requires_grad: bool
    index: int


def _row_major(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


class Attachment(Mapping[str, Any]):
    """Names to tensors, in the publisher's order, each made when it is looked up.

    Leaving the ``with`` block, or :meth:`close`, ends the handle; the memory stays mapped, and the
    lease held, until the last tensor taken from it is gone. On the CPU memory is private by default
    (writing disturbs nobody), on a GPU it is mapped read-only: a kernel that writes faults.

    ``loaded_from`` tells where the weights came from: ``"resident"``, ``"loaded"`` (by this call),
    ``"waited"`` (another process loaded them meanwhile).
    """

    loaded_from: str = "resident"

    def __init__(self, handle: c_void_p, connection: Connection, kind: str | None) -> None:
        self.handle = handle
        self._connection = connection
        self._kind = kind

    # ---- the mapping -------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(lib.wc_attachment_tensor_count(self._open()))

    def __iter__(self) -> Iterator[str]:
        self._open()
        return iter(self._names)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self._index(name) >= 0
        except NotFound:
            return False

    def __getitem__(self, name: str) -> Any:
        return self._framework.tensors(self, self._index(name), 1)[0]

    def items(self) -> ItemsView[str, Any]:
        return _Items(self)

    def values(self) -> ValuesView[Any]:
        return _Values(self)

    def tensors(self, framework: str | None = None) -> dict[str, Any]:
        """All of them at once, in a dict: what costs least for tens of thousands."""
        chosen = self._framework if framework is None else _framework(framework)
        return dict(zip(self._names, chosen.tensors(self, 0, len(self)), strict=True))

    def get_tensor(self, name: str) -> Any:
        """As safetensors calls a look-up."""
        return self[name]

    def get_slice(self, name: str) -> Slice:
        """A tensor of which a part will be taken: ``get_slice("w")[2:4]``."""
        info = self.info(name)
        return Slice(lambda: self[name], info.dtype, info.shape)

    # ---- what is known of it -----------------------------------------------------------------

    @cached_property
    def entry(self) -> Entry:
        """As it was when this was attached."""
        return Entry.of(read(lib.wc_attachment_entry, structs.EntryInfo, self._open()))

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def generation(self) -> int:
        return self.entry.generation

    @property
    def device(self) -> str:
        """``"cpu"``, or the GPU's UUID."""
        return self.entry.device

    @property
    def bytes(self) -> int:
        """What it occupies on its device, exactly."""
        return self.entry.bytes

    @property
    def attach_seconds(self) -> float:
        return float(lib.wc_attachment_attach_ns(self._open())) / 1e9

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """The document that says what the content is: source, form, partition."""
        told = read(lib.wc_attachment_provenance, structs.Provenance, self._open())
        document: dict[str, Any] = json.loads(told.fingerprint_json or b"{}")
        return document

    @cached_property
    def attributes(self) -> dict[tuple[str, str], Any]:
        """What the publisher recorded beside tensors: (module path or tensor name, attribute) to
        value."""
        found = {}
        for index in range(lib.wc_attachment_attribute_count(self._open())):
            item = read(lib.wc_attachment_attribute_at, structs.Attribute, self.handle, index)
            found[item.path.decode(), item.name.decode()] = _value(item)
        return found

    def info(self, name: str) -> TensorInfo:
        """What is recorded of a tensor; makes none."""
        return self._info_at(self._index(name))

    def infos(self) -> list[TensorInfo]:
        """Of all tensors, in order."""
        return [self._info_at(index) for index in range(len(self))]

    def shape_at(self, index: int) -> tuple[int, ...]:
        """By place in the publisher's order."""
        return self._info_at(index).shape

    @cached_property
    def dlpack_device(self) -> tuple[int, int]:
        """As DLPack tells a device: (1, 0) the CPU, (2, N) a GPU of this process."""
        if len(self) == 0:
            return 1, 0
        made = (c_void_p * 1)()
        lib.wc_attachment_dlpack(self._open(), None, 0, 1, made)
        told = ctypes.c_int32 * 2  # behind the tensor's address
        kind, ordinal = told.from_address((made[0] or 0) + ctypes.sizeof(c_void_p))
        lib.wc_dlpack_delete(made[0], 0)
        return kind, ordinal

    @property
    def living(self) -> int:
        """How many tensors taken from it are alive."""
        return int(lib.wc_attachment_living(self._open()))

    # ---- its end -----------------------------------------------------------------------------

    def close(self, *, strict: bool = False) -> None:
        """Ends the handle. ``strict``: an error while tensors live, which says how many."""
        if self.handle is None:
            return
        if strict and self.living:
            raise Busy(f'"{self.name}" is still used: {self.living} of its tensors live')
        handle, self.handle = self.handle, None  # type: ignore[assignment]
        lib.wc_detach(handle)

    def __enter__(self) -> Attachment:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "handle", None) is not None:
            self.close()

    def __repr__(self) -> str:
        if self.handle is None:
            return "<weightcache.Attachment, closed>"
        return (
            f"<weightcache.Attachment {self.name!r}: {len(self)} tensors, {self.bytes} bytes "
            f"on {self.device}, generation {self.generation}>"
        )

    # ---- inside ------------------------------------------------------------------------------

    def _open(self) -> c_void_p:
        if self.handle is None:
            raise InvalidArgument("the attachment is closed")
        return self.handle

    @cached_property
    def _framework(self) -> Framework:
        return _framework(self._kind)

    @cached_property
    def _names(self) -> list[str]:
        needed = c_size_t()
        lib.wc_attachment_names(self._open(), None, 0, ctypes.byref(needed))
        if needed.value == 0:
            return []
        room = ctypes.create_string_buffer(needed.value)
        lib.wc_attachment_names(self.handle, room, needed, ctypes.byref(needed))
        return room.raw[: needed.value - 1].decode().split("\n")

    def _index(self, name: str) -> int:
        index = c_size_t()
        lib.wc_attachment_find(self._open(), name.encode(), ctypes.byref(index))
        return index.value

    @cached_property
    def _records(self) -> Any:
        """The table of tensors, as the library writes it."""
        count = len(self)
        table = (structs.Tensor * count)()
        if count:
            table[0].struct_size = ctypes.sizeof(structs.Tensor)
            lib.wc_attachment_tensors(self.handle, 0, count, table)
        return table

    def _info_at(self, index: int) -> TensorInfo:
        self._open()
        it = self._records[index]
        shape = tuple(it.shape[: it.rank])
        strides = tuple(it.strides[: it.rank]) if it.strides else _row_major(shape)
        return TensorInfo(
            ctypes.string_at(it.name, it.name_bytes).decode(),
            DTYPE_NAMES[it.dtype],
            shape,
            strides,
            it.segment,
            it.offset,
            it.bytes,
            it.kind == 0,
            bool(it.flags & 1),
            bool(it.flags & 2),
            index,
        )

    def dtypes_among(self, mask: int, first: int, count: int) -> Iterator[tuple[int, int]]:
        """The tensors whose type is in a mask: index and type's number."""
        records = self._records
        for index in range(first, first + count):
            number = records[index].dtype
            if mask >> number & 1:
                yield index, number


_framework = framework  # the name is a parameter's above


def _value(item: Any) -> Any:
    if item.type == 1:
        return bool(item.integer)
    if item.type == 2:
        return int(item.integer)
    if item.type == 3:
        return float(item.real)
    data = ctypes.string_at(item.data, item.data_bytes) if item.data_bytes else b""
    return data.decode() if item.type == 4 else data


class _Items(ItemsView[str, Any]):
    """Pairs, made in batches."""

    _mapping: Attachment

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        of = self._mapping
        names = list(of)
        for first in range(0, len(names), _BATCH):
            some = names[first : first + _BATCH]
            yield from zip(some, of._framework.tensors(of, first, len(some)), strict=True)


class _Values(ValuesView[Any]):
    _mapping: Attachment

    def __iter__(self) -> Iterator[Any]:
        return (tensor for _, tensor in _Items(self._mapping))


def attach(
    name: str | os.PathLike[str],
    *,
    framework: str | None = None,
    form: str | None = None,
    device: Any = None,
    rank: int = 0,
    world: int = 0,
    access: str | None = None,
    expect: Mapping[str, Any] | None = None,
    wait: float | None = 0,
    progress: bool | Callable[[Report], None] = False,
    connection: Connection | None = None,
    socket: str | os.PathLike[str] | None = None,
) -> Attachment:
    """Maps a published entry into this process.

    ``name``: ``NAME``, ``NAME@GENERATION``, ``@FINGERPRINT``, or the checkpoint's path.
    ``framework``: what a look-up gives, ``"pt"``, ``"np"`` or ``"jax"``; None: what is imported.
    ``access``: ``"private"`` (host memory: copy-on-write) or ``"shared"`` (read-only); None:
    private on the CPU, read-only on a GPU. ``expect``: any part of a fingerprint document; what
    differs is :class:`Mismatch`, with each field and both values. ``wait``: seconds until it must
    be published; 0: it must be now; None: without limit.
    """
    if access not in _ACCESS:
        raise InvalidArgument(f'there is no access "{access}": "private" and "shared" are known')
    if framework is not None:
        _framework(framework)  # a wrong one is told before anything is mapped
    session = connection or Connection(socket)
    chosen = selector(name, form=form, device=device, rank=rank, world=world)
    cancellation = Cancellation()
    handle = c_void_p()
    with Bar(progress, f"attach {os.fspath(name)}") as bar:
        options = structs.AttachOptions(
            access=_ACCESS[access],
            wait_ns=nanoseconds(wait),
            progress=bar.function,
            expect=None if expect is None else text(json.dumps(expect)),
            cancellation=cancellation.handle,
        )

        def call() -> None:
            lib.wc_attach(
                session.handle, ctypes.byref(chosen), ctypes.byref(options), ctypes.byref(handle)
            )

        if wait == 0:
            call()
        else:
            interruptible(call, cancellation)
    return Attachment(handle, session, framework)
