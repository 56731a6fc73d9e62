"""Codes, whole numbers from 0 up to less than some number: they are ordered by counting, in linear time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from truecal._lib.runs import IntArray
from truecal._lib.types import FloatArray

#: Integers whose range is at most so many times their number are counted, others are sorted.
_MOST_SPREAD = 4


def order_of(code: NDArray[Any], n_codes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the order that sorts codes, in which equal ones stay in their order, and where each code begins in it.

    Examples
    --------
    >>> order, bounds = order_of(np.array([2, 0, 2, 1, 0]), 3)
    >>> order.tolist(), bounds.tolist()
    ([1, 4, 3, 0, 2], [0, 2, 3, 5])
    """
    n = len(code)
    index = np.int32 if max(n, n_codes) < 2**31 else np.int64  # short ones take half of the time
    # One entry in each row of a sparse matrix: to list them by column is a counting sort.
    entries: Any = (
        np.empty(n, dtype=np.bool_),
        code.astype(index, copy=False),
        np.arange(n + 1, dtype=index),
    )
    by_code: Any = scipy.sparse.csr_array(entries, shape=(n, n_codes)).tocsc()
    return by_code.indices, by_code.indptr


def number_values(values: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """Return the different values, sorted, and which of them each of the values is.

    Examples
    --------
    >>> number_values(np.array([7, 3, 7]))
    (array([3, 7]), array([1, 0, 1]))
    """
    if values.dtype.kind in "iu" and len(values):
        wide = values.astype(np.int64 if values.dtype.kind == "i" else np.uint64, copy=False)
        low = wide.min()
        if int(wide.max()) - int(low) < _MOST_SPREAD * len(values):
            place = (wide - low).astype(np.intp)
            present = np.bincount(place) > 0
            distinct = np.flatnonzero(present)
            if len(distinct) < len(present):
                place = (np.cumsum(present) - 1)[place]
            return (distinct.astype(wide.dtype) + low).astype(values.dtype), place
    distinct, place = np.unique(values, return_inverse=True)
    return distinct, place.reshape(-1)


def sum_pairs(
    minor: NDArray[Any], major: NDArray[Any], columns: Sequence[FloatArray]
) -> tuple[NDArray[Any], NDArray[Any], list[FloatArray]]:
    """Return the different pairs of two codes, sorted by the second and then the first, with the sums of columns.

    Examples
    --------
    >>> sum_pairs(np.array([1, 0, 1]), np.array([0, 1, 0]), [np.array([1.0, 2.0, 3.0])])
    (array([1, 0]), array([0, 1]), [array([4., 2.])])
    """
    columns = list(columns)
    if ((major[1:] < major[:-1]) | ((major[1:] == major[:-1]) & (minor[1:] < minor[:-1]))).any():
        order, _ = order_of(minor, int(minor.max()) + 1)
        order = order[order_of(major[order], int(major.max()) + 1)[0]]
        minor, major, columns = minor[order], major[order], [column[order] for column in columns]
    start = first_of_pairs(minor, major)
    if len(start) == len(minor):
        return minor, major, columns
    return minor[start], major[start], [np.add.reduceat(column, start) for column in columns]


def first_of_pairs(one: NDArray[Any], other: NDArray[Any]) -> IntArray:
    """Return where pairs that differ from the one before begin.

    Examples
    --------
    >>> first_of_pairs(np.array([1, 1, 1]), np.array([0, 0, 2]))
    array([0, 2])
    """
    new = np.ones(len(one), dtype=np.bool_)
    np.not_equal(one[1:], one[:-1], out=new[1:])
    new[1:] |= other[1:] != other[:-1]
    return np.flatnonzero(new)
