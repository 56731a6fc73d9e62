"""Validation rules with their messages and remedies: one table for arrays, frames and databases.

A rule has one condition, written with comparisons and ``& | ~``, which NumPy arrays and expressions of narwhals have.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecal._lib.text import counted, listing
from truecal.exceptions import InputError, Remedy, warn_user

#: How far a row of probabilities may be from a sum of 1: float32 softmax and rounded files pass.
SUM_TOLERANCE = 1e-3
#: Limits of weights other than 0. Beyond them sums, products and squares of weights could overflow or vanish.
MIN_WEIGHT, MAX_WEIGHT = 1e-100, 1e100
#: Integers from here on are not exact as float64.
EXACT_INTEGERS = 2.0**53


@dataclass(frozen=True)
class Rule:
    """A rule that single values may break: which do, what a message calls them, and what to do about them.

    `words` follow the number of values; ``{noun}`` is what they are, in the singular or the plural. `broken` takes
    values, and the function that finds missing ones among them.
    """

    words: str
    remedy: Remedy | str
    broken: Callable[[Any, Callable[[Any], Any]], Any]
    noun: str = "value"

    def problem(self, n: int) -> str:
        """Return what is wrong: "has 3 values outside [0, 1]"."""
        return f"has {n:,} {self.describe(n)}"

    def problem_of_rows(self, n: int) -> str:
        """Return the same for rows of several columns: "have 3 rows with values outside [0, 1]"."""
        if self.noun == "row":
            return f"have {n:,} {self.describe(n)}"
        return f"have {counted(n, 'row')} with {self.describe(2)}"

    def describe(self, n: int) -> str:
        """Return the words for one value, or for several."""
        return self.words.format(noun=self.noun if n == 1 else f"{self.noun}s")

    def error(
        self, wrong: NDArray[np.bool_], array: NDArray[Any], name: str, remedy: Remedy | str | None = None
    ) -> InputError:
        """Return the error of the values of an array that are wrong, with the first of them."""
        return value_error(self.problem(int(wrong.sum())), wrong, array, name, remedy or self.remedy)

    def refuse(self, array: NDArray[Any], name: str) -> None:
        """Refuse an array some of whose values break the rule."""
        wrong = self.broken(array, find_missing)
        if wrong.any():
            raise self.error(wrong, array, name)


MISSING = Rule("missing (NaN) {noun}", Remedy.DROP_ROWS, lambda x, missing: missing(x))
MISSING_LABEL = replace(MISSING, remedy=Remedy.UNLABELLED, noun="label")
NOT_FINITE = Rule(
    "infinite or NaN {noun}",
    Remedy.DROP_ROWS,
    lambda x, missing: missing(x) | ~((x > -math.inf) & (x < math.inf)),
)
#: Scores outside [0, 1]; `fitting_remedy` looks for a better remedy.
OUTSIDE = Rule("{noun} outside [0, 1]", Remedy.LOGITS, lambda p, _: ~((p >= 0) & (p <= 1)))
UNEVEN = Rule(
    "{noun} whose sum is not 1",
    Remedy.NORMALIZE,
    lambda total, _: ~((total >= 1 - SUM_TOLERANCE) & (total <= 1 + SUM_TOLERANCE)),
    "row",
)
WEIGHT = Rule(
    f"{{noun}} missing or outside [{MIN_WEIGHT:g}, {MAX_WEIGHT:g}]",
    "A weight of 2 counts a row twice, and 0 leaves it out.",
    lambda w, missing: missing(w) | ~((w == 0) | ((w >= MIN_WEIGHT) & (w <= MAX_WEIGHT))),
)
FRACTION = Rule(
    "{noun} with a fractional part, which cannot count rows",
    Remedy.SAMPLING,
    lambda w, _: w != w.round(0),
)
LARGE_LABEL = Rule(
    "{noun} beyond 2^53, which are not exact in float64",
    "Cast the column to text or to Int64.",
    lambda y, _: (y <= -EXACT_INTEGERS) | (y >= EXACT_INTEGERS),
    "label",
)


#: What labels of two classes must be.
ZERO_ONE, TWO_LABELS = "must hold 0 and 1", "must hold two labels"


def got(must: str, seen: Sequence[Any]) -> str:
    """Return what values must be, and what they are instead: "must hold 0 and 1. Got 1, 2 instead"."""
    return f"{must}. Got {listing(seen)} instead"


def outside_classes(classes: Sequence[Any], scores: str) -> str:
    """Return what is wrong with labels that are not the class of any column of scores."""
    return f"outside the classes {listing(classes)} of {scores}"


def no_weight(name: str) -> InputError:
    """Return the error of weights that leave out every row."""
    return InputError("is zero in every row. At least one row must count", argument=name)


def value_error(
    problem: str, wrong: NDArray[np.bool_], array: NDArray[Any], name: str, remedy: Remedy | str | None = None
) -> InputError:
    """Return the error of the values of an array that are wrong: how many, and which is the first."""
    first = int(wrong.reshape(len(wrong), -1).any(axis=1).argmax())
    return InputError(
        problem,
        argument=name,
        count=int(wrong.sum()),
        first_row=first,
        value=array[first] if array.ndim == 1 else array[first][wrong[first]][0],
        remedy=remedy,
    )


def bad_values(
    wrong: NDArray[np.bool_],
    array: NDArray[Any],
    name: str,
    noun: str,
    rule: str = "",
    *,
    remedy: Remedy | str | None = None,
) -> InputError:
    """Return the error of values that break a rule which only one caller has."""
    problem = f"has {counted(int(wrong.sum()), noun)}{rule and ' '}{rule}"
    return value_error(problem, wrong, array, name, remedy)


def is_missing(value: Any) -> bool:
    """Return whether a Python object is None, NaN or another mark of a missing value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, numbers.Number) and value != value


