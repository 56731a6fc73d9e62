"""Rows that are counted in bins of equal width, which needs no order, for estimators that need only sums over bins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.numeric import IntArray, run_ends
from truecal._lib.types import FloatArray
from truecal.data.sample import Sample

#: Fewer scores than this are faster to sort than to count.
_FEWEST_SCORES = 1 << 13
#: Rows counted in one step; its arrays fit into the cache of a processor.
_STEP = 1 << 15
#: A score is rounded to a multiple of 2^-26, and what is left to one of 2^-53. Sums of such parts are exact for so many
#: rows: their order cannot matter.
_COARSE, _FINE, _MOST_ROWS = 2.0**-26, 2.0**-53, 1 << 26
#: Units of numbers in [0, 1] whose sums over a step are exact; sums of steps are added exactly. Smallest mean for which
#: that is enough, and smallest number instead of 1.
_HIGH, _LOW, _SMALLEST_MEAN, _SMALLEST_POWER = 2.0**-37, 2.0**-74, 2.0**-20, 2.0**-900


def width_edges(k: NDArray[Any], n_bins: Any, dtype: np.dtype[Any]) -> FloatArray:
    """Return the lower edges k / n_bins, rounded to the type of the scores."""
    return np.asarray((k / n_bins).astype(dtype, copy=False), dtype=np.float64)


def bins_to_count(n_bins: int, scores: NDArray[Any]) -> WidthBins | None:
    """Return the bins in which scores of shape (n,) or (n, K) are counted; None if they are better sorted."""
    edges_differ = n_bins * float(np.finfo(scores.dtype).eps) < 0.25  # in the type of the scores, and by far
    exact = edges_differ and n_bins <= len(scores) <= _MOST_ROWS
    return WidthBins(n_bins, scores.dtype) if exact and scores.size >= _FEWEST_SCORES else None


class WidthBins:
    """The b bins [k/b, (k+1)/b), with edges rounded to the type of the scores; the last one is closed."""

    def __init__(self, n_bins: int, dtype: np.dtype[Any]) -> None:
        edges = width_edges(np.arange(n_bins + 1), n_bins, dtype)
        self.n_bins, self.dtype, self.lower, self.upper = n_bins, dtype, edges[:-1], edges[1:]
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

    def count(self, label: NDArray[Any], score: NDArray[Any], target: str = "P(y = 1)") -> CountedSample:
        """Return the sample whose groups are the bins that have rows."""
        sums = np.zeros((3, 2 * self.n_bins))  # bin k has the columns 2k and 2k + 1, for the two labels
        bin_of = np.empty(len(score), dtype=np.min_scalar_type(self.n_bins))
        for first in range(0, len(score), _STEP):
            step = slice(first, first + _STEP)
            values = np.ascontiguousarray(score[step], dtype=np.float64)
            bin_of[step] = cell = self.index(values)
            cell <<= 1
            cell |= label[step].astype(np.intp, copy=False)
            add_exactly(sums, cell, values)
        by_label = sums.reshape(3, -1, 2)
        return self._sample(by_label.sum(axis=2), by_label[0, :, 1], target, bin_of, score, label)

    def count_classes(
        self, proba: NDArray[Any], column: NDArray[Any], targets: Iterable[str]
    ) -> Iterator[CountedSample]:
        """Return the same for each class against the rest; `column` has the number of each row's class."""
        n_classes, n_bins = proba.shape[1], self.n_bins
        sums = np.zeros((3, n_classes * n_bins))
        bin_of = np.empty(proba.shape, dtype=np.min_scalar_type(n_bins))
        step = max(_STEP, 2 * sums.shape[1]) // n_classes
        for first in range(0, len(proba), step):
            rows = slice(first, first + step)
            values = proba[rows].astype(np.float64, copy=False)
            bin_of[rows] = cell = self.index(values)
            cell += np.arange(n_classes) * n_bins
            add_exactly(sums, cell.ravel(), values.ravel())
        table = sums.reshape(3, n_classes, n_bins)
        for k, target in enumerate(targets):
            label = column == k
            positives = np.bincount(bin_of[label, k], minlength=n_bins).astype(np.float64)
            yield self._sample(table[:, k], positives, target, bin_of[:, k], proba[:, k], label)

    def _sample(
        self,
        table: FloatArray,
        positives: FloatArray,
        target: str,
        row_bin: NDArray[Any],
        row_score: NDArray[Any],
        row_label: NDArray[Any],
    ) -> CountedSample:
        """Return the sample of bins with these sums, as those of `add_exactly`; a mean is kept inside its bin."""
        kept = np.flatnonzero(table[0])
        rows, coarse, fine = table[:, kept]
        lower, upper = self.lower[kept], self.upper[kept]
        return CountedSample(
            score=np.clip((coarse + fine) / rows, lower, np.nextafter(upper, 0)),
            count=rows,
            positives=positives[kept],
            dtype=self.dtype,
            target=target,
            lower=lower,
            width=float((self.upper - self.lower).max()),
            bin=kept,
            row_bin=row_bin,
            row_score=row_score,
            row_label=row_label,
        )


