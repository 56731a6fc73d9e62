"""Columns that split rows into groups: one column, or several that are crossed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from truecal.exceptions import InputError

if TYPE_CHECKING:
    import narwhals as nw

    from truecal.data.question import Rows
    from truecal.data.sample import Sample

#: How a group with a missing value is shown.
MISSING = "(missing)"
#: Types of Polars whose values it cannot compare, or Python cannot use as keys.
_OPAQUE = ("Object", "List", "Array", "Struct")


@dataclass(frozen=True, eq=False)
class Split:
    """Rows split into groups.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns.
    keys : tuple of tuple
        The values of each group, one for each column; a missing value is None.
    names : tuple of str
        The name of each group, all different.
    group : ndarray of shape (n,)
        The number of the group of each row.
    """

    columns: tuple[str, ...]
    keys: tuple[tuple[Any, ...], ...]
    names: tuple[str, ...]
    group: NDArray[np.intp]


def split_rows(by: Any, n: int) -> Split:
    """Return the groups of `n` rows.

    Parameters
    ----------
    by : array-like, mapping, data frame or tuple of array-like
        One column; or several, which are crossed: a mapping from names to columns, a data frame, an array of
        shape (n, k), or a tuple of columns.
    n : int
        Number of rows.

    Examples
    --------
    >>> split = split_rows({"sex": ["m", "f", None, "f"], "old": [0, 0, 1, 1]}, 4)
    >>> split.names, split.group.tolist()
    (('f, 0', 'f, 1', 'm, 0', '(missing), 1'), [2, 0, 3, 1])
    >>> split_rows(["(missing)", None], 2).names
    ("'(missing)'", '(missing)')
    """
    columns = _columns(by)
    if not columns:
        raise InputError("names no column", argument="by")
    coded = []
    for name, column in columns.items():
        values, code = _code(column)
        if len(code) != n:
            raise InputError(f"has {len(code)} values in {name!r} for {n} rows", argument="by")
        coded.append((values, code))
    joint = np.zeros(n, dtype=np.intp)
    for values, code in coded:
        joint = joint * len(values) + code
    present, group = np.unique(joint, return_inverse=True)
    sizes = [len(values) for values, _ in coded]
    places = np.unravel_index(present, sizes)
    shown = [_names(values) for values, _ in coded]
    rows = list(zip(*places, strict=True))
    keys = tuple(tuple(values[k] for (values, _), k in zip(coded, row, strict=True)) for row in rows)
    names = tuple(", ".join(text[k] for text, k in zip(shown, row, strict=True)) for row in rows)
    return Split(tuple(columns), keys, names, group.reshape(-1))


def split_sample(rows: Rows, split: Split) -> dict[int, Sample]:
    """Return the sample of each group that has any weight.

    Parameters
    ----------
    rows : Rows
        Checked predictions in their order.
    split : Split
        The group of each row.
    """
    group = split.group.astype(np.min_scalar_type(len(split.keys)))  # the shorter, the faster to order
    order = np.argsort(group, kind="stable")
    ends = np.searchsorted(group[order], np.arange(len(split.keys) + 1))
    samples = {}
    for k in range(len(split.keys)):
        chosen = order[ends[k] : ends[k + 1]]
        weight = None if rows.weight is None else rows.weight[chosen]
        if weight is None or weight.any():
            samples[k] = rows.take(chosen).group()
    return samples


def _columns(by: Any) -> dict[str, Any]:
    if isinstance(by, Mapping):
        return {str(name): column for name, column in by.items()}
    if isinstance(by, tuple):
        return {str(getattr(column, "name", None) or f"group {k + 1}"): column for k, column in enumerate(by)}
    if hasattr(by, "columns"):
        import narwhals as nw

        frame = nw.from_native(by, eager_only=True)
        return {name: frame[name].to_list() for name in frame.columns}
    if isinstance(by, np.ndarray) and by.ndim == 2:
        return {f"group {k + 1}": column for k, column in enumerate(by.T)}
    if isinstance(by, str) or not isinstance(by, Iterable):
        raise InputError(f"must be one value for each row. Got {by!r} instead", argument="by")
    return {str(getattr(by, "name", None) or "group"): by}


def _code(column: Any) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the distinct values, sorted and the missing one last, and the number of each row's value."""
    if isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind in "biuUS":
        distinct, code = np.unique(column, return_inverse=True)
        return distinct.tolist(), code
    if type(column).__module__.startswith("polars.") and str(column.dtype).split("(")[0] not in _OPAQUE:
        # Only the distinct values become Python's, which for those of all rows takes longer than a test.
        distinct = column.unique()
        values, place = _code(distinct.to_list())
        return values, column.replace_strict(distinct, place, return_dtype=int).to_numpy()
    to_list = getattr(column, "to_list", None) or getattr(column, "tolist", None)
    rows = list(to_list() if to_list else column)
    keys: list[Any] = rows
    if len(set(map(type, rows)) - {type(None)}) > 1:  # 1 and True are equal, and not the same group
        keys = list(zip(map(type, rows), rows, strict=True))
    seen = dict(zip(keys, rows, strict=True))
    present = [key for key, value in seen.items() if not _is_missing(value)]
    try:
        present.sort(key=lambda key: seen[key])
    except TypeError:
        present.sort(key=lambda key: str(seen[key]))
    number = dict.fromkeys(seen, len(present)) | {key: k for k, key in enumerate(present)}
    code = np.fromiter(map(number.__getitem__, keys), np.intp, len(keys))
    return [seen[key] for key in present] + [None] * (len(present) < len(seen)), code


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value


def _names(values: list[Any]) -> list[str]:
    """Return names that are all different: quoted where the text is that of another value."""
    texts = [MISSING if value is None else str(value) for value in values]
    return [
        text if value is None or (texts.count(text) == 1 and text != MISSING) else repr(value)
        for text, value in zip(texts, values, strict=True)
    ]


def rows_by_key(
    sums: nw.DataFrame[Any], columns: list[str], rows: NDArray[np.intp]
) -> dict[tuple[Any, ...], NDArray[np.intp]]:
    """Return which of some rows hold each key, in the order of the keys.

    Parameters
    ----------
    sums : DataFrame
        What an engine returned.
    columns : list of str
        Columns of the key; without any, all rows have the key ().
    rows : ndarray of int
        The rows.
    """
    if not columns:
        return {(): rows}
    keys = list(zip(*(_keys(sums[name]) for name in columns), strict=True))
    places: dict[tuple[Any, ...], list[int]] = {}
    for place in rows.tolist():
        places.setdefault(keys[place], []).append(place)
    in_order = sorted(places, key=lambda key: [(part is None, type(part).__name__, part) for part in key])
    return {key: np.array(places[key]) for key in in_order}


def _keys(column: nw.Series[Any]) -> list[Any]:
    """Return the values of a column, None where there is nothing or NaN."""
    values = zip(column.to_list(), column.is_null().to_list(), strict=True)
    return [None if null or value != value else value for value, null in values]
