"""libweightcache by ctypes: found, opened once, never closed; failures become exceptions.

Calls release the interpreter's lock. Those that may take long are run so that Ctrl-C ends them
(:func:`interruptible`).
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, TypeVar

from weightcache import _structs as structs
from weightcache import errors

T = TypeVar("T")

PACKAGE = Path(__file__).parent
_SONAME = "libweightcache.so.0"

_P = POINTER
# Functions that return a code, with their arguments.
_CHECKED: dict[str, list[Any]] = {
    "wc_connect": [c_void_p, _P(c_void_p)],
    "wc_connection_daemon": [c_void_p, c_void_p],
    "wc_cancellation_new": [_P(c_void_p)],
    "wc_list": [c_void_p, c_void_p, _P(c_void_p)],
    "wc_entry_list_at": [c_void_p, c_size_t, c_void_p],
    "wc_attach": [c_void_p, c_void_p, c_void_p, _P(c_void_p)],
    "wc_attachment_entry": [c_void_p, c_void_p],
    "wc_attachment_tensor_at": [c_void_p, c_size_t, c_void_p],
    "wc_attachment_tensors": [c_void_p, c_size_t, c_size_t, c_void_p],
    "wc_attachment_find": [c_void_p, c_char_p, _P(c_size_t)],
    "wc_attachment_names": [c_void_p, c_void_p, c_size_t, _P(c_size_t)],
    "wc_attachment_dlpack": [c_void_p, c_void_p, c_size_t, c_size_t, c_void_p],
    "wc_attachment_segment_at": [c_void_p, c_size_t, c_void_p],
    "wc_attachment_attribute_at": [c_void_p, c_size_t, c_void_p],
    "wc_attachment_provenance": [c_void_p, c_void_p],
    "wc_wait": [c_void_p, c_void_p, c_void_p, _P(c_void_p)],
    "wc_load": [c_void_p, c_char_p, c_void_p, _P(c_void_p)],
    "wc_load_result_info": [c_void_p, c_void_p],
    "wc_load_result_entry": [c_void_p, c_void_p],
    "wc_publication_begin": [c_void_p, c_void_p, _P(c_void_p)],
    "wc_publication_reserve": [c_void_p, c_uint64, _P(c_uint32), _P(c_void_p)],
    "wc_publication_write": [c_void_p, c_uint32, c_uint64, c_void_p, c_uint64],
    "wc_publication_tensor": [c_void_p, c_void_p],
    "wc_publication_attribute": [c_void_p, c_void_p],
    "wc_publication_progress": [c_void_p, c_uint64, c_uint64],
    "wc_publication_publish": [c_void_p, _P(c_void_p)],
    "wc_fingerprint": [c_char_p, c_char_p],
    "wc_quantization_check": [c_char_p, c_char_p, c_int],
    "wc_quantization_method_at": [c_size_t, _P(c_char_p), _P(c_char_p)],
    "wc_evict": [c_void_p, c_void_p, c_int, c_void_p],
    "wc_pin": [c_void_p, c_void_p, c_int],
    "wc_checkpoint_open": [c_char_p, c_void_p, _P(c_void_p)],
    "wc_checkpoint_read": [c_void_p, c_void_p],
    "wc_checkpoint_tensor_at": [c_void_p, c_size_t, c_void_p],
}
_VOID: dict[str, list[Any]] = {
    "wc_connection_free": [c_void_p],
    "wc_cancel": [c_void_p],
    "wc_cancellation_free": [c_void_p],
    "wc_entry_list_free": [c_void_p],
    "wc_detach": [c_void_p],
    "wc_load_result_free": [c_void_p],
    "wc_publication_free": [c_void_p],
    "wc_checkpoint_free": [c_void_p],
    "wc_dlpack_delete": [c_void_p, c_int],
}
_VALUES: dict[str, tuple[Any, list[Any]]] = {
    "wc_last_error_code": (c_int, []),
    "wc_last_error_message": (c_char_p, []),
    "wc_last_error_origin": (c_char_p, []),
    "wc_version": (c_char_p, []),
    "wc_state_name": (c_char_p, [c_int]),
    "wc_transport_name": (c_char_p, [c_int]),
    "wc_entry_list_count": (c_size_t, [c_void_p]),
    "wc_attachment_attach_ns": (c_uint64, [c_void_p]),
    "wc_attachment_epoch": (c_char_p, [c_void_p]),
    "wc_attachment_tensor_count": (c_size_t, [c_void_p]),
    "wc_attachment_segment_count": (c_size_t, [c_void_p]),
    "wc_attachment_attribute_count": (c_size_t, [c_void_p]),
    "wc_attachment_living": (c_size_t, [c_void_p]),
    "wc_dtype_name": (c_char_p, [c_int]),
    "wc_dtype_bits": (c_uint32, [c_int]),
    "wc_dtype_named": (c_int, [c_char_p]),
    "wc_quantization_method_count": (c_size_t, []),
}


def _candidates() -> list[str]:
    told = os.environ.get("WEIGHTCACHE_LIBRARY")
    if told:
        return [told]
    beside = PACKAGE / "lib" / _SONAME
    return ([str(beside)] if beside.exists() else []) + [_SONAME]


def _open() -> ctypes.CDLL:
    tried = []
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            tried.append(f"{path}: {error}")
    raise ImportError(
        "cannot open libweightcache: "
        + "; ".join(tried)
        + "; install the wheel, or set WEIGHTCACHE_LIBRARY to the library's path"
    )


def last_error() -> errors.WeightcacheError:
    """Of the calling thread's last failed call."""
    kind = errors.BY_NUMBER.get(lib.wc_last_error_code(), errors.Internal)
    message = lib.wc_last_error_message().decode(errors="replace")
    if kind is errors.Unsupported and errors.GATE in message:
        kind = errors.UnsupportedQuantization
    return kind(message, lib.wc_last_error_origin().decode())


def _check(result: int, _function: object, arguments: T) -> T:
    if result != 0:
        raise last_error()
    return arguments


def _declared() -> ctypes.CDLL:
    library = _open()
    for name, arguments in _CHECKED.items():
        function = getattr(library, name)
        function.argtypes, function.restype, function.errcheck = arguments, c_int, _check
    for name, arguments in _VOID.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, None
    for name, (result, arguments) in _VALUES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, result
    return library


lib = _declared()


def text(value: str | os.PathLike[str] | None) -> bytes | None:
    """A text of the ABI; None is NULL, the default."""
    return None if value is None else os.fspath(value).encode()


def read(function: Any, struct: type[structs.S], *arguments: Any) -> structs.S:
    """What a function fills a struct with."""
    out = struct()
    function(*arguments, ctypes.byref(out))
    return out


class Cancellation:
    """Ends calls from another thread."""

    def __init__(self) -> None:
        handle = c_void_p()
        lib.wc_cancellation_new(ctypes.byref(handle))
        self.handle = handle

    def cancel(self) -> None:
        lib.wc_cancel(self.handle)

    def __del__(self) -> None:
        lib.wc_cancellation_free(self.handle)


def interruptible(call: Callable[[], T], cancellation: Cancellation) -> T:
    """Runs a call that may take long so that signals, Ctrl-C among them, are served meanwhile: from
    the main thread on a thread of its own, cancelled and waited for when a handler raises."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    result: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            result.append(call())
        except BaseException as error:  # handed to the caller's thread
            failure.append(error)

    worker = threading.Thread(target=run, name="weightcache", daemon=True)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(0.5)
    except BaseException:
        cancellation.cancel()
        worker.join()
        raise
    if failure:
        raise failure[0]
    return result[0]
