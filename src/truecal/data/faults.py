"""What is refused of single values, in which words and with which remedy: one table for arrays, frames and databases.

A rule has one condition, written with comparisons and ``& | ~``. NumPy arrays, expressions of narwhals and `Sql` all
have these; what they spell differently is in a `Language`.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecal._lib.text import counted
from truecal.exceptions import InputError, Remedy

#: How far a row of probabilities may be from a sum of 1: float32 softmax and rounded files pass.
SUM_TOLERANCE = 1e-3
#: Limits of weights other than 0. Beyond them sums, products and squares of weights could overflow or vanish.
MIN_WEIGHT, MAX_WEIGHT = 1e-100, 1e100
#: Integers from here on are not exact as float64.
EXACT_INTEGERS = 2.0**53


class Language(NamedTuple):
    """What rules need beside comparisons, in one kind of columns."""

    missing: Callable[[Any], Any]
    finite: Callable[[Any], Any]
    floor: Callable[[Any], Any]


@dataclass(frozen=True)
class Rule:
    """A rule that single values may break: which do, what a message calls them, and what to do about them.

    `words` follow the number of values; ``{noun}`` is what they are, in the singular or the plural.
    """

    words: str
    remedy: Remedy | str
    broken: Callable[[Any, Language], Any]
    noun: str = "value"

    def problem(self, n: int, noun: str | None = None) -> str:
        """Return what is wrong: "has 3 values outside [0, 1]"."""
        return f"has {n:,} {self.describe(n, noun)}"

    def describe(self, n: int, noun: str | None = None) -> str:
        """Return the words for one value, or for several."""
        noun = noun or self.noun
        return self.words.format(noun=noun if n == 1 else f"{noun}s")

    def error(
        self,
        wrong: NDArray[np.bool_],
        array: NDArray[Any],
        name: str,
        *,
        noun: str | None = None,
        remedy: Remedy | str | None = None,
    ) -> InputError:
        """Return the error of the values of an array that are wrong, with the first of them."""
        return value_error(self.problem(int(wrong.sum()), noun), wrong, array, name, remedy or self.remedy)

    def refuse(self, array: NDArray[Any], name: str, *, noun: str | None = None) -> None:
        """Refuse an array some of whose values break the rule."""
        wrong = self.broken(array, NUMPY)
        if wrong.any():
            raise self.error(wrong, array, name, noun=noun)

    def in_sql(self, column: str) -> str:
        """Return the condition of rows that break the rule, as SQL."""
        text = str(self.broken(Sql(column), SQL))
        return text[1:-1] if text.startswith("(") else text


MISSING = Rule("missing (NaN) {noun}", Remedy.DROP_ROWS, lambda x, its: its.missing(x))
MISSING_LABEL = replace(MISSING, remedy=Remedy.UNLABELLED, noun="label")
NOT_FINITE = Rule("infinite or NaN {noun}", Remedy.DROP_ROWS, lambda x, its: its.missing(x) | ~its.finite(x))
#: Scores outside [0, 1]; `truecal.data.scales` looks for a better remedy.
OUTSIDE = Rule("{noun} outside [0, 1]", Remedy.LOGITS, lambda p, its: ~((p >= 0) & (p <= 1)))
UNEVEN = Rule(
    "{noun} whose sum is not 1",
    Remedy.NORMALIZE,
    lambda total, its: ~((total >= 1 - SUM_TOLERANCE) & (total <= 1 + SUM_TOLERANCE)),
    "row",
)
WEIGHT = Rule(
    f"{{noun}} missing or outside [{MIN_WEIGHT:g}, {MAX_WEIGHT:g}]",
    "A weight of 2 counts a row twice, and 0 leaves it out.",
    lambda w, its: its.missing(w) | ~((w == 0) | ((w >= MIN_WEIGHT) & (w <= MAX_WEIGHT))),
)
FRACTION = Rule(
    "{noun} with a fractional part, which cannot count rows",
    Remedy.SAMPLING,
    lambda w, its: w != its.floor(w),
)
LARGE_LABEL = Rule(
    "{noun} beyond 2^53, which are not exact in float64",
    "Cast the column to text or to Int64.",
    lambda y, its: (y <= -EXACT_INTEGERS) | (y >= EXACT_INTEGERS),
    "label",
)


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
    """Return which of the objects in an array pass a test."""
    return np.array([test(value) for value in array.ravel().tolist()], dtype=bool).reshape(array.shape)


def find_missing(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where an array of any type holds a missing value."""
    if array.dtype.kind == "O":
        return which(is_missing, array)
    if array.dtype.kind in "mM":
        return np.asarray(np.isnat(array))
    return np.asarray(np.isnan(array)) if array.dtype.kind == "f" else np.zeros(array.shape, dtype=bool)


@dataclass(frozen=True)
class Sql:
    """A condition or a column as SQL text."""

    text: str

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> Any:
        return Sql(f"{self} = {other!r}")

    def __ge__(self, other: object) -> Sql:
        return Sql(f"{self} >= {other!r}")

    def __le__(self, other: object) -> Sql:
        return Sql(f"{self} <= {other!r}")

    def __and__(self, other: Sql) -> Sql:
        return Sql(f"({self} AND {other})")

    def __or__(self, other: Sql) -> Sql:
        return Sql(f"({self} OR {other})")

    def __invert__(self) -> Sql:
        return Sql(f"NOT {self}")


NUMPY = Language(find_missing, np.isfinite, np.floor)
NARWHALS = Language(
    lambda column: column.is_null() | column.is_nan(),
    lambda column: column.is_finite(),
    lambda column: column.floor(),
)
#: Columns of narwhals that are no floats have no NaN.
NARWHALS_EXACT = NARWHALS._replace(missing=lambda column: column.is_null())
SQL = Language(
    lambda column: Sql(f"{column} IS NULL"),
    lambda column: Sql(f"ABS({column}) < 9e999"),
    lambda column: Sql(f"FLOOR({column})"),
)