def which(test: Callable[[Any], bool], array: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the objects in an array for which a test is true."""
    return np.array([test(value) for value in array.ravel().tolist()], dtype=bool).reshape(array.shape)


def find_missing(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where an array of any type holds a missing value."""
    if array.dtype.kind == "O":
        return which(is_missing, array)
    if array.dtype.kind in "mM":
        return np.asarray(np.isnat(array))
    return np.asarray(np.isnan(array)) if array.dtype.kind == "f" else np.zeros(array.shape, dtype=bool)


# --- The scale of scores outside [0, 1] --------------------------------------------------------------

#: What to know about scores that are all exactly 0 or 1.
CLASSES = "All scores are exactly 0 or 1: these look like predicted classes, not probabilities."
#: How far outside [0, 1] a score may lie by rounding.
ROUNDING = 1e-3
#: Minimum number of values that make a pattern.
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
        """Whether some values look like fractions and others like a larger scale, such as 0.85 and 85.

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


#: What is counted of scores; missing and infinite ones are left out.
_COUNTED: dict[str, Callable[[Any], Any]] = {
    "n": lambda v: (v > -math.inf) & (v < math.inf),
    "negative": lambda v: v < 0,
    "above": lambda v: (v > 1) & (v < math.inf),
    "between": lambda v: (v > 0) & (v < 1),
    "upper_half": lambda v: (v > 0.5) & (v < 1),
    "doubles": lambda v: (v > 1) & (v < 2),
    "larger": lambda v: (v > 2) & (v < math.inf),
    "nearly_zero": lambda v: (v >= -_NEAR_ZERO) & (v <= 0),
    "fractional": lambda v: (v != v.round(0)) & (v < math.inf),
}
#: What is counted once the range is known.
_NEAR_ENDS: dict[str, Callable[[Any, float, float], Any]] = {
    "at_low": lambda v, low, high: v == low,
    "at_high": lambda v, low, high: v == high,
    "third_low": lambda v, low, high: v < low / 3,
    "third_high": lambda v, low, high: (v > high / 3) & (v < math.inf),
}


def look_at(
    columns: Sequence[Any],
    *,
    ask: Callable[[dict[str, Any]], Mapping[str, Any]] = dict,
    count: Callable[[Any], Any] = methodcaller("sum"),
) -> ScoreValues:
    """Return statistics that identify the scale of scores.

    Examples
    --------
    >>> look_at([np.array([0.5, 0.7, -999.0])]).code
    -999
    """

    def answers(question: Callable[[Any], dict[str, Any]]) -> dict[str, list[Any]]:
        asked = {f"{name} {k}": one for k, v in enumerate(columns) for name, one in question(v).items()}
        found: dict[str, list[Any]] = {}
        for name, answer in ask(asked).items():
            found.setdefault(name.split()[0], []).append(answer)
        return found

    def first(v: Any) -> dict[str, Any]:
        return {"low": v.min(), "high": v.max(), **{name: count(at(v)) for name, at in _COUNTED.items()}}

    found = answers(first)
    low, high = (
        min(_finite(found.pop("low")), default=math.nan),
        max(_finite(found.pop("high")), default=math.nan),
    )
    found |= answers(lambda v: {name: count(at(v, low, high)) for name, at in _NEAR_ENDS.items()})
    counts = {name: sum(int(answer or 0) for answer in each) for name, each in found.items()}
    return ScoreValues(low=low, high=high, **counts)


def _finite(answers: Sequence[Any]) -> list[float]:
    return [float(answer) for answer in answers if answer is not None and math.isfinite(answer)]


def fitting_remedy(values: ScoreValues) -> Remedy:
    """Return the remedy for scores outside [0, 1].

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
    """Warn of scores that are all exactly 0 or 1, at the line that called truecal."""
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
