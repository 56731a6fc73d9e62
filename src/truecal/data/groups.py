"""Columns that split rows: groups, one column or several that are crossed, and features, which are cut into levels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.text import counted
from truecal.data.faults import find_missing, is_missing
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
    levels, joint = [], np.zeros(n, dtype=np.intp)
    for name, column in columns.items():
        values, code = _code(column)
        if len(code) != n:
            raise InputError(f"has {len(code)} values in {name!r} for {n} rows", argument="by")
        levels.append(values)
        joint = joint * len(values) + code
    present, group = np.unique(joint, return_inverse=True)
    places = np.unravel_index(present, [len(values) for values in levels])
    rows, shown = list(zip(*places, strict=True)), [_names(values) for values in levels]
    keys = tuple(tuple(values[k] for values, k in zip(levels, row, strict=True)) for row in rows)
    names = tuple(", ".join(text[k] for text, k in zip(shown, row, strict=True)) for row in rows)
    return Split(tuple(columns), keys, names, group.reshape(-1))


def split_sample(rows: Rows, split: Split) -> dict[int, Sample]:
    """Return the sample of each group that has any weight."""
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
    if isinstance(by, str) or not (isinstance(by, Iterable) or hasattr(by, "columns")):
        raise InputError(f"must be one value for each row. Got {by!r} instead", argument="by")
    if isinstance(by, tuple):
        by = {getattr(column, "name", None) or f"group {k}": column for k, column in enumerate(by, start=1)}
    return _named(by, "group", first=1)


def _named(data: Any, noun: str, *, first: int) -> dict[str, Any]:
    """Return columns by their names, those of a mapping, of a frame or of an array of two dimensions; or the only one.

    What has no name is called `noun`, with a number from `first` on.
    """
    if isinstance(data, Mapping):
        return {str(name): column for name, column in data.items()}
    frame = _as_frame(data)
    if frame is not None:
        return {str(name): frame.get_column(name) for name in frame.columns}
    if isinstance(data, np.ndarray) and data.ndim == 2:
        return {f"{noun} {k}": column for k, column in enumerate(data.T, start=first)}
    return {str(getattr(data, "name", None) or noun): data}


def _as_frame(data: Any) -> Any:
    """Return a frame in memory as narwhals' frame; None for anything else."""
    import narwhals as nw

    frame = nw.from_native(data, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _code(column: Any) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the distinct values, sorted and the missing one last, and the number of each row's value."""
    if isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind in "biuUS":
        distinct, code = np.unique(column, return_inverse=True)
        return distinct.tolist(), code
    if type(column).__module__.startswith("polars.") and str(column.dtype).split("(")[0] not in _OPAQUE:
        # Only the distinct values become Python's, which for those of all rows takes longer than a test.
        distinct = column.unique()
        values, place = _code_objects(distinct.to_list())
        return values, column.replace_strict(distinct, place, return_dtype=int).to_numpy()
    to_list = getattr(column, "to_list", None) or getattr(column, "tolist", None)
    return _code_objects(list(to_list() if to_list else column))


def _code_objects(rows: list[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the distinct values and codes of Python objects of any types."""
    keys: list[Any] = rows
    if len(set(map(type, rows)) - {type(None)}) > 1:  # 1 and True are equal, and not the same group
        keys = list(zip(map(type, rows), rows, strict=True))
    seen = dict(zip(keys, rows, strict=True))
    present = [key for key, value in seen.items() if not is_missing(value)]
    try:
        present.sort(key=lambda key: seen[key])
    except TypeError:
        present.sort(key=lambda key: str(seen[key]))
    number = dict.fromkeys(seen, len(present)) | {key: k for k, key in enumerate(present)}
    code = np.fromiter(map(number.__getitem__, keys), np.intp, len(keys))
    return [seen[key] for key in present] + [None] * (len(present) < len(seen)), code


def _names(values: list[Any]) -> list[str]:
    """Return distinct names; a name is quoted if another value has the same text."""
    texts = [MISSING if value is None else str(value) for value in values]
    return [
        text if value is None or (texts.count(text) == 1 and text != MISSING) else repr(value)
        for text, value in zip(texts, values, strict=True)
    ]


def listed(columns: str | Sequence[str] | None) -> list[str]:
    """Return names of columns as a list: none, one or several."""
    if columns is None:
        return []
    return list(columns) if isinstance(columns, Sequence) and not isinstance(columns, str) else [columns]


def keyed(parts: dict[tuple[Any, ...], Any], by: str | Sequence[str] | None) -> Any:
    """Return results as users get them: the only one without columns, by values for one column, else by tuples."""
    if by is None:
        return parts[()]
    return {key[0]: part for key, part in parts.items()} if isinstance(by, str) else parts


def rows_by_key(
    sums: nw.DataFrame[Any], columns: list[str], rows: NDArray[np.intp]
) -> dict[tuple[Any, ...], NDArray[np.intp]]:
    """Return which of some rows hold each key, in the order of the keys."""
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


# --- Features --------------------------------------------------------------------------------------

#: Names of columns whose numbers are no quantities.
_ID_NAME = re.compile(
    r"(^|[ _.-])(id|ids|uuid|guid|index|idx|key|row|rownum|row_number)$|[a-z]Id$|[a-zA-Z]ID$|^Unnamed: 0$",
    re.I,
)
#: Up to this many distinct values are levels, even if every row has a different one.
_FEW_VALUES = 20
#: The level of rows without a value. Text in quotes cannot be mistaken for it.
_NO_LEVEL = "missing"


@dataclass(frozen=True, eq=False)
class Feature:
    """A feature cut into levels.

    Attributes
    ----------
    name : str
        Its name.
    levels : tuple of str
        The levels, in order.
    code : ndarray of int
        Level of each row.
    identifier : bool
        Whether its values only name rows: text that hardly ever repeats, whole numbers that count rows, and numbers
        called ``id``, ``index`` or the like, which mean nothing when they are cut at quantiles. It then has no levels.
    """

    name: str
    levels: tuple[str, ...]
    code: NDArray[np.intp]
    identifier: bool = False


def read_features(features: Any, n: int, *, n_bins: int | None = None) -> tuple[Feature, ...]:
    """Return columns as features with levels.

    Examples
    --------
    >>> import numpy as np
    >>> (age,) = read_features({"age": [20, 30, 40, 50, 60, 70]}, 6, n_bins=2)
    >>> age.levels, age.code
    (('20 to 40', '50 to 70'), array([0, 0, 0, 1, 1, 1]))
    """
    if not isinstance(features, Mapping) and _as_frame(features) is None:
        array = _as_objects(features)
        features = array if array.ndim == 2 else features
    columns = {name: _as_objects(column) for name, column in _named(features, "feature", first=0).items()}
    if not columns:
        raise InputError("must have at least one column", argument="features")
    for name, values in columns.items():
        if values.shape != (n,):
            raise InputError(
                f"has shape {values.shape}. One value is needed for each of {counted(n, 'row')}",
                argument=f"features[{name!r}]",
            )
    return tuple(_feature(name, values, n_bins) for name, values in columns.items())


def _as_objects(column: Any) -> NDArray[Any]:
    """Return a column as an array; lists of mixed values are not turned into text."""
    if isinstance(column, np.ndarray):
        return column
    import narwhals as nw

    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return np.asarray(series.to_numpy())
    array = np.asarray(column)
    return np.asarray(column, dtype=object) if array.dtype.kind in "US" else array


def _feature(name: str, values: NDArray[Any], n_bins: int | None) -> Feature:
    missing = find_missing(values)
    present = values[~missing]
    if n_bins is not None and _is_identifier(name, present, n_bins):
        return Feature(name, (), np.empty(0, dtype=np.intp), identifier=True)
    code = np.empty(len(values), dtype=np.intp)
    if present.dtype.kind in "fiu" and n_bins is not None and len(np.unique(present)) > n_bins:
        levels, code[~missing] = _quantile_bins(present.astype(np.float64), n_bins)
    else:
        shown = [repr(value) for value in present.tolist()]
        distinct = sorted(
            set(shown), key=lambda text: (len(text), text) if present.dtype.kind in "iu" else (0, text)
        )
        number = {text: position for position, text in enumerate(distinct)}
        levels, code[~missing] = distinct, np.array([number[text] for text in shown], dtype=np.intp)
    if missing.any():
        code[missing] = len(levels)
        levels = [*levels, _NO_LEVEL]
    return Feature(name, tuple(levels), code)


def _is_identifier(name: str, values: NDArray[Any], n_bins: int) -> bool:
    """Return whether a column only identifies rows; one with few distinct values does not, whatever its name."""
    numbers = values.dtype.kind in "fiu"
    distinct = len(np.unique(values)) if numbers else len(set(map(repr, values.tolist())))
    if distinct <= max(n_bins, _FEW_VALUES):
        return False
    if not numbers:
        return distinct > len(values) / 2
    whole = bool((values == np.floor(values)).all())
    counter = distinct == len(values) and float(values.max() - values.min()) < 2 * distinct
    return whole and (counter or _ID_NAME.search(name) is not None)


def _quantile_bins(values: NDArray[np.float64], n_bins: int) -> tuple[list[str], NDArray[np.intp]]:
    """Cut at quantiles; equal values stay together, and empty bins are dropped."""
    edges = np.unique(np.quantile(values, np.arange(1, n_bins) / n_bins, method="inverted_cdf"))
    code = np.searchsorted(edges, values, side="left")
    used, code = np.unique(code, return_inverse=True)
    members = [values[code == position] for position in range(len(used))]
    return [f"{part.min():.6g} to {part.max():.6g}" for part in members], code
