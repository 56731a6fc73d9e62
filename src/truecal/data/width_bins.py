"""Rows counted in bins of equal width, which needs no order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray

IntArray = NDArray[np.intp]

#: Rows counted in one step; its arrays fit into the cache of a processor.
_STEP = 1 << 15

#: Adding one of these and subtracting it again rounds a score to a multiple of 2^-26, and what is left to one of
#: 2^-53. Sums of such numbers are exact: the order of rows cannot matter.
_COARSE, _FINE = 1.5 * 2.0**26, 0.75

#: Most rows for which these sums are exact.
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


class WidthBins:
    """The bins [k/b, (k+1)/b), with edges rounded to the type of the scores; the last one is closed.

    Parameters
    ----------
    n_bins : int
        Number b of bins.
    dtype : numpy.dtype
        Type of the scores, in which edges are far apart; see `can_count`.
    """

    def __init__(self, n_bins: int, dtype: np.dtype[Any]) -> None:
        edges = width_edges(np.arange(n_bins + 1), n_bins, dtype)
        self.n_bins, self.lower, self.upper = n_bins, edges[:-1], edges[1:]
        self.upper[-1] = np.nextafter(1, 2)
        self._margin = 2 * n_bins * float(np.finfo(dtype).eps)

    def index(self, score: FloatArray) -> IntArray:
        """Return the bin of each score."""
        place = score * self.n_bins
        place -= self._margin  # rounding can now put a score too low, just below an edge, but never too high
        k = place.astype(np.intp)
        place -= k
        if place.max() > 1 - 2 * self._margin:
            k += score >= self.upper[k]
        return k

    def count(self, label: NDArray[Any], score: NDArray[Any]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the mean score, number of rows and sum of labels of the bins that have rows.

        Parameters
        ----------
        label : ndarray of shape (n,)
            Labels, 0 and 1.
        score : ndarray of shape (n,)
            Scores in [0, 1].

        Returns
        -------
        score, count, positives : ndarray
            In ascending order. A mean lies in its bin and is off by at most 2^-53 for any order of rows.
        """
        size = 2 * self.n_bins
        rows, coarse, fine = np.zeros((3, size))
        for first in range(0, len(score), _STEP):
            values = score[first : first + _STEP].astype(np.float64, copy=False)
            cell = self.index(values)  # the bin and the label as one number
            cell <<= 1
            cell |= label[first : first + _STEP].astype(np.intp, copy=False)
            rows += np.bincount(cell, minlength=size)
            part = values + _COARSE
            part -= _COARSE
            coarse += np.bincount(cell, part, size)
            np.subtract(values, part, out=part)
            part += _FINE
            part -= _FINE
            fine += np.bincount(cell, part, size)
        count = rows.reshape(-1, 2).sum(axis=1)
        kept = count > 0
        count, positives = count[kept], rows[1::2][kept]
        mean = (coarse + fine).reshape(-1, 2).sum(axis=1)[kept] / count
        return np.clip(mean, self.lower[kept], np.nextafter(self.upper[kept], 0)), count, positives
