"""Rows that are counted in bins of equal width, which needs no order, for estimators that need only sums over bins."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.numeric import IntArray, run_ends
from truecal._lib.types import FloatArray
from truecal.data.sample import Sample

#: Labels and scores of rows.
Columns = tuple[NDArray[Any], NDArray[Any]]

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


@dataclass(frozen=True)
class WidthCounting:
    """How to count rows in `n_bins` equal-width bins, where that is exact and faster than sorting."""

    n_bins: int

    def count(self, label: NDArray[Any], score: NDArray[Any], target: str) -> Sample | None:
        """Return the sample whose groups are the bins that have rows; None if there are too few rows or too many."""
        bins = self._bins(len(score), score)
        return None if bins is None else bins.count(label, score, target)

    def count_classes(
        self, column: NDArray[Any], proba: NDArray[Any], targets: Sequence[str]
    ) -> Iterator[Sample] | None:
        """Return the same for all classes, each against the rest."""
        bins = self._bins(len(proba), proba)
        return None if bins is None else bins.count_classes(column, proba, targets)

    def _bins(self, n_rows: int, scores: NDArray[Any]) -> WidthBins | None:
        exact = (
            scores.size >= _FEWEST_SCORES
            and self.n_bins <= n_rows <= _MOST_ROWS
            # The edges must be far apart in the type of the scores.
            and self.n_bins * float(np.finfo(scores.dtype).eps) < 0.25
        )
        return WidthBins(self.n_bins, scores.dtype) if exact else None


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

    def count(self, label: NDArray[Any], score: NDArray[Any], target: str) -> CountedSample:
        """Return the sample whose groups are the bins that have rows."""
        sums = CellSums(2 * self.n_bins)
        bin_of = np.empty(len(score), dtype=np.min_scalar_type(self.n_bins))
        for first in range(0, len(score), _STEP):
            step = slice(first, first + _STEP)
            values = score[step].astype(np.float64, copy=False)
            bin_of[step] = place = self.index(values)
            sums.add_labelled(place, label[step], values)
        return self._sample(*sums.by_label(), target, lambda: (label, score), bin_of)

    def count_classes(
        self, column: NDArray[Any], proba: NDArray[Any], targets: Sequence[str]
    ) -> Iterator[CountedSample]:
        """Return the same for all classes, each against the rest."""
        n_classes = proba.shape[1]
        offset = np.arange(n_classes) * self.n_bins
        n_cells = n_classes * self.n_bins
        sums = CellSums(n_cells)
        step = max(_STEP, 2 * n_cells) // n_classes
        for first in range(0, len(proba), step):
            values = proba[first : first + step].astype(np.float64, copy=False)
            cell = self.index(values)
            cell += offset
            sums.add(cell.ravel(), values.ravel())
        own = np.take_along_axis(proba, column[:, np.newaxis], axis=1)[:, 0].astype(np.float64, copy=False)
        positives = np.bincount(self.index(own) + column * self.n_bins, minlength=n_cells).astype(np.float64)
        for k, target in enumerate(targets):
            bins = slice(k * self.n_bins, (k + 1) * self.n_bins)
            rows = partial(_class_rows, column, proba, k)
            yield self._sample(sums.table[:, bins], positives[bins], target, rows)

    def _sample(
        self,
        table: FloatArray,
        positives: FloatArray,
        target: str,
        columns: Callable[[], Columns],
        bin_of: NDArray[Any] | None = None,
    ) -> CountedSample:
        """Return the sample of bins with these sums, as those of `CellSums`; a mean is kept inside its bin."""
        kept = np.flatnonzero(table[0])
        mean = mean_in_cell(table[:, kept], self.lower[kept], self.upper[kept])

        def by_row(value: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
            of_bin = np.zeros(self.n_bins)
            of_bin[kept] = value
            _, score = columns()
            for first in range(0, len(score), _STEP):
                step = slice(first, first + _STEP)
                values = score[step].astype(np.float64, copy=False)
                yield values, of_bin.take(self.index(values) if bin_of is None else bin_of[step])

        return CountedSample(
            score=mean,
            count=table[0, kept],
            positives=positives[kept],
            dtype=self.dtype,
            target=target,
            lower=self.lower[kept],
            width=float((self.upper - self.lower).max()),
            columns=columns,
            by_row=by_row,
        )


def _class_rows(column: NDArray[Any], proba: NDArray[Any], k: int) -> Columns:
    return column == k, proba[:, k]


class CellSums:
    """Sums by cell that are exact for any order of rows: rows, and their scores in a coarse and a fine part."""

    def __init__(self, n_cells: int) -> None:
        self.table = np.zeros((3, n_cells))

    def add(self, cell: IntArray, score: FloatArray) -> None:
        """Add rows; `cell` is the number of the cell of each."""
        rows, coarse, fine = self.table
        rows += np.bincount(cell, minlength=len(rows))
        part = rounded(score, _COARSE)
        coarse += np.bincount(cell, part, len(rows))
        np.subtract(score, part, out=part)
        fine += np.bincount(cell, rounded(part, _FINE, out=part), len(rows))

    def add_labelled(self, cell: IntArray, label: NDArray[Any], score: FloatArray) -> None:
        """Add rows to cells that are split by label: cell c has the numbers 2c and 2c + 1."""
        cell <<= 1
        cell |= label.astype(np.intp, copy=False)
        self.add(cell, score)

    def by_label(self) -> tuple[FloatArray, FloatArray]:
        """Return the table of cells that were split by label, and the positive labels of each cell."""
        table = self.table.reshape(3, -1, 2)
        return table.sum(axis=2), table[0, :, 1]


def rounded(values: FloatArray, unit: float, out: FloatArray | None = None) -> FloatArray:
    """Return multiples of a power of two; values must be smaller than 2^51 times this unit."""
    constant = 1.5 * 2.0**52 * unit  # its last binary digit is the unit
    multiple = np.add(values, constant, out=out)
    multiple -= constant
    return np.asarray(multiple)


def mean_in_cell(table: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return mean scores, which rounding must not move out of their cells [lower, upper)."""
    rows, coarse, fine = table
    return np.asarray(np.clip((coarse + fine) / rows, lower, np.nextafter(upper, 0)))


