"""A session with the daemon, and what can be asked of it."""

from __future__ import annotations

import ctypes
import os
from ctypes import c_void_p
from dataclasses import dataclass
from typing import Any

from weightcache import _structs as structs
from weightcache._library import lib, read, text


@dataclass(frozen=True)
class Entry:
    """A record of the daemon's catalog. ``bytes`` is exactly what it occupies on its device."""

    name: str
    form: str
    fingerprint: str
    device: str
    source: str
    rank: int
    world: int
    generation: int
    state: str
    transport: str
    tensors: int
    bytes: int
    segments: int
    leases: int
    pinned: bool

    @staticmethod
    def of(info: Any) -> Entry:
        return Entry(
            info.name.decode(),
            info.form.decode(),
            info.fingerprint.decode(),
            info.device.decode(),
            info.source.decode(),
            info.rank,
            info.world,
            info.generation,
            lib.wc_state_name(info.state).decode(),
            lib.wc_transport_name(info.transport).decode(),
            info.tensors,
            info.bytes,
            info.segments,
            info.leases,
            bool(info.pinned),
        )


def selector(
    name: str | os.PathLike[str],
    *,
    form: str | None = None,
    device: str | None = None,
    rank: int = 0,
    world: int = 0,
) -> Any:
    return structs.Selector(
        text=text(name), form=text(form), device=text(device_text(device)), rank=rank, world=world
    )


def device_text(device: Any) -> str | None:
    """``"cpu"``, ``"cuda:N"``, a UUID; also an ordinal, and a ``torch.device``."""
    if device is None:
        return None
    if isinstance(device, int):
        return f"cuda:{device}"
    said = str(device)
    return f"cuda:{_current_gpu()}" if said == "cuda" else said


def _current_gpu() -> int:
    import torch

    return torch.cuda.current_device() if torch.cuda.is_available() else 0


class Connection:
    """Made for each call that needs one, and kept by what it gave: an attachment's lease lives as
    long as its connection. One connection serves any number of threads.

    ``socket``: by default ``$WEIGHTCACHE_SOCKET``, then the user's own daemon, then the system's.
    """

    def __init__(
        self,
        socket: str | os.PathLike[str] | None = None,
        *,
        label: str | None = None,
        timeout: float = 10.0,
    ) -> None:
        options = structs.ConnectOptions(
            socket=text(socket), label=text(label), timeout_ns=nanoseconds(timeout)
        )
        self.handle = c_void_p()
        lib.wc_connect(ctypes.byref(options), ctypes.byref(self.handle))

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            lib.wc_connection_free(self.handle)

    @property
    def epoch(self) -> str:
        """One incarnation of the daemon."""
        return str(read(lib.wc_connection_daemon, structs.DaemonInfo, self.handle).epoch.decode())

    def entries(self, name: str | None = None) -> list[Entry]:
        """What is resident, or being loaded, under a name; None: everything."""
        made = c_void_p()
        chosen = None if name is None else ctypes.byref(selector(name))
        lib.wc_list(self.handle, chosen, ctypes.byref(made))
        try:
            return [
                Entry.of(read(lib.wc_entry_list_at, structs.EntryInfo, made, index))
                for index in range(lib.wc_entry_list_count(made))
            ]
        finally:
            lib.wc_entry_list_free(made)

    def evict(self, name: str, *, force: bool = False) -> int:
        """Drops entries; how many bytes that gives back, once their last reader is gone."""
        out = structs.Evicted()
        lib.wc_evict(self.handle, ctypes.byref(selector(name)), int(force), ctypes.byref(out))
        return int(out.bytes)

    def pin(self, name: str, pinned: bool = True) -> None:
        """Keeps an entry from being evicted to make room."""
        lib.wc_pin(self.handle, ctypes.byref(selector(name)), int(pinned))


def nanoseconds(seconds: float | None) -> int:
    """Of a limit; None is none."""
    return (1 << 64) - 1 if seconds is None else max(0, int(seconds * 1e9))


def entries(name: str | None = None) -> list[Entry]:
    """What is resident on this machine."""
    return Connection().entries(name)


def resident_bytes(device: Any = None) -> int:
    """What resident entries occupy on a device (None: on all), for sizing a KV cache."""
    wanted = device_text(device)
    if wanted is not None and wanted.startswith("cuda:"):
        wanted = _uuid_of(wanted)
    return sum(
        entry.bytes
        for entry in entries()
        if entry.state != "failed" and wanted in (None, entry.device)
    )


def _uuid_of(device: str) -> str:
    import torch

    return f"GPU-{torch.cuda.get_device_properties(device).uuid}"
