"""From containers of any kind to NumPy arrays."""

from __future__ import annotations

import decimal
import numbers
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.text import counted, listing
from truecal.exceptions import CalibrationWarning, InputError, Remedy

if TYPE_CHECKING:
    import narwhals as nw

#: What counts as a real number among Python objects.
NUMBERS = (numbers.Real, decimal.Decimal, np.bool_)
#: What NumPy reads by itself.
_PLAIN = (np.ndarray, list, tuple)


def to_array(data: Any, name: str) -> tuple[NDArray[Any], list[Any] | None]:
    """Return the values as a NumPy array, by position, and the column names where there are any."""
    if isinstance(data, _PLAIN):
        return _as_array(data, name), None
    if type(data).__module__.partition(".")[0] == "torch":
        return _from_torch(data, name), None
    if type(data).__module__.startswith("scipy.sparse"):
        raise TypeError(f"{name} is a sparse matrix. Pass a dense array: {name}.toarray().")
    import narwhals as nw  # slow to import, and arrays do not need it

    try:
        frame = nw.from_native(data, allow_series=True, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise InputError(
            "has several columns of the same name", argument=name, remedy="Rename them."
        ) from error
    if isinstance(frame, nw.LazyFrame):
        raise InputError("is a lazy frame", argument=name, remedy="Collect it first.")
    if isinstance(frame, nw.DataFrame):
        return _stack_columns(frame, name), list(frame.columns)
    return _as_array(_values(frame) if isinstance(frame, nw.Series) else data, name), None


def warn_of_other_order(**given: Any) -> None:
    """Warn of pandas objects whose indexes hold the same values in another order, since rows go by position.

    Parameters
    ----------
    **given
        Arguments by name: columns and frames of any kind, or tuples and mappings of them. None is left out.
    """
    indexes = []
    for name, value in given.items():
        columns = (
            value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else [value]
        )
        pandas = (column for column in columns if type(column).__module__.partition(".")[0] == "pandas")
        indexes += [(name, column.index) for column in pandas if hasattr(column, "index")]
    for name, index in indexes[1:]:
        first, other = indexes[0]
        if not index.equals(other) and _same_values(index, other):
            warnings.warn(
                f"Rows are matched by position, and {name} has the index of {first} in another order. Give both one "
                f"order, as with .loc, or pass {name}.to_numpy() if positions are right.",
                CalibrationWarning,
                stacklevel=level_outside(),
            )


def _same_values(index: Any, other: Any) -> bool:
    """Return whether two indexes of pandas hold the same values in any order; the ends of integers mostly settle it."""
    if len(index) != len(other) or index.dtype != other.dtype:
        return False
    if index.dtype.kind in "iu" and (index.min(), index.max()) != (other.min(), other.max()):
        return False
    return set(index.tolist()) == set(other.tolist())


def level_outside() -> int:
    """Return the `stacklevel` at which the caller of this function names the line that called truecal."""
    level, frame = 1, sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] == "truecal" and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level


def _from_torch(data: Any, name: str) -> NDArray[Any]:
    try:
        tensor = data.detach().cpu()
        small = any(kind in str(tensor.dtype) for kind in ("bfloat16", "float8"))  # NumPy does not have them
        return np.asarray(tensor.float() if small else tensor)
    except (TypeError, RuntimeError) as error:  # sparse, quantized and other tensors that NumPy cannot hold
        raise InputError(
            f"is a {data.dtype} tensor with layout {data.layout}, which cannot become an array", argument=name
        ) from error


def _values(series: nw.Series[Any]) -> NDArray[Any]:
    """Return a column as an array; integers of 128 bits, which NumPy does not have, as objects."""
    import narwhals as nw

    if series.dtype in (nw.Int128, nw.UInt128):
        return np.array(series.to_list(), dtype=object)
    return series.to_numpy()


def _stack_columns(frame: nw.DataFrame[Any], name: str) -> NDArray[Any]:
    columns = [_values(column) for column in frame.iter_columns()]
    if len(columns) == 1:
        return _as_array(columns[0], name)
    odd = [
        label
        for label, column in zip(frame.columns, columns, strict=True)
        if _not_numbers(column) is not None
    ]
    if odd:
        raise InputError(
            f"has columns that do not hold numbers: {listing(odd)}", argument=name, remedy="Leave them out."
        )
    return np.column_stack(columns) if columns else np.empty((len(frame), 0))


