"""PyTorch modules: published as an engine's own post-processing left them, and put back whole.

    weightcache.torch.publish(model, "Llama-3-8B", source_id="llama-3-8b@0f3c")
    weightcache.torch.load_model(skeleton, "Llama-3-8B")      # built on the meta device: no copy

What belongs to a module is parameters, buffers (saved or not), tensors that are plain attributes
(in lists and dicts too), who shares whose bytes, strides, ``requires_grad``, and the other
attributes that the engine declares.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from weightcache import _values
from weightcache import quantization as gate
from weightcache._module import (
    Extent,
    Slot,
    check_publishable,
    dtype_name,
    extents,
    few,
    memory_at,
    paths,
    rebind,
    recorded_shape,
    slots,
)
from weightcache._policy import refuse_if_off
from weightcache._progress import Report, Teller
from weightcache._restore import DEVICE, KIND, Loading, differences, on_host
from weightcache.attachment import Attachment, attach
from weightcache.connection import Connection, Entry
from weightcache.errors import InvalidArgument, Mismatch
from weightcache.publication import ALIGNMENT, Publication, Segment

__all__ = ["Loaded", "Published", "load_model", "publish"]

_MOST_SEGMENTS = 240


class Published(NamedTuple):
    """``outcome``: ``"published"``, or ``"resident"`` where the same content was there already.
    ``bytes``: the module's own, each once."""

    entry: Entry
    outcome: str
    bytes: int


class Loaded(NamedTuple):
    """The first two as ``load_state_dict`` tells them. ``registered``: tensors that the module did
    not have, now registered as recorded. ``bytes``: what the entry occupies, exactly."""

    missing_keys: list[str]
    unexpected_keys: list[str]
    registered: list[str]
    entry: Entry
    bytes: int


# ---- publish -------------------------------------------------------------------------------------


def publish(
    module: torch.nn.Module,
    name: str,
    *,
    source_id: str,
    form: Mapping[str, Any] | None = None,
    partition: Mapping[str, Any] | None = None,
    quantization: Any = None,
    attributes: Collection[str] = (),
    rank: int = 0,
    world: int = 1,
    replace: bool = False,
    rebind: bool = True,
    extra_bytes: int = 1 << 30,
    wait: float | None = None,
    progress: bool | Callable[[Report], None] = False,
    connection: Connection | None = None,
    socket: str | None = None,
) -> Published:
    """Publishes a module as it is now, and lets it live in the published memory from then on.

    ``source_id``: what the weights are, for which the caller vouches; with ``form`` (``engine``,
    ``engine_version``, ``dtype``, ``extra``, ...) and ``partition`` (``tensor``, ``pipeline``,
    ``expert``, ``data``: ``{"rank", "size"}``) it is the content's identity: equal ones mean equal
    bytes, so that a second publisher copies nothing. ``quantization``: the method's name, or a
    configuration; None: what ``module.config`` says. What the gate does not know is
    :class:`UnsupportedQuantization`, before anything is connected.

    ``attributes``: names of Python attributes that are part of the weights' meaning, recorded
    wherever a module or one of its tensors has them.

    It goes in segments of ``extra_bytes`` at most (a larger tensor has one of its own). With
    ``rebind`` each part of the module moves to its published memory before the next is copied, so
    that this is all the memory that it takes beyond the module's own. Afterwards the module is as
    an attached one: on a GPU whoever writes into it faults. After an error its tensors are its own.

    Errors: InvalidArgument (a tensor on the meta device, a declared attribute that nothing has),
    Unsupported (a tensor that is none of plain bytes), AlreadyExists (other content has the name),
    Exhausted, Mismatch (what is resident under this identity is not this module).
    """
    if extra_bytes < 1:
        raise InvalidArgument(f"extra_bytes is {extra_bytes}")
    document = _document(module, source_id, form, partition, quantization)
    refuse_if_off()
    found = slots(module)
    check_publishable(found)
    device = _device_of(found)
    if not found:
        raise InvalidArgument("the module has no tensor: there is nothing to publish")
    declared = list(_declared(module, found, attributes))
    parts = extents(found)
    total = sum(part.bytes for part in parts)
    plan = _plan(parts, extra_bytes)
    session = connection or Connection(socket)
    with Publication(
        name, document, device=str(device), replace=replace, total_bytes=total, wait=wait,
        progress=progress, connection=session, source=source_id,
        rank=rank, world=world,
    ) as publication:  # fmt: skip
        if publication.resident:
            with attach(
                name, framework="pt", expect=document, device=str(device), wait=wait,
                connection=session, rank=rank, world=world,
            ) as attached:  # fmt: skip
                _check_same(found, attached)
                if rebind:
                    _adopt(found, attached)
                return Published(attached.entry, "resident", total)
        filling = _Filling(publication, device, rebind)
        try:
            with Teller(progress, f"publish {name}", total) as tell:
                for segment in plan:
                    filling.fill(segment)
                    publication.tell(filling.done, total)
                    tell(filling.done)
            for path, attribute, value, of_tensor in declared:
                publication.attribute(path, attribute, value, of_tensor=of_tensor)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            entry = publication.publish()
            if rebind:
                at = name if world > 1 else f"{entry.name}@{entry.generation}"
                with attach(
                    at, framework="pt", form=entry.form, device=entry.device, expect=document,
                    wait=wait if world > 1 else 0, connection=session, rank=rank, world=world,
                ) as attached:  # fmt: skip
                    entry = attached.entry
                    _adopt(found, attached)
        except BaseException:
            filling.undo()
            raise
    return Published(entry, "published", total)


