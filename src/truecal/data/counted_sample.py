"""A sample of counted rows, which remembers them for what sums over groups do not tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from truecal._lib.runs import IntArray, run_ends
from truecal._lib.types import FloatArray
from truecal.data.counting import Columns, rounded
from truecal.data.sample import Sample

#: Units of numbers in [0, 1] whose sums over a step are exact; sums of steps are added exactly. Smallest mean for which
#: that is enough, and smallest number instead of 1.
_HIGH, _LOW, _SMALLEST_MEAN, _SMALLEST_POWER = 2.0**-37, 2.0**-74, 2.0**-20, 2.0**-900


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
        largest = 2.0 ** math.ceil(p * math.log2(farthest))  # that a distance to the power of p can be
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
