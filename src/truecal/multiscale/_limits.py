r"""Confidence limits of the calibration error, and of a rising calibration curve.

The upper limit is honest over a class of curves that n and the scores fix: see `truecal.multiscale._upper`. The lower
limit is adaptive. The part of the squared error for which there is evidence behaves like a centred noncentral
chi-square,

.. math:: \hat\theta \sim v\,\big(\chi^2_k(\theta/v) - k\big),

whose variance is :math:`4 v \theta + 2 k v^2`: the first term is the variance of the influence function, which vanishes
with the error, the second what is left of it at :math:`\theta = 0`. Inverting its distribution function in
:math:`\theta` gives the lower limit. It is positive only if the closed-form p-value of calibration is small as well.

Each limit has a p-value that is at most alpha exactly when the limit at the level 1 - alpha is beyond the hypothesis.

**Rising curves.** Take a run of scores whose lowest is s. If the curve :math:`\mu` rises, labels of the run are 1 at
least as often as with probability :math:`\mu(s)` each. So the upper Clopper-Pearson limit of the run bounds :math:`\mu`
at its lowest score and below, and the lower limit bounds :math:`\mu` at its highest score and above (Dimitriadis,
Dümbgen, Henzi, Puke, Ziegel 2023). With many runs, each with its share of the error probability, this is a band with
guaranteed coverage in samples of any size. The largest error inside the band is a guaranteed upper limit of the error
over the scores at hand.

There are :math:`K(K+1)/2` runs of K scores, which would make each share tiny. Here lengths grow by the factor
:math:`\sqrt 2`, runs of length L begin at every L/8-th cell, and each length has the same share.

With sampling weights or clusters a run counts as :math:`\bar y (1 - \bar y) / V` independent rows, where V is the
variance of its rate, and as fewer if V is known from few clusters (Korn and Graubard 1998).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from truecal._lib.numeric import IntArray, find_root
from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.multiscale import _constants as const
from truecal.multiscale._levels import Level
from truecal.multiscale._units import over, sum_matrices
from truecal.multiscale._upper import UpperLimit


@dataclass(frozen=True)
class Limits:
    """Inputs of the confidence limits.

    Attributes
    ----------
    error : float
        The estimate itself, which every interval contains.
    square : float
        The part of the squared error for which there is evidence.
    slope : float
        First-order variance of the squared error, divided by the squared error.
    null_variance : float
        What is left of its variance at an error of 0, with the doubt about which levels hold error.
    noise_variance : float
        The same without that doubt.
    largest : float
        Largest error that the scores allow.
    pvalue : float
        Closed-form p-value of calibration, on which a positive lower limit depends.
    above : UpperLimit
        What upper limits need to know.
    reliable : bool
        Whether the variances can be relied on. Few clusters say too little about how much clusters differ; then
        nothing is excluded that the scores allow.
    """

    error: float
    square: float
    slope: float
    null_variance: float
    noise_variance: float
    largest: float
    pvalue: float
    above: UpperLimit
    reliable: bool = True

    @property
    def _scale(self) -> float:
        return max(self.slope, 1e-14) / 4

    @property
    def _freedom(self) -> float:
        return max(self.null_variance / (2 * self._scale**2), 1e-3)

    def _statistic(self, square: float) -> float:
        return max(square / self._scale + self._freedom, 0.0)

    def upper(self, tail: float) -> float:
        """Return the limit that the error exceeds with probability `tail` at most."""
        if not self.reliable:
            return self.largest
        return min(max(self.above.limit(tail), self.error), self.largest)

    def at_most(self, bound: float) -> float:
        """Return the p-value of the hypothesis that the error is `bound` or more.

        It is at most alpha exactly when ``upper(alpha)`` is at most `bound`.
        """
        if bound >= self.largest:
            return 0.0
        return 1.0 if bound < self.error or not self.reliable else self.above.pvalue(bound)

    def evident(self, tail: float) -> bool:
        """Return whether there is enough evidence of error for a positive lower limit."""
        return self.reliable and self.pvalue <= const.LIMIT_EVIDENCE * tail

    def lower(self, tail: float) -> float:
        """Return the limit below which the error lies with probability `tail` at most."""
        if not self.evident(tail):
            return 0.0
        statistic = self._statistic(self.square)
        low = math.sqrt(self._scale * noncentrality(statistic, self._freedom, 1 - tail))
        return min(low, self.error)

    def at_least(self, bound: float) -> float:
        """Return the p-value of the hypothesis that the error is `bound` or less.

        It is at most alpha exactly when ``lower(alpha)`` is at least `bound`.
        """
        if bound > self.error or not self.reliable:
            return 1.0
        chance = 1 - below(self._statistic(self.square), self._freedom, bound**2 / self._scale)
        return min(max(chance, self.pvalue / const.LIMIT_EVIDENCE), 1.0)

    def interval(self, confidence_level: float) -> tuple[float, float]:
        """Return both ends, each of which the error lies beyond with half of the probability that is left."""
        tail = (1 - confidence_level) / 2
        return self.lower(tail), self.upper(tail)

    def rows_factor(self, bound: float, alpha: float, power: float) -> float | None:
        r"""Return how many times as many rows would show on which side of `bound` the error lies.

        The error is taken to be its estimate, and the rows that are added to be like those at hand.
        """

        def margin(log_factor: float) -> float:
            """Return a margin that is positive if there are enough rows."""
            factor = math.exp(log_factor)
            if self.error < bound:
                return self.above.margin(self.error, bound, alpha, power, factor)
            scale = self._scale / factor
            most = _quantile(1 - alpha, self._freedom, bound**2 / scale)
            return 1 - power - below(most, self._freedom, self.error**2 / scale)

        if not self.reliable or self.error == bound:
            return None
        low, high = math.log(const.SMALLEST_FACTOR), math.log(const.LARGEST_FACTOR)
        if margin(low) >= 0:
            return const.SMALLEST_FACTOR
        return None if margin(high) < 0 else math.exp(find_root(margin, low, high, xtol=1e-2))


def _quantile(probability: float, freedom: float, shift: float) -> float:
    """Return the value below which the noncentral chi-square lies with some probability."""
    total = freedom + shift
    spread = math.sqrt(2 * (freedom + 2 * shift))
    most = total + 40 * spread + 80
    if below(1e-12, freedom, shift) >= probability:  # nearly all of it lies at 0, if the freedom is tiny
        return 0.0
    return find_root(lambda value: below(value, freedom, shift) - probability, 1e-12, most, xtol=1e-9)


def noncentrality(statistic: float, freedom: float, probability: float) -> float:
    """Return the noncentrality at which a chi-square is below `statistic` with that probability; 0 if none is."""
    if below(statistic, freedom, 0.0) <= probability:
        return 0.0
    most = 2 * max(statistic, 1) + 40 * math.sqrt(max(statistic, 1)) + 80
    return find_root(lambda shift: below(statistic, freedom, shift) - probability, 0.0, most, xtol=1e-9)


def below(statistic: float, freedom: float, shift: float) -> float:
    """Return the distribution function of the noncentral chi-square."""
    if statistic <= 2000 and shift <= 2000 and freedom <= 2000:
        return float(scipy.special.chndtr(statistic, freedom, shift))
    # Sankaran's approximation (1963), where the series is slow.
    total = freedom + shift
    h = 1 - 2 * total * (freedom + 3 * shift) / (3 * (freedom + 2 * shift) ** 2)
    p = (freedom + 2 * shift) / total**2
    m = (h - 1) * (1 - 3 * h)
    centre = 1 + h * p * (h - 1 - 0.5 * (2 - h) * m * p)
    return float(
        scipy.special.ndtr(((statistic / total) ** h - centre) / (h * math.sqrt(2 * p) * (1 + 0.5 * m * p)))
    )


def jensen_limit(size: float, levels: list[Level], spread: list[FloatArray], tail: float) -> float:
    r"""Return a lower limit of the l2 error that holds whatever the curve looks like.

    By Jensen's inequality the squared error is at least that of the bin means, at any level. For each,
    :math:`T = \frac1N \sum R^2/m` is compared with a noncentral chi-square whose scale and degrees of freedom come from
    the noise of the bins, :math:`V = (\max(\sum m_2 f(1-f), \text{observed}) + \tfrac14)/m`; the spread of the scores
    themselves is added in quadrature. The largest of the limits, each at ``tail`` divided by their number, is returned.
    """
    best, share = 0.0, tail / max(len(levels), 1)
    z = float(-scipy.special.ndtri(share))
    for level, model in zip(levels, spread, strict=True):
        used = level.weight > 0
        weight, mean = level.weight[used], level.mean_residual[used]
        bins, where = level.bins, level.where
        pairs, weight2 = bins.pairs[:, where][used], bins.weight2[:, where][used]
        observed = (bins.residual2[:, where][used] - weight2 * mean**2) * over(weight**2, pairs)
        noise = (np.maximum(model[used[0]], observed) + 0.25) / weight
        total = float(weight @ mean**2) / size
        scale = float(noise @ noise / noise.sum()) / size
        freedom = float(noise.sum() ** 2 / (noise @ noise))
        low = scale * noncentrality(total / scale, freedom, 1 - share)
        scores = float(weight2 @ (mean**2 - total) ** 2) / size**2
        best = max(best, total - math.hypot(total - low, z * math.sqrt(scores)))
    return math.sqrt(best)


# --- Rising curves ---------------------------------------------------------------------------------------


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
        return np.asarray(scipy.special.stdtrit(self.freedom, tail) / scipy.special.ndtri(tail))

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
        labels, weight = sum_matrices(table.cluster, place, shape, table.positives, table.weight)
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
    low = scipy.special.betaincinv(np.maximum(positives, 1e-300), negatives + 1, tail)
    high = scipy.special.betaincinv(positives + 1, np.maximum(negatives, 1e-300), 1 - tail)
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
    if len(sample) <= const.BAND_CELLS:
        return np.arange(len(sample))
    rank = (np.cumsum(sample.count) - sample.count / 2) / sample.n
    place = np.minimum((rank * const.BAND_CELLS).astype(np.intp), const.BAND_CELLS - 1)
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
