r"""Calibration curves averaged by the evidence for them: the engine of `averaged` and of the intervals.

The squared true error :math:`\theta = E(f - \mu(f))^2`, with :math:`\mu` the calibration curve, is estimated
under several candidate curves g, from smooth to fine:

1. logistic in the logit of the score, two parameters;
2. beta calibration (Kull et al. 2017), three parameters, with a choice of saturation near 0 and 1;
3. the second, corrected by the mean residual in 4, 8, 16, 32 and 64 equal-mass bins.

For each, the plug-in :math:`\overline{(f - g)^2}` less its own noise (delta method for the parameters,
variance within the bin for the bins) is unbiased to first order where the candidate is right. Candidates are
weighted by :math:`e^{(S - c D)/2}`, with S twice the log-likelihood ratio against the identity g = f, and D
the degrees of freedom. Everything is computed on at most 256 equal-mass cells, so that the cost beyond sorting
is fixed.

The constants were chosen by simulation: on the ten populations of the paper, as fitted and calibrated, and on
one half of the suite of curves in `truecal.simulation.suites`; the other half was set aside and judged the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.estimators._binning import EqualMass, merge_groups, partition

#: Cells that stand for the sample. More change nothing that can be seen (128 to 512 were tried).
_CELLS = 256
#: Numbers of residual bins, used while a bin holds at least six rows.
_BINS = (4, 8, 16, 32, 64)
_ROWS_PER_BIN = 6
#: Saturations that beta calibration may take near 0 and 1, and what a choice other than 0 costs.
_SATURATIONS = (0.0, 0.002, 0.03)
_SATURATION_PRICE = 2.0
#: Price of a degree of freedom. AIC would take 2, which keeps curves that are a little too smooth.
_PRICE = 1.5
#: Prior weight of the identity in the fits, in rows: it keeps separable labels finite.
_RIDGE = 0.25
#: Share of the one-step correction given to the logistic curve, the most often misspecified.
_ONE_STEP = 0.5

#: Evidence at which calibration is given up, and how sharply: a soft threshold, so that noise is not error.
_THRESHOLD = 3.0
_SHARPNESS = 2.0
#: Keeps the correction of the root finite near zero.
_ROOT_FLOOR = 0.5


@dataclass(frozen=True, eq=False)
class CurveAverage:
    """Candidate curves of one sample: what each says of the squared error, and its weight.

    Attributes
    ----------
    weight : ndarray of shape (m,)
        Weights of the candidates; they sum to 1.
    evidence : float
        Twice the logarithm of the total evidence against the identity: large if miscalibrated.
    square : ndarray of shape (m,)
        Debiased squared error under each candidate; it may be negative.
    variance : ndarray of shape (m,)
        Variance of `square` from labels and scores, to first order: that of the mean of the influence
        function 2 (f - y)(f - g) - (f - g)^2. It vanishes with the error.
    own_variance : ndarray of shape (m,)
        The same with the candidate's own residual bins in place of the smooth curve's.
    null_variance : ndarray of shape (m,)
        Variance of `square` to second order: what is left of it when the model is calibrated.
    gap : list of ndarray
        f - g of each candidate, by cell.
    score, count : ndarray
        Mean score and rows of each cell.
    """

    weight: FloatArray
    evidence: float
    square: FloatArray
    variance: FloatArray
    own_variance: FloatArray
    null_variance: FloatArray
    gap: list[FloatArray]
    score: FloatArray
    count: FloatArray

    def mean(self, values: FloatArray) -> float:
        """Return the weighted mean over the candidates."""
        return float(self.weight @ values)

    def moment(self, p: float) -> float:
        """Return the mean of |f - g|^p over rows and candidates; not debiased."""
        each = [np.average(np.abs(gap) ** p, weights=self.count) for gap in self.gap]
        return self.mean(np.array(each))

    def shape(self, p: float) -> float:
        """Return the ratio of the lp norm of f - g to its l2 norm, at most 1 for p < 2, else at least 1."""
        square = self.moment(2)
        if p == 2 or square <= 0:
            return 1.0
        ratio = self.moment(p) ** (1 / p) / square**0.5
        return float(min(ratio, 1.0) if p < 2 else max(ratio, 1.0))

    def error(self, norm: float) -> float:
        """Return the estimated calibration error: the root, corrected, where there is evidence for it."""
        square, variance = self.mean(self.square), self.mean(self.variance)
        correction = variance / (4 * (square**2 + _ROOT_FLOOR * variance) + 1e-30)
        root = math.sqrt(max(square, 0.0) * (1 + correction))
        gate = float(expit(0.5 * _SHARPNESS * (self.evidence - _THRESHOLD)))
        return min(root * gate * self.shape(norm), 1.0)

    def influence(self, label: NDArray[Any], score: NDArray[Any]) -> FloatArray:
        """Return for each row 2 (f - y)(f - g) - (f - g)^2, whose mean has the noise of `square` to first order."""
        gap = np.interp(score, self.score, self.weight @ np.array(self.gap))
        return np.asarray(2 * (score - label) * gap - gap**2)


@dataclass(frozen=True, eq=False)
class _Cells:
    """The sample on few cells: count, mean score, positives."""

    count: FloatArray
    score: FloatArray
    positives: FloatArray

    @cached_property
    def n(self) -> float:
        return float(self.count.sum())

    @cached_property
    def open(self) -> NDArray[np.bool_]:
        """Where a curve can say something: not at scores of exactly 0 and 1 that came true."""
        came_true = self.positives == self.count * self.score
        return np.asarray(~(came_true & ((self.score == 0) | (self.score == 1))))


@dataclass(frozen=True, eq=False)
class _Fit:
    """A logistic regression on cells: fitted means, weights, design, inverse Hessian, information."""

    mean: FloatArray
    weight: FloatArray
    design: FloatArray
    inverse: FloatArray
    freedom: float
    log_likelihood: float


def average_curves(sample: Sample) -> CurveAverage:
    """Fit the candidate curves to a sample, and weigh them by their evidence."""
    cells = _cells(sample)
    low, high = _inside(cells.score), _inside(1 - cells.score)
    log_low, log_high = np.log(low), np.log(high)
    prior = cells.count * low * high
    identity = _log_likelihood(cells, log_low - log_high)

    logistic = _fit(cells, [log_low - log_high], log_low - log_high, prior)
    beta = _fit_beta(cells, low, high, prior)
    parts = [_of_fit(cells, logistic, identity), _of_fit(cells, beta, identity)]
    one_step = 2 * np.sum((cells.count * logistic.mean - cells.positives) * parts[0].gap) / cells.n
    parts[0].square += _ONE_STEP * one_step
    for place in _binnings(cells):
        parts.append(_with_bins(cells, beta, parts[1], place))
    criterion = np.array([part.support - _PRICE * part.freedom for part in parts])
    best = criterion.max()
    weight = np.exp((criterion - best) / 2)
    return CurveAverage(
        weight=weight / weight.sum(),
        evidence=float(best + 2 * np.log(weight.sum())),
        square=np.array([part.square for part in parts]),
        variance=np.array([part.variance for part in parts]),
        own_variance=np.array([part.own_variance for part in parts]),
        null_variance=np.array([part.null_variance for part in parts]),
        gap=[part.gap for part in parts],
        score=cells.score,
        count=cells.count,
    )


def _cells(sample: Sample) -> _Cells:
    if len(sample) > _CELLS:
        sample = merge_groups(sample, partition(EqualMass(sample), _CELLS).start)
    return _Cells(sample.count, sample.score, sample.positives)


def _inside(score: FloatArray) -> FloatArray:
    """Return scores for a logarithm: those of exactly 0 go half way to the nearest other score."""
    floor = 2.0**-53
    positive = score > floor / 4
    least = score[positive].min() if positive.any() else 1.0
    return np.where(positive, score, max(least / 2, floor / 2))


def _log_likelihood(cells: _Cells, eta: FloatArray) -> float:
    each = cells.positives * eta - cells.count * np.logaddexp(0.0, eta)
    return float(np.sum(each, where=cells.open))


def _fit(cells: _Cells, covariates: list[FloatArray], offset: FloatArray, prior: FloatArray) -> _Fit:
    """Fit logit mean = offset + b0 + b . covariates, by Newton, with a slight pull of b towards 0."""
    count, positives = cells.count * cells.open, cells.positives * cells.open
    design = np.column_stack([np.ones_like(offset), *covariates])
    ridge = _RIDGE * (design.T * prior) @ design / max(prior.sum(), 1e-9)
    ridge += (1e-9 + 1e-12 * cells.n) * np.eye(design.shape[1])  # one distinct score cannot tell b0 from b1

    def objective(b: FloatArray) -> tuple[FloatArray, float]:
        eta = offset + design @ b
        return eta, _log_likelihood(cells, eta) - 0.5 * float(b @ ridge @ b)

    # Two starts: the identity, and least squares on smoothed logits, which is safe where scores are 0 or 1.
    smooth = (positives + 0.5) / (count + 1)
    spread = count * smooth * (1 - smooth)
    target = np.log(smooth / (1 - smooth)) - offset
    starts = [
        np.zeros(design.shape[1]),
        np.linalg.solve((design.T * spread) @ design + ridge, design.T @ (spread * target)),
    ]
    b = max(starts, key=lambda start: objective(start)[1])
    eta, value = objective(b)
    for _ in range(10):
        mean = expit(eta)
        weight = count * mean * (1 - mean)
        gradient = design.T @ (positives - count * mean) - ridge @ b
        step = np.linalg.solve((design.T * weight) @ design + ridge, gradient)
        for _ in range(8):
            new_eta, new_value = objective(b + step)
            if new_value >= value - 1e-9:
                break
            step = step / 3
        else:
            break
        gain, b, eta, value = new_value - value, b + step, new_eta, new_value
        if gain < 1e-7:
            break
    # A logit never reaches a score of 0 or 1. Where these came true, the curve is right at them.
    mean = np.where(cells.open, expit(eta), cells.score)
    weight = count * mean * (1 - mean)
    information = (design.T * weight) @ design
    inverse = np.linalg.inv(information + ridge)
    freedom = float(np.sum(inverse * information.T))
    return _Fit(mean, weight, design, inverse, freedom, _log_likelihood(cells, eta))


def _fit_beta(cells: _Cells, low: FloatArray, high: FloatArray, prior: FloatArray) -> _Fit:
    """Fit beta calibration with each saturation, and return the best after its price."""

    def fit(saturation: float) -> tuple[float, _Fit]:
        a, b = np.log(low + saturation), np.log(high + saturation)
        found = _fit(cells, [a, -b], a - b, prior)
        return 2 * found.log_likelihood - (_SATURATION_PRICE if saturation else 0.0), found

    return max(map(fit, _SATURATIONS), key=lambda pair: pair[0])[1]


@dataclass(eq=False)
class _Part:
    """What one candidate says."""

    square: float
    support: float
    freedom: float
    variance: float
    own_variance: float
    null_variance: float
    gap: FloatArray


def _of_fit(cells: _Cells, fit: _Fit, identity: float) -> _Part:
    n, slope = cells.n, fit.mean * (1 - fit.mean)
    gap = cells.score - fit.mean
    plug_in = float(np.sum(cells.count * gap**2)) / n
    noise = np.sum((fit.design @ fit.inverse) * fit.design, axis=1) * slope**2
    curvature = fit.inverse @ ((fit.design.T * (cells.count * slope**2)) @ fit.design) / n
    variance = _variance(cells, fit, gap)
    return _Part(
        square=plug_in - float(np.sum(cells.count * noise)) / n,
        support=2 * (fit.log_likelihood - identity),
        freedom=fit.freedom,
        variance=variance,
        own_variance=variance,
        null_variance=2 * float(np.sum(curvature * curvature.T)),
        gap=gap,
    )


def _variance(cells: _Cells, fit: _Fit, gap: FloatArray) -> float:
    square = gap**2
    mean = float(np.sum(cells.count * square)) / cells.n
    labels = 4 * float(np.sum(fit.weight * square))
    scores = float(np.sum(cells.count * (square - mean) ** 2))
    return (labels + scores) / cells.n**2


def _binnings(cells: _Cells) -> Iterator[NDArray[np.intp]]:
    """Return the bin of each cell, for ever more equal-mass bins; where scores tie, the same bins only once."""
    rank = (np.cumsum(cells.count) - cells.count / 2) / cells.n
    before: NDArray[np.intp] | None = None
    for n_bins in _BINS:
        if n_bins * _ROWS_PER_BIN > cells.n:
            return
        place = np.minimum((rank * n_bins).astype(np.intp), n_bins - 1)
        place = np.cumsum(np.diff(place, prepend=place[:1]) > 0)
        if before is None or (place != before).any():
            yield place
        before = place


def _with_bins(cells: _Cells, fit: _Fit, smooth: _Part, place: NDArray[np.intp]) -> _Part:
    """Correct a fitted curve by the mean residual in each bin; `place` is the bin of each cell."""
    n, count, n_bins = cells.n, cells.count, int(place[-1]) + 1

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(place, values, n_bins).astype(np.float64)

    rows, gaps, weights = total(count), total(count * smooth.gap), total(fit.weight)
    residuals = total(cells.positives - count * fit.mean)
    leverage = np.column_stack([total(column * fit.weight) for column in fit.design.T])
    # What the fit has taken out of the residuals' variance.
    taken = np.sum((leverage @ fit.inverse) * leverage, axis=1)
    safe = np.maximum(rows, 1.0)
    squares = total(cells.positives * (1 - 2 * fit.mean) + count * fit.mean**2) - residuals**2 / safe
    noise = np.where(rows > 1.5, squares * safe / np.maximum(safe - 1, 0.5), weights)
    informed = weights > 1e-9
    weighed = np.where(informed, weights, 1.0)
    gap = smooth.gap - (residuals / safe)[place]
    return _Part(
        square=smooth.square
        + float(np.sum(((gaps - residuals) ** 2 - gaps**2 - (noise - taken)) / safe)) / n,
        support=smooth.support + float(np.sum(np.where(informed, residuals**2 / weighed, 0.0))),
        freedom=smooth.freedom + float(np.sum(np.where(informed, 1 - taken / weighed, 0.0))),
        variance=smooth.variance,
        own_variance=_variance(cells, fit, gap),
        null_variance=smooth.null_variance + 2 * float(np.sum(((weights - taken) / safe) ** 2)) / n**2,
        gap=gap,
    )
