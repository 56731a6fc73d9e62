"""The looks of a monitor so far, a bounded number of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from truecal.inference.monitor.look import LOOK_NUMBERS, Look, look_of, numbers_of
from truecal.inference.monitor.state_file import check_kinds, decode, encode

#: Looks that are kept; beyond that, every second one is dropped.
_MOST = 256


@dataclass
class History:
    """Looks at equal distances, and the last one.

    Attributes
    ----------
    kept : list of Look
        The first look, and others at a distance of `every` windows.
    every : int
        A power of 2.
    last : Look, optional
        The last look.

    Examples
    --------
    >>> History().looks
    ()
    """

    kept: list[Look] = field(default_factory=list)
    every: int = 1
    last: Look | None = None

    def add(self, look: Look, window: int) -> None:
        """Take in the look after a window, the first of which is window 0."""
        self.last = look
        if window % self.every == 0:
            self.kept.append(look)
        if len(self.kept) > _MOST:
            self.kept, self.every = self.kept[::2], 2 * self.every

    @property
    def looks(self) -> tuple[Look, ...]:
        """The looks so far; of long histories every second, fourth and so on, and always the last."""
        if self.last is None or (self.kept and self.kept[-1] is self.last):
            return tuple(self.kept)
        return (*self.kept, self.last)

    def to_state(self) -> dict[str, Any]:
        """Return the content as JSON can hold it."""
        looks = self.looks
        return {
            "every": self.every,
            "kept": len(self.kept),
            "times": [look.time for look in looks],
            "numbers": encode(np.array([numbers_of(look) for look in looks])),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the history that `to_state` gave."""
        check_kinds(state, {"kept": int, "every": int, "times": list})
        numbers = decode(state["numbers"], -1, len(LOOK_NUMBERS))
        looks = [look_of(row, time) for row, time in zip(numbers, state["times"], strict=True)]
        return cls(looks[: state["kept"]], state["every"], looks[-1] if looks else None)
