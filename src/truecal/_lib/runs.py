"""Runs of one array that belong to different samples; `bounds` has the start of each run, and at the end the length."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray

IntArray = NDArray[np.intp]


def run_sums(values: FloatArray, bounds: IntArray) -> FloatArray:
    """Return the sum of each run, which depends on no other.

    Examples
    --------
    >>> run_sums(np.array([1.0, 2.0, 3.0]), np.array([0, 2, 3]))
    array([3., 3.])
    """
    return np.asarray(np.add.reduceat(values, bounds[:-1]))


def run_maxima(values: FloatArray, bounds: IntArray) -> FloatArray:
    """Return the largest value of each run.

    Examples
    --------
    >>> run_maxima(np.array([1.0, 2.0, 3.0]), np.array([0, 2, 3]))
    array([2., 3.])
    """
    return np.asarray(np.maximum.reduceat(values, bounds[:-1]))


def over_runs(values: NDArray[Any], bounds: IntArray) -> NDArray[Any]:
    """Return one value for each run as one for each element, or as it is if there is one run.

    Examples
    --------
    >>> over_runs(np.array([0.1, 0.2]), np.array([0, 2, 3]))
    array([0.1, 0.1, 0.2])
    """
    return values if len(values) == 1 else np.repeat(values, np.diff(bounds))


def search_runs(ascending: FloatArray, bounds: IntArray, run: Any, value: FloatArray) -> IntArray:
    """Return the first position in a run, ascending within itself, at which `value` could be inserted.

    Parameters
    ----------
    ascending : ndarray
        Values that ascend within each run.
    bounds : ndarray of int
        Where runs begin, and at the end the length.
    run : int or ndarray of int
        Numbers of the runs to search, which broadcast with `value`; a single run is searched in any case.
    value : ndarray
        What to look for.

    Examples
    --------
    >>> search_runs(np.array([0.1, 0.5, 0.2, 0.3]), np.array([0, 2, 4]), np.array([0, 1]), np.array([0.25, 0.25]))
    array([1, 3])
    """
    if len(bounds) == 2:
        return np.asarray(ascending.searchsorted(value))
    end = bounds[1:][run]
    # The last position that is known to hold something below the value advances by halves of what is left.
    known = np.broadcast_to(bounds[:-1][run] - 1, np.broadcast_shapes(np.shape(run), np.shape(value))).copy()
    step = 1 << int(np.diff(bounds).max()).bit_length()
    while step := step >> 1:
        tried = known + step
        below = ascending.take(tried, mode="clip") < value
        below &= tried < end
        known += step * below
    known += 1
    return known
