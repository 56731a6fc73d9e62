"""What `truecal.data.frames` reads from data frames: scores, labels and weights as columns, with what is wrong.

Everything here is an expression that an engine evaluates later. The readers of arrays, `truecal.data`, check
the same things, and say them in the same words where they can: an engine counts rows, but has no first row.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import narwhals as nw
from narwhals.dtypes import DType

from truecal._lib.text import listing
from truecal.data.arrays import plain

Frame = nw.LazyFrame[Any]

#: The same limits as in `truecal.data`.
SUM_TOLERANCE = 1e-3
MOST_WEIGHT = 1e100

_MEND = "Remove or mend these rows."


class Fault(NamedTuple):
    """Rows that are wrong: which, what to say of them, and which of their values to tell the range of."""

    where: nw.Expr
    say: Callable[[int, str], str]
    shown: nw.Expr | None = None


def as_lazy(frame: Any) -> Frame:
    """Return any frame that narwhals knows as a lazy one, or say what is known."""
    try:
        data: nw.LazyFrame[Any] | nw.DataFrame[Any] = nw.from_native(frame)
    except TypeError as error:
        raise ValueError(
            f"summarize takes a data frame of Polars, pandas, PyArrow, DuckDB, Dask or Spark. "
            f"Got {type(frame).__name__} instead."
        ) from error
    return data.lazy()


def collect(frame: Frame) -> nw.DataFrame[Any]:
    """Run the query; Polars streams, so that its memory does not grow with the data."""
    return frame.collect(engine="streaming") if frame.implementation.is_polars() else frame.collect()


def require(schema: nw.Schema, wanted: Iterable[str], numbers: Iterable[str]) -> None:
    """Refuse names that are not columns, with the nearest one that is, and columns that hold no numbers."""
    columns = schema.names()
    for name in wanted:
        if not isinstance(name, str):
            raise ValueError(
                f"Columns are named by text. Got {name!r} instead. Rename them: frame.rename(columns=str)."
            )
        if name not in columns:
            close = difflib.get_close_matches(str(name), columns, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"The frame has no column {name!r}. It has: {listing(columns, 20)}.{hint}")
    for name in numbers:
        if not (schema[name].is_numeric() or schema[name] == nw.Boolean):
            raise ValueError(f"Column {name!r} must hold numbers. Its type is {schema[name]}.")


# --- Scores and weights ----------------------------------------------------------------------------


def read_scores(data: Frame, scores: list[str], *, logits: bool) -> tuple[Frame, list[Fault]]:
    """Check the columns ``_p0``, ``_p1`` and so on, and turn logits into probabilities."""
    columns = [nw.col(f"_p{k}") for k in range(len(scores))]
    single = len(scores) == 1
    named = f"Column {scores[0]!r} has" if single else f"Columns {listing(scores)} have"
    kind = "infinite, null or NaN" if logits else "missing (null or NaN)"

    def amount(n: int, noun: str) -> str:
        return count(n, noun) if single else f"{count(n, 'row')} with {noun}s"

    def lost(n: int, _: str) -> str:
        return f"{named} {amount(n, f'{kind} value')}. {_MEND}"

    def outside(n: int, values: str) -> str:
        return (
            f"{named} {amount(n, 'value')} outside [0, 1] ({values}). Pass probabilities; for logits pass "
            f"logits=True; if that is rounding, clip them to [0, 1]."
        )

    def uneven(n: int, values: str) -> str:
        return (
            f"{named} {count(n, 'row')} that {'does' if n == 1 else 'do'} not sum to 1 (the sum is {values}). Pass "
            f"one probability for each class; for logits pass logits=True."
        )

    total, least, top = nw.col("_total"), nw.col("_least"), nw.col("_top")
    # Unlike `nw.sum_horizontal`, plus hands on what is missing, so that one look at the sum finds it.
    data = data.with_columns(_total=_add(columns))
    faults = [Fault(_missing(total) | ~total.is_finite() if logits else _missing(total), lost)]
    if logits:
        return _squashed(data, columns, faults[0].where), faults
    if single:
        return data, [*faults, Fault((columns[0] < 0) | (columns[0] > 1), outside)]
    data = data.with_columns(_least=nw.min_horizontal(*columns), _top=nw.max_horizontal(*columns))
    extreme = nw.when(least < 0).then(least).otherwise(top)
    faults.append(Fault((least < 0) | (top > 1), outside, extreme))
    faults.append(Fault((total - 1).abs() > SUM_TOLERANCE, uneven, total))
    return data, faults


def _add(columns: list[nw.Expr]) -> nw.Expr:
    """Return the sum, by halves: a thousand additions in a row would be nested too deep for some engines."""
    middle = len(columns) // 2
    return _add(columns[:middle]) + _add(columns[middle:]) if middle else columns[0]


def _squashed(data: Frame, columns: list[nw.Expr], lost: nw.Expr) -> Frame:
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


def bad_weight(weight: str) -> Fault:
    """Return where the column ``_w`` holds no frequency."""
    column = nw.col("_w")

    def say(n: int, values: str) -> str:
        return (
            f"Column {weight!r} has {count(n, 'value')} missing or outside [0, {MOST_WEIGHT:g}] ({values}). "
            f"Weights are frequencies: 0 leaves a row out, 2 counts it twice."
        )

    return Fault(_missing(column) | (column < 0) | (column > MOST_WEIGHT), say, column)


# --- Labels ----------------------------------------------------------------------------------------


def is_text(dtype: DType) -> bool:
    """Return whether labels of that type are text."""
    return isinstance(dtype, nw.String | nw.Categorical | nw.Enum)


def as_label(label: str, dtype: DType) -> nw.Expr:
    """Return labels as what all engines can compare, numbers or text."""
    if is_text(dtype):
        return nw.col(label).cast(nw.String)
    if is_whole(dtype):
        return nw.col(label).cast(nw.Int64)
    if dtype.is_numeric() or dtype == nw.Boolean:
        return nw.col(label).cast(nw.Float64)
    raise ValueError(f"Column {label!r} must hold numbers, booleans or text. Its type is {dtype}.")


def is_whole(dtype: DType) -> bool:
    """Return whether labels of that type are integers of at most 64 bits, which float64 would round."""
    return dtype.is_integer() and dtype not in (nw.UInt64, nw.Int128, nw.UInt128)


def missing_label(label: str, dtype: DType) -> Fault:
    """Return where the column ``_y`` holds nothing."""
    y = nw.col("_y")
    return Fault(
        _missing(y) if dtype.is_float() else y.is_null(),
        lambda n, _: f"Column {label!r} has {count(n, 'missing (null or NaN) label')}. {_MEND}",
    )


def read_two_labels(
    data: Frame, label: str, pos_label: Any, *, missing: nw.Expr, text: bool
) -> tuple[nw.Expr, Fault]:
    """Return 1 where the label is positive and 0 elsewhere, and where it is neither of two labels."""
    y, positive = nw.col("_y"), plain(pos_label)
    if positive is None:
        if text:
            seen = sorted(_examples(data, ~missing))
            if not seen:
                raise ValueError(f"Column {label!r} holds nothing. At least one label is needed.")
            raise ValueError(
                f"Column {label!r} must hold 0 and 1. Got {listing(seen)} instead. "
                f"Pass pos_label={seen[-1]!r} (or another) to say which is positive."
            )
        hit, known, must = y, (y == 0) | (y == 1), "must hold 0 and 1"
        advice = (
            "Pass pos_label to name the positive one of two; for more, one column of scores for each class."
        )
    else:
        if isinstance(positive, str) != text or not isinstance(positive, str | bool | int | float):
            kind = "text" if text else "numbers"
            raise ValueError(f"pos_label {positive!r} is not among the labels of column {label!r}: {kind}.")
        hit = y == (int(positive) if isinstance(positive, bool) else positive)
        # One other label, from the first rows; then every row must have one of these two.
        other = _examples(data, ~hit & ~missing, most=1)
        known = reduce(or_, (y == value for value in other), hit)
        must = f"must hold two labels, {' and '.join(map(repr, [positive, *other]))}"
        advice = f"For one class against the rest make a column of label == {positive!r}."

    def say(n: int, _: str) -> str:
        others = listing(_examples(data, ~known & ~missing))
        return f"Column {label!r} {must}. It has {count(n, 'other label')} ({others}). {advice}"

    return hit.cast(nw.Float64), Fault(~known, say)


def name_classes(scores: list[str], label: str, labels: Sequence[Any] | None, *, text: bool) -> list[Any]:
    """Return the class of each column of scores; one column is that of the second of two classes."""
    n_classes = max(len(scores), 2)
    if labels is not None:
        classes = [plain(name) for name in labels]
        if len(classes) != n_classes or len(set(classes)) != n_classes:
            raise ValueError(
                f"labels must name {n_classes} different classes. Got {listing(classes)} instead."
            )
        if any(isinstance(name, str) != text for name in classes):
            raise ValueError(
                f"Column {label!r} holds {'text' if text else 'numbers'}, and labels names the classes "
                f"{listing(classes)}. Name them as that column does."
            )
        return classes
    if text:
        return list(scores)
    if all(name.isdecimal() for name in scores):
        return [int(name) for name in scores]
    return list(range(n_classes))


def read_classes(
    data: Frame, label: str, classes: list[Any], *, missing: nw.Expr, whole: bool
) -> tuple[Frame, Fault]:
    """Add ``_true``, the number of the column of each row's true class, and say where there is none."""
    y, true = nw.col("_y"), nw.col("_true")
    if classes == list(range(len(classes))):
        data, known = data.with_columns(_true=y), (y >= 0) & (y < len(classes))
        known = known if whole else known & (y == y.floor())
    else:
        columns = [_mark(y == name, k, -1) for k, name in enumerate(classes)]
        data, known = data.with_columns(_true=nw.max_horizontal(*columns)), true >= 0

    def say(n: int, _: str) -> str:
        return (
            f"Column {label!r} has {count(n, 'label')} ({listing(_examples(data, ~known & ~missing))}) outside the "
            f"{len(classes)} columns of scores, whose classes are {listing(classes)}. "
            f"Pass labels=[...] to name the class of each column."
        )

    return data, Fault(~known, say)


def is_top(n_classes: int) -> nw.Expr:
    """Return 1 where the true class has the greatest score; of equal scores the first column counts."""
    columns = [_mark(nw.col(f"_p{k}") == nw.col("_top"), k, n_classes) for k in range(n_classes)]
    return (nw.min_horizontal(*columns) == nw.col("_true")).cast(nw.Float64)


def _mark(where: nw.Expr, k: int, otherwise: int) -> nw.Expr:
    return nw.when(where).then(nw.lit(k)).otherwise(nw.lit(otherwise)).alias(f"_k{k}")


# --- Words -----------------------------------------------------------------------------------------


def count(n: int, noun: str) -> str:
    """Return "1 value" or "3 values"."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _missing(column: nw.Expr) -> nw.Expr:
    return column.is_null() | column.is_nan()


def _examples(data: Frame, where: nw.Expr, most: int = 1000) -> list[Any]:
    """Return a few different labels of rows at fault: a look at the data, for a message."""
    found = collect(data.filter(where).select("_y").head(most))["_y"].to_list()
    return list(dict.fromkeys(int(y) if isinstance(y, float) and y.is_integer() else y for y in found))
