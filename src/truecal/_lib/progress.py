"""A progress line on the terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType


class Progress:
    """Count finished work on standard error; silent unless that is a terminal or `show` is True.

    Examples
    --------
    >>> with Progress("study", total=2, show=False) as progress:
    ...     progress.advance(1)
    """

    def __init__(self, name: str, total: float, show: bool | None = None) -> None:
        self.name = name
        self.total = total
        self.done = 0.0
        self.shown = sys.stderr.isatty() if show is None else show
        self.began = time.monotonic()
        self.last_drawn = 0.0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.shown and self.last_drawn:
            sys.stderr.write("\n")

    def advance(self, amount: float) -> None:
        """Add finished work, in the unit of `total`, and draw the line a few times a second."""
        self.done += amount
        now = time.monotonic()
        if not self.shown or (now - self.last_drawn < 0.2 and self.done < self.total):
            return
        self.last_drawn = now
        share = self.done / self.total if self.total else 1.0
        left = (now - self.began) * (1 - share) / share if share else 0.0
        sys.stderr.write(f"\r{self.name}: {share:6.1%}, {left:.0f} s left   ")
        sys.stderr.flush()
