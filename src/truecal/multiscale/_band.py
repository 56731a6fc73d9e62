r"""Confidence limits of a rising curve, at each score or at all of them together.

Take a run of scores whose lowest is s. If the curve :math:`\mu` rises, labels of the run are 1 at least as often as
with probability :math:`\mu(s)` each. So the upper Clopper-Pearson limit of the run bounds :math:`\mu` at its lowest
score and below, and the lower limit bounds :math:`\mu` at its highest score and above (Dimitriadis, Dümbgen, Henzi,
Puke, Ziegel 2023). With many runs, each with its share of the error probability, this is a band with guaranteed
coverage in samples of any size. The largest error inside the band is a guaranteed upper limit of the error over the
scores at hand.

There are :math:`K(K+1)/2` runs of K scores, which would make each share tiny. Here lengths grow by the factor
:math:`\sqrt 2`, runs of length L begin at every L/8-th cell, and each length has the same share.

With sampling weights or clusters a run counts as :math:`\bar y (1 - \bar y) / V` independent rows, where V is the
variance of its rate, and as fewer if V is known from few clusters (Korn and Graubard 1998).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy
from scipy.special import betaincinv, ndtri, stdtrit

from truecal._lib.numeric import IntArray
from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.multiscale._constants import BAND_CELLS

#: Up to so many clusters sums of products are made from a full table, which is faster.
_FEW_CLUSTERS = 2000


class Runs:
    r"""Runs of cells of scores: the observed rate of each, and how well it is known.

    Parameters
    ----------
    sample : Sample
        The data.
    start : ndarray of int
        First score group of each cell.
    first, last : ndarray of int, optional
        First and last cell of each run; by default every cell is one.

    Attributes
    ----------
    rate : ndarray
        Mean label of each run.
    positives, negatives : ndarray
        Numbers of independent rows labelled 1 and 0 that would be as informative. With clusters they are divided by the
        design effect, the ratio of the variances with and without clusters, at least 1; if all labels agree each
        cluster counts as one row. A run with a single cluster counts as none.
    odds : ndarray
        Weight of a positive row relative to that of a negative one, not 1 where negatives were left out.
    freedom : ndarray
        Degrees of freedom of the variance: one less than the effective number of clusters, or of rows with weights.
    """

    def __init__(
        self, sample: Sample, start: IntArray, first: IntArray | None = None, last: IntArray | None = None
    ) -> None:
        cells = np.arange(len(start))
        self._first, self._end = cells if first is None else first, (cells if last is None else last) + 1
        self._start = start
        weight, positives = self._total(sample.count), self._total(sample.positives)
        self.rate = np.clip(positives / weight, 0.0, 1.0)
        self.positives, self.negatives = self.rate * weight, (1 - self.rate) * weight
        self.odds, self.freedom = np.ones(len(weight)), np.full(len(weight), np.inf)
        if not sample.counted or sample.pseudo is not None:
            self._scale_rows(sample, weight)
        if sample.clusters is not None:
            self._divide_by_design_effect(sample, weight)

    def limits(self, tail: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper limits of the rates, each exceeded with probability `tail`."""
        widening = self.widening(tail) ** 2
        positives, negatives = self.positives / widening, self.negatives / widening
        low, high = clopper_pearson(positives, positives + negatives, tail)
        return self._rate(low), self._rate(high)

    def _rate(self, limit: FloatArray) -> FloatArray:
        """Return the rate of the weighted rows, where `limit` is that of the rows."""
        return limit if (self.odds == 1).all() else self.odds * limit / (self.odds * limit + 1 - limit)

    def widening(self, tail: float | FloatArray) -> FloatArray:
        """Return the ratio of the quantile of Student's t to the normal one."""
        return np.asarray(stdtrit(self.freedom, tail) / ndtri(tail))

    def _total(self, values: FloatArray) -> FloatArray:
        """Return the sum over each run of values of the score groups."""
        sums = np.concatenate([[0.0], np.cumsum(np.add.reduceat(values, self._start))])
        return np.asarray(sums[self._end] - sums[self._first])

    def _scale_rows(self, sample: Sample, weight: FloatArray) -> None:
        """Divide the weights of both labels by that of one row, to which all rows of the sample add one."""
        weight2 = self._total(sample.weight2)
        if sample.pseudo is None:
            both = self._total(sample.positives2)
            sums = ((self.positives, both), (self.negatives, weight2 - both))
            all2, all1 = float(sample.weight2.sum()), float(sample.count.sum())
            own2, own1 = float(sample.positives2.sum()), float(sample.positives.sum())
            usual = [x / y if y > 0 else all2 / all1 for x, y in ((own2, own1), (all2 - own2, all1 - own1))]
            one, zero = (
                (square + row**2) / (total + row) for (total, square), row in zip(sums, usual, strict=True)
            )
        else:
            one = zero = weight2 / weight
            if sample.noise is not None:
                rows = weight / one
                middle = (self.rate * rows + 0.5) / (rows + 1)
                one = zero = self._total(sample.noise) / (weight * middle * (1 - middle))
        self.positives, self.negatives, self.odds = self.positives / one, self.negatives / zero, one / zero
        self.freedom = np.maximum(self.positives + self.negatives - 1, 1.0)

    def _divide_by_design_effect(self, sample: Sample, weight: FloatArray) -> None:
        """Divide the numbers of rows by the ratio of the variances of the rate with and without clusters."""
        labels2, product, weight2 = self._products(sample)
        rate, number = self.rate, weight**2 / weight2
        squares = (labels2 - 2 * rate * product + rate**2 * weight2) * number / np.maximum(number - 1, 1e-9)
        rows2 = self._total(sample.weight2)
        alone = self._total(sample.labels2) - 2 * rate * self._total(sample.positives2) + rate**2 * rows2
        agree = alone <= 1e-12 * rows2
        effect = np.where(agree, weight2 / rows2, squares / np.where(agree, 1.0, alone))
        effect = np.where(number > 1 + 1e-9, np.maximum(effect, 1.0), np.inf)
        self.positives, self.negatives = self.positives / effect, self.negatives / effect
        self.freedom = np.maximum(number - 1, 1.0)

    def _products(self, sample: Sample) -> list[FloatArray]:
        """Return sums over clusters of Y^2, Y W and W^2, where Y and W are the sums of w y and w over a run."""
        table = sample.clusters
        assert table is not None
        place = np.searchsorted(self._start, table.group, side="right") - 1
        shape = (table.n_clusters, len(self._start))
        tables: list[Any] = [
            scipy.sparse.csr_array((values, (table.cluster, place)), shape=shape)
            for values in (table.positives, table.weight)
        ]
        if table.n_clusters <= _FEW_CLUSTERS:
            tables = [values.toarray() for values in tables]
        labels, weight = tables
        totals = []
        for one, other in ((labels, labels), (labels, weight), (weight, weight)):
            found = one.T @ other
            sums = np.zeros((shape[1] + 1, shape[1] + 1))
            sums[1:, 1:] = found if isinstance(found, np.ndarray) else found.toarray()
            sums = (sums + sums.T) / 2
            np.cumsum(np.cumsum(sums, axis=0, out=sums), axis=1, out=sums)
            first, end = self._first, self._end
            totals.append(sums[end, end] - 2 * sums[first, end] + sums[first, first])
        return totals


