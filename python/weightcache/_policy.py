"""What to do when the cache can't serve: the caller's choice, and the environment's over it."""

from __future__ import annotations

import os
import warnings
from typing import Literal

from weightcache.errors import Disconnected, InvalidArgument, WeightcacheError

OnMiss = Literal["load", "wait", "fail"]
Fallback = Literal["load", "fail"]


def _switch() -> str:
    """``WEIGHTCACHE``: off (never use it), require (never go on without it), or nothing."""
    value = os.environ.get("WEIGHTCACHE", "")
    if value not in ("", "off", "require"):
        raise InvalidArgument(f'WEIGHTCACHE is "{value}": "off" and "require" are known')
    return value


def switched_off() -> bool:
    return _switch() == "off"


def refuse_if_off() -> None:
    """For what can't be done without the cache."""
    if switched_off():
        raise Disconnected("WEIGHTCACHE=off is set: no daemon is asked")


def check_miss(on_miss: str) -> None:
    if on_miss not in ("load", "wait", "fail"):
        raise InvalidArgument(f'on_miss is "{on_miss}": "load", "wait" and "fail" are known')


def settle_unavailable(choice: str, error: WeightcacheError) -> None:
    """Returns where to go on without the cache, after one warning; raises the error otherwise."""
    if choice not in ("load", "fail"):
        raise InvalidArgument(f'on_unavailable is "{choice}": "load" and "fail" are known')
    if choice == "fail" or _switch() == "require":
        raise error
    warnings.warn(
        f"weightcache can't serve, so the weights are read from disk: {error}",
        RuntimeWarning,
        stacklevel=4,
    )
