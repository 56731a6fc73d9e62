"""Features of rows, as levels: what defines groups and segments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from truecal._lib.text import counted
from truecal.exceptions import InputError

#: Names of columns whose numbers are no quantities.
_ID_NAME = re.compile(
    r"(^|[ _.-])(id|ids|uuid|guid|index|idx|key|row|rownum|row_number)$|[a-z]Id$|[a-zA-Z]ID$|^Unnamed: 0$",
    re.I,
)
#: So many different values may be levels, even if every row has another one.
_FEW_VALUES = 20
#: The level of rows without a value. Text in quotes cannot be mistaken for it.
MISSING = "missing"


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

    Parameters
    ----------
    features : mapping of columns, data frame, or array of shape (n,) or (n, k)
        The columns; those of an array are called ``feature 0`` and so on.
    n : int
        Number of rows that they must have.
    n_bins : int, optional
        Cut numbers with more distinct values than this at their quantiles. By default every value is a level.

    Returns
    -------
    tuple of Feature

    Examples
    --------
    >>> import numpy as np
    >>> (age,) = read_features({"age": [20, 30, 40, 50, 60, 70]}, 6, n_bins=2)
    >>> age.levels, age.code
    (('20 to 40', '50 to 70'), array([0, 0, 0, 1, 1, 1]))
    """
    columns = _columns(features)
    if not columns:
        raise InputError("must have at least one column", argument="features")
    for name, values in columns.items():
        if values.shape != (n,):
            raise InputError(
                f"has shape {values.shape}. One value is needed for each of {counted(n, 'row')}",
                argument=f"features[{name!r}]",
            )
    return tuple(_feature(name, values, n_bins) for name, values in columns.items())


def _columns(features: Any) -> dict[str, NDArray[Any]]:
    if isinstance(features, Mapping):
        return {str(name): _as_objects(column) for name, column in features.items()}
    frame = nw.from_native(features, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return {name: frame[name].to_numpy() for name in frame.columns}
    if isinstance(frame, nw.Series):
        return {frame.name or "feature": frame.to_numpy()}
    array = _as_objects(features)
    if array.ndim == 1:
        return {"feature": array}
    if array.ndim != 2:
        raise InputError(f"must have one or two dimensions. Got {array.ndim} instead", argument="features")
    return {f"feature {number}": array[:, number] for number in range(array.shape[1])}


def _as_objects(column: Any) -> NDArray[Any]:
    """Return a column as an array; lists of mixed values are not turned into text."""
    if isinstance(column, np.ndarray):
        return column
    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return np.asarray(series.to_numpy())
    array = np.asarray(column)
    return np.asarray(column, dtype=object) if array.dtype.kind in "US" else array


def _feature(name: str, values: NDArray[Any], n_bins: int | None) -> Feature:
    missing = _missing(values)
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
        levels = [*levels, MISSING]
    return Feature(name, tuple(levels), code)


def _is_identifier(name: str, values: NDArray[Any], n_bins: int) -> bool:
    """Return whether values only name rows; few distinct ones are levels, whatever their name."""
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


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind in "fiub":
        return np.asarray(values != values)
    return np.array([_is_missing(value) for value in values.tolist()], dtype=bool)


def _is_missing(value: Any) -> bool:
    return value is None or value != value or type(value).__name__ in ("NAType", "NaTType")
