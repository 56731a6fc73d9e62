"""Binning of sorted score groups, of one sample or of many at once: equal width, equal mass, the monotonic sweep.

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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.checks import check_count
from truecal._lib.numeric import IntArray, expit, over_runs, run_ends, search_runs
from truecal._lib.types import FloatArray
from truecal.data.sample import Sample, ScoreGroups
from truecal.data.width_bins import width_edges
from truecal.results import BinTable

#: More bins than this give the same result, and products with numbers of rows would overflow.
_MOST_BINS = 2**35
_TINY = float(np.finfo(np.float64).tiny)

#: Largest numbers of bins that a sweep tries in its first step, for all samples together, and in its second.
_FIRST_STEP, _SECOND_STEP = 16, 32

#: Constants of a longer sweep: bins examined in one step, enough to hide Python's overhead; number of bins from which
#: only bins near descents are examined; limit if there are fewer groups (very unequal weights); number of descents
#: examined in all if some groups are too light to be seen.
_STEP_BINS, _NEAR_ONLY, _SWEEP_LIMIT, _SWEEP_WORK = 1 << 16, 512, 1 << 20, 1 << 22


@dataclass(frozen=True, eq=False)
class Partition:
    """Groups divided into non-empty bins; bin k starts at group ``start[k]``.

    `bounds` has the number of the first bin of each sample, and at the end the number of bins.
    `n_bins` is how many were asked for.
    """

    start: IntArray
    bounds: IntArray
    lower: FloatArray
    upper: FloatArray
    n_bins: int | IntArray


class BinningRule(ABC):
    """A binning rule for one sample, or for many of the same size: positions of groups, and edges between bins."""

    def __init__(self, groups: ScoreGroups) -> None:
        self.groups = groups

    @property
    @abstractmethod
    def finest(self) -> int:
        """The largest number of bins that the sweep of one sample needs to try."""

    @property
    @abstractmethod
    def position(self) -> FloatArray:
        """Position of each group on the scale of the edges, ascending within a sample."""

    @abstractmethod
    def edge(self, k: IntArray, b: Any) -> FloatArray:
        """Return the lower edge of bin `k` of `b`; both may be arrays."""

    @abstractmethod
    def limits(self, k: IntArray, start: IntArray, b: Any) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper limits for display of bins `k` of `b`, which begin at the groups `start`."""

    @abstractmethod
    def _guess(self, group: IntArray, b: Any) -> FloatArray:
        """Return an approximate bin of a group, off by at most one."""

    def start(self, k: IntArray, b: Any, sample: Any = 0) -> IntArray:
        """Return the first group of bin `k` of `b` of a sample, or of the next non-empty bin; for k = b, the end."""
        edge = self.edge(k, b)
        edge[k == b] = np.inf
        return search_runs(self.position, self.groups.bounds, sample, edge)

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
        if len(self.groups.score) == 1:
            return 1
        rows = max(len(self.groups.score), math.floor(self.groups.n))
        # The last bin is closed, so more than 1/gap bins are needed to separate 1.0 from the score below it, and
        # the edge between them may be rounded down by a quarter of the type's epsilon.
        gap = float(np.diff(self.groups.score).min()) - float(np.finfo(self.groups.dtype).eps) / 4
        return rows if gap * rows <= 1 else math.floor(1 / gap) + 1

    @property
    def position(self) -> FloatArray:
        """The scores."""
        return self.groups.score

    def edge(self, k: IntArray, b: Any) -> FloatArray:
        """Return k/b, rounded to the type of the scores."""
        return width_edges(k, b, self.groups.dtype)

    def limits(self, k: IntArray, start: IntArray, b: Any) -> tuple[FloatArray, FloatArray]:
        """Return the edges."""
        return k / b, (k + 1) / b

    def _guess(self, group: IntArray, b: Any) -> FloatArray:
        score = self.groups.score[group]
        # Edges up to half a spacing above the score are rounded down to it.
        half = np.spacing(score.astype(self.groups.dtype)).astype(np.float64) / 2
        return np.asarray((score + half) * b)


