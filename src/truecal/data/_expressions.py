"""The checks of `truecal.data.frames` as expressions that an engine evaluates later.

They apply the rules of `truecal.data.labels` and `truecal.data.arrays`, and use their limits and words where
they can: an engine counts rows, but has no first row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import narwhals as nw
from narwhals.dtypes import DType

from truecal._lib.checks import did_you_mean
from truecal._lib.text import counted, listing
from truecal.data import faults
from truecal.data.arrays import to_python
from truecal.data.labels import booleans_in_names, check_classes, numbers_in_names
from truecal.exceptions import InputError, Remedy, show_value

Frame = nw.LazyFrame[Any]


class Fault(NamedTuple):
    """Rows that break a rule: which, what is wrong given their number, and what to do.

    A message has the range of `shown` in these rows after `range_of`, if that is not None. A remedy may depend on the
    data, and on a value in them.
    """

    column: str
    where: nw.Expr
    problem: Callable[[int], str]
    remedy: Remedy | str | Callable[[], tuple[Remedy, Any]]
    shown: nw.Expr | None = None
    range_of: str | None = None

    def error(self, count: int, values: str) -> InputError:
        """Return the error for `count` such rows with these values."""
        remedy, value = self.remedy() if callable(self.remedy) else (self.remedy, None)
        shown = "" if self.range_of is None else f" ({self.range_of}{values})"
        return InputError(
            self.problem(count) + shown, argument=self.column, count=count, value=value, remedy=remedy
        )


def _fault(
    rule: faults.Rule, named: str, column: nw.Expr, *, several: bool = False, exact: bool = False, **more: Any
) -> Fault:
    """Return the fault of a column, or of `several`, that breaks a rule; an `exact` one holds no NaN."""
    where = rule.broken(column, nw.Expr.is_null if exact else _is_missing)
    problem = rule.problem_of_rows if several else rule.problem
    return Fault(named, where, problem, **{"remedy": rule.remedy, **more})


def _is_missing(column: nw.Expr) -> nw.Expr:
    """Return where a column of floats is null or NaN."""
    return column.is_null() | column.is_nan()


def as_lazy(frame: Any) -> Frame:
    """Return any frame that narwhals supports as a lazy one."""
    try:
        data: nw.LazyFrame[Any] | nw.DataFrame[Any] = nw.from_native(frame)
    except TypeError as error:
        raise InputError(
            f"must be a data frame of Polars, pandas, PyArrow, DuckDB, Dask or Spark. "
            f"Got {type(frame).__name__} instead",
            argument="frame",
        ) from error
    return data.lazy()


def collect(frame: Frame) -> nw.DataFrame[Any]:
    """Run the query; Polars streams, so that its memory does not grow with the data."""
    return frame.collect(engine="streaming") if frame.implementation.is_polars() else frame.collect()


def name_column(name: str) -> str:
    """Return what messages call a column."""
    return f"column {name!r}"


def require_columns(schema: nw.Schema, wanted: Iterable[str], numbers: Iterable[str]) -> None:
    """Refuse names that are not columns, with the nearest one that is, and columns that hold no numbers."""
    columns = schema.names()
    for name in wanted:
        if not isinstance(name, str):
            raise InputError(
                f"Columns must be named by text. Got {name!r} instead",
                value=name,
                remedy="Rename them: frame.rename(columns=str).",
            )
        if name not in columns:
            raise InputError(
                f"The frame has no column {name!r}. It has: {listing(columns, 20)}",
                value=name,
                remedy=did_you_mean(name, columns),
            )
        if name == "*" or (name.startswith("^") and name.endswith("$")):  # which stand for several columns
            raise InputError(
                "has a name that reads as a pattern",
                argument=name_column(name),
                remedy="Rename it.",
            )
    for name in numbers:
        if not (schema[name].is_numeric() or schema[name] == nw.Boolean):
            raise InputError(f"must hold numbers. Its type is {schema[name]}", argument=name_column(name))


# --- Scores and weights ----------------------------------------------------------------------------


def read_scores(data: Frame, scores: list[str], *, logits: bool) -> tuple[Frame, list[Fault]]:
    """Check the columns ``_p0``, ``_p1`` and so on, and turn logits into probabilities."""
    columns = [nw.col(f"_p{k}") for k in range(len(scores))]
    several = len(scores) > 1
    named = f"columns {listing(scores)}" if several else name_column(scores[0])

    def fit() -> tuple[Remedy, Any]:
        values = faults.look_at(columns, ask=lambda questions: _answers(data, questions), count=_count)
        remedy = faults.fitting_remedy(values)
        return Remedy.LOGITS_FLAG if remedy is Remedy.LOGITS else remedy, values.code

    total, smallest, top = nw.col("_total"), nw.col("_smallest"), nw.col("_top")
    # Unlike `nw.sum_horizontal`, + propagates missing values, so checking the sum is enough.
    data = data.with_columns(_total=_add(columns))
    lost = _fault(faults.NOT_FINITE if logits else faults.MISSING, named, total, several=several)
    if logits:
        return _softmax(data, columns, lost.where), [lost]
    if not several:
        return data, [lost, _fault(faults.OUTSIDE, named, columns[0], remedy=fit, range_of="")]
    data = data.with_columns(_smallest=nw.min_horizontal(*columns), _top=nw.max_horizontal(*columns))
    extreme = nw.when(smallest < 0).then(smallest).otherwise(top)
    outside = _fault(faults.OUTSIDE, named, extreme, several=True, remedy=fit, shown=extreme, range_of="")
    uneven = _fault(faults.UNEVEN, named, total, several=True, shown=total, range_of="sum ")
    return data, [lost, outside, uneven]


def _answers(data: Frame, questions: dict[str, nw.Expr]) -> dict[str, Any]:
    return {name: column.item() for name, column in collect(data.select(**questions)).to_dict().items()}


def _count(where: nw.Expr) -> nw.Expr:
    return where.cast(nw.Int64).sum()


def _add(columns: list[nw.Expr]) -> nw.Expr:
    """Return the sum as a balanced tree: a thousand nested additions would be too deep for some engines."""
    middle = len(columns) // 2
    return _add(columns[:middle]) + _add(columns[middle:]) if middle else columns[0]


def _softmax(data: Frame, columns: list[nw.Expr], lost: nw.Expr) -> Frame:
    """Replace logits by probabilities; exponents are never positive, so that nothing overflows."""
    safe = [nw.when(~lost).then(column).otherwise(nw.lit(0.0)) for column in columns]
    if len(columns) == 1:
        small = (0 - safe[0].abs()).exp()
        return data.with_columns(_p0=nw.when(safe[0] < 0).then(small).otherwise(nw.lit(1.0)) / (1 + small))
    names = [f"_p{k}" for k in range(len(columns))]
    data = data.with_columns(**dict(zip(names, safe, strict=True)))
    data = data.with_columns(_top=nw.max_horizontal(*columns))
    data = data.with_columns(**{name: (nw.col(name) - nw.col("_top")).exp() for name in names})
    data = data.with_columns(_sum=_add(columns))
    data = data.with_columns(**{name: nw.col(name) / nw.col("_sum") for name in names})
    return data.with_columns(_top=nw.max_horizontal(*columns))


def bad_weights(weight: str, *, counts: bool) -> list[Fault]:
    """Return where the column ``_w`` holds no weight, and, if weights are to count rows, no whole number."""
    w = nw.col("_w")
    rules = [faults.WEIGHT, faults.FRACTION] if counts else [faults.WEIGHT]
    return [_fault(rule, name_column(weight), w, shown=w, range_of="") for rule in rules]


def missing_cluster(number: int, name: str, dtype: DType) -> Fault:
    """Return where the column ``_c0``, ``_c1`` and so on names no cluster."""
    return _fault(faults.MISSING, name_column(name), nw.col(f"_c{number}"), exact=not dtype.is_float())


# --- Labels ----------------------------------------------------------------------------------------


def is_text(dtype: DType) -> bool:
    """Return whether labels of that type are text."""
    return isinstance(dtype, nw.String | nw.Categorical | nw.Enum)


def as_label(label: str, dtype: DType) -> nw.Expr:
    """Return labels as what all engines can compare, numbers or text."""
    if is_text(dtype):  # some versions of pandas turn what is missing into the text "None"
        return nw.when(~nw.col(label).is_null()).then(nw.col(label).cast(nw.String))
    if is_whole(dtype):
        return nw.col(label)  # to make them wider would take a tenth of the time of the whole query
    if dtype.is_numeric() or dtype == nw.Boolean:
        return nw.col(label).cast(nw.Float64)
    raise InputError(f"must hold numbers, booleans or text. Its type is {dtype}", argument=name_column(label))


def refuse_large_labels(data: Frame, label: str, dtype: DType) -> None:
    """Reject PyArrow labels that float64 would round, before PyArrow raises its own error."""
    if data.implementation.is_pyarrow() and dtype == nw.UInt64:
        largest = collect(data.select(nw.col(label).max()))[label].item()
        if largest is not None and largest >= faults.EXACT_INTEGERS:
            raise InputError(
                f"has {faults.LARGE_LABEL.describe(2)} (up to {largest})",
                argument=name_column(label),
                remedy=faults.LARGE_LABEL.remedy,
            )


def is_whole(dtype: DType) -> bool:
    """Return whether labels of that type are integers of at most 64 bits, which float64 would round."""
    return dtype.is_integer() and dtype not in (nw.UInt64, nw.Int128, nw.UInt128)


def bad_labels(label: str, dtype: DType) -> list[Fault]:
    """Return where the column ``_y`` holds nothing, or a number that float64 would round."""
    y, name = nw.col("_y"), name_column(label)
    found = [_fault(faults.MISSING_LABEL, name, y, exact=not dtype.is_float())]
    if dtype.is_numeric() and not dtype.is_float() and not is_whole(dtype):
        found.append(_fault(faults.LARGE_LABEL, name, y))
    return found


def read_two_labels(
    data: Frame, label: str, pos_label: Any, *, missing: nw.Expr, text: bool
) -> tuple[nw.Expr, Fault]:
    """Return 1 where the label is positive and 0 elsewhere, and where it is neither of two labels."""
    y, positive, name = nw.col("_y"), to_python(pos_label), name_column(label)
    remedy = Remedy.POS_LABEL
    if positive is None:
        if text:
            seen = sorted(_examples(data, ~missing))
            if not seen:
                raise InputError("has only missing (NaN) labels", argument=name)
            raise InputError(faults.got(faults.ZERO_ONE, seen), argument=name, remedy=remedy)
        hit, known, must = y, (y == 0) | (y == 1), faults.ZERO_ONE
    else:
        huge = isinstance(positive, int) and abs(positive) >= 2**64
        if huge or isinstance(positive, str) != text or not isinstance(positive, str | bool | int | float):
            held = "text" if text else "numbers"
            raise InputError(
                f"{show_value(positive)} is not among the labels of {name}, which holds {held}",
                argument="pos_label",
                value=positive,
            )
        hit = y == (int(positive) if isinstance(positive, bool) else positive)
        # One other label, from the first rows; then every row must have one of these two.
        other = _examples(data, ~hit & ~missing, most=1)
        known = reduce(or_, (y == value for value in other), hit)
        must = f"{faults.TWO_LABELS}, {' and '.join(map(repr, [positive, *other]))}"
        remedy = Remedy.ONE_VERSUS_REST

    def problem(n: int) -> str:
        return f"{must}. It has {counted(n, 'other label')} ({listing(_examples(data, ~known & ~missing))})"

    return hit.cast(nw.Float64), Fault(name, ~known, problem, remedy)


def name_classes(scores: list[str], label: str, labels: Sequence[Any] | None, *, text: bool) -> list[Any]:
    """Return the class of each column of scores; one column is that of the second of two classes."""
    n_classes = max(len(scores), 2)
    if labels is None:
        return list(scores) if text else _numbered_classes(scores, n_classes)
    classes = [to_python(name) for name in labels]
    check_classes(classes, n_classes)
    if any(isinstance(name, str) != text for name in classes):
        raise InputError(
            f"names the classes {listing(classes)}, but {name_column(label)} holds "
            f"{'text' if text else 'numbers'}. Name them as that column does",
            argument="labels",
        )
    return classes


def _numbered_classes(scores: list[str], n_classes: int) -> list[int]:
    """Return the number that each column's name gives, or 0 to K - 1."""
    if len(scores) == 2 and (booleans := booleans_in_names(scores)):
        return [int(value) for value in booleans]
    if all(name.isdecimal() for name in scores):
        return [int(name) for name in scores]
    numbers = numbers_in_names(scores) if len(scores) > 1 else None
    if numbers and set(numbers) == set(range(n_classes)):
        return numbers
    if numbers and numbers != sorted(numbers):
        raise InputError(
            f"The columns {listing(scores)} are not in the order of their numbers", remedy=Remedy.LABELS
        )
    return list(range(n_classes))


