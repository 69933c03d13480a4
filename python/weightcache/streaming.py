"""A checkpoint's tensors one after the other, read by many threads into bounded memory."""

from __future__ import annotations

import ctypes
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from weightcache._frameworks import TORCH_NAMES
from weightcache.connection import device_text
from weightcache.disk import FileTensor, checkpoint_tensors
from weightcache.errors import Corrupt, InvalidArgument, Io, Unsupported

Select = Callable[[str, tuple[int, ...]], Any]

_BLOCK = 4 << 20  # what stays in a core's cache between the read and the copy to a GPU


def iter_tensors(
    source: str | os.PathLike[str],
    select: Select | None = None,
    *,
    device: Any = "cpu",
    ahead: int = 1 << 30,
    threads: int = 0,
) -> Iterator[tuple[str, Any]]:
    """Names and PyTorch tensors of a checkpoint, in the order of its files, for an engine's own
    ``load_weights``. Needs no daemon and leaves nothing resident: the tensors are the caller's.

    ``select(name, shape)`` says what of a tensor is wanted: ``None`` or ``False`` nothing, ``True``
    or ``...`` all, a slice or a tuple of slices (without steps) a part. Only that is read, so that
    ranks that want different parts together read the model once.
    ``device``: where they are wanted, ``"cpu"`` or ``"cuda:N"``. ``ahead``: bytes that may be read
    before they are asked for (a larger tensor is read alone); beside them there are two blocks of
    4 MiB pinned memory for each thread with a GPU. ``threads``: 0: by the number of cores.

    Raises :class:`Corrupt` where a file is not valid or changes meanwhile, :class:`Io` where it
    can't be read, :class:`Unsupported` for types that PyTorch has not.
    """
    import torch

    if ahead <= 0 or threads < 0:
        raise InvalidArgument(f"ahead is {ahead} and threads {threads}: neither may be negative")
    folder, found = checkpoint_tensors(source)
    wanted = []
    for tensor in sorted(found, key=lambda it: (it.file, it.offset)):
        chosen = True if select is None else select(tensor.name, tensor.shape)
        if chosen is None or chosen is False:
            continue
        wanted.append(_wanted(tensor, chosen, torch))
    return _stream(folder, wanted, torch.device(device_text(device)), ahead, threads)


@dataclass
class _Wanted:
    """What is read of a tensor. ``pieces``: offsets and sizes in the file, in the order in which
    they follow each other in memory."""

    name: str
    file: str
    shape: list[int]
    dtype: Any
    bytes: int
    pieces: Iterator[tuple[int, int]] = field(repr=False)


