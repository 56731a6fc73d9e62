"""Which scale scores outside [0, 1] are on: percentages, 0 to 10, logits, log probabilities, or a code among them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from truecal.exceptions import Remedy, warn_user

#: What to know about scores that are all exactly 0 or 1.
CLASSES = "All scores are exactly 0 or 1: these look like predicted classes, not probabilities."
#: How far outside [0, 1] a score may lie by rounding.
ROUNDING = 1e-3
#: Fewest values that make a pattern.
_FEW = 5
#: Largest distance from 0 of what counts as a log probability of nearly 1.
_NEAR_ZERO = 0.1


class ScoreValues(NamedTuple):
    """What is known of the values of scores: the range, and how many lie where. Missing and infinite ones are left out.

    Attributes
    ----------
    n : int
        Number of values.
    low, high : float
        The smallest and the largest.
    negative, above : int
        Number of values below 0 and above 1.
    between : int
        Number of values strictly between 0 and 1.
    upper_half, doubles, larger : int
        Number of values strictly between 1/2 and 1, strictly between 1 and 2, and above 2.
    nearly_zero : int
        Number of values from -0.1 to 0.
    fractional : int
        Number of values that are not whole.
    at_low, at_high : int
        Number of values equal to the smallest and to the largest.
    third_low, third_high : int
        Number of values below a third of the smallest, and above a third of the largest.
    """

    n: int
    low: float
    high: float
    negative: int
    above: int
    between: int
    upper_half: int
    doubles: int
    larger: int
    nearly_zero: int
    fractional: int
    at_low: int
    at_high: int
    third_low: int
    third_high: int

    @property
    def is_mixed(self) -> bool:
        """Whether some values look like fractions and others like a larger scale, as 0.85 beside 85.

        On one scale a density that grows towards 0 as a power does has no more values between 1/2 and 1 than between
        1 and 2, and one that falls faster has hardly any that are large. So a clear excess below 1 with much above 2
        comes from two scales. Of few values, most must lie in the upper half.
        """
        upper, doubles = self.upper_half, self.doubles
        few = upper >= _FEW and not doubles and 2 * upper >= self.between
        clear = (upper - doubles) ** 2 >= 9 * (upper + doubles)
        return upper >= 3 * max(doubles, 1) and 10 * self.larger >= upper and (few or clear)

    @property
    def code(self) -> int | None:
        """A whole number far from the others, such as -999, which may stand for a missing value; else None."""
        only_negative = _is_whole(self.low) and self.at_low == self.negative
        if only_negative and self.low < 0 and (self.high > 10 or (self.between and not self.above)):
            return int(self.low)
        if _is_nines(self.high, 9) and self.at_high == self.above and 2 * self.between >= self.n:
            return int(self.high)
        if _is_nines(self.low, 99) and self.at_low == self.third_low < self.n:
            return int(self.low)
        if _is_nines(self.high, 999) and self.at_high == self.third_high < self.n:
            return int(self.high)
        return None


def look_at(
    columns: Sequence[Any],
    *,
    ask: Callable[[dict[str, Any]], Mapping[str, Any]] = lambda answers: answers,
    count: Callable[[Any], Any] = lambda where: where.sum(),
) -> ScoreValues:
    """Return what the scale of scores can be told from.

    Parameters
    ----------
    columns : sequence of ndarray, or of expressions of Polars or narwhals
        Columns of scores, which are taken together.
    ask : callable
        What evaluates expressions, given and returned by name; arrays have been evaluated already.
    count : callable
        What counts the rows that meet a condition.

    Examples
    --------
    >>> look_at([np.array([0.5, 0.7, -999.0])]).code
    -999
    """
    first = {
        f"{name}{k}": value for k, v in enumerate(columns) for name, value in _first_look(v, count).items()
    }
    found = ask(first)

    def total(name: str, answers: Mapping[str, Any] = found) -> int:
        return sum(int(answers[f"{name}{k}"] or 0) for k in range(len(columns)))

    def known(name: str) -> list[float]:
        answers = (found[f"{name}{k}"] for k in range(len(columns)))
        return [float(answer) for answer in answers if answer is not None and math.isfinite(answer)]

    low, high = min(known("low"), default=math.nan), max(known("high"), default=math.nan)
    second = {
        f"{name}{k}": value
        for k, v in enumerate(columns)
        for name, value in _second_look(v, low, high, count).items()
    }
    answers = ask(second)
    counts = {
        name: total(name)
        for name in ScoreValues._fields
        if f"{name}0" in found and name not in ("low", "high")
    }
    counts |= {name: total(name, answers) for name in ScoreValues._fields if f"{name}0" in answers}
    return ScoreValues(low=low, high=high, **counts)


def _first_look(v: Any, count: Callable[[Any], Any]) -> dict[str, Any]:
    return {
        "n": count((v > -math.inf) & (v < math.inf)),
        "low": v.min(),
        "high": v.max(),
        "negative": count(v < 0),
        "above": count((v > 1) & (v < math.inf)),
        "between": count((v > 0) & (v < 1)),
        "upper_half": count((v > 0.5) & (v < 1)),
        "doubles": count((v > 1) & (v < 2)),
        "larger": count((v > 2) & (v < math.inf)),
        "nearly_zero": count((v >= -_NEAR_ZERO) & (v <= 0)),
        "fractional": count((v != v.round(0)) & (v < math.inf)),
    }


def _second_look(v: Any, low: float, high: float, count: Callable[[Any], Any]) -> dict[str, Any]:
    return {
        "at_low": count(v == low),
        "at_high": count(v == high),
        "third_low": count(v < low / 3),
        "third_high": count((v > high / 3) & (v < math.inf)),
    }


def fitting_remedy(values: ScoreValues) -> Remedy:
    """Return what to do about scores of which some lie outside [0, 1].

    Parameters
    ----------
    values : ScoreValues
        What is known of them.

    Examples
    --------
    >>> fitting_remedy(look_at([np.array([10.0, 7.5, 8.0, 3.0])])).name
    'SCALE_10'
    >>> fitting_remedy(look_at([np.array([-0.1, -2.3, -0.7])])).name
    'LOG_PROBABILITIES'
    """
    low, high = values.low, values.high
    if not values.negative and not values.above:  # only infinite values lie outside
        return Remedy.LOGITS
    if low > -ROUNDING and high < 1 + ROUNDING:
        return Remedy.CLIP
    if values.code is not None:
        return Remedy.MISSING_CODE
    if high <= 0:
        return Remedy.LOG_PROBABILITIES
    if low < 0:
        return Remedy.LOGITS
    if values.is_mixed and high <= 100:
        return Remedy.ONE_SCALE
    if 2 * values.above <= values.n:
        return Remedy.LOGITS
    return Remedy.SCALE_10 if high <= 10 else Remedy.PERCENT if high <= 100 else Remedy.SCALE


def _is_whole(value: float) -> bool:
    return math.isfinite(value) and value == round(value)


def _is_nines(value: float, least: int) -> bool:
    """Return whether a number is 9, -99, 999 or the like, which people write for missing values."""
    return _is_whole(value) and abs(value) >= least and set(str(abs(int(value)))) == {"9"}


def are_classes(scores: Any) -> bool:
    """Return whether two or more scores are all exactly 0 or 1, as predicted classes are.

    Examples
    --------
    >>> are_classes(np.array([0, 1, 1.0])), are_classes(np.array([0, 1, 0.5]))
    (True, False)
    """
    # The first rows rule out nearly all scores.
    return len(scores) > 1 and all(bool(((part == 0) | (part == 1)).all()) for part in (scores[:100], scores))


def warn_of_classes(scores: Any) -> None:
    """Warn of scores that are all exactly 0 or 1, in the name of the line that called truecal."""
    if are_classes(scores):
        warn_user(CLASSES)


def finite(values: Any) -> Any:
    """Return the finite values of an array as one vector; zero if there are none.

    Examples
    --------
    >>> finite(np.array([[0.5, np.nan], [2.0, np.inf]])).tolist()
    [0.5, 2.0]
    """
    vector = np.asarray(values).ravel()
    kept = vector[np.isfinite(vector)]
    return kept if len(kept) else np.zeros(1)
