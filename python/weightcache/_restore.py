"""Putting a published module back: what goes where, found out in full before anything changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from weightcache import _values
from weightcache._module import Slot, dtype_name, few, paths, rebind, recorded_shape, slots
from weightcache.attachment import Attachment, TensorInfo
from weightcache.errors import Internal, Mismatch

KIND, DEVICE = "weightcache:kind", "weightcache:device"
"""Attributes of tensors, beside those that an engine declares: "attribute" and "cpu"."""


def on_host(attached: Attachment) -> set[str]:
    return {path for (path, name) in attached.attributes if name == DEVICE}


def differences(found: list[Slot], infos: Mapping[str, TensorInfo]) -> list[str]:
    """Each tensor of which dtype or shape differ, with both."""
    wrong = []
    for slot in found:
        info = infos.get(slot.name)
        if info is None:
            continue
        shape = tuple(recorded_shape(slot.tensor)[0])
        dtype = dtype_name(slot)
        if dtype != info.dtype:
            wrong.append(f'"{slot.name}" is {info.dtype}, the module has {dtype}')
        if shape != info.shape:
            wrong.append(f'"{slot.name}" has shape {list(info.shape)}, the module {list(shape)}')
    return wrong


class Loading:
    """One module, one attachment. :meth:`check`, then :meth:`run`."""

    def __init__(self, module: torch.nn.Module, attached: Attachment) -> None:
        self.attached = attached
        self.infos = {info.name: info for info in attached.infos()}
        self.paths = paths(module)
        self.slots = slots(module)
        self.plain = {path for (path, name) in attached.attributes if name == KIND}
        known = {slot.name for slot in self.slots}
        self.extra = [name for name in self.infos if name not in known and self._owner(name)]
        self.unexpected = [
            name for name in self.infos if name not in known and not self._owner(name)
        ]
        resolved = {id(slot.tensor) for slot in self.slots if slot.name in self.infos}
        self.missing = [
            slot.name
            for slot in self.slots
            if id(slot.tensor) not in resolved and (slot.tensor.is_meta or slot.kind != "attribute")
        ]
        self.unresolved = [
            slot.name
            for slot in self.slots
            if slot.tensor.is_meta and id(slot.tensor) not in resolved
        ]
        self.homeless = [
            f"{path}.{name}"
            for (path, name) in self._declared()
            if path not in self.infos and path not in self.paths
        ]

    def _owner(self, name: str) -> bool:
        path, _, last = name.rpartition(".")
        return path in self.paths and last not in self.paths[path]._modules

    def _declared(self) -> dict[tuple[str, str], Any]:
        return {
            (path, name): value
            for (path, name), value in self.attached.attributes.items()
            if name not in (KIND, DEVICE)
        }

    def check(self, strict: bool) -> None:
        said = differences(self.slots, self.infos)[:10]
        if self.unresolved:
            said.append(
                f"{few(self.unresolved)} not in the entry and would stay on the meta device"
            )
        if strict:
            if self.missing:
                said.append("missing key(s): " + _listed(self.missing))
            if self.unexpected:
                said.append("unexpected key(s): " + _listed(self.unexpected))
            if self.homeless:
                said.append("attributes of modules that are not there: " + _listed(self.homeless))
        if said:
            raise Mismatch(f'"{self.attached.name}" does not fit the module: ' + "; ".join(said))

    def run(self) -> None:
        tensors = self.attached.tensors("pt")
        for name in on_host(self.attached):
            tensors[name] = tensors[name].to("cpu", copy=True)
        made: dict[Any, torch.Tensor] = {}
        for slot in self.slots:
            info = self.infos.get(slot.name)
            if info is None:
                if id(slot.tensor) in made:
                    slot.put(made[id(slot.tensor)])
                continue
            if slot.kind != self._kind(info):
                self._remove(slot)
                self._register(info, tensors[info.name])
                continue
            rebind(slot, tensors[info.name], made)
            if slot.tensor.is_leaf:
                slot.tensor.requires_grad_(info.requires_grad)
            if slot.kind == "buffer":
                _mark_persistent(slot.holder, slot.key, info.persistent)
        for name in self.extra:
            self._register(self.infos[name], tensors[name])
        self._set_attributes()
        left = [slot.name for slot in slots(self.paths[""]) if slot.tensor.is_meta]
        if left:
            raise Internal(f"{few(left)} still on the meta device")

    def _kind(self, info: TensorInfo) -> str:
        if info.name in self.plain:
            return "attribute"
        return "parameter" if info.parameter else "buffer"

    def _remove(self, slot: Slot) -> None:
        if not isinstance(slot.holder, torch.nn.Module):
            raise Mismatch(f'"{slot.name}" is inside of an attribute here and was none')
        delattr(slot.holder, slot.key)

    def _register(self, info: TensorInfo, tensor: torch.Tensor) -> None:
        path, _, last = info.name.rpartition(".")
        module = self.paths[path]
        kind = self._kind(info)
        if kind == "parameter":
            parameter = torch.nn.Parameter(tensor, requires_grad=info.requires_grad)
            module.register_parameter(last, parameter)
        elif kind == "buffer":
            module.register_buffer(last, tensor, persistent=info.persistent)
        else:
            module.__dict__[last] = tensor

    def _set_attributes(self) -> None:
        tensors = {slot.name: slot for slot in slots(self.paths[""])}
        for (path, name), value in self._declared().items():
            if path in tensors and path in self.infos:
                setattr(tensors[path].tensor, name, _values.decode(value))
            elif path in self.paths:
                setattr(self.paths[path], name, _values.decode(value))


def _mark_persistent(module: torch.nn.Module, name: str, persistent: bool) -> None:
    if persistent:
        module._non_persistent_buffers_set.discard(name)
    else:
        module._non_persistent_buffers_set.add(name)


def _listed(names: list[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:10])
    return shown + (f" and {len(names) - 10} more" if len(names) > 10 else "")
