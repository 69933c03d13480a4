"""What a PyTorch module holds: every place in which a tensor stands, and the memory behind them.

A module is more than its ``state_dict``: tied names, views into one storage, buffers that are not
saved, tensors that are plain attributes. Each place where one stands is a :class:`Slot`; the bytes
behind slots are :class:`Extent`, which overlap nowhere, so that each byte is published once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from weightcache._frameworks import TORCH_NAMES
from weightcache.errors import InvalidArgument, Unsupported

Kind = Literal["parameter", "buffer", "attribute"]

DTYPE_NAMES = {
    getattr(torch, own): name for name, own in TORCH_NAMES.items() if hasattr(torch, own)
}
FEW = 10
"""Of a list of names, how many an error shows."""


@dataclass
class Slot:
    """A place in a module that holds a tensor. ``holder`` is where it stands: a module, or the list
    or dict that an attribute is, with ``key`` in it."""

    name: str
    kind: Kind
    persistent: bool
    holder: Any
    key: Any

    @property
    def tensor(self) -> torch.Tensor:
        if isinstance(self.holder, torch.nn.Module):
            return _table(self.holder, self.kind)[self.key]
        return self.holder[self.key]

    def put(self, tensor: torch.Tensor) -> None:
        if isinstance(self.holder, torch.nn.Module):
            _table(self.holder, self.kind)[self.key] = tensor
        else:
            self.holder[self.key] = tensor


def _table(module: torch.nn.Module, kind: Kind) -> Any:
    if kind == "parameter":
        return module._parameters
    return module._buffers if kind == "buffer" else module.__dict__


def paths(module: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """Every module by its path, under each of its paths."""
    found: dict[str, torch.nn.Module] = {}
    above: list[torch.nn.Module] = []

    def visit(path: str, at: torch.nn.Module) -> None:
        if any(at is one for one in above):
            return  # a module that is inside itself
        found[path] = at
        above.append(at)
        for name, child in at._modules.items():
            if child is not None:
                visit(f"{path}.{name}" if path else name, child)
        above.pop()

    visit("", module)
    return found


def slots(module: torch.nn.Module) -> list[Slot]:
    """Every place under a module that holds a tensor, in its order, plain attributes included."""
    found: list[Slot] = []
    for path, at in paths(module).items():
        prefix = f"{path}." if path else ""
        for name, parameter in at._parameters.items():
            if parameter is not None:
                found.append(Slot(prefix + name, "parameter", True, at, name))
        for name, buffer in at._buffers.items():
            if buffer is not None:
                saved = name not in at._non_persistent_buffers_set
                found.append(Slot(prefix + name, "buffer", saved, at, name))
        for name, value in at.__dict__.items():
            if not name.startswith("_") or isinstance(value, torch.Tensor):
                found.extend(_in_attribute(prefix + name, at, name, value))
    return found


def _in_attribute(name: str, holder: Any, key: Any, value: Any) -> Iterator[Slot]:
    if isinstance(value, torch.Tensor):
        yield Slot(name, "attribute", False, holder, key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _in_attribute(f"{name}.{index}", value, index, item)
    elif isinstance(value, dict):
        for inner, item in value.items():
            if isinstance(inner, (str, int)):
                yield from _in_attribute(f"{name}.{inner}", value, inner, item)
    elif isinstance(value, tuple) and any(isinstance(item, torch.Tensor) for item in value):
        raise Unsupported(
            f'"{name}" is a tuple with tensors in it, which could not be put back: make it a list, '
            "or register them as buffers"
        )


# ---- memory --------------------------------------------------------------------------------------


@dataclass
class Extent:
    """Bytes from ``start`` to ``end``, addresses of a device, with the slots whose tensors lie in
    them."""

    device: torch.device
    start: int
    end: int
    slots: list[Slot] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        return self.end - self.start

    def bind(self, memory: torch.Tensor, offset: int, made: dict[Any, torch.Tensor]) -> None:
        """Lets its slots' tensors be the same bytes elsewhere: in ``memory`` from ``offset`` on."""
        storage = memory.untyped_storage()
        for slot, inside in zip(self.slots, self.offsets, strict=True):
            old, at = slot.tensor, offset + inside
            new = torch.empty(0, dtype=old.dtype, device=memory.device)
            new.set_(storage, at // old.element_size(), old.shape, old.stride())
            rebind(slot, new, made)
        size, self.start = self.bytes, memory.data_ptr() + offset
        self.end = self.start + size


def dtype_name(slot: Slot) -> str:
    """As the manifest calls a tensor's type. Errors: Unsupported, naming the tensor."""
    name = DTYPE_NAMES.get(slot.tensor.dtype)
    if name is None:
        raise Unsupported(
            f'"{slot.name}" is of {slot.tensor.dtype}, which the format has no type for'
        )
    return name


def recorded_shape(tensor: torch.Tensor) -> tuple[list[int], list[int] | None]:
    """Shape, and strides where it is not row-major, as the manifest counts: values, of which
    PyTorch's 4-bit type has two in an element."""
    shape = list(tensor.shape)
    if tensor.dtype == getattr(torch, "float4_e2m1fn_x2", None):
        if not tensor.is_contiguous() or not shape:
            raise Unsupported("4-bit values with strides, or a scalar of them, can't be recorded")
        shape[-1] *= 2
        return shape, None
    if tensor.numel() == 0 or tensor.is_contiguous():
        return shape, None
    return shape, list(tensor.stride())


def check_publishable(found: list[Slot]) -> None:
    """Refuses what has no bytes of its own or none that others could read, naming the places."""
    on_meta = [slot.name for slot in found if slot.tensor.is_meta]
    if on_meta:
        raise InvalidArgument(f"{few(on_meta)} on the meta device: there is nothing to publish")
    for slot in found:
        tensor = slot.tensor
        if (
            tensor.layout != torch.strided
            or tensor.is_quantized
            or tensor.is_conj()
            or tensor.is_neg()
            or type(tensor.data) is not torch.Tensor
        ):
            raise Unsupported(
                f'"{slot.name}" is a {type(tensor).__name__} ({tensor.dtype}, {tensor.layout}), '
                "whose bytes are not a plain tensor's"
            )
        dtype_name(slot)
    names: set[str] = set()
    for slot in found:
        if slot.name in names:
            raise InvalidArgument(f'the module has two tensors that are called "{slot.name}"')
        names.add(slot.name)


def extents(found: list[Slot]) -> list[Extent]:
    """The bytes behind slots, each once, in the order of the first slot. What lies between tensors
    (of one storage, even) is left out; tensors without bytes have an extent without any."""
    spans: list[tuple[int, int, int, Slot]] = []
    for at, slot in enumerate(found):
        start, end = _span(slot.tensor)
        spans.append((start, end, at, slot))
    spans.sort(key=lambda one: (one[3].tensor.device.type, one[3].tensor.device.index or 0,
                                one[0], -one[1]))  # fmt: skip
    made: list[tuple[int, Extent]] = []
    current: Extent | None = None
    for start, end, at, slot in spans:
        device = slot.tensor.device
        if start == end:
            made.append((at, Extent(device, 0, 0, [slot], [0])))
            continue
        if current is None or current.device != device or start >= current.end:
            current = Extent(device, start, end)
            made.append((at, current))
        current.end = max(current.end, end)
        current.slots.append(slot)
        current.offsets.append(start - current.start)
        if current.offsets[-1] % slot.tensor.element_size():
            raise Unsupported(
                f'"{slot.name}" begins inside of "{current.slots[0].name}" where none of its '
                f"elements ({slot.tensor.dtype}) may begin"
            )
    made.sort(key=lambda pair: pair[0])
    return [extent for _, extent in made]


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """The addresses at which a tensor's bytes begin and end."""
    if tensor.numel() == 0:
        return 0, 0
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()


class _OnGpu:
    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3,
        }  # fmt: skip