def _document(
    module: torch.nn.Module,
    source_id: str,
    form: Mapping[str, Any] | None,
    partition: Mapping[str, Any] | None,
    quantization: Any,
) -> dict[str, Any]:
    """The fingerprint document, once the gate has let it pass."""
    made = {"engine": "torch", **(form or {})}
    method = made.get("quantization") or ""
    config = made.get("quantization_config") or {}
    if isinstance(quantization, str):
        method = quantization
    elif quantization is not None:
        method, config = gate.method_of(quantization), gate.config_of(quantization)
    own = getattr(module, "config", None)
    if own is not None and not config:
        config = _config_of_model(own)
        method = method or gate.method_of(config)
    gate.check(method, config, place="publish")
    if method:
        made["quantization"] = method
        made["quantization_config"] = _without_floats(config)
    document: dict[str, Any] = {"source": {"source_id": source_id}, "form": made}
    if partition:
        document["partition"] = dict(partition)
    return document


def _config_of_model(config: Any) -> dict[str, Any]:
    """The quantization's part of what a module calls its configuration."""
    found = (
        config.get("quantization_config")
        if isinstance(config, Mapping)
        else getattr(config, "quantization_config", None)
    )
    return gate.config_of(found) if found is not None else {}


def _without_floats(value: Any) -> Any:
    """A fingerprint's document has numbers as text where they are not whole."""
    if isinstance(value, Mapping):
        return {str(key): _without_floats(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_floats(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(getattr(value, "value", value))


def _device_of(found: list[Slot]) -> torch.device:
    """The device of the module; tensors on the CPU may be beside those on one GPU."""
    devices = {slot.tensor.device for slot in found}
    gpus = {device for device in devices if device.type != "cpu"}
    if len(gpus) > 1:
        raise InvalidArgument(
            "the module's tensors are on several devices ("
            + ", ".join(sorted(map(str, gpus)))
            + "): publish what is on each of them under a rank of its own"
        )
    return gpus.pop() if gpus else torch.device("cpu")


def _declared(
    module: torch.nn.Module, found: list[Slot], names: Collection[str]
) -> Iterator[tuple[str, str, _values.Plain, bool]]:
    """Declared attributes with their values, wherever there are any."""
    unseen = set(names)
    for path, at in paths(module).items():
        for name in names:
            if name in at.__dict__ and not isinstance(at.__dict__[name], torch.Tensor):
                unseen.discard(name)
                yield path, name, _values.encode(path, name, at.__dict__[name]), False
    for slot in found:
        for name in names:
            if name in slot.tensor.__dict__:
                unseen.discard(name)
                value = slot.tensor.__dict__[name]
                yield slot.name, name, _values.encode(slot.name, name, value), True
    if unseen:
        raise InvalidArgument(f"{few(sorted(unseen))} no attribute of any module or tensor in it")


def _plan(parts: list[Extent], extra_bytes: int) -> list[list[Extent]]:
    """Which extents go into which segment."""
    made: list[list[Extent]] = []
    used = 0
    for part in parts:
        size = _aligned(part.bytes)
        if not made or (used + size > extra_bytes and used > 0):
            made.append([])
            used = 0
        made[-1].append(part)
        used += size
    if len(made) > _MOST_SEGMENTS:
        raise InvalidArgument(
            f"in segments of {extra_bytes} bytes the module takes {len(made)} of them, and an "
            f"entry has {_MOST_SEGMENTS} at most: allow more extra_bytes"
        )
    return made


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


@dataclass
class _Filling:
    """Fills segments with parts of a module, and takes them back where that fails."""

    publication: Publication
    device: torch.device
    rebind: bool
    done: int = 0

    def __post_init__(self) -> None:
        self._moved: list[Extent] = []

    def fill(self, parts: list[Extent]) -> None:
        size = sum(_aligned(part.bytes) for part in parts)
        segment = self.publication.reserve(max(size, ALIGNMENT))
        memory = memory_at(self.device, segment.address, size)
        offset = 0
        for part in parts:
            own = part.device.type == self.device.type
            memory[offset : offset + part.bytes].copy_(
                memory_at(part.device, part.start, part.bytes)
            )
            for slot, inside in zip(part.slots, part.offsets, strict=True):
                self._describe(slot, segment, offset + inside, own)
            self.done += part.bytes
            if self.rebind and own:
                self._moved.append(part)
                part.bind(memory, offset, {})
            offset += _aligned(part.bytes)
        if self.rebind and self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
            torch.cuda.empty_cache()

    def _describe(self, slot: Slot, segment: Segment, offset: int, own: bool) -> None:
        shape, strides = recorded_shape(slot.tensor)
        self.publication.describe(
            slot.name, dtype_name(slot), shape, segment, offset, strides=strides,
            parameter=slot.kind == "parameter", persistent=slot.persistent,
            requires_grad=slot.tensor.requires_grad,
        )  # fmt: skip
        if slot.kind == "attribute":
            self.publication.attribute(slot.name, KIND, "attribute", of_tensor=True)
        if not own:
            self.publication.attribute(slot.name, DEVICE, "cpu", of_tensor=True)

    def undo(self) -> None:
        """Gives the module memory of its own again: what it had moved to goes."""
        for part in self._moved:
            memory = torch.empty(part.bytes, dtype=torch.uint8, device=self.device)
            memory.copy_(memory_at(self.device, part.start, part.bytes))
            part.bind(memory, 0, {})
        self._moved.clear()


def _check_same(found: list[Slot], attached: Attachment) -> None:
    """What is resident under this identity must be what the module has."""
    infos = {info.name: info for info in attached.infos()}
    wrong = differences(found, infos)
    missing = [slot.name for slot in found if slot.name not in infos]
    if wrong or missing:
        raise Mismatch(
            f'"{attached.name}" is resident under the same fingerprint, and is not this module: '
            + "; ".join(wrong[:10] + ([f"{few(missing)} missing there"] if missing else []))
        )


def _adopt(found: list[Slot], attached: Attachment) -> None:
    """Moves every slot to attached memory."""
    tensors = attached.tensors("pt")
    elsewhere = on_host(attached)
    made: dict[Any, torch.Tensor] = {}
    for slot in found:
        if slot.name not in elsewhere:
            rebind(slot, tensors[slot.name], made)


# ---- load ----------------------------------------------------------------------------------------


def load_model(
    module: torch.nn.Module,
    name: str,
    *,
    strict: bool = True,
    form: str | None = None,
    device: Any = None,
    rank: int = 0,
    world: int = 0,
    expect: Mapping[str, Any] | None = None,
    quantization: Any = None,
    access: str | None = None,
    wait: float | None = 0,
    progress: bool | Callable[[Report], None] = False,
    connection: Connection | None = None,
    socket: str | None = None,
) -> Loaded:
    """Puts a published module back into one that was built the same way, on the meta device best.
    Nothing is copied, filled in or processed: tensors are the published memory.

    Tensors that the module lacks are registered as recorded (parameter, buffer, plain attribute);
    recorded attributes are set. ``strict`` is as in ``load_state_dict``: without it, missing and
    unexpected names are only told. ``expect``: any part of the fingerprint document.
    ``quantization``: as in :func:`publish`.

    Errors, all before the module is touched: Mismatch where a tensor's dtype or shape differs (each
    named with both), where names are missing or unexpected, or where a tensor would be left on the
    meta device, ``strict`` or not (the first ten named); UnsupportedQuantization; as
    :func:`weightcache.attach`.
    """
    _check_gate(module, quantization)
    refuse_if_off()
    with attach(
        name, framework="pt", form=form, device=device, rank=rank, world=world, access=access,
        expect=expect, wait=wait, progress=progress, connection=connection, socket=socket,
    ) as attached:  # fmt: skip
        loading = Loading(module, attached)
        loading.check(strict)
        loading.run()
        return Loaded(
            loading.missing, loading.unexpected, sorted(loading.extra), attached.entry,
            attached.bytes,
        )  # fmt: skip


def _check_gate(module: torch.nn.Module, quantization: Any) -> None:
    own = getattr(module, "config", None)
    config = {} if own is None else _config_of_model(own)
    if isinstance(quantization, str):
        gate.check(quantization or None, config, place="attach")
    else:
        gate.check(None, config if quantization is None else quantization, place="attach")