def _as_array(data: Any, name: str) -> NDArray[Any]:
    if hasattr(data, "mask") and isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        array = data.data.astype(object)
        array[np.ma.getmaskarray(data)] = None
        return array
    try:
        array = np.asarray(data)
        if array.dtype.kind == "T" or (array.dtype.kind in "US" and not isinstance(data, np.ndarray)):
            array = np.asarray(data, dtype=object)  # or NumPy turns the NaN of ["yes", nan] into text
        if array.dtype.kind == "O" and array.ndim == 1 and array.size and all(np.ndim(row) for row in array):
            array = np.array([np.asarray(row) for row in array])  # a column of lists
    except ValueError as error:
        raise InputError("must be rectangular: its rows have different lengths", argument=name) from error
    except RuntimeError as error:  # a list of tensors with gradients
        raise InputError(f"cannot become an array: {error}", argument=name) from error
    if array.ndim == 0:
        raise InputError(
            f"must be a list, an array or a column. Got {data!r} instead", argument=name, value=data
        )
    return array


def to_numbers(array: NDArray[Any], name: str) -> NDArray[np.floating[Any]]:
    """Return real numbers in their own floating type, missing ones as NaN, or refuse anything else."""
    if array.dtype.kind == "f":
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind == "c":
        raise InputError("must be real numbers. Complex data not supported", argument=name)
    odd = _not_numbers(array)
    if odd is not None:
        raise bad_values(odd, array, name, "non-numeric value")
    if array.dtype.kind == "O":
        array = np.where(_which(_is_missing, array), np.nan, array)
    return array.astype(np.float64)


def find_missing(array: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Return where an array holds NaN, None or another mark of a missing value, or None if nowhere."""
    if array.dtype.kind not in "fOmM":
        return None
    if array.dtype.kind == "O":
        missing = _which(_is_missing, array)
    else:
        missing = np.asarray(np.isnan(array) if array.dtype.kind == "f" else np.isnat(array))
    return missing if missing.any() else None


def refuse_missing(array: NDArray[Any], name: str, noun: str) -> None:
    """Refuse missing values."""
    missing = find_missing(array)
    if missing is not None:
        nothing = np.full(len(array), None)
        raise bad_values(missing, nothing, name, f"missing (NaN) {noun}", remedy=Remedy.DROP_ROWS)


def _not_numbers(array: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Return where an array holds neither a real number nor a missing value, or None if nowhere."""
    if array.dtype.kind in "fiub":
        return None
    if array.dtype.kind != "O":
        return np.ones(array.shape, dtype=bool)
    odd = _which(lambda value: not (isinstance(value, NUMBERS) or _is_missing(value)), array)
    return odd if odd.any() else None


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, numbers.Number) and value != value


def _which(test: Callable[[Any], bool], array: NDArray[Any]) -> NDArray[np.bool_]:
    return np.array([test(value) for value in array.ravel().tolist()], dtype=bool).reshape(array.shape)


def check_shape(array: NDArray[Any], name: str) -> None:
    """Refuse anything but one value, or one row of values, for each prediction."""
    # scikit-learn's checks look for the words "Reshape your data" and "0 feature(s)" in these messages.
    if array.ndim not in (1, 2):
        raise InputError(
            f"must have shape (n,) or (n, K). Got shape {array.shape} instead",
            argument=name,
            remedy="Reshape your data.",
        )
    if array.size == 0:
        noun = "sample" if len(array) == 0 else "feature"
        raise InputError(
            f"is empty: 0 {noun}(s) (shape={array.shape}) while a minimum of 1 is required", argument=name
        )


def check_length(array: NDArray[Any], name: str, n: int, other: str) -> None:
    """Refuse an array that has not one row for each row of `other`."""
    if len(array) != n:
        raise InputError(
            f"has {counted(len(array), 'row')}, {other} has {n:,}. They must have the same length",
            argument=name,
            count=len(array),
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
    """Return the error of values that break a rule: "has 3 values outside [0, 1] (first at row 17: 1.2)".

    Parameters
    ----------
    wrong : ndarray of bool
        Which values break the rule.
    array : ndarray
        The values.
    name : str
        Name of the argument.
    noun, rule : str
        What the values are, in the singular, and what is wrong with them.
    remedy : Remedy or str, optional
        What to do about it.
    """
    first = int(wrong.reshape(len(wrong), -1).any(axis=1).argmax())
    count = int(wrong.sum())
    return InputError(
        f"has {counted(count, noun)}{rule and ' '}{rule}",
        argument=name,
        count=count,
        first_row=first,
        value=array[first] if array.ndim == 1 else array[first][wrong[first]][0],
        remedy=remedy,
    )


def to_python(value: Any) -> Any:
    """Return a NumPy scalar as the Python object that prints without its type."""
    return value.item() if isinstance(value, np.generic) else value
