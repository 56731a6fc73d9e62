"""Rows ordered only where bins of equal mass need it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.data.counting import MOST_COUNTED_ROWS, Counting
from truecal.data.row_cells import RowCells
from truecal.data.sample import Sample

#: Fewer rows than this are sorted sooner. More bins would open most cells.
_FEWEST_ROWS, _MOST_BINS = 1 << 17, 64

#: Number of cells, whose tables fit into the cache of a processor.
_CELLS = 1 << 13

#: Rows looked at to judge how scores are spread, and the largest share of rows that is worth sorting by itself.
_PROBE, _MOST_SORTED = 1 << 11, 0.2


@dataclass(frozen=True)
class MassCounting(Counting):
    """Count rows in cells, and sort those of the cells in which an edge between bins of equal mass falls.

    Equal mass needs the ranks of rows only next to the edges. A cell without an edge is one group, which lies within a
    bin. The cell of an edge and its neighbours are opened: their rows are sorted, and every score is a group.

    Parameters
    ----------
    n_bins : int
        Number of bins.
    """

    n_bins: int

    def count(self, label: NDArray[Any], score: NDArray[Any], target: str) -> Sample | None:
        """Return a sample of cells and, next to the edges, of scores; None if sorting all rows is quicker."""
        n = len(score)
        if not (_FEWEST_ROWS <= n <= MOST_COUNTED_ROWS and self.n_bins <= _MOST_BINS):
            return None
        probe = slice(None, None, n // _PROBE)
        _, times = np.unique(score[probe], return_counts=True)
        if np.count_nonzero(times == 1) < _PROBE / 2:  # hardly any row is likely to have a score of its own
            return None
        for rows in (probe, slice(None)):
            cells = RowCells.count(label[rows], score[rows], _CELLS)
            opened = cells.near_ranks(np.arange(self.n_bins + 1) * float(len(cells.score)) / self.n_bins, 1)
            if cells.share(opened) > _MOST_SORTED:
                return None
        return cells.sample(opened, target)
