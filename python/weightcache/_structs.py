"""The structs of ``weightcache.h``, member by member; a test holds them against the compiler's."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, TypeVar

Progress = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)


class Struct(ctypes.Structure):
    """A struct that begins with its size; zero is the default of everything else."""

    def __init__(self, **members: Any) -> None:
        super().__init__(struct_size=ctypes.sizeof(type(self)), **members)


S = TypeVar("S", bound=Struct)


def _struct(name: str, members: list[tuple[str, Any]]) -> Any:
    return type(name, (Struct,), {"_fields_": [("struct_size", c_size_t), *members]})


ConnectOptions = _struct(
    "wc_connect_options",
    [
        ("socket", c_char_p),
        ("label", c_char_p),
        ("trusted_uids", c_void_p),
        ("trusted_uid_count", c_size_t),
        ("timeout_ns", c_uint64),
    ],
)
DaemonInfo = _struct(
    "wc_daemon_info",
    [
        ("epoch", c_char_p),
        ("software", c_char_p),
        ("socket", c_char_p),
        ("pid", c_int32),
        ("protocol", c_uint32),
    ],
)
EntryInfo = _struct(
    "wc_entry_info",
    [
        ("name", c_char_p),
        ("form", c_char_p),
        ("fingerprint", c_char_p),
        ("device", c_char_p),
        ("source", c_char_p),
        ("rank", c_uint32),
        ("world", c_uint32),
        ("generation", c_uint64),
        ("state", c_int32),
        ("transport", c_int32),
        ("tensors", c_uint64),
        ("bytes", c_uint64),
        ("segments", c_uint32),
        ("leases", c_uint32),
        ("pinned", c_int32),
        ("done_bytes", c_uint64),
        ("total_bytes", c_uint64),
        ("since_unix_ns", c_int64),
        ("address", c_uint64),
    ],
)
Selector = _struct(
    "wc_selector",
    [
        ("text", c_char_p),
        ("form", c_char_p),
        ("device", c_char_p),
        ("rank", c_uint32),
        ("world", c_uint32),
    ],
)
ProgressInfo = _struct(
    "wc_progress",
    [
        ("done_bytes", c_uint64),
        ("total_bytes", c_uint64),
        ("bytes_per_s", c_uint64),
        ("elapsed_ns", c_uint64),
        ("waiting", c_int32),
    ],
)
AttachOptions = _struct(
    "wc_attach_options",
    [
        ("access", c_int32),
        ("expect", c_char_p),
        ("wait_ns", c_uint64),
        ("progress", Progress),
        ("user", c_void_p),
        ("cancellation", c_void_p),
    ],
)
Tensor = _struct(
    "wc_tensor",
    [
        ("name", c_void_p),
        ("name_bytes", c_size_t),
        ("shape", ctypes.POINTER(c_int64)),
        ("strides", ctypes.POINTER(c_int64)),
        ("data", c_void_p),
        ("bytes", c_uint64),
        ("offset", c_uint64),
        ("segment", c_uint32),
        ("rank", c_uint32),
        ("dtype", c_int32),
        ("kind", c_int32),
        ("flags", c_uint32),
    ],
)
Segment = _struct("wc_segment", [("data", c_void_p), ("bytes", c_uint64), ("digest", c_char_p)])
DlpackOptions = _struct("wc_dlpack_options", [("versioned", c_int32), ("as_bytes", c_uint32)])
Attribute = _struct(
    "wc_attribute",
    [
        ("path", c_char_p),
        ("name", c_char_p),
        ("of_tensor", c_int32),
        ("type", c_int32),
        ("integer", c_int64),
        ("real", ctypes.c_double),
        ("data", c_void_p),
        ("data_bytes", c_size_t),
    ],
)
Provenance = _struct(
    "wc_provenance",
    [
        ("fingerprint_json", c_char_p),
        ("publisher", c_char_p),
        ("source", c_char_p),
        ("command", c_char_p),
        ("host", c_char_p),
        ("published_unix_ns", c_int64),
        ("took_ns", c_uint64),
    ],
)
WaitOptions = _struct(
    "wc_wait_options",
    [("wait_ns", c_uint64), ("progress", Progress), ("user", c_void_p), ("cancellation", c_void_p)],
)
LoadOptions = _struct(
    "wc_load_options",
    [
        ("name", c_char_p),
        ("device", c_char_p),
        ("transport", c_char_p),
        ("replace", c_int32),
        ("no_wait", c_int32),
        ("compat", c_int32),
        ("allow_trailing", c_int32),
        ("follow_symlinks", c_int32),
        ("tier", c_int32),
        ("threads", c_uint32),
        ("wait_ns", c_uint64),
        ("progress", Progress),
        ("user", c_void_p),
        ("cancellation", c_void_p),
        ("no_digest", c_int32),
        ("address", c_uint64),
    ],
)
LoadInfo = _struct(
    "wc_load_info",
    [
        ("outcome", c_int32),
        ("waited", c_int32),
        ("tier", c_int32),
        ("total_ns", c_uint64),
        ("fill_ns", c_uint64),
        ("read_bytes", c_uint64),
    ],
)
PublishOptions = _struct(
    "wc_publish_options",
    [
        ("name", c_char_p),
        ("fingerprint", c_char_p),
        ("device", c_char_p),
        ("transport", c_char_p),
        ("publisher", c_char_p),
        ("source", c_char_p),
        ("rank", c_uint32),
        ("world", c_uint32),
        ("replace", c_int32),
        ("no_wait", c_int32),
        ("total_bytes", c_uint64),
        ("wait_ns", c_uint64),
        ("progress", Progress),
        ("user", c_void_p),
        ("cancellation", c_void_p),
        ("address", c_uint64),
    ],
)
TensorDescription = _struct(
    "wc_tensor_description",
    [
        ("name", c_char_p),
        ("shape", ctypes.POINTER(c_int64)),
        ("strides", ctypes.POINTER(c_int64)),
        ("rank", c_uint32),
        ("dtype", c_int32),
        ("segment", c_uint32),
        ("offset", c_uint64),
        ("kind", c_int32),
        ("flags", c_uint32),
    ],
)
Evicted = _struct("wc_evicted", [("entries", c_uint64), ("bytes", c_uint64), ("leases", c_uint64)])
CheckpointOptions = _struct(
    "wc_checkpoint_options",
    [("compat", c_int32), ("allow_trailing", c_int32), ("follow_symlinks", c_int32)],
)
CheckpointInfo = _struct(
    "wc_checkpoint_info",
    [
        ("directory", c_char_p),
        ("default_name", c_char_p),
        ("files", c_size_t),
        ("tensors", c_size_t),
        ("file_bytes", c_uint64),
        ("tensor_bytes", c_uint64),
        ("passed_over", c_uint64),
    ],
)
FileTensor = _struct(
    "wc_file_tensor",
    [
        ("name", c_void_p),
        ("name_bytes", c_size_t),
        ("shape", ctypes.POINTER(c_int64)),
        ("rank", c_uint32),
        ("dtype", c_int32),
        ("file", c_char_p),
        ("offset", c_uint64),
        ("bytes", c_uint64),
    ],
)
