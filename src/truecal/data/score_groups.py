"""Groups of rows with equal scores: what one sample and a block of samples have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from truecal._lib.runs import IntArray, lp_norm, over_runs, run_ends
from truecal._lib.types import FloatArray

#: Rows per step of a pass over all, whose arrays stay in the cache of a processor; so few that a pass costs little.
STEP, _FEW = 1 << 14, 1 << 12

#: The count that all groups of one row each see through a stride of zero, which costs no memory.
_ONE = np.ones(1)


@dataclass(frozen=True, eq=False)
class ScoreGroups:
    """Score groups of one sample, or of several samples one after another.

    A formula that is written for runs of groups serves both: `bounds` says where samples begin and end, and sums over
    a run do not depend on what is before and behind it.

    Attributes
    ----------
    score : ndarray of shape (n_groups,)
        Scores, in ascending order within a sample.
    count : ndarray of shape (n_groups,)
        Rows, or total weight, of each group.
    positives : ndarray of shape (n_groups,)
        Sum of the 0/1 labels (times the weights) of each group.
    dtype : numpy.dtype
        The type that the scores came in. Equal-width edges are rounded to it, so that a float32 score of
        0.3 meets the edge 3/10 as a float64 one does.
    target : str
        What the score is the probability of, in words.
    one_row_each : bool
        Whether every group is one row: no ties and no weights.
    """

    score: FloatArray
    count: FloatArray
    positives: FloatArray
    dtype: np.dtype[Any] = field(default_factory=lambda: np.dtype(np.float64))
    target: str = "P(y = 1)"
    one_row_each: bool = field(init=False)

    def __post_init__(self) -> None:
        known = vars(self)
        for name in ("score", "count", "positives"):
            array = known[name] = known[name].view()
            array.setflags(write=False)
        known["one_row_each"] = self.count.base is _ONE
        if self.one_row_each:
            known.update(label=self.positives, score_sum=self.score, even=True, whole=True)

    @cached_property
    def bounds(self) -> IntArray:
        """Number of the first group of each sample, and at the end the number of groups."""
        return _one_run(len(self.score))

    @cached_property
    def sizes(self) -> IntArray:
        """Number of groups of each sample."""
        return self.bounds[1:] - self.bounds[:-1]

    @property
    def samples(self) -> tuple[ScoreGroups, ...]:
        """The samples one by one."""
        return (self,)

    def on_the_scale_of_rows(self) -> ScoreGroups:
        """Return these groups; sampling weights of a `Sample` may need another scale."""
        return self

    @cached_property
    def n(self) -> float:
        """Number of rows of each sample, an int; or the total weight, a float if weights have fractions."""
        if self.one_row_each:
            return len(self.score)
        total = float(self.count.sum())
        return int(total) if self.whole else total

    @cached_property
    def label(self) -> FloatArray:
        """Mean label of each group."""
        return self.positives / self.count

    @cached_property
    def score_sum(self) -> FloatArray:
        """Sum of the scores of the rows of each group."""
        return self.score * self.count

    @cached_property
    def middle_rank(self) -> FloatArray:
        """Rank within its sample of the middle row of each group.

        The middle of m equal rows is (m - 1)/2 after the first. The smallest count represents one row, so that
        the scale of the weights does not matter.
        """
        bounds, before = self.bounds, self.cumulative_count[:-1]
        rank = self.count - over_runs(np.minimum.reduceat(self.count, bounds[:-1]), bounds)
        rank /= 2
        rank += before
        if len(bounds) > 2:
            rank -= over_runs(before[bounds[:-1]], bounds)
        return np.asarray(rank)

    @cached_property
    def cumulative_count(self) -> FloatArray:
        """Rows before each group, and at the end the total: ``n_groups + 1`` values."""
        if self.one_row_each:
            return np.arange(len(self.score) + 1, dtype=np.float64)
        return prefix_sums(self.count)

    @cached_property
    def cumulative_positives(self) -> FloatArray:
        """Sum of the labels before each group, and at the end the total: ``n_groups + 1`` values."""
        return prefix_sums(self.positives)

    @cached_property
    def even(self) -> bool:
        """Whether all groups have the same count, as when no scores tie and there are no weights."""
        return bool((self.count == self.count[0]).all())

    @cached_property
    def whole(self) -> bool:
        """Whether all counts are whole numbers, so that their sums are exact."""
        return bool((self.count == np.floor(self.count)).all())

    @property
    def rounding(self) -> float:
        """A bound for the rounding error of sums of counts: zero if these are whole numbers."""
        return 0.0 if self.whole and self.n < 2**53 else 1e-10 * self.n

    def rows_between(self, start: IntArray, end: IntArray) -> FloatArray:
        """Return the rows, or the weight, from group `start` up to group `end`.

        Parameters
        ----------
        start, end : ndarray of int
            Numbers of groups; group `end` is not counted.
        """
        if self.one_row_each:
            return np.asarray(end - start, dtype=np.float64)
        return self.cumulative_count[end] - self.cumulative_count[start]

    def sums(self, start: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return count, sum of scores and sum of labels of the runs of groups that begin at `start`.

        Sums within each run (NumPy adds pairwise) are more accurate than differences of prefix sums. All three
        are added in the same order, so that rounding never makes a mean larger than 1.

        Parameters
        ----------
        start : ndarray of int
            Numbers of groups, ascending from 0.
        """
        if self.one_row_each:
            count = self.rows_between(start, run_ends(start, len(self.score)))
        else:
            count = np.add.reduceat(self.count, start)
        return count, np.add.reduceat(self.score_sum, start), np.add.reduceat(self.positives, start)

    def distance(self, level: FloatArray, start: IntArray, p: float) -> FloatArray:
        """Return the l_p distance of the scores of each sample from the level of their run of groups.

        Parameters
        ----------
        level : ndarray
            Level of each run.
        start : ndarray of int
            Numbers of the groups at which runs begin, ascending from 0.
        p : float
            Order of the norm.
        """
        gap = np.repeat(level, run_ends(start, len(self.score)) - start)
        np.subtract(self.score, gap, out=gap)
        return lp_norm(gap, None if self.one_row_each else self.count, p, self.bounds, out=gap)


@lru_cache
def _one_run(n: int) -> IntArray:
    """Return the bounds of the only sample."""
    bounds = np.array([0, n])
    bounds.setflags(write=False)
    return bounds


@lru_cache
def ones(n: int) -> FloatArray:
    """Return the counts of groups of one row each."""
    return np.ndarray((n,), np.float64, _ONE, strides=(0,))


def prefix_sums(values: FloatArray) -> FloatArray:
    """Return the sum of the values, which are not negative, before each one, and at the end the total."""
    sums = np.empty(len(values) + 1)
    sums[0] = 0.0
    # Integers add up twice as fast, if the values are whole numbers; that pays for many of them.
    total = float(values.sum()) if len(values) > _FEW else math.inf
    if total < 2**53:
        before = 0
        for first in range(0, len(values), STEP):
            whole = values[first : first + STEP].astype(np.int64)
            whole[0] += before
            whole = np.add.accumulate(whole)
            sums[first + 1 : first + 1 + STEP] = whole
            before = int(whole[-1])
        if before == total:  # rounding down would have changed it
            return sums
    np.add.accumulate(values, out=sums[1:])
    return sums
