"""Which framework a tensor is given to, and how: every tensor crosses by DLPack, without a copy.

The memory that a capsule points to, and its deleter, are the library's; no Python function is ever
called back, so that tensors may live until the interpreter has ended. Many are made in one call,
where the framework has DLPack's exchange functions without even a capsule.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from ctypes import c_size_t, c_void_p
from functools import cache
from typing import TYPE_CHECKING, Any

from weightcache import _structs as structs
from weightcache._library import last_error, lib
from weightcache.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from weightcache.attachment import Attachment

DTYPES = {
    name: number for number in range(1, 23) if (name := (lib.wc_dtype_name(number) or b"").decode())
}
"""Element types as the safetensors format names them -> their numbers."""
DTYPE_NAMES = {number: name for name, number in DTYPES.items()}

TORCH_NAMES = {
    "BOOL": "bool", "F4": "float4_e2m1fn_x2", "U8": "uint8", "I8": "int8",
    "F8_E5M2": "float8_e5m2", "F8_E4M3": "float8_e4m3fn", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz", "I16": "int16",
    "U16": "uint16", "F16": "float16", "BF16": "bfloat16", "I32": "int32", "U32": "uint32",
    "F32": "float32", "C64": "complex64", "F64": "float64", "I64": "int64", "U64": "uint64",
}  # fmt: skip
_NUMPY_OWN = {"BOOL", "U8", "I8", "I16", "U16", "F16", "I32", "U32", "F32", "C64", "F64", "I64",
              "U64"}  # fmt: skip
_ML_DTYPES = {
    "BF16": "bfloat16", "F8_E5M2": "float8_e5m2", "F8_E4M3": "float8_e4m3fn",
    "F8_E8M0": "float8_e8m0fnu", "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip

# With the interpreter's lock held, and a Python exception that it leaves raised here.
_list = ctypes.PYFUNCTYPE(
    ctypes.c_int, c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, ctypes.POINTER(c_void_p)
)(("wc_attachment_dlpack_list", lib))
_pointer_of = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_let_go = ctypes.PYFUNCTYPE(None, c_void_p)(("Py_DecRef", ctypes.pythonapi))


def capsules(
    attachment: Attachment, first: int, count: int, as_bytes: int, versioned: bool
) -> list[Any]:
    """DLPack capsules of tensors; one that nobody consumes gives its tensor back."""
    options = structs.DlpackOptions(versioned=int(versioned), as_bytes=as_bytes)
    return _made_in_c(attachment, first, count, options, None)


def _made_in_c(
    attachment: Attachment, first: int, count: int, options: Any, exchange: int | None
) -> list[Any]:
    """Capsules, or what the framework of these exchange functions makes of them."""
    out = c_void_p()
    if _list(
        attachment.handle, ctypes.byref(options), exchange, first, count, ctypes.byref(out)
    ) != 0:  # fmt: skip
        raise last_error()
    made: list[Any] = ctypes.cast(out, ctypes.py_object).value
    _let_go(out)
    return made


def numbers(names: Sequence[str]) -> int:
    """The bits of these types, as wc_dlpack_options wants them."""
    return sum(1 << DTYPES[name] for name in names)


def _exchange_of(kind: type) -> int | None:
    """Where a tensor type's functions for exchange in C are (DLPack 1.3), if it has any."""
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if type(capsule).__name__ != "PyCapsule":
        return None
    address: int | None = _pointer_of(capsule, b"dlpack_exchange_api")
    return address


class Framework:
    """Makes one framework's tensors. ``as_bytes`` are the types that cross as unsigned bytes, and
    are seen as their own type afterwards, where the framework has it."""

    as_bytes: int

    def tensors(self, attachment: Attachment, first: int, count: int) -> list[Any]:
        raise NotImplementedError


