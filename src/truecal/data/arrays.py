"""From containers of any kind to NumPy arrays, and the words for what is wrong with them."""

from __future__ import annotations

import decimal
import numbers
from collections.abc import Callable
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from truecal._lib.text import listing

#: What counts as a real number among Python objects.
NUMBERS = (numbers.Real, decimal.Decimal, np.bool_)


def to_array(data: Any, name: str) -> tuple[NDArray[Any], list[Any] | None]:
    """Return the values as a NumPy array, by position, and the column names where there are any."""
    if isinstance(data, np.ndarray | list | tuple):
        return _as_array(data, name), None
    if type(data).__module__.partition(".")[0] == "torch":
        tensor = data.detach().cpu()
        return np.asarray(tensor.float() if "bfloat16" in str(tensor.dtype) else tensor), None
    try:
        frame = nw.from_native(data, allow_series=True, pass_through=True)
    except DuplicateError as error:
        raise ValueError(f"{name} has several columns of the same name. Rename them.") from error
    if isinstance(frame, nw.LazyFrame):
        raise ValueError(f"{name} is a lazy frame. Collect it first.")
    if isinstance(frame, nw.DataFrame):
        return _stack_columns(frame, name), list(frame.columns)
    return _as_array(frame.to_numpy() if isinstance(frame, nw.Series) else data, name), None


def _stack_columns(frame: nw.DataFrame[Any], name: str) -> NDArray[Any]:
    columns = [column.to_numpy() for column in frame.iter_columns()]
    if len(columns) == 1:
        return _as_array(columns[0], name)
    odd = [
        label for label, column in zip(frame.columns, columns, strict=True) if _find_odd(column) is not None
    ]
    if odd:
        raise ValueError(f"{name} has columns that do not hold numbers: {listing(odd)}. Leave them out.")
    return np.column_stack(columns) if columns else np.empty((len(frame), 0))


def _as_array(data: Any, name: str) -> NDArray[Any]:
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
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
        raise ValueError(f"{name} must be rectangular: its rows have different lengths.") from error
    if array.ndim == 0:
        raise ValueError(f"{name} must be a list, an array or a column. Got {data!r} instead.")
    return array


def to_numbers(array: NDArray[Any], name: str) -> NDArray[np.floating[Any]]:
    """Return real numbers in their own floating type, missing ones as NaN, or say what they are."""
    odd = _find_odd(array)
    if odd is not None:
        raise ValueError(f"{name} must be numbers. It has {tell(odd, array, 'other value')}.")
    if array.dtype.kind == "O":
        array = np.where(_which(_is_missing, array), np.nan, array)
    if array.dtype.kind != "f":
        return array.astype(np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def find_missing(array: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Return where an array holds NaN, None or another mark of a missing value, or None if nowhere."""
    if array.dtype.kind not in "fO":
        return None
    missing = np.asarray(np.isnan(array)) if array.dtype.kind == "f" else _which(_is_missing, array)
    return missing if missing.any() else None


def _find_odd(array: NDArray[Any]) -> NDArray[np.bool_] | None:
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
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
        raise ValueError(f"{name} must have shape (n,) or (n, K). Got shape {array.shape} instead.")
    if len(array) == 0:
        raise ValueError(f"{name} is empty. At least one row is needed.")


def tell(fault: NDArray[np.bool_], array: NDArray[Any], noun: str) -> str:
    """Say how many values are at fault and where the first is: "3 values (first at row 17: 1.2)"."""
    first = int(fault.reshape(len(fault), -1).any(axis=1).argmax())
    value = array[first] if array.ndim == 1 else array[first][fault[first]][0]
    number = int(fault.sum())
    # A float32 of 1.2 is 1.2000000476837158 as a Python number, and nobody wrote that.
    shown = str(value) if isinstance(value, np.floating) else repr(plain(value))
    return f"{number} {noun}{'s' if number > 1 else ''} (first at row {first}: {shown})"


def plain(value: Any) -> Any:
    """Return a NumPy scalar as the Python object that prints without its type."""
    return value.item() if isinstance(value, np.generic) else value
