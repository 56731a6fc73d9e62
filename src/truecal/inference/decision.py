"""What a test of "at most this error" decides: shown, contradicted, or not shown, and how many rows would settle it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from truecal._lib.text import counted, level, p_equals
from truecal.multiscale import Limits
from truecal.results import Result

#: What the data say about "the error is below the limit".
SHOWN, CONTRADICTED, NOT_SHOWN = "shown", "contradicted", "not shown"
#: Probability, by the distribution behind the limits, with which the reported number of rows settles the question. In
#: simulations with 600 rows it was 0.7 to 0.99: the estimate that the limits start from is rounded up near 0.
POWER = 0.9


@dataclass(frozen=True)
class Decision(Result):
    """Whether the data show that the calibration error is below a limit.

    Attributes
    ----------
    state : {"shown", "contradicted", "not shown"}
        ``"shown"`` if the error is shown to be below the limit, ``"contradicted"`` if it is shown to be above.
    at_most : float
        The limit.
    alpha : float
        Level of each of the two one-sided tests.
    error : float
        The estimated error.
    lower, upper : float
        One-sided confidence limits of the error, each at the level 1 - alpha.
    pvalue : float
        p-value of the hypothesis that the error is at least `at_most`.
    n : float
        Number of rows, or their total weight.
    n_needed : int or None
        Where nothing is shown: about how many rows in all are likely to settle the question, if the true error is
        the estimate and further rows are like these. None if that is more than 10,000 times the rows at hand.
    """

    _derived: ClassVar[tuple[str, ...]] = ("verdict",)

    state: str
    at_most: float
    alpha: float
    error: float
    lower: float
    upper: float
    pvalue: float
    n: float
    n_needed: int | None

    @property
    def verdict(self) -> str:
        """What the data show, in one sentence, and how many rows would settle it in another."""
        side = f"one-sided {level(1 - self.alpha)} limit"
        below = f"the calibration error is below {self.at_most:g}"
        if self.state == SHOWN:
            return f"The data show that {below} (upper {side} {self.upper:.4f}, {p_equals(self.pvalue)})."
        if self.state == CONTRADICTED:
            return f"The data contradict that {below}: it is about {self.error:.4f} (lower {side} {self.lower:.4f})."
        numbers = f"the estimate is {self.error:.4f}, the upper {side} {self.upper:.4f}"
        return f"The data do not show that {below}: {numbers}. {self._rows()}"

    def _rows(self) -> str:
        if self.n_needed is None:
            return "No feasible number of rows like these is likely to settle it."
        direction = "below" if self.error < self.at_most else "above"
        more = self.n_needed - self.n
        rows = f"About {counted(more, 'more row')} like these ({self.n_needed:,} in all)"
        return f"{rows} are likely to show that it is {direction}, if the true error is the estimate."


def decide(limits: Limits, at_most: float, alpha: float, n: float) -> Decision:
    """Return what the confidence limits say about an error below `at_most`.

    Parameters
    ----------
    limits : Limits
        Confidence limits of the error.
    at_most : float
        The limit.
    alpha : float
        Level of each of the two one-sided tests.
    n : float
        Number of rows.

    Returns
    -------
    Decision
    """
    pvalue, needed = limits.at_most(at_most), None
    if pvalue <= alpha:
        state = SHOWN
    elif limits.at_least(at_most) <= alpha:
        state = CONTRADICTED
    else:
        state = NOT_SHOWN
        factor = limits.rows_factor(at_most, alpha, POWER)
        if factor is not None:
            needed = _rounded(max(factor, 1.0) * n)
            needed = needed if needed > n else math.ceil(n) + 1
    lower, upper = limits.lower(alpha), limits.upper(alpha)
    return Decision(state, at_most, alpha, limits.error, lower, upper, pvalue, n, needed)


def _rounded(rows: float) -> int:
    """Return a number of rows rounded up to two digits; more would pretend to know them."""
    unit: int = 10 ** max(math.floor(math.log10(rows)) - 1, 0)
    return math.ceil(rows / unit) * unit