def _wanted(tensor: FileTensor, chosen: Any, torch: Any) -> _Wanted:
    own = getattr(torch, TORCH_NAMES.get(tensor.dtype, ""), None)
    if own is None:
        raise Unsupported(f'tensor "{tensor.name}": this PyTorch has no type for {tensor.dtype}')
    shape = list(tensor.shape)
    ranges = _ranges(tensor, chosen)
    if tensor.dtype == "F4":  # PyTorch's counts pairs, the format single values
        if any(bound % 2 for bound in ranges[-1]):
            raise InvalidArgument(f'tensor "{tensor.name}": F4 can be cut between bytes only')
        shape[-1] //= 2
        ranges[-1] = (ranges[-1][0] // 2, ranges[-1][1] // 2)
    sizes = [last - first for first, last in ranges]
    total = own.itemsize
    for size in sizes:
        total *= size
    pieces = _pieces(tensor.offset, own.itemsize, shape, ranges) if total else iter(())
    return _Wanted(tensor.name, tensor.file, sizes, own, total, pieces)


def _ranges(tensor: FileTensor, chosen: Any) -> list[tuple[int, int]]:
    if chosen is True or chosen is Ellipsis:
        chosen = ()
    parts = chosen if isinstance(chosen, tuple) else (chosen,)
    if len(parts) > len(tensor.shape) or not all(isinstance(part, slice) for part in parts):
        raise InvalidArgument(
            f'select gave {chosen!r} for "{tensor.name}" of shape {tensor.shape}: None, True, or '
            "at most one slice for each dimension is known"
        )
    ranges = []
    for size, part in zip(tensor.shape, parts, strict=False):
        first, last, step = part.indices(size)
        if step != 1:
            raise InvalidArgument(f'select gave a step of {step} for "{tensor.name}": 1 is known')
        ranges.append((first, max(first, last)))
    return ranges + [(0, size) for size in tensor.shape[len(parts) :]]


def _pieces(
    offset: int, item: int, shape: Sequence[int], ranges: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """The stretches of the file that hold a part, in its own order, each as long as can be."""
    inner = len(shape)  # the dimensions from here on are whole, and so is what they hold
    run = item
    while inner > 0 and ranges[inner - 1] == (0, shape[inner - 1]):
        inner -= 1
        run *= shape[inner]
    start = 0
    if inner > 0:
        inner -= 1
        start = ranges[inner][0] * run
        length = (ranges[inner][1] - ranges[inner][0]) * run
        run *= shape[inner]
    else:
        length = run
    steps = []
    for size in reversed(shape[:inner]):
        steps.append(run)
        run *= size
    steps.reverse()
    for index in product(*(range(first, last) for first, last in ranges[:inner])):
        at = sum(number * step for number, step in zip(index, steps, strict=True))
        yield offset + at + start, length


def _blocks(pieces: Iterator[tuple[int, int]]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Pieces in groups of a block at most: where each group begins in the part, and its pieces."""
    begin = filled = 0
    group: list[tuple[int, int]] = []
    for offset, length in pieces:
        while length:
            taken = min(length, _BLOCK - filled)
            group.append((offset, taken))
            offset, length, filled = offset + taken, length - taken, filled + taken
            if filled == _BLOCK:
                yield begin, group
                begin, filled, group = begin + filled, 0, []
    if group:
        yield begin, group


class _Files:
    """Open files of one checkpoint, and the proof that they stay what they were."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._open: dict[str, tuple[int, tuple[int, ...]]] = {}

    def fd(self, name: str) -> int:
        if name not in self._open:
            try:
                fd = os.open(os.path.join(self._folder, name), os.O_RDONLY | os.O_CLOEXEC)
            except OSError as error:
                raise Io(f'"{name}": open: {error.strerror}', _errno(error)) from error
            self._open[name] = fd, self._receipt(fd)
        return self._open[name][0]

    @staticmethod
    def _receipt(fd: int) -> tuple[int, ...]:
        it = os.fstat(fd)
        return it.st_size, it.st_mtime_ns, it.st_ctime_ns

    def check(self) -> None:
        for name, (fd, receipt) in self._open.items():
            if self._receipt(fd) != receipt:
                raise Corrupt(f'"{name}" was changed while it was read')

    def close(self) -> None:
        for fd, _ in self._open.values():
            os.close(fd)
        self._open.clear()


def _read(fd: int, name: str, group: list[tuple[int, int]], to: memoryview) -> None:
    """Fills memory with the pieces of a group, one after the other."""
    at = 0
    for offset, length in group:
        end = at + length
        while at < end:
            try:
                got = os.preadv(fd, [to[at:end]], offset)
            except OSError as error:
                raise Io(f'"{name}": read at {offset}: {error.strerror}', _errno(error)) from error
            if got == 0:
                raise Corrupt(f'"{name}" ends at {offset}, before its tensors do')
            at, offset = at + got, offset + got


def _errno(error: OSError) -> str:
    import errno

    return errno.errorcode.get(error.errno or 0, "")


def _memory(address: int, size: int) -> memoryview:
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")


class _Host:
    """Blocks go straight to their places."""

    def begin(self) -> Any:
        return None

    def bring(self, job: _Job, begin: int, group: list[tuple[int, int]], _since: Any) -> Any:
        size = sum(length for _, length in group)
        _read(job.fd, job.name, group, _memory(job.address + begin, size))

    def give(self, job: _Job, done: list[Any]) -> None:
        pass


class _Gpu:
    """Blocks go through each thread's two pinned ones, on its own stream."""

    def __init__(self, torch: Any, device: Any) -> None:
        self._torch, self._device = torch, device
        self._own = threading.local()

    def begin(self) -> Any:
        # Memory that a tensor gets may still be in use by what was queued before.
        event = self._torch.cuda.Event()
        event.record(self._torch.cuda.current_stream(self._device))
        return event

    def bring(self, job: _Job, begin: int, group: list[tuple[int, int]], since: Any) -> Any:
        own, torch = self._own, self._torch
        if not hasattr(own, "stream"):
            own.stream = torch.cuda.Stream(self._device)
            own.turn = 0
            own.blocks = [torch.empty(_BLOCK, dtype=torch.uint8, pin_memory=True) for _ in range(2)]
            own.memory = [_memory(block.data_ptr(), _BLOCK) for block in own.blocks]
            own.free = [None, None]
        own.turn = turn = 1 - own.turn
        if own.free[turn] is not None:
            own.free[turn].synchronize()
        size = sum(length for _, length in group)
        _read(job.fd, job.name, group, own.memory[turn])
        with torch.cuda.stream(own.stream):
            own.stream.wait_event(since)
            job.raw[begin : begin + size].copy_(own.blocks[turn][:size], non_blocking=True)
            event = torch.cuda.Event()
            event.record(own.stream)
        own.free[turn] = event
        return event

    def give(self, job: _Job, done: list[Any]) -> None:
        stream = self._torch.cuda.current_stream(self._device)
        for event in done:
            stream.wait_event(event)


@dataclass
class _Job:
    """A tensor that is being read."""

    name: str
    fd: int
    raw: Any  # its bytes
    address: int
    tensor: Any
    bytes: int
    parts: list[Future[Any]] = field(default_factory=list)


def _stream(
    folder: str, wanted: list[_Wanted], device: Any, ahead: int, threads: int
) -> Iterator[tuple[str, Any]]:
    import torch

    if device.type not in ("cpu", "cuda"):
        raise InvalidArgument(f'"{device}": "cpu" and "cuda:N" are known')
    way: _Host | _Gpu = _Host() if device.type == "cpu" else _Gpu(torch, device)
    files = _Files(folder)
    pool = ThreadPoolExecutor(threads or min(os.cpu_count() or 4, 12), "weightcache")
    reading: deque[tuple[str, _Job]] = deque()
    in_flight = 0
    left = deque(wanted)
    try:
        while left or reading:
            while left and (not reading or in_flight + left[0].bytes <= ahead):
                it = left.popleft()
                raw = torch.empty(it.bytes, dtype=torch.uint8, device=device)
                tensor = (
                    raw.view(it.dtype).reshape(it.shape)
                    if it.bytes
                    else torch.empty(it.shape, dtype=it.dtype, device=device)
                )
                job = _Job(it.file, files.fd(it.file), raw, raw.data_ptr(), tensor, it.bytes)
                since = way.begin()
                job.parts = [
                    pool.submit(way.bring, job, begin, group, since)
                    for begin, group in _blocks(it.pieces)
                ]
                reading.append((it.name, job))
                in_flight += job.bytes
            name, job = reading.popleft()
            wait(job.parts, return_when=FIRST_EXCEPTION)
            way.give(job, [part.result() for part in job.parts])
            in_flight -= job.bytes
            tensor = job.tensor
            del job
            yield name, tensor
            del tensor
        files.check()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        files.close()
