"""Binning of sorted score groups: equal width, equal mass, and the monotonic sweep.

A rule gives each group a *position* and each bin an *edge*; a group belongs to the last bin whose edge
is at or below its position. Groups are never split.

- **Equal width.** The position is the score, the edge of bin k of b is k/b rounded to the scores' own
  type. Bins are [k/b, (k+1)/b); a score of 1 belongs to the last.
- **Equal mass.** The position is the rank of the middle row of the group, the edge of bin k is k n / b.
  Without ties this is the paper's rule: rank r of n belongs to bin floor(r b / n). A group of tied scores
  belongs to the bin of its middle row, so that a large group has its own bin.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.data.width_bins import width_edges
from truecal.results import BinTable

IntArray = NDArray[np.intp]

#: More bins than this give the same result, and products with numbers of rows would overflow.
_MOST_BINS = 2**35
_TINY = float(np.finfo(np.float64).tiny)

#: Constants of the sweep: bins examined in one step, enough to hide Python's overhead; numbers of bins tried in
#: the first step; number of bins from which only bins near descents are examined; limit if there are fewer groups
#: (very unequal weights); number of descents examined in all if some groups are too light to be seen.
_STEP_BINS, _FIRST, _NEAR_ONLY, _SWEEP_LIMIT, _SWEEP_WORK = 1 << 16, 16, 512, 1 << 20, 1 << 22


@dataclass(frozen=True, eq=False)
class Partition:
    """Groups of a sample divided into non-empty bins; bin k starts at group ``start[k]``.

    `n_bins` is the number requested. It is larger than ``len(start)`` if some bins are empty.
    """

    n_bins: int
    start: IntArray
    lower: FloatArray
    upper: FloatArray


class BinningRule(ABC):
    """A binning rule for one sample: positions of its groups, and edges between bins."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample

    @property
    @abstractmethod
    def finest(self) -> int:
        """The largest number of bins that the sweep needs to try."""

    @property
    @abstractmethod
    def position(self) -> FloatArray:
        """Position of each group on the scale of the edges, ascending."""

    @abstractmethod
    def edge(self, k: IntArray, b: Any) -> FloatArray:
        """Return the lower edge of bin `k` of `b`; both may be arrays."""

    @abstractmethod
    def limits(self, k: IntArray, start: IntArray, b: int) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper limits for display of bins `k` of `b`, which begin at the groups `start`."""

    @abstractmethod
    def _guess(self, group: IntArray, b: Any) -> FloatArray:
        """Return an approximate bin of a group, off by at most one."""

    def start(self, k: IntArray, b: Any) -> IntArray:
        """Return the first group of bin `k` of `b`, or of the next non-empty bin; for k = b, the end."""
        return np.where(k < b, self.position.searchsorted(self.edge(k, b)), len(self.sample))

    def index(self, group: IntArray, b: Any) -> IntArray:
        """Return the bin of `b` that contains a group."""
        position = self.position[group]
        k = self._guess(group, b).astype(np.intp)
        # Rounding may have put the guess on the wrong side of an edge.
        k += self.edge(k + 1, b) <= position
        k -= self.edge(k, b) > position
        return np.asarray(np.minimum(k, b - 1))


class EqualWidth(BinningRule):
    """Bins [k/b, (k+1)/b), compared in the original type of the scores."""

    @cached_property
    def finest(self) -> int:
        """The number of rows, or fewer bins if every group is then in a separate bin."""
        if len(self.sample) == 1:
            return 1
        rows = max(len(self.sample), math.floor(self.sample.n))
        # The last bin is closed, so more than 1/gap bins are needed to separate 1.0 from the score below it, and
        # the edge between them may be rounded down by a quarter of the type's epsilon.
        gap = float(np.diff(self.sample.score).min()) - float(np.finfo(self.sample.dtype).eps) / 4
        return rows if gap * rows <= 1 else math.floor(1 / gap) + 1

    @property
    def position(self) -> FloatArray:
        """The scores."""
        return self.sample.score

    def edge(self, k: IntArray, b: Any) -> FloatArray:
        """Return k/b, rounded to the type of the scores."""
        return width_edges(k, b, self.sample.dtype)

    def limits(self, k: IntArray, start: IntArray, b: int) -> tuple[FloatArray, FloatArray]:
        """Return the edges."""
        return k / b, (k + 1) / b

    def _guess(self, group: IntArray, b: Any) -> FloatArray:
        score = self.sample.score[group]
        # Edges up to half a spacing above the score are rounded down to it.
        half = np.spacing(score.astype(self.sample.dtype)).astype(np.float64) / 2
        return np.asarray((score + half) * b)


class EqualMass(BinningRule):
    """Bins of equal count: a group belongs to the bin of its middle row."""

    @cached_property
    def finest(self) -> int:
        """The number of bins from which every group is in a separate bin."""
        if self.sample.even:
            return len(self.sample)
        gap = max(float(np.diff(self.position).min()), self.sample.n / _MOST_BINS)
        return math.ceil((self.sample.n - self.sample.rounding) / gap)

    @cached_property
    def position(self) -> FloatArray:
        """Rank of the middle row of each group."""
        # The middle of m equal rows is (m - 1)/2 after the first. The smallest count represents one row, so that
        # the scale of the weights does not matter.
        count = self.sample.count
        return np.asarray(self.sample.cumulative_count[:-1] + (count - count.min()) / 2)

    def edge(self, k: IntArray, b: Any) -> FloatArray:
        """Return the rank k n / b."""
        # A position on the edge may be below it by rounding.
        return np.asarray(
            k * float(self.sample.n) / b - self.sample.rounding
        )  # a product of integers overflows

    def limits(self, k: IntArray, start: IntArray, b: int) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and the largest score of each bin."""
        last = np.append(start[1:], len(self.sample)) - 1
        return self.sample.score[start], self.sample.score[last]

    def _guess(self, group: IntArray, b: Any) -> FloatArray:
        return np.asarray(self.position[group] * b / self.sample.n)

    def start(self, k: IntArray, b: Any) -> IntArray:
        """Return the first group of bin `k`; without ties this is integer arithmetic."""
        if self.sample.even:
            return np.asarray(-(-k * len(self.sample) // b))  # the smallest rank r with floor(r b / n) >= k
        return super().start(k, b)

    def index(self, group: IntArray, b: Any) -> IntArray:
        """Return the bin that contains a group; without ties this is the paper's floor(r b / n)."""
        if self.sample.even:
            return np.asarray(group * b // len(self.sample))
        return super().index(group, b)


def partition(rule: BinningRule, n_bins: int) -> Partition:
    """Divide the groups of a sample into `n_bins` bins, and drop the empty ones."""
    groups, b = len(rule.sample), min(n_bins, _MOST_BINS)
    if b <= groups:
        edges = rule.start(np.arange(b + 1), b)
        k = np.flatnonzero(edges[1:] > edges[:-1])
        start = edges[k]
    else:
        bin_of = rule.index(np.arange(groups), b)
        start = np.flatnonzero(np.diff(bin_of, prepend=-1))
        k = bin_of[start]
    lower, upper = rule.limits(k, start, b)
    return Partition(n_bins, start, lower, upper)


def summarize_bins(sample: Sample, bins: Partition) -> BinTable:
    """Return count, mean score and mean label of each bin."""
    count, score, positives = sample.sums(bins.start)
    return BinTable(bins.lower, bins.upper, count, score / count, positives / count)


def monotone_sweep(rule: BinningRule) -> int:
    r"""Return the largest b such that the mean labels rise for b and for every smaller number of bins.

    .. math:: b^* = \max\{b : \forall b' \le b,\ \bar y_1 \le \dots \le \bar y_{b'}\}

    With prefix sums each bin costs one subtraction. Two neighbouring bins can only be out of order if they
    contain a *descent*: a group whose mean label is below that of the previous group. Separable labels have no
    descents, so every binning is monotone. If there are few descents, only bins that contain one and their
    neighbours are examined.

    Empty bins are skipped. With very unequal weights, light groups may never be in separate bins; the sweep stops
    after a million bins, or as many as there are groups, and earlier if some are lighter than rounding error.

    References: Roelofs et al. (2022), Algorithm 1.
    """
    label = rule.sample.label
    tried = min(_FIRST, len(label))
    # Most sweeps end within the first step, before descents and the finest binning are needed.
    broken = _broken_anywhere(rule, 2, tried)
    if broken:
        return broken - 1
    falling = label[1:] < label[:-1]
    n_descents = int(np.count_nonzero(falling))
    if not n_descents:
        return rule.finest
    descents: IntArray | None = None
    limit = max(len(label), _SWEEP_LIMIT)
    if float(rule.sample.count.min()) <= rule.sample.rounding:
        limit = min(limit, max(_NEAR_ONLY, _SWEEP_WORK // n_descents))
    most = min(rule.finest, limit)
    while tried < most and not broken:
        b = tried + 1
        near = b > min(_NEAR_ONLY, 4 * n_descents)
        # Steps grow with b, so that an early stop wastes little and a late one takes few steps.
        tried = min(3 * b, b + _STEP_BINS // (1 if near else 2 * b), most)
        if near:
            descents = np.flatnonzero(falling) if descents is None else descents
            broken = _broken_near(rule, b, tried, descents)
        else:
            broken = _broken_anywhere(rule, b, tried)
    return broken - 1 if broken else most


@lru_cache(maxsize=4)
def _all_edges(first: int, last: int) -> tuple[IntArray, IntArray]:
    """Return k = 0, ..., b for each b from `first` to `last`, and these b."""
    sizes = np.arange(first + 1, last + 2)
    b = np.repeat(sizes - 1, sizes)
    return np.arange(len(b)) - np.repeat(np.cumsum(sizes) - sizes, sizes), b


def _broken_anywhere(rule: BinningRule, first: int, last: int) -> int | None:
    """Return the smallest number of bins from `first` to `last` that is not monotone, or None."""
    k, b = _all_edges(first, last)
    edges = rule.start(k, b)
    full = edges[1:] > edges[:-1]  # excludes the step from the end of one b to the start of the next
    b, (mean, weight) = b[1:][full], _heights(rule.sample, edges[:-1][full], edges[1:][full])
    falls = _falls(rule.sample, (mean[:-1], weight[:-1]), (mean[1:], weight[1:])) & (b[1:] == b[:-1])
    return int(b[1:][falls.argmax()]) if falls.any() else None


def _broken_near(rule: BinningRule, first: int, last: int, descents: IntArray) -> int | None:
    """Return the same as `_broken_anywhere`, examining only bins with a descent and their neighbours.

    All numbers of bins advance together from one such bin to the next.
    """
    sample, broken = rule.sample, None
    b = np.arange(first, last + 1)
    descent = np.full_like(b, descents[0])
    while len(b):
        k = rule.index(descent, b)
        start, end = rule.start(k, b), rule.start(k + 1, b)
        # At either end of the scores the bin is its own neighbour, which is never out of order.
        below = rule.index(np.maximum(start - 1, 0), b)
        above = rule.index(np.minimum(end, len(sample) - 1), b)
        low = _heights(sample, rule.start(below, b), np.where(start > 0, start, end))
        middle = _heights(sample, start, end)
        high = _heights(sample, np.where(end < len(sample), end, start), rule.start(above + 1, b))
        falls = _falls(sample, low, middle) | _falls(sample, middle, high)
        left = len(b)
        if falls.any():
            left = int(falls.argmax())
            broken = int(b[left])
        following = descents.searchsorted(end[:left])
        more = following < len(descents)
        b, descent = b[:left][more], descents[following[more]]
    return broken


def _heights(sample: Sample, start: IntArray, end: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return mean label and weight of bins."""
    positives = sample.cumulative_positives
    weight = np.maximum(
        sample.rows_between(start, end), _TINY
    )  # a weight can vanish in the sum of the others
    return (positives[end] - positives[start]) / weight, weight


def _falls(
    sample: Sample, low: tuple[FloatArray, FloatArray], high: tuple[FloatArray, FloatArray]
) -> NDArray[np.bool_]:
    """Return whether the mean label falls from the lower bin to the higher by more than rounding error."""
    return np.asarray((low[0] - high[0]) * np.minimum(low[1], high[1]) > sample.rounding)


def lp_norm(gap: FloatArray, weight: FloatArray, p: float) -> float:
    r"""Return the l_p norm :math:`\big(\sum_k w_k |g_k|^p / \sum_k w_k\big)^{1/p}`.

    Gaps are divided by the largest first, so that their powers do not
    underflow for large p.

    Examples
    --------
    >>> import numpy as np
    >>> lp_norm(np.array([0.3, -0.4]), np.array([1.0, 1.0]), 2)
    0.353553
    >>> lp_norm(np.array([0.3, -0.4]), np.array([1.0, 1.0]), 5000)
    0.399944
    """
    size = np.abs(gap)
    largest = float(size.max())
    if largest == 0:
        return 0.0
    size /= largest
    size **= p
    size *= weight
    return largest * float((size.sum() / weight.sum()) ** (1 / p))