def add_exactly(sums: FloatArray, cell: IntArray, score: FloatArray) -> None:
    """Add rows to the sums of their cells: numbers of rows, and scores in a coarse and a fine part.

    The two parts are exact for any order of the rows.
    """
    rows, coarse, fine = sums
    rows += np.bincount(cell, minlength=len(rows))
    part = rounded(score, _COARSE)
    coarse += np.bincount(cell, part, len(rows))
    np.subtract(score, part, out=part)
    fine += np.bincount(cell, rounded(part, _FINE, out=part), len(rows))


def rounded(values: FloatArray, unit: float, out: FloatArray | None = None) -> FloatArray:
    """Return multiples of a power of two; values must be smaller than 2^51 times this unit."""
    constant = 1.5 * 2.0**52 * unit  # its last binary digit is the unit
    multiple = np.add(values, constant, out=out)
    multiple -= constant
    return np.asarray(multiple)


@dataclass(frozen=True, eq=False, kw_only=True)
class CountedSample(Sample):
    """A sample whose groups are bins of different scores: their mean, off by at most 2^-53, rows and labels.

    Attributes
    ----------
    lower : ndarray of shape (n_groups,)
        No score of a group is below this, and all of the group before are.
    width : float
        No score of a group is farther above `lower`.
    bin : ndarray of shape (n_groups,)
        Number of the bin of each group.
    row_bin, row_score, row_label : ndarray of shape (n,)
        Bins, scores and labels of the rows.
    """

    lower: FloatArray
    width: float
    bin: IntArray
    row_bin: NDArray[Any]
    row_score: NDArray[Any]
    row_label: NDArray[Any]

    def distance(self, level: FloatArray, start: IntArray, p: float) -> FloatArray:
        """Return the l_p distance of the scores of the rows from the level of their run of groups."""
        level_of = np.repeat(level, run_ends(start, len(self)) - start)
        farthest = float(np.maximum(level_of - self.lower, self.lower + self.width - level_of).max())
        largest = 2.0 ** math.ceil(p * math.log2(farthest))  # the largest power of a distance
        mean = self._mean_power(level_of, p, largest) if largest > _SMALLEST_POWER else 0.0
        if mean <= _SMALLEST_MEAN * largest:
            ordered = Sample.from_rows(self.row_label, self.row_score)
            return ordered.distance(level, ordered.score.searchsorted(self.lower[start]), p)
        return np.array([mean ** (1 / p)])

    def _mean_power(self, level_of: FloatArray, p: float, largest: float) -> float:
        """Return the mean of the distances to the power of p."""
        of_bin = np.zeros(int(self.bin[-1]) + 1)
        of_bin[self.bin] = level_of
        sums = []
        for first in range(0, len(self.row_score), _STEP):
            step = slice(first, first + _STEP)
            gap = of_bin.take(self.row_bin[step])
            np.subtract(self.row_score[step], gap, out=gap)
            np.abs(gap, out=gap)
            gap **= p
            high = rounded(gap, _HIGH * largest)
            gap -= high
            sums += [high.sum(), rounded(gap, _LOW * largest, out=gap).sum()]
        return math.fsum(sums) / self.n
