"""What the monitor knew after a batch, and how a state file holds it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from truecal._lib.text import p_equals
from truecal._lib.types import FloatArray
from truecal.results import Result


@dataclass(frozen=True)
class Look(Result):
    """What the monitor knew after a batch.

    Attributes
    ----------
    rows : float
        Rows so far.
    time : object
        Time of the latest row of the batch, if times were given.
    log_evalue, log_detector : float
        Natural logarithms of the e-value and of the e-detector.
    pvalue : float
        Anytime-valid p-value.
    alarm, change_alarm : bool
        Whether there has been an alarm so far, and a change has been detected.
    gap, gap_low, gap_high : float
        Observed frequency less mean score of all rows so far, with a confidence sequence.
    error_low, error_high : float
        Confidence sequence for the root mean square calibration error of all rows so far. The upper end holds for
        errors that do not cancel within one of eight regions of scores.
    batch_rows, batch_gap : float
        Rows of the batch, and its observed frequency less its mean score.
    """

    _derived: ClassVar[tuple[str, ...]] = ("evalue",)

    rows: float
    time: Any
    log_evalue: float
    log_detector: float
    pvalue: float
    alarm: bool
    change_alarm: bool
    gap: float
    gap_low: float
    gap_high: float
    error_low: float
    error_high: float
    batch_rows: float
    batch_gap: float

    @property
    def evalue(self) -> float:
        """The e-value; infinite where a label contradicted a score of exactly 0 or 1."""
        return exp_or_infinity(self.log_evalue)

    def __str__(self) -> str:
        when = "" if self.time is None else f"{self.time}: "
        state = "ALARM" if self.alarm else "CHANGE" if self.change_alarm else "no alarm"
        return (
            f"{when}{self.rows:,.10g} rows, e-value {self.evalue:.3g}, {p_equals(self.pvalue)}, "
            f"observed less predicted {100 * self.gap:+.2f}% ({100 * self.gap_low:+.2f}% to "
            f"{100 * self.gap_high:+.2f}%), {state}"
        )


#: Fields of a look that are numbers, as a state file holds them.
LOOK_NUMBERS = (
    "rows", "log_evalue", "log_detector", "pvalue", "alarm", "change_alarm", "gap", "gap_low", "gap_high",
    "error_low", "error_high", "batch_rows", "batch_gap",
)  # fmt: skip


def numbers_of(look: Look) -> list[float]:
    """Return the numbers of a look in the order of `LOOK_NUMBERS`."""
    return [float(getattr(look, name)) for name in LOOK_NUMBERS]


def look_of(row: FloatArray, time: Any) -> Look:
    """Return the look that `numbers_of` was given, with its time."""
    values: dict[str, Any] = dict(zip(LOOK_NUMBERS, row.tolist(), strict=True))
    values |= {name: bool(values[name]) for name in ("alarm", "change_alarm")}
    return Look(time=time, **values)


def exp_or_infinity(value: float) -> float:
    """Return exp(value), which is infinite where it would overflow."""
    return math.exp(value) if value < 709 else math.inf
