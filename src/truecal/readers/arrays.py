"""From containers of any kind to NumPy arrays, and the words for what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray


def to_array(data: Any, name: str) -> tuple[NDArray[Any], list[str] | None]:
    """Return the values as a NumPy array, by position, and the column names where there are any."""
    if isinstance(data, np.ndarray | list | tuple):
        return _as_array(data, name), None
    if type(data).__module__.partition(".")[0] == "torch":
        tensor = data.detach().cpu()
        return np.asarray(tensor.float() if "bfloat16" in str(tensor.dtype) else tensor), None
    native = nw.from_native(data, allow_series=True, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        raise ValueError(f"{name} is a lazy frame. Collect it first.")
    if isinstance(native, nw.DataFrame):
        columns = [native[column].to_numpy() for column in native.columns]
        return np.column_stack(columns) if columns else np.empty((len(native), 0)), list(native.columns)
    if isinstance(native, nw.Series):
        return _as_array(native.to_numpy(), name), None
    return _as_array(data, name), None


def _as_array(data: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise ValueError(f"{name} must be rectangular: its rows have different lengths.") from error
    if array.dtype.kind == "O" and array.ndim == 1 and array.size and all(np.ndim(row) for row in array):
        return np.array([np.asarray(row) for row in array])  # a column of lists
    return array


def to_numbers(array: NDArray[Any], name: str) -> NDArray[np.floating[Any]]:
    """Return real numbers in their own floating type, or say what they are."""
    if array.dtype.kind == "O":
        try:
            array = np.where(find_missing(array), np.nan, array).astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be numbers. Got {_first_odd(array)!r}.") from error
    if array.dtype.kind in "iub":
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        raise ValueError(f"{name} must be numbers. Got {array.dtype} values.")
    return array if array.dtype.itemsize <= 8 else array.astype(np.float64)


def find_missing(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where an array holds NaN, None or another mark of a missing value."""
    if array.dtype.kind == "f":
        return np.asarray(np.isnan(array))
    if array.dtype.kind != "O":
        return np.zeros(array.shape, dtype=bool)
    marks = [
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and value != value)
        for value in array.ravel().tolist()
    ]
    return np.array(marks, dtype=bool).reshape(array.shape)


def _first_odd(array: NDArray[Any]) -> Any:
    for value in array.ravel().tolist():
        try:
            float(value)
        except (TypeError, ValueError):
            return value
    return array.ravel()[0]


def check_shape(array: NDArray[Any], name: str) -> None:
    """Refuse anything but one value, or one row of values, for each prediction."""
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
        raise ValueError(f"{name} must have shape (n,) or (n, K). Got shape {array.shape} instead.")


def tell(fault: NDArray[np.bool_], array: NDArray[Any], noun: str) -> str:
    """Say how many values are at fault and where the first is: "3 values (first at row 17: 1.2)"."""
    first = int(fault.reshape(len(fault), -1).any(axis=1).argmax())
    value = array[first] if array.ndim == 1 else array[first][fault[first]][0]
    number = int(fault.sum())
    return f"{number} {noun}{'s' if number > 1 else ''} (first at row {first}: {plain(value)!r})"


def plain(value: Any) -> Any:
    """Return a NumPy scalar as the Python object that prints without its type."""
    return value.item() if isinstance(value, np.generic) else value


def listing(values: Sequence[Any], most: int = 6) -> str:
    """Return the first few values as a person would list them."""
    shown = ", ".join(repr(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown}, ... ({len(values)} in all)"
