"""Runs of one array that belong to different samples; `bounds` has the start of each run, and at the end the length."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray

IntArray = NDArray[np.intp]

#: Less than any gap that is not 0.
_TINY = 5e-324


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
    return values if len(values) == 1 else values.repeat(np.diff(bounds))


def run_ends(start: IntArray, length: int) -> IntArray:
    """Return the ends of runs that follow one another up to `length`.

    Examples
    --------
    >>> run_ends(np.array([0, 2, 3]), 7)
    array([2, 3, 7])
    """
    end = np.empty_like(start)
    end[:-1], end[-1] = start[1:], length
    return end


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


def lp_norm(
    gap: FloatArray, weight: FloatArray | None, p: float, bounds: IntArray, *, out: FloatArray | None = None
) -> FloatArray:
    r"""Return for each run of gaps the l_p norm :math:`\big(\sum_k w_k |g_k|^p / \sum_k w_k\big)^{1/p}`.

    Gaps are divided by the largest first, so that their powers do not underflow for large p.

    Parameters
    ----------
    gap, weight : ndarray
        Gaps and weights; without weights all gaps count the same.
    p : float
        Order of the norm.
    bounds : ndarray of int
        Where runs begin, and at the end the length.
    out : ndarray, optional
        Array to work in, which may be `gap`.

    Examples
    --------
    >>> gap, weight = np.array([0.3, -0.4, 0.1]), np.array([1.0, 1.0, 1.0])
    >>> lp_norm(gap, weight, 2, np.array([0, 2, 3]))
    array([0.353553, 0.1     ])
    >>> lp_norm(gap, weight, 5000, np.array([0, 2, 3]))
    array([0.399944, 0.1     ])
    """
    first = bounds[:-1]
    size = np.abs(gap, out=out)
    largest = np.maximum.reduceat(size, first)
    size /= over_runs(np.maximum(largest, _TINY), bounds)
    size **= p
    if weight is None:
        total = bounds[1:] - first
    else:
        size *= weight
        total = np.add.reduceat(weight, first)
    return np.asarray(largest * (np.add.reduceat(size, first) / total) ** (1 / p))