def memory_at(device: torch.device, address: int, size: int) -> torch.Tensor:
    """Memory that somebody else owns, as bytes: for copying, not for keeping."""
    if size == 0:
        return torch.empty(0, dtype=torch.uint8, device=device)
    if device.type == "cpu":
        return torch.frombuffer((ctypes.c_uint8 * size).from_address(address), dtype=torch.uint8)
    return torch.as_tensor(_OnGpu(address, size), device=device)


def few(names: list[str]) -> str:
    """The first ten of a list of names."""
    shown = ", ".join(f'"{name}"' for name in names[:FEW])
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return f"{shown}{more} {'is' if len(names) == 1 else 'are'}"


def rebind(slot: Slot, tensor: torch.Tensor, made: dict[Any, torch.Tensor]) -> None:
    """Lets a slot's tensor be this memory. A tensor that stands in several places stays one object;
    ``made`` is what is known of that, for the time of one module."""
    old = slot.tensor
    if id(old) in made:
        slot.put(made[id(old)])
        return
    same_kind = old.device.type == tensor.device.type and old.dtype == tensor.dtype
    if old.is_meta or old.is_inference() or not same_kind:
        new = _replacement(old, tensor, slot.kind)
        made[id(old)] = new
        made["kept", id(old)] = old  # its id must not be another's meanwhile
        slot.put(new)
    else:
        old.data = tensor


def _replacement(old: torch.Tensor, tensor: torch.Tensor, kind: Kind) -> torch.Tensor:
    """A tensor of the same class with the same marks, of other memory."""
    if kind != "parameter":
        new = tensor
    elif isinstance(old, torch.nn.parameter.UninitializedTensorMixin):
        return torch.nn.Parameter(tensor, requires_grad=old.requires_grad)
    else:
        new = torch.Tensor._make_subclass(type(old), tensor, old.requires_grad)
    new.__dict__.update(old.__dict__)
    return new
