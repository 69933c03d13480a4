"""Attributes as they are recorded: booleans, numbers and texts as they are, and what Python has
beyond those (None, lists, tuples, dicts, dtypes) as tagged JSON in bytes; nothing that could carry
code."""

from __future__ import annotations

import base64
import json
import sys
from typing import Any, TypeAlias

from weightcache.errors import Corrupt, InvalidArgument

_TAG = b"json:"
Plain: TypeAlias = "bool | int | float | str | bytes"


def encode(path: str, name: str, value: Any) -> Plain:
    """Errors: InvalidArgument, naming the attribute and its type."""
    small = isinstance(value, int) and -(1 << 63) <= value < 1 << 63
    if small or isinstance(value, (bool, float, str)):
        return value  # type: ignore[no-any-return]
    if isinstance(value, bytes) and not value.startswith(_TAG):
        return value
    try:
        return _TAG + json.dumps(_tree(value)).encode()
    except TypeError as error:
        where = f'"{path}.{name}"' if path else f'"{name}"'
        raise InvalidArgument(f"attribute {where} can't be recorded: {error}") from None


def decode(value: Plain) -> Any:
    if not isinstance(value, bytes) or not value.startswith(_TAG):
        return value
    try:
        return _value(json.loads(value[len(_TAG) :]))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Corrupt(f"an attribute is no value of this package: {error}") from error


def _tree(value: Any) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, tuple):
        return {"tuple": [_tree(item) for item in value]}
    if isinstance(value, list):
        return [_tree(item) for item in value]
    if isinstance(value, dict):
        return {"dict": [[_tree(key), _tree(item)] for key, item in value.items()]}
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    raise TypeError(f"it is, or holds, a {type(value).__name__}")


def _value(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_value(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    ((tag, inner),) = tree.items()
    if tag == "bytes":
        return base64.b64decode(inner)
    if tag == "tuple":
        return tuple(_value(item) for item in inner)
    if tag == "dict":
        return {_value(key): _value(item) for key, item in inner}
    if tag == "dtype":
        import torch

        found = getattr(torch, inner)
        if isinstance(found, torch.dtype):
            return found
    raise ValueError(f"there is no tag {tag!r}")