class EqualMass(BinningRule):
    """Bins of equal count: a group belongs to the bin of its middle row."""

    @cached_property
    def finest(self) -> int:
        """The number of bins from which every group is in a separate bin."""
        if self.groups.even:
            return len(self.groups.score)
        gap = max(float(np.diff(self.position).min()), self.groups.n / _MOST_BINS)
        return math.ceil((self.groups.n - self.groups.rounding) / gap)

    @property
    def position(self) -> FloatArray:
        """Rank of the middle row of each group."""
        return self.groups.middle_rank

    def edge(self, k: IntArray, b: Any) -> FloatArray:
        """Return the rank k n / b."""
        # A position on the edge may be below it by rounding.
        return np.asarray(
            k * float(self.groups.n) / b - self.groups.rounding
        )  # a product of integers overflows

    def limits(self, k: IntArray, start: IntArray, b: Any) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and the largest score of each bin."""
        last = run_ends(start, len(self.groups.score)) - 1
        return self.groups.score[start], self.groups.score[last]

    def _guess(self, group: IntArray, b: Any) -> FloatArray:
        return np.asarray(self.position[group] * b / self.groups.n)

    def start(self, k: IntArray, b: Any, sample: Any = 0) -> IntArray:
        """Return the first group of bin `k`; without ties this is integer arithmetic."""
        if self.groups.even:
            rank = -(k * -self._size // b)  # the smallest rank r with floor(r b / n) >= k
            return np.asarray(rank if len(self.groups.bounds) == 2 else self.groups.bounds[sample] + rank)
        return super().start(k, b, sample)

    def index(self, group: IntArray, b: Any) -> IntArray:
        """Return the bin that contains a group; without ties this is the paper's floor(r b / n)."""
        if self.groups.even:
            return np.asarray(group % self._size * b // self._size)
        return super().index(group, b)

    @property
    def _size(self) -> int:
        """Number of groups of each sample, where all groups have the same count."""
        return int(self.groups.bounds[1])


def partition(rule: BinningRule, n_bins: int | IntArray) -> Partition:
    """Divide the groups of each sample into `n_bins` bins, and drop the empty ones."""
    bounds, n_groups = rule.groups.bounds, len(rule.groups.score)
    each = [min(n_bins, _MOST_BINS)] * (len(bounds) - 1) if isinstance(n_bins, int) else n_bins.tolist()
    if sum(each) <= n_groups:
        k, b, sample = _all_edges(each)
        edges = rule.start(k, b, sample)
        full = (edges[1:] > edges[:-1]).nonzero()[0]  # excludes the step from one sample to the next
        start, k = edges[full], k[full]
    else:
        bin_of = rule.index(np.arange(n_groups), over_runs(np.array(each), bounds))
        changes = np.diff(bin_of, prepend=-1) != 0
        changes[bounds[:-1]] = True
        start = np.flatnonzero(changes)
        k = bin_of[start]
    own = start.searchsorted(bounds)
    b = each[0] if len(each) == 1 else np.repeat(each, np.diff(own))
    return Partition(start, own, *rule.limits(k, start, b), n_bins)


def cut(rule: BinningRule, n_bins: Any) -> tuple[Partition, BinTable]:
    """Divide the groups into a number of bins, which is checked, and return these with their means."""
    division = partition(rule, n_bins if isinstance(n_bins, np.ndarray) else check_count("n_bins", n_bins))
    count, score, positives = rule.groups.sums(division.start)
    return division, BinTable(division.lower, division.upper, count, score / count, positives / count)


def monotone_sweep(rule: BinningRule) -> IntArray:
    r"""Return for each sample the largest b such that the mean labels rise for b and for every smaller number of bins.

    .. math:: b^* = \max\{b : \forall b' \le b,\ \bar y_1 \le \dots \le \bar y_{b'}\}

    With prefix sums each bin costs one subtraction. Two neighbouring bins can only be out of order if they
    contain a *descent*: a group whose mean label is below that of the previous group. Separable labels have no
    descents, so every binning is monotone. If there are few descents, only bins that contain one and their
    neighbours are examined.

    Empty bins are skipped. With very unequal weights, light groups may never be in separate bins; the sweep stops
    after a million bins, or as many as there are groups, and earlier if some are lighter than rounding error.

    References: Roelofs et al. (2022), Algorithm 1.
    """
    sizes = rule.groups.sizes
    # Most sweeps end within the first steps, before descents and the finest binning are needed.
    broken = _broken_anywhere(rule, 2, _FIRST_STEP, np.arange(len(sizes)))
    going_on = (broken == 0).nonzero()[0]
    if len(going_on):
        broken[going_on] = _broken_anywhere(rule, _FIRST_STEP + 1, _SECOND_STEP, going_on)
    most = broken - 1
    for sample in ((broken == 0) | (broken > sizes)).nonzero()[0]:
        most[sample] = _long_sweep(type(rule)(rule.groups.samples[sample]))
    return most


def _long_sweep(rule: BinningRule) -> int:
    """Continue the sweep of one sample that is monotone in the first steps, or has fewer groups than bins there."""
    label = rule.groups.label
    descents = np.flatnonzero(label[1:] < label[:-1])
    if not len(descents):
        return rule.finest
    limit = max(len(label), _SWEEP_LIMIT)
    if rule.groups.rounding and float(rule.groups.count.min()) <= rule.groups.rounding:
        limit = min(limit, max(_NEAR_ONLY, _SWEEP_WORK // len(descents)))
    most = min(rule.finest, limit)
    tried, broken = min(_SECOND_STEP, len(label)), 0
    while tried < most and not broken:
        b = tried + 1
        near = b > min(_NEAR_ONLY, 4 * len(descents))
        # Steps grow with b, so that an early stop wastes little and a late one takes few steps.
        tried = min(3 * b, b + _STEP_BINS // (1 if near else 2 * b), most)
        if near:
            broken = _broken_near(rule, b, tried, descents)
        else:
            broken = int(_broken_anywhere(rule, b, tried, np.array([0]))[0])
    return broken - 1 if broken else most


def _all_edges(n_bins: Sequence[int]) -> tuple[IntArray, Any, Any]:
    """Return k = 0, ..., b for each b of `n_bins`, these b, and their places; a single b and its place as numbers."""
    if len(n_bins) == 1:
        return np.arange(n_bins[0] + 1), n_bins[0], 0
    sizes = np.array(n_bins) + 1
    place = np.arange(len(sizes)).repeat(sizes)
    return np.arange(len(place)) - (sizes.cumsum() - sizes)[place], sizes[place] - 1, place


@lru_cache(maxsize=4)
def _edges_between(first: int, last: int) -> tuple[IntArray, IntArray]:
    """Return k = 0, ..., b for each b from `first` to `last`, and these b."""
    k, b, _ = _all_edges(range(first, last + 1))
    return k, np.broadcast_to(b, len(k))


def _broken_anywhere(rule: BinningRule, first: int, last: int, samples: IntArray) -> IntArray:
    """Return for these samples the smallest number of bins from `first` to `last` that is not monotone, or 0.

    If there are several samples, `first` must be smaller than `last`.
    """
    k, b = _edges_between(first, last)
    broken = np.zeros(len(samples), dtype=np.intp)
    edges = rule.start(k, b, samples[:, np.newaxis]).reshape(-1)
    has_rows = edges[1:] > edges[:-1]  # false from the end of one b to the next b
    has_rows[len(k) - 1 :: len(k)] = False  # from one sample to another
    full = has_rows.nonzero()[0]
    mean, weight = _heights(rule.groups, edges.take(full), edges.take(full + 1))
    b = b.take(full, mode="wrap")
    falls = _falls(rule.groups, (mean[:-1], weight[:-1]), (mean[1:], weight[1:]))
    falls &= b[1:] == b[:-1]
    found = falls.nonzero()[0][::-1] + 1
    broken[full[found] // len(k)] = b[found]  # the smallest is written last
    return broken


def _broken_near(rule: BinningRule, first: int, last: int, descents: IntArray) -> int:
    """Return the same as `_broken_anywhere` for one sample, examining only bins with a descent and their neighbours.

    All numbers of bins advance together from one such bin to the next.
    """
    groups, broken = rule.groups, 0
    b = np.arange(first, last + 1)
    descent = np.full_like(b, descents[0])
    while len(b):
        k = rule.index(descent, b)
        start, end = rule.start(k, b), rule.start(k + 1, b)
        # At either end of the scores the bin is its own neighbour, which is never out of order.
        below = rule.index(np.maximum(start - 1, 0), b)
        above = rule.index(np.minimum(end, len(groups.score) - 1), b)
        low = _heights(groups, rule.start(below, b), np.where(start > 0, start, end))
        middle = _heights(groups, start, end)
        high = _heights(groups, np.where(end < len(groups.score), end, start), rule.start(above + 1, b))
        falls = _falls(groups, low, middle) | _falls(groups, middle, high)
        left = len(b)
        if falls.any():
            left = int(falls.argmax())
            broken = int(b[left])
        following = descents.searchsorted(end[:left])
        more = following < len(descents)
        b, descent = b[:left][more], descents[following[more]]
    return broken


def _heights(groups: ScoreGroups, start: IntArray, end: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return mean label and weight of bins."""
    positives = groups.cumulative_positives
    weight = np.maximum(groups.rows_between(start, end), _TINY)  # it can vanish in the sum of the others
    return (positives.take(end) - positives.take(start)) / weight, weight


def _falls(
    groups: ScoreGroups, low: tuple[FloatArray, FloatArray], high: tuple[FloatArray, FloatArray]
) -> NDArray[np.bool_]:
    """Return whether the mean label falls from the lower bin to the higher by more than rounding error."""
    return np.asarray((low[0] - high[0]) * np.minimum(low[1], high[1]) > groups.rounding)


def thinned(sample: Sample, most: int = 1024) -> Sample:
    """Return the sample with its scores merged into blocks of equal mass, if there are many.

    No block is wider than a quarter in the logit, so that a score near 0 or 1 keeps its log loss; scores of exactly 0
    and 1 stay alone. Smooth fits take the same value on such a sample to several digits, in less time. Samples with
    sampling weights or clusters are returned as they are.

    Examples
    --------
    >>> from truecal.data import as_sample
    >>> score = np.linspace(0, 1, 10_001)
    >>> thinned(as_sample(score > 0.5, score), most=100)
    Sample(n=10001, groups=170, target='P(y = 1)')
    """
    if len(sample) <= 2 * most or not sample.counted or sample.clusters is not None:
        return sample
    # Below -708 the sigmoid is 0, beyond 37 it is 1.
    edges = np.append(np.nextafter(0, 1), expit(np.arange(-708, 37.25, 0.25)))
    start = np.union1d(partition(EqualMass(sample), most).start, np.searchsorted(sample.score, edges))
    return sample.merge_groups(start[start < len(sample)])
