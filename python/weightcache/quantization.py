"""The gate: whether sharing what an engine made of quantized weights is known to be right.

Sharing is right only when the whole effect of an engine's post-processing is in what is shared. The
table of verified methods is the library's; ``publish`` and ``attach`` of what an engine made ask it
too. Raw checkpoints need no gate: each engine post-processes them itself.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping
from typing import Any, Literal

from weightcache._library import lib, text
from weightcache.errors import InvalidArgument

__all__ = ["check", "config_of", "method_of", "verified"]


def verified() -> dict[str, str]:
    """The verified methods, ``""`` being unquantized, and on which condition."""
    found = {}
    for index in range(lib.wc_quantization_method_count()):
        name, condition = ctypes.c_char_p(), ctypes.c_char_p()
        lib.wc_quantization_method_at(index, ctypes.byref(name), ctypes.byref(condition))
        found[(name.value or b"").decode()] = (condition.value or b"").decode()
    return found


def config_of(config: Any) -> dict[str, Any]:
    """A quantization configuration as a dict: from a dict, an object with ``to_dict`` or
    attributes, or a Transformers model configuration that has one. None: empty."""
    config = _quantization_part(config)
    if config is None:
        return {}
    if isinstance(config, Mapping):
        return dict(config)
    if hasattr(config, "to_dict"):
        return dict(config.to_dict())
    if hasattr(config, "__dict__"):
        return {name: value for name, value in vars(config).items() if not name.startswith("_")}
    raise InvalidArgument(f"a quantization configuration can't be a {type(config).__name__}")


def _quantization_part(config: Any) -> Any:
    if isinstance(config, Mapping):
        return config.get("quantization_config", config)
    if hasattr(config, "quantization_config"):
        return config.quantization_config
    if type(config).__name__.endswith("Config") and hasattr(config, "model_type"):
        return None  # a model's configuration, of one that is not quantized
    return config


def method_of(config: Any) -> str:
    """The method that a configuration names; ``""`` where there is none."""
    method = config_of(config).get("quant_method", "")
    return str(getattr(method, "value", method) or "")


def check(
    method: str | None, config: Any = None, *, place: Literal["publish", "attach"] = "publish"
) -> None:
    """Returns where sharing is known to be right. ``method`` None: what the configuration names.
    Raises :class:`~weightcache.UnsupportedQuantization` with the method, the place, the verified
    methods and the ways out."""
    if place not in ("publish", "attach"):
        raise InvalidArgument(f'place is "{place}": "publish" and "attach" are known')
    known = config_of(config)
    named = method_of(known) if method is None else method
    lib.wc_quantization_check(
        text(named), text(json.dumps(known, default=_plain)), 1 if place == "attach" else 0
    )


def _plain(value: Any) -> Any:
    """What JSON has no form for (types, enumerations) as text: the gate reads numbers and flags."""
    return getattr(value, "value", str(value))
