"""Making a checkpoint resident, and attaching to it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from ctypes import c_void_p
from typing import Any, overload

from weightcache import _structs as structs
from weightcache._library import Cancellation, interruptible, lib, read, text
from weightcache._policy import Fallback, OnMiss, check_miss, settle_unavailable, switched_off
from weightcache._progress import Bar, Report
from weightcache.attachment import Attachment, attach
from weightcache.connection import Connection, Entry, device_text, nanoseconds
from weightcache.disk import DiskTensors
from weightcache.errors import UNAVAILABLE


def load_only(
    source: str | os.PathLike[str],
    *,
    name: str | None = None,
    device: Any = None,
    replace: bool = False,
    wait: float | None = None,
    threads: int = 0,
    compat: bool = False,
    progress: bool | Callable[[Report], None] = False,
    connection: Connection,
) -> tuple[Entry, str]:
    """Makes a checkpoint resident, or finds it so; attaches to nothing. What is there now, and
    ``"resident"``, ``"loaded"`` or ``"waited"``."""
    cancellation = Cancellation()
    result = c_void_p()
    with Bar(progress, f"load {os.fspath(source)}") as bar:
        options = structs.LoadOptions(
            name=text(name),
            device=text(device_text(device)),
            replace=int(replace),
            compat=int(compat),
            threads=threads,
            wait_ns=0 if wait is None else nanoseconds(wait),
            progress=bar.function,
            cancellation=cancellation.handle,
        )

        def call() -> None:
            lib.wc_load(
                connection.handle, text(source), ctypes.byref(options), ctypes.byref(result)
            )

        interruptible(call, cancellation)
    try:
        about = read(lib.wc_load_result_info, structs.LoadInfo, result)
        entry = Entry.of(read(lib.wc_load_result_entry, structs.EntryInfo, result))
    finally:
        lib.wc_load_result_free(result)
    if about.waited:
        return entry, "waited"
    return entry, "loaded" if about.outcome == 0 else "resident"


@overload
def load(
    source: str | os.PathLike[str],
    *,
    on_unavailable: None = None,
    name: str | None = ...,
    device: Any = ...,
    framework: str | None = ...,
    replace: bool = ...,
    access: str | None = ...,
    expect: Mapping[str, Any] | None = ...,
    on_miss: OnMiss = ...,
    wait: float | None = ...,
    threads: int = ...,
    compat: bool = ...,
    progress: bool | Callable[[Report], None] = ...,
    socket: str | os.PathLike[str] | None = ...,
) -> Attachment: ...
@overload
def load(
    source: str | os.PathLike[str],
    *,
    on_unavailable: Fallback,
    name: str | None = ...,
    device: Any = ...,
    framework: str | None = ...,
    replace: bool = ...,
    access: str | None = ...,
    expect: Mapping[str, Any] | None = ...,
    on_miss: OnMiss = ...,
    wait: float | None = ...,
    threads: int = ...,
    compat: bool = ...,
    progress: bool | Callable[[Report], None] = ...,
    socket: str | os.PathLike[str] | None = ...,
) -> Attachment | DiskTensors: ...
def load(
    source: str | os.PathLike[str],
    *,
    on_unavailable: Fallback | None = None,
    name: str | None = None,
    device: Any = None,
    framework: str | None = None,
    replace: bool = False,
    access: str | None = None,
    expect: Mapping[str, Any] | None = None,
    on_miss: OnMiss = "load",
    wait: float | None = None,
    threads: int = 0,
    compat: bool = False,
    progress: bool | Callable[[Report], None] = False,
    socket: str | os.PathLike[str] | None = None,
) -> Attachment | DiskTensors:
    """Attaches to a checkpoint, which is loaded first where it is not resident.

    ``source``: a directory, a ``.safetensors`` file, or ``org/name`` in the hub's cache.
    ``device``: ``"cpu"``, ``"cuda:N"``, a UUID; None: the only GPU, or the CPU.
    ``on_miss``: ``"load"``; ``"wait"`` for somebody else's load, ``wait`` seconds at most;
    ``"fail"`` with :class:`NotFound`. ``on_unavailable``, where the cache can't serve at all (no
    daemon, another version, no room): ``"fail"``, the default, or ``"load"``: a
    :class:`~weightcache.disk.DiskTensors` with the reason. ``WEIGHTCACHE=off`` and
    ``WEIGHTCACHE=require`` overrule it. ``wait``: limit for waiting behind another loader.
    """
    check_miss(on_miss)
    if switched_off():
        return DiskTensors(source, device, "WEIGHTCACHE=off")
    try:
        return _load(
            source,
            socket,
            on_miss,
            name=name,
            device=device,
            framework=framework,
            replace=replace,
            access=access,
            expect=expect,
            wait=wait,
            threads=threads,
            compat=compat,
            progress=progress,
        )
    except UNAVAILABLE as error:
        settle_unavailable(on_unavailable or "fail", error)
        return DiskTensors(source, device, error)


def _load(
    source: str | os.PathLike[str],
    socket: str | os.PathLike[str] | None,
    on_miss: OnMiss,
    *,
    name: str | None,
    device: Any,
    framework: str | None,
    access: str | None,
    expect: Mapping[str, Any] | None,
    wait: float | None,
    progress: Any,
    **options: Any,
) -> Attachment:
    connection = Connection(socket)
    if on_miss != "load":
        limit = wait if on_miss == "wait" else 0
        return attach(
            name or source,
            framework=framework,
            device=device,
            access=access,
            expect=expect,
            wait=limit,
            progress=progress,
            connection=connection,
        )
    entry, loaded_from = load_only(
        source,
        name=name,
        device=device,
        wait=wait,
        progress=progress,
        connection=connection,
        **options,
    )
    attached = attach(
        f"{entry.name}@{entry.generation}",
        framework=framework,
        form=entry.form,
        device=entry.device,
        access=access,
        expect=expect,
        connection=connection,
    )
    attached.loaded_from = loaded_from
    return attached