class _Torch(Framework):
    def __init__(self) -> None:
        import torch

        self._take: Callable[[Any], Any] = getattr(
            torch._C, "_from_dlpack", torch.utils.dlpack.from_dlpack
        )
        self._exchange = _exchange_of(torch.Tensor)
        self._own = {
            DTYPES[name]: getattr(torch, own)
            for name, own in TORCH_NAMES.items()
            if hasattr(torch, own)
        }
        lacking = [name for name in DTYPES if name not in TORCH_NAMES or not self._crosses(name)]
        self.as_bytes = numbers(lacking)
        self._torch = torch

    def _crosses(self, name: str) -> bool:
        """Whether this version's DLPack knows a type, found out by trying."""
        import torch

        own = self._own.get(DTYPES[name])
        if own is None or name == "F4":  # PyTorch's counts pairs, the format single values
            return False
        try:
            empty = torch.empty(1, dtype=own)
            return bool(torch.utils.dlpack.from_dlpack(empty.__dlpack__()).dtype == own)
        except (RuntimeError, BufferError, TypeError, ValueError):
            return False

    def tensors(self, attachment: Attachment, first: int, count: int) -> list[Any]:
        try:
            if self._exchange is not None:
                options = structs.DlpackOptions(as_bytes=self.as_bytes)
                tensors = _made_in_c(attachment, first, count, options, self._exchange)
            else:
                made = capsules(attachment, first, count, self.as_bytes, versioned=False)
                tensors = list(map(self._take, made))
        except (RuntimeError, AssertionError, BufferError) as error:
            raise Unsupported(
                f'"{attachment.name}" lies on {attachment.device}, and this PyTorch '
                f"({self._torch.__version__}) can't take it: {error}"
            ) from error
        for index, number in attachment.dtypes_among(self.as_bytes, first, count):
            own = self._own.get(number)
            if own is not None:
                tensors[index - first] = self._view(tensors[index - first], own)
        return tensors

    @staticmethod
    def _view(tensor: Any, own: Any) -> Any:
        if tensor.dim() == 0 or tensor.numel() == 0:
            return tensor.reshape(-1).view(own).reshape(tensor.shape)
        return tensor.view(own)


class _Exporter:
    """One tensor for a consumer that asks by protocol: numpy, JAX."""

    def __init__(self, attachment: Attachment, index: int, as_bytes: int) -> None:
        self._attachment, self._index, self._as_bytes = attachment, index, as_bytes

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        if copy:
            raise BufferError("resident tensors are given in place, not as copies")
        versioned = max_version is not None and max_version[0] >= 1
        return capsules(self._attachment, self._index, 1, self._as_bytes, versioned)[0]

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._attachment.dlpack_device


class _Numpy(Framework):
    def __init__(self) -> None:
        import numpy

        self._numpy = numpy
        self._own: dict[int, Any] = {}
        try:
            import ml_dtypes

            self._own = {
                DTYPES[name]: numpy.dtype(getattr(ml_dtypes, own))
                for name, own in _ML_DTYPES.items()
                if hasattr(ml_dtypes, own)
            }
        except ImportError:
            pass
        self.as_bytes = numbers([name for name in DTYPES if name not in _NUMPY_OWN])

    def tensors(self, attachment: Attachment, first: int, count: int) -> list[Any]:
        if attachment.dlpack_device[0] != 1:
            raise Unsupported(
                f'"{attachment.name}" lies on {attachment.device}, where numpy sees no memory: ask '
                'for framework="pt" or "jax"'
            )
        take = self._numpy.from_dlpack
        tensors = [
            take(_Exporter(attachment, index, self.as_bytes))
            for index in range(first, first + count)
        ]
        for index, number in attachment.dtypes_among(self.as_bytes, first, count):
            own = self._own.get(number)
            if own is not None:
                shape = attachment.shape_at(index)
                tensors[index - first] = tensors[index - first].view(own).reshape(shape)
        return tensors


class _Jax(Framework):
    def __init__(self) -> None:
        import jax.dlpack

        self._take = jax.dlpack.from_dlpack
        self.as_bytes = numbers(
            [name for name in DTYPES if name not in _NUMPY_OWN and name != "BF16"]
        )

    def tensors(self, attachment: Attachment, first: int, count: int) -> list[Any]:
        return [
            self._take(_Exporter(attachment, index, self.as_bytes))
            for index in range(first, first + count)
        ]


_KINDS: dict[str, tuple[str, Callable[[], Framework]]] = {
    "pt": ("torch", _Torch), "jax": ("jax", _Jax), "np": ("numpy", _Numpy),
}  # fmt: skip
_SYNONYMS = {"torch": "pt", "pytorch": "pt", "numpy": "np"}


@cache
def _made(kind: str) -> Framework:
    module, make = _KINDS[kind]
    try:
        return make()
    except ImportError as error:
        raise Unsupported(f'framework "{kind}" needs {module}, which is not installed') from error


def framework(kind: str | None) -> Framework:
    """By name: ``"pt"``, ``"np"``, ``"jax"``; None: what the program has imported already."""
    if kind is None:
        for candidate, (module, _) in _KINDS.items():
            if module in sys.modules:
                return _made(candidate)
        raise Unsupported(
            "no framework is imported: import torch, jax or numpy, or say which "
            'with framework="pt", "np" or "jax"'
        )
    known = _SYNONYMS.get(kind, kind)
    if known not in _KINDS:
        raise InvalidArgument(f'there is no framework "{kind}": "pt", "np" and "jax" are known')
    return _made(known)