def read_classes(
    data: Frame, label: str, classes: list[Any], *, missing: nw.Expr, whole: bool
) -> tuple[Frame, Fault]:
    """Add ``_true``, the number of the column of each row's true class, and return where there is none."""
    y, true = nw.col("_y"), nw.col("_true")
    if classes == list(range(len(classes))):
        data, known = data.with_columns(_true=y), (y >= 0) & (y < len(classes))
        known = known if whole else known & (y == y.floor())
    else:
        columns = [_mark(y == name, k, -1) for k, name in enumerate(classes)]
        data, known = data.with_columns(_true=nw.max_horizontal(*columns)), true >= 0

    def problem(n: int) -> str:
        others = listing(_examples(data, ~known & ~missing))
        return f"has {counted(n, 'label')} ({others}) {faults.outside_classes(classes, 'the scores')}"

    return data, Fault(name_column(label), ~known, problem, Remedy.LABELS)


def is_top(n_classes: int) -> nw.Expr:
    """Return 1 where the true class has the largest score; of equal scores the first column counts."""
    columns = [_mark(nw.col(f"_p{k}") == nw.col("_top"), k, n_classes) for k in range(n_classes)]
    return (nw.min_horizontal(*columns) == nw.col("_true")).cast(nw.Float64)


def _mark(where: nw.Expr, k: int, otherwise: int) -> nw.Expr:
    return nw.when(where).then(nw.lit(k)).otherwise(nw.lit(otherwise)).alias(f"_k{k}")


def _examples(data: Frame, where: nw.Expr, most: int = 1000) -> list[Any]:
    """Return a few different labels of some rows, for a message."""
    found = collect(data.filter(where).select("_y").head(most))["_y"].to_list()
    return list(dict.fromkeys(int(y) if isinstance(y, float) and y.is_integer() else y for y in found))
