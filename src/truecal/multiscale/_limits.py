r"""Confidence limits of the calibration error.

The upper limit is honest over a class of curves that n and the scores fix: see `truecal.multiscale._upper`. The lower
limit is adaptive. The part of the squared error for which there is evidence behaves like a centred noncentral
chi-square,

.. math:: \hat\theta \sim v\,\big(\chi^2_k(\theta/v) - k\big),

whose variance is :math:`4 v \theta + 2 k v^2`: the first term is the variance of the influence function, which vanishes
with the error, the second what is left of it at :math:`\theta = 0`. Inverting its distribution function in
:math:`\theta` gives the lower limit. It is positive only if the closed-form p-value of calibration is small as well.

Each limit has a p-value that is at most alpha exactly when the limit at the level 1 - alpha is beyond the hypothesis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from truecal._lib.optimize import find_root
from truecal._lib.types import FloatArray
from truecal.multiscale._constants import (
    LARGEST_FACTOR,
    LIMIT_EVIDENCE,
    SMALLEST_FACTOR,
)
from truecal.multiscale._levels import Level
from truecal.multiscale._units import over
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
        shown = self.reliable and self.above.dependence_shown
        return shown and self.pvalue <= LIMIT_EVIDENCE * tail

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
        if bound > self.error or not self.reliable or not self.above.dependence_shown:
            return 1.0
        chance = 1 - below(self._statistic(self.square), self._freedom, bound**2 / self._scale)
        return min(max(chance, self.pvalue / LIMIT_EVIDENCE), 1.0)

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
        low, high = math.log(SMALLEST_FACTOR), math.log(LARGEST_FACTOR)
        if margin(low) >= 0:
            return SMALLEST_FACTOR
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
