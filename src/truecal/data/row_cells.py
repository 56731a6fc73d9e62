"""Rows counted in narrow cells of equal width, and ordered in those that are opened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.runs import IntArray
from truecal._lib.types import FloatArray
from truecal.data.counted_sample import CountedSample
from truecal.data.counting import STEP, CellSums, mean_in_cell, rounded
from truecal.data.sample import Sample

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RowCells:
    """Rows in cells [k/c, (k+1)/c), with one more cell for a score of 1.

    Multiplying a score by c, a power of two, changes no digit, so that sums over cells are exact for any order of rows.

    Attributes
    ----------
    label, score : ndarray of shape (n,)
        Labels, 0 and 1, and scores in [0, 1].
    cell : ndarray of shape (n,)
        Cell of each row.
    rows, positives : ndarray of shape (c + 1,)
        Number of rows in each cell, and of those labelled 1.
    above : ndarray of shape (c + 1,)
        Sum of the distances of the rows of a cell from its lower end, as parts of its width.
    """

    label: NDArray[Any]
    score: NDArray[Any]
    cell: NDArray[Any]
    rows: FloatArray
    positives: FloatArray
    above: FloatArray

    @classmethod
    def count(cls, label: NDArray[Any], score: NDArray[Any], c: int) -> RowCells:
        """Count rows, with labels of 0 and 1 and scores in [0, 1], in c cells."""
        n = len(score)
        by_label, above = np.zeros(2 * (c + 1), dtype=np.intp), np.zeros(c + 1)
        cells = np.empty(n, dtype=np.min_scalar_type(c))
        size = max(STEP, 2 * c)  # adding up tables must not cost more than counting
        for first in range(0, n, size):
            step = slice(first, first + size)
            place = score[step].astype(np.float64, copy=False) * c
            cell = place.astype(np.intp)
            cells[step] = cell
            place -= cell
            above += np.bincount(cell, rounded(place, c * 2.0**-53, out=place), c + 1)
            cell <<= 1
            cell |= label[step].astype(np.intp, copy=False)
            by_label += np.bincount(cell, minlength=len(by_label))
        negatives, positives = by_label.reshape(-1, 2).T.astype(np.float64)
        return cls(label, score, cells, negatives + positives, positives, above)

    @property
    def n_cells(self) -> int:
        """Number c of cells, without that of the score 1."""
        return len(self.rows) - 1

    @cached_property
    def occupied(self) -> IntArray:
        """Numbers of the cells that have rows."""
        return np.flatnonzero(self.rows)

    def near_ranks(self, rank: FloatArray, beside: int) -> Mask:
        """Return which cells have a row of these ranks, or are next to such a cell among those that have rows.

        Parameters
        ----------
        rank : ndarray
            Ranks of rows, from 0; the rank of an edge that lies between two rows belongs to the lower one.
        beside : int
            Number of neighbours on either side. None are needed to know on which side of an edge a cell is, one to know
            the scores next to an edge.
        """
        after = np.cumsum(self.rows[self.occupied])
        place = after.searchsorted(rank, side="right")[:, np.newaxis] + np.arange(-beside, beside + 1)
        return self._mask(self.occupied[place.clip(0, len(self.occupied) - 1)])

    def closed(self) -> Sample:
        """Return the sample in which every cell is a group."""
        k = self.occupied
        return Sample(self._mean(k), self.rows[k], self.positives[k], self.score.dtype)

    def share(self, cells: Mask) -> float:
        """Return the share of the rows that is in these cells."""
        return float(self.rows[cells].sum()) / len(self.score)

    def sample(self, opened: Mask, target: str) -> CountedSample | None:
        """Return the sample in which every score of an opened cell is a group, and so is every other cell.

        None if no group is a single row: the smallest count decides which part of a tie an edge of equal mass cuts off,
        and is known only if it is 1.

        Parameters
        ----------
        opened : ndarray of bool
            Which cells to open.
        target : str
            What the score is the probability of, in words.
        """
        near, closed = self._divide(opened)
        inner = Sample.from_rows(self.label[near], self.score[near])
        place = np.bincount(np.concatenate([closed, self._cell_of(inner.score)])).cumsum()
        cells = place[closed] - 1
        is_score = np.ones(place[-1], dtype=np.bool_)
        is_score[cells] = False
        scores = is_score.nonzero()[0]

        def merged(of_cells: FloatArray, of_scores: FloatArray) -> FloatArray:
            values = np.empty(len(is_score))
            values[cells], values[scores] = of_cells, of_scores
            return values

        count = merged(self.rows[closed], inner.count)
        if count.min() > 1:
            return None

        def by_row(value: FloatArray) -> Iterator[tuple[FloatArray, FloatArray]]:
            of_cell = np.zeros(len(self.rows))
            of_cell[closed] = value[cells]
            of_near = value[scores[inner.score.searchsorted(self.score[near])]]
            for first in range(0, len(self.score), STEP):
                step, inside = slice(first, first + STEP), slice(*near.searchsorted([first, first + STEP]))
                values = of_cell.take(self.cell[step])
                values[near[inside] - first] = of_near[inside]
                yield self.score[step], values

        return CountedSample(
            merged(self._mean(closed), inner.score),
            count,
            merged(self.positives[closed], inner.positives),
            self.score.dtype,
            target,
            lower=merged(closed / self.n_cells, inner.score),
            width=1 / self.n_cells,
            columns=lambda: (self.label, self.score),
            by_row=by_row,
        )

    def between(self, edges: FloatArray, target: str) -> Sample:
        """Return the sample whose groups are the rows between neighbouring edges; a row on an edge is above it.

        Parameters
        ----------
        edges : ndarray
            Different numbers in [0, 1), ascending from 0.
        target : str
            What the score is the probability of, in words.
        """
        upper = np.append(edges[1:], np.nextafter(1, 2))
        edges_in = np.bincount(self._cell_of(edges), minlength=len(self.rows))
        group_of = np.maximum(edges_in.cumsum() - edges_in - 1, 0)  # at the lower end of each cell
        near, closed = self._divide(edges_in > 0)
        score, group = self.score[near].astype(np.float64, copy=False), group_of.take(self.cell[near])
        for _ in range(edges_in.max()):
            group += score >= upper.take(group)
        sums = CellSums(2 * len(edges))
        sums.add_labelled(group, self.label[near], score)
        table, positives = sums.by_label()
        rows, group = self.rows[closed], group_of[closed]
        parts = (rows, rows * closed / self.n_cells, self.above[closed] / self.n_cells)
        table += [np.bincount(group, part, len(edges)) for part in parts]
        positives += np.bincount(group, self.positives[closed], len(edges))
        kept = table[0].nonzero()[0]
        mean = mean_in_cell(table[:, kept], edges[kept], upper[kept])
        return Sample(mean, table[0, kept], positives[kept], self.score.dtype, target)

    def _divide(self, opened: Mask) -> tuple[IntArray, IntArray]:
        """Return the numbers of the rows in opened cells, and of the other cells that have rows."""
        # Sums are multiples of 2^-53, and exact up to 2^53 of them; a cell that has more is opened.
        opened = opened | (self.above > self.n_cells)
        steps = range(0, len(self.cell), STEP)
        near = [opened.take(self.cell[k : k + STEP]).nonzero()[0] + k for k in steps]
        return np.concatenate(near), self.occupied[~opened[self.occupied]]

    def _cell_of(self, score: FloatArray) -> IntArray:
        return (score * self.n_cells).astype(np.intp)

    def _mean(self, cell: IntArray) -> FloatArray:
        """Return the mean scores of cells, which rounding must not move out of them."""
        mean = (cell + self.above[cell] / self.rows[cell]) / self.n_cells
        return np.minimum(mean, (cell + 1) / self.n_cells * (1 - 2.0**-53))  # the next smaller number

    def _mask(self, cell: IntArray) -> Mask:
        mask = np.zeros(len(self.rows), dtype=np.bool_)
        mask[cell] = True
        return mask
