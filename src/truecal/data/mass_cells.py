"""Rows ordered only where bins of equal mass need it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.runs import IntArray
from truecal._lib.types import FloatArray
from truecal.data.counting import MOST_COUNTED_ROWS, STEP, CellSums, Counting, mean_in_cell
from truecal.data.sample import Sample

#: Cells are 2^-12 wide: multiplying a score by a power of two changes no digit. One more has the score 1 alone.
_CELLS = 1 << 12

#: Fewer rows than this are sorted sooner. More bins would open most cells.
_FEWEST_ROWS, _MOST_BINS = 1 << 17, 64

#: Rows looked at to judge how scores are spread, and the largest share of rows that is worth sorting by itself.
_PROBE, _MOST_SORTED = 1 << 11, 0.2


class MassCounting(Counting):
    """Count rows in cells, and sort those of the cells in which an edge between bins of equal mass falls.

    Equal mass needs the ranks of rows only next to the edges. A cell without an edge is one group, which lies within a
    bin. The cell of an edge and its neighbours are opened: their rows are sorted, and every score is a group.
    """

    def count(self, label: NDArray[Any], score: NDArray[Any], target: str) -> Sample | None:
        """Return a sample of cells and, next to the edges, of scores; None if sorting all rows is quicker."""
        n = len(score)
        if not (_FEWEST_ROWS <= n <= MOST_COUNTED_ROWS and self.n_bins <= _MOST_BINS):
            return None
        probe = np.sort(_cell_of(score[:: n // _PROBE]))
        if self._near_edges(np.bincount(probe))[probe].mean() > _MOST_SORTED:
            return None
        steps = [slice(first, first + STEP) for first in range(0, n, STEP)]
        sums, cells = CellSums(2 * (_CELLS + 1)), np.empty(n, dtype=np.uint16)
        for step in steps:
            cell = _cell_of(score[step])
            cells[step] = cell
            sums.add_labelled(cell, label[step], score[step].astype(np.float64, copy=False))
        table, positives = sums.by_label()
        opened = self._near_edges(table[0])
        if table[0][opened].sum() > _MOST_SORTED * n:
            return None
        near = np.concatenate([opened[cells[step]].nonzero()[0] + step.start for step in steps])
        inner = Sample.from_rows(label[near], score[near])
        closed = np.flatnonzero((table[0] > 0) & ~opened)
        mean = mean_in_cell(table[:, closed], closed / _CELLS, (closed + 1) / _CELLS)
        outer = Sample(mean, table[0, closed], positives[closed])
        order = np.argsort(np.concatenate([inner.score, outer.score]))

        def merged(name: str) -> FloatArray:
            return np.concatenate([getattr(inner, name), getattr(outer, name)])[order]

        sample = Sample(merged("score"), merged("count"), merged("positives"), score.dtype, target)
        # The smallest group decides which part of a tie an edge cuts off, and nothing is smaller than one row.
        return sample if sample.count.min() == 1 else None

    def _near_edges(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which cells have a rank k n / b, k from 0 to b, among their rows, or are next to such a cell."""
        occupied = np.flatnonzero(rows)
        after = np.cumsum(rows[occupied])
        edges = np.arange(self.n_bins + 1) * float(after[-1]) / self.n_bins
        place = after.searchsorted(edges, side="right")[:, np.newaxis] + [-1, 0, 1]
        near = np.zeros(len(rows), dtype=np.bool_)
        near[occupied[place.clip(0, len(occupied) - 1)]] = True
        return near


def _cell_of(score: NDArray[Any]) -> IntArray:
    return np.asarray((score * score.dtype.type(_CELLS)).astype(np.intp))
