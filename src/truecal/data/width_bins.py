"""Rows counted in bins of equal width, which needs no order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.runs import IntArray
from truecal._lib.types import FloatArray
from truecal.data.counted_sample import CountedSample
from truecal.data.counting import MOST_COUNTED_ROWS, STEP, CellSums, Columns, Counting, mean_in_cell
from truecal.data.sample import Sample

#: Fewer scores than this are sorted sooner than they are counted.
_FEWEST_SCORES = 1 << 13


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


@dataclass(frozen=True)
class WidthCounting(Counting):
    """Count rows in bins of equal width.

    Parameters
    ----------
    n_bins : int
        Number of bins.
    """

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
            and self.n_bins <= n_rows <= MOST_COUNTED_ROWS
            # The edges must be far apart in the type of the scores.
            and self.n_bins * float(np.finfo(scores.dtype).eps) < 0.25
        )
        return WidthBins(self.n_bins, scores.dtype) if exact else None


class WidthBins:
    """The bins [k/b, (k+1)/b), with edges rounded to the type of the scores; the last one is closed.

    Parameters
    ----------
    n_bins : int
        Number b of bins.
    dtype : numpy.dtype
        Type of the scores, in which edges are far apart.
    """

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
        """Return the sample whose groups are the bins that have rows; arguments as for `Counting.count`."""
        sums = CellSums(2 * self.n_bins)
        bin_of = np.empty(len(score), dtype=np.min_scalar_type(self.n_bins))
        for first in range(0, len(score), STEP):
            step = slice(first, first + STEP)
            values = score[step].astype(np.float64, copy=False)
            bin_of[step] = place = self.index(values)
            sums.add_labelled(place, label[step], values)
        return self._sample(*sums.by_label(), target, lambda: (label, score), bin_of)

    def count_classes(
        self, column: NDArray[Any], proba: NDArray[Any], targets: Sequence[str]
    ) -> Iterator[CountedSample]:
        """Return the same for all classes, each against the rest; arguments as for `Counting.count_classes`."""
        n_classes = proba.shape[1]
        offset = np.arange(n_classes) * self.n_bins
        n_cells = n_classes * self.n_bins
        sums = CellSums(n_cells)
        step = max(STEP, 2 * n_cells) // n_classes
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
        """Return the sample of bins with these sums; a mean is kept inside its bin.

        Parameters
        ----------
        table, positives : ndarray
            Sums of each bin, as those of `CellSums`, and its positive labels.
        target : str
            What the score is the probability of, in words.
        columns : callable
            Returns the labels and the scores of all rows.
        bin_of : ndarray, optional
            Bin of each row, if it is known.
        """
        kept = np.flatnonzero(table[0])
        mean = mean_in_cell(table[:, kept], self.lower[kept], self.upper[kept])

        def by_row(value: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
            of_bin = np.zeros(self.n_bins)
            of_bin[kept] = value
            _, score = columns()
            for first in range(0, len(score), STEP):
                step = slice(first, first + STEP)
                values = score[step].astype(np.float64, copy=False)
                yield values, of_bin.take(self.index(values) if bin_of is None else bin_of[step])

        return CountedSample(
            mean,
            table[0, kept],
            positives[kept],
            self.dtype,
            target,
            lower=self.lower[kept],
            width=float((self.upper - self.lower).max()),
            columns=columns,
            by_row=by_row,
        )


def _class_rows(column: NDArray[Any], proba: NDArray[Any], k: int) -> Columns:
    return column == k, proba[:, k]
