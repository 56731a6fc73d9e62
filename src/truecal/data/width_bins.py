"""Rows counted in bins of equal width, which needs no order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray

#: Rows counted in one step; its arrays fit into the cache of a processor.
_STEP = 1 << 15

#: A score is added as two whole numbers of 26 and 27 bits. Their sums are exact: the order of rows cannot matter.
_HIGH, _LOW = 2.0**26, 2.0**27

#: Most rows for which sums of such numbers are below 2^53.
_MOST_COUNTED_ROWS = 1 << 26


def width_edges(k: NDArray[Any], n_bins: Any, dtype: np.dtype[Any]) -> FloatArray:
    """Return the lower edges k / n_bins, rounded to the type of the scores.

    Parameters
    ----------
    k : ndarray of int
        Numbers of bins, from 0.
    n_bins : int or ndarray of int
        Number of bins.
    dtype : numpy.dtype
        Type of the scores.
    """
    return np.asarray((k / n_bins).astype(dtype, copy=False), dtype=np.float64)


def can_count(n_rows: int, n_bins: int, dtype: np.dtype[Any]) -> bool:
    """Return whether counting is exact: not too many rows, and edges that are far apart in the type of the scores."""
    return n_bins <= n_rows <= _MOST_COUNTED_ROWS and n_bins * float(np.finfo(dtype).eps) < 0.25


def count_in_width_bins(
    label: NDArray[Any], score: NDArray[Any], n_bins: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean score, number of rows and sum of labels of the bins [k/b, (k+1)/b) that have rows.

    Parameters
    ----------
    label : ndarray of shape (n,)
        Labels, 0 and 1.
    score : ndarray of shape (n,)
        Scores in [0, 1].
    n_bins : int
        Number b of bins. The last one is closed.

    Returns
    -------
    score, count, positives : ndarray
        In ascending order. A mean lies in its bin and is off by at most 2^-53 for any order of rows.
    """
    edges = width_edges(np.arange(n_bins + 1), n_bins, score.dtype)
    lower, upper = edges[:-1], np.append(edges[1:-1], np.nextafter(1, 2))
    table, high, low = np.zeros(2 * n_bins), np.zeros(n_bins), np.zeros(n_bins)
    for first in range(0, len(score), _STEP):
        values = score[first : first + _STEP].astype(np.float64)
        k = (values * n_bins).astype(np.intp)
        np.minimum(k, n_bins - 1, out=k)
        k += values >= upper[k]  # rounding may have put a score on the wrong side of an edge
        k -= values < lower[k]
        values *= _HIGH
        whole = np.floor(values)
        high += np.bincount(k, whole, n_bins)
        values -= whole
        values *= _LOW
        low += np.bincount(k, np.floor(values, out=values), n_bins)
        k *= 2
        k += label[first : first + _STEP].astype(np.intp, copy=False)
        table += np.bincount(k, minlength=2 * n_bins)
    negatives, positives = table.reshape(-1, 2).T
    count = negatives + positives
    kept = count > 0
    count, positives = count[kept], positives[kept]
    mean = (high[kept] + low[kept] / _LOW) / count / _HIGH
    return np.clip(mean, lower[kept], np.nextafter(upper[kept], 0)), count, positives
