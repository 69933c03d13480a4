"""Progress of what takes long: a bar (tqdm, where it is there), or the caller's own function."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from weightcache import _structs as structs


@dataclass(frozen=True)
class Report:
    """``waiting``: another process loads, and this call waits for it."""

    done_bytes: int
    total_bytes: int
    bytes_per_s: int
    seconds: float
    waiting: bool


class Bar:
    """For the time of one call; ``function`` is what the library is given, called ten times a
    second at most and from any thread."""

    def __init__(self, progress: bool | Callable[[Report], None], title: str) -> None:
        self._tell = progress if callable(progress) else None
        self._show = progress is True
        self._title = title
        self._bar: Any = None
        active = self._tell is not None or self._show
        self.function = structs.Progress(self._on_progress) if active else structs.Progress()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _on_progress(self, at: int, _user: object) -> None:
        told = structs.ProgressInfo.from_address(at)
        report = Report(
            told.done_bytes,
            told.total_bytes,
            told.bytes_per_s,
            told.elapsed_ns / 1e9,
            bool(told.waiting),
        )
        self._give(report)

    def _give(self, report: Report) -> None:
        if self._tell is not None:
            self._tell(report)
        elif self._show:
            self._draw(report)

    def _draw(self, report: Report) -> None:
        if self._bar is None:
            self._bar = _new_bar(self._title, report.total_bytes)
        self._bar.total = report.total_bytes or None
        self._bar.update(report.done_bytes - self._bar.n)


class Teller(Bar):
    """For what this package does itself, in parts: called with how many bytes are done."""

    def __init__(
        self, progress: bool | Callable[[Report], None], title: str, total_bytes: int
    ) -> None:
        super().__init__(progress, title)
        self._total = total_bytes
        self._start = time.monotonic()

    def __enter__(self) -> Teller:
        return self

    def __call__(self, done_bytes: int) -> None:
        seconds = time.monotonic() - self._start
        rate = int(done_bytes / seconds) if seconds > 0 else 0
        self._give(Report(done_bytes, self._total, rate, seconds, False))


def _new_bar(title: str, total: int) -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return _Lines(title)
    return tqdm(desc=title, total=total or None, unit="B", unit_scale=True, unit_divisor=1024)


class _Lines:
    """What stands for tqdm's bar where there is none: a line at each tenth."""

    def __init__(self, title: str) -> None:
        self._title, self.total, self.n, self._told = title, None, 0, -1

    def update(self, more: int) -> None:
        self.n += more
        tenth = 10 * self.n // self.total if self.total else 0
        if tenth != self._told:
            self._told = tenth
            sys.stderr.write(f"{self._title}: {tenth * 10} %\n")

    def close(self) -> None:
        pass