@dataclass(frozen=True, eq=False)
class CountedSample(Sample):
    """A sample with groups of different scores: their mean, off by at most 2^-53, rows and labels.

    Attributes
    ----------
    lower : ndarray of shape (n_groups,)
        No score of a group is below this, and all of the group before are.
    width : float
        No score of a group is farther above `lower`.
    columns : callable
        Returns the labels and the scores of all rows.
    by_row : callable
        Given a value for each group, yields the scores of some rows, and the values of their groups, until all rows had
        their turn.
    """

    lower: FloatArray = field(kw_only=True)
    width: float = field(kw_only=True)
    columns: Callable[[], Columns] = field(kw_only=True)
    by_row: Callable[[FloatArray], Iterator[tuple[FloatArray, FloatArray]]] = field(kw_only=True)

    def distance(self, level: FloatArray, start: IntArray, p: float) -> FloatArray:
        """Return the l_p distance of the scores of the rows from the level of their run of groups."""
        level_of = np.repeat(level, run_ends(start, len(self)) - start)
        farthest = float(np.maximum(level_of - self.lower, self.lower + self.width - level_of).max())
        largest = 2.0 ** math.ceil(p * math.log2(farthest))  # the largest power of a distance
        mean = self._mean_power(level_of, p, largest) if largest > _SMALLEST_POWER else 0.0
        if mean <= _SMALLEST_MEAN * largest:
            ordered = Sample.from_rows(*self.columns())
            return ordered.distance(level, ordered.score.searchsorted(self.lower[start]), p)
        return np.array([mean ** (1 / p)])

    def _mean_power(self, level_of: FloatArray, p: float, largest: float) -> float:
        """Return the mean of the distances to the power of p."""
        sums = []
        for score, gap in self.by_row(level_of):
            np.subtract(score, gap, out=gap)
            np.abs(gap, out=gap)
            gap **= p
            high = rounded(gap, _HIGH * largest)
            gap -= high
            sums += [high.sum(), rounded(gap, _LOW * largest, out=gap).sum()]
        return math.fsum(sums) / self.n
