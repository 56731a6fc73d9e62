"""Ways to cut sorted groups into bins: equal width, equal mass, and the monotonic sweep.

A rule gives each group a *position* and each bin an *edge*; a group belongs to the last bin whose edge
is at or below its position. Groups are never cut.

- **Equal width.** The position is the score, the edge of bin k of b is k/b rounded to the scores' own
  type. Bins are [k/b, (k+1)/b), and a score of 1 falls into the last.
- **Equal mass.** The position is the rank of the middle row of the group, the edge of bin k is k n / b.
  Without ties this is the paper's rule: rank r of n goes to bin floor(r b / n). With ties a group goes
  where its middle row would go, so a heavy tie gets a bin of its own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.results import BinTable
from truecal.sample import FloatArray, Sample

IntArray = NDArray[np.intp]

#: How many bins one step of the sweep looks at together: enough to hide Python's own cost.
_SWEEP_CHUNK = 1 << 17


@dataclass(frozen=True, eq=False)
class Partition:
    """Groups of a sample cut into non-empty bins; bin k starts at group ``start[k]``.

    `n_bins` is the number asked for. It is larger than ``len(start)`` where some bins are empty.
    """

    n_bins: int
    start: IntArray
    lower: FloatArray
    upper: FloatArray


class BinningRule(ABC):
    """A way of binning one sample: positions of its groups, and edges between bins."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample

    @property
    @abstractmethod
    def finest(self) -> int:
        """The largest number of bins that the sweep may try."""

    @property
    @abstractmethod
    def position(self) -> FloatArray:
        """Where each group lies on the scale of the edges, ascending."""

    @abstractmethod
    def edge(self, k: IntArray, b: Any) -> FloatArray:
        """Return the lower edge of bin `k` of `b`; both may be arrays."""

    @abstractmethod
    def limits(self, start: IntArray, n_bins: int) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper limits to show for the non-empty bins that begin at `start`."""

    def start(self, k: IntArray, b: Any) -> IntArray:
        """Return the first group of bin `k` of `b`, or of the next that is not empty."""
        return np.where(k >= b, len(self.sample), self.position.searchsorted(self.edge(k, b)))

    def index(self, group: IntArray, b: Any) -> IntArray:
        """Return which bin of `b` holds a group."""
        position = self.position[group]
        k = np.asarray(position * b / self.edge(np.array(1), 1)).astype(np.intp)
        # Rounding may have put the quotient on the wrong side of an edge; the edge itself decides.
        k += self.edge(k + 1, b) <= position
        k -= self.edge(k, b) > position
        return np.asarray(np.clip(k, 0, np.asarray(b) - 1))


class EqualWidth(BinningRule):
    """Bins [k/b, (k+1)/b), compared in the type that the scores came in."""

    @property
    def finest(self) -> int:
        """As many bins as rows, or fewer if every group has a bin of its own by then."""
        if len(self.sample) == 1:
            return 1
        rows = max(len(self.sample), math.floor(self.sample.n))
        return min(rows, math.ceil(1 / float(np.diff(self.sample.score).min())))

    @property
    def position(self) -> FloatArray:
        """The scores."""
        return self.sample.score

    def edge(self, k: IntArray, b: Any) -> FloatArray:
        """Return k/b, rounded as the scores were."""
        exact = np.asarray(k / np.asarray(b, dtype=np.float64))
        return exact.astype(self.sample.dtype).astype(np.float64, copy=False)

    def limits(self, start: IntArray, n_bins: int) -> tuple[FloatArray, FloatArray]:
        """Return the edges themselves."""
        k = self.index(start, n_bins)
        return k / n_bins, (k + 1) / n_bins


class EqualMass(BinningRule):
    """Bins of equal count: a group goes to the bin where its middle row would go."""

    @cached_property
    def finest(self) -> int:
        """The number of bins beyond which every group has a bin of its own."""
        if self.sample.even:
            return len(self.sample)
        return math.ceil(self.sample.n / float(np.diff(self.position).min()))

    @cached_property
    def position(self) -> FloatArray:
        """Rank of the middle row of each group."""
        # The middle of m equal rows is (m - 1)/2 behind the first. The least count stands for one row,
        # so that weights may be scaled at will.
        count = self.sample.count
        return np.asarray(self.sample.cumulative_count[:-1] + (count - count.min()) / 2)

    def edge(self, k: IntArray, b: Any) -> FloatArray:
        """Return the rank k n / b."""
        return np.asarray(k * self.sample.n / b)

    def limits(self, start: IntArray, n_bins: int) -> tuple[FloatArray, FloatArray]:
        """Return the least and the greatest score of each bin."""
        last = np.append(start[1:], len(self.sample)) - 1
        return self.sample.score[start], self.sample.score[last]

    def start(self, k: IntArray, b: Any) -> IntArray:
        """Return the first group of bin `k`; without ties that is plain whole-number arithmetic."""
        if self.sample.even:
            return np.asarray(-(-k * len(self.sample) // b))  # the least rank r with floor(r b / n) >= k
        return super().start(k, b)

    def index(self, group: IntArray, b: Any) -> IntArray:
        """Return which bin holds a group; without ties that is the paper's floor(r b / n)."""
        return np.asarray(group * b // len(self.sample)) if self.sample.even else super().index(group, b)


def partition(rule: BinningRule, n_bins: int) -> Partition:
    """Cut the groups of a sample into `n_bins` bins, and drop the empty ones."""
    start = rule.start(np.arange(n_bins), n_bins)
    if n_bins > 1:
        start = start[np.append(start[1:] > start[:-1], start[-1] < len(rule.sample))]
    lower, upper = rule.limits(start, n_bins)
    return Partition(n_bins, start, lower, upper)


def summarize_bins(sample: Sample, bins: Partition) -> BinTable:
    """Return count, mean score and mean label of each bin."""
    edges = np.append(bins.start, len(sample))
    count = np.diff(sample.cumulative_count[edges])
    # Sums within each bin (NumPy adds pairwise) keep more digits than differences of prefix sums.
    return BinTable(
        lower=bins.lower,
        upper=bins.upper,
        count=count,
        mean_score=np.add.reduceat(sample.score * sample.count, bins.start) / count,
        mean_label=np.add.reduceat(sample.positives, bins.start) / count,
    )


def merge_groups(sample: Sample, start: IntArray) -> Sample:
    """Return a coarser sample, whose groups are the runs of groups that begin at `start`."""
    count = np.diff(sample.cumulative_count[np.append(start, len(sample))])
    return replace(
        sample,
        score=np.add.reduceat(sample.score * sample.count, start) / count,
        count=count,
        positives=np.add.reduceat(sample.positives, start),
    )


def monotone_sweep(rule: BinningRule) -> int:
    r"""Return the largest b such that the mean labels rise for b and for every smaller number of bins.

    .. math:: b^* = \max\{b : \forall b' \le b,\ \bar y_1 \le \dots \le \bar y_{b'}\}

    With prefix sums a bin costs a subtraction, whatever it holds. Two neighbouring bins can only be out
    of order if a *descent*, a group whose mean label is below that of the group before, lies within
    them. Separable labels have none, so that every binning is monotone and nothing needs trying; where
    descents are few, only the bins around them are looked at.

    Empty bins are passed over. References: Roelofs et al. (2022), Algorithm 1.
    """
    descents = np.flatnonzero(rule.sample.label[1:] < rule.sample.label[:-1])
    if not len(descents):
        return rule.finest
    b = 2
    while b <= rule.finest:
        few = 4 * len(descents) < b
        per_b = len(descents) if few else 2 * b
        # Steps grow with b: an early stop wastes little, a late one takes few steps.
        step = max(1, min(max(15, 2 * b), _SWEEP_CHUNK // per_b, rule.finest + 1 - b))
        tried = np.arange(b, b + step)
        broken = _broken_near(rule, tried, descents) if few else _broken_anywhere(rule, tried)
        if len(broken):
            return int(broken.min()) - 1
        b += step
    return rule.finest


def _broken_anywhere(rule: BinningRule, tried: IntArray) -> IntArray:
    """Return those of the `tried` numbers of bins that are not monotone, looking at all their bins."""
    last = np.cumsum(tried)
    b = np.repeat(tried, tried)
    k = np.arange(last[-1]) - np.repeat(last - tried, tried)
    start = rule.start(k, b)
    end = np.append(start[1:], len(rule.sample))
    end[last - 1] = len(rule.sample)
    full = end > start
    b, mean = b[full], _mean_label(rule.sample, start[full], end[full])
    return np.asarray(b[1:][(mean[1:] < mean[:-1] - _slack(rule.sample)) & (b[1:] == b[:-1])])


def _broken_near(rule: BinningRule, tried: IntArray, descents: IntArray) -> IntArray:
    """Return the same as `_broken_anywhere`, looking only at the bins beside each descent."""
    sample = rule.sample
    b, group = (part.ravel() for part in np.meshgrid(tried, descents, indexing="ij"))
    k = rule.index(group, b)
    start, end = rule.start(k, b), rule.start(k + 1, b)
    before = rule.start(rule.index(np.maximum(start - 1, 0), b), b)
    after = rule.start(rule.index(np.minimum(end, len(sample) - 1), b) + 1, b)
    # At either end of the scores the neighbour is the bin itself, which is never out of order.
    mean_before = _mean_label(sample, before, np.where(start > 0, start, end))
    mean = _mean_label(sample, start, end)
    mean_after = _mean_label(sample, np.where(end < len(sample), end, start), after)
    slack = _slack(sample)
    return np.asarray(b[(mean < mean_before - slack) | (mean_after < mean - slack)])


def _mean_label(sample: Sample, start: IntArray, end: IntArray) -> FloatArray:
    positives, count = sample.cumulative_positives, sample.cumulative_count
    return (positives[end] - positives[start]) / (count[end] - count[start])


def _slack(sample: Sample) -> float:
    """How far means may fall and still count as equal: sums of whole numbers are exact, others round."""
    return 0.0 if sample.whole else 1e-12
