"""One exception for each of the library's codes, defined by what the caller can do about it.

All of them are :class:`WeightcacheError`; several are also what Python programs catch anyway
(``KeyError``, ``TimeoutError``, ``ConnectionError``, ...).
"""

from __future__ import annotations


class WeightcacheError(Exception):
    """Something failed. ``code`` is the library's name of it, ``message`` says what failed and
    where, ``origin`` is the errno's or CUDA result's name, or empty."""

    code: str = "internal"

    def __init__(self, message: str, origin: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.origin = origin

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" + (f" ({self.origin})" if self.origin else "")

    def __reduce__(self) -> tuple[type[WeightcacheError], tuple[str, str]]:
        return type(self), (self.message, self.origin)


class InvalidArgument(WeightcacheError, ValueError):
    """Fix the call."""

    code = "invalid_argument"


class NotFound(WeightcacheError, KeyError):
    """No such entry, file or name: load it."""

    code = "not_found"


class AlreadyExists(WeightcacheError):
    """Other content has the name: take another name, or ``replace``."""

    code = "already_exists"


class Mismatch(WeightcacheError):
    """Other weights than asked for; the message names each field with both values."""

    code = "mismatch"


class Corrupt(WeightcacheError):
    """Fetch the file again, or report the peer."""

    code = "corrupt"


class Unsupported(WeightcacheError):
    """Another machine, driver, framework or method is needed."""

    code = "unsupported"


class UnsupportedQuantization(Unsupported):
    """Nobody has shown that sharing weights of this quantization method is right."""


class Exhausted(WeightcacheError, MemoryError):
    """Free something, or wait; the message has needed, free, and what could be evicted."""

    code = "exhausted"


class Busy(WeightcacheError):
    """Try again."""

    code = "busy"


class TimedOut(WeightcacheError, TimeoutError):
    """The limit passed."""

    code = "timed_out"


class Cancelled(WeightcacheError):
    """The caller said so."""

    code = "cancelled"


class Disconnected(WeightcacheError, ConnectionError):
    """No daemon answers: start one, or connect again."""

    code = "disconnected"


class Denied(WeightcacheError, PermissionError):
    """Ask for the right."""

    code = "denied"


class VersionMismatch(WeightcacheError):
    """Upgrade one side."""

    code = "version"


class Io(WeightcacheError, OSError):
    """The operating system refused; ``origin`` has the errno's name."""

    code = "io"


class DeviceError(WeightcacheError):
    """The GPU is suspect."""

    code = "device"


class Internal(WeightcacheError):
    """Report a bug."""

    code = "internal"


GATE = "is not verified for sharing"
"""How the library's quantization gate says no, wherever it is asked."""

BY_NUMBER: dict[int, type[WeightcacheError]] = {
    -1: InvalidArgument, -2: NotFound, -3: AlreadyExists, -4: Mismatch, -5: Corrupt,
    -6: Unsupported, -7: Exhausted, -8: Busy, -9: TimedOut, -10: Cancelled, -11: Disconnected,
    -12: Denied, -13: VersionMismatch, -14: Io, -15: DeviceError, -16: Internal,
}  # fmt: skip

UNAVAILABLE = (Disconnected, VersionMismatch, Denied, Exhausted)
"""What says that the cache can't serve at all, whatever is asked of it."""