def clopper_pearson(
    positives: FloatArray, count: FloatArray, tail: float | FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return both limits of a binomial probability, each exceeded with probability `tail` (Clopper, Pearson 1934).

    Examples
    --------
    >>> low, high = clopper_pearson(np.array([0.0, 5.0]), np.array([10.0, 10.0]), 0.025)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.1871]), array([0.3085, 0.8129]))
    """
    negatives = np.maximum(count - positives, 0.0)
    low = betaincinv(np.maximum(positives, 1e-300), negatives + 1, tail)
    high = betaincinv(positives + 1, np.maximum(negatives, 1e-300), 1 - tail)
    return np.where(positives > 0, low, 0.0), np.where(negatives > 0, high, 1.0)


def band(sample: Sample, tail: float, *, simultaneous: bool = True) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper limits of a rising curve at the scores of the sample."""
    place = _cells(sample)
    n_cells = int(place[-1]) + 1
    start = np.searchsorted(place, np.arange(n_cells))
    up_to_here, from_here = np.zeros(n_cells + 1), np.ones(n_cells + 1)  # before each edge, and behind it
    if simultaneous:
        first, last, share = _runs(n_cells, tail / 2)
        lower, upper = Runs(sample, start, first, last).limits(share)
        np.maximum.at(up_to_here, last + 1, lower)
        np.minimum.at(from_here, first, upper)
        up_to_here = np.maximum.accumulate(up_to_here)
        from_here = np.minimum.accumulate(from_here[::-1])[::-1]
    else:  # the N^(2/3) rows before each edge, and behind it
        length, cell = math.ceil(n_cells * sample.effective_size ** (-1 / 3)), np.arange(n_cells)
        before = Runs(sample, start, np.maximum(cell - length + 1, 0), cell)
        behind = Runs(sample, start, cell, np.minimum(cell + length, n_cells) - 1)
        up_to_here[1:], from_here[:-1] = before.limits(tail / 2)[0], behind.limits(tail / 2)[1]
    single = np.bincount(place) == 1  # one distinct score: a run may begin or end at it
    low = np.where(single, up_to_here[1:], up_to_here[:-1])
    high = np.where(single, from_here[:-1], from_here[1:])
    return low[place], np.maximum(high, low)[place]


def _cells(sample: Sample) -> IntArray:
    """Return the number of the cell of each score group: cells of equal mass, one for each group if there are few."""
    if len(sample) <= BAND_CELLS:
        return np.arange(len(sample))
    rank = (np.cumsum(sample.count) - sample.count / 2) / sample.n
    place = np.minimum((rank * BAND_CELLS).astype(np.intp), BAND_CELLS - 1)
    return np.cumsum(np.diff(place, prepend=place[0]) > 0)


def _runs(n_cells: int, tail: float) -> tuple[IntArray, IntArray, FloatArray]:
    """Return first and last cells of runs of all lengths, and the share of the error probability of each."""
    lengths = [1]
    while lengths[-1] < n_cells:
        lengths.append(min(max(lengths[-1] + 1, round(lengths[-1] * math.sqrt(2))), n_cells))
    starts = [np.unique(np.append(np.arange(0, n_cells - k, max(k // 8, 1)), n_cells - k)) for k in lengths]
    share = [np.full(len(start), tail / (len(lengths) * len(start))) for start in starts]
    last = [start + k - 1 for start, k in zip(starts, lengths, strict=True)]
    return np.concatenate(starts), np.concatenate(last), np.concatenate(share)


def largest_error(sample: Sample, low: FloatArray, high: FloatArray, norm: float) -> float:
    """Return the largest error of curves inside the band."""
    gap = np.maximum(np.maximum(sample.score - low, high - sample.score), 0.0)
    return float((math.fsum(sample.count * gap**norm) / sample.n) ** (1 / norm))
