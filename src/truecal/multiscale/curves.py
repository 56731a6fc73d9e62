r"""Two smooth calibration curves: logistic, and beta calibration (Kull, Silva Filho, Flach 2017).

.. math::

    \text{logistic: } & \operatorname{logit} g = \operatorname{logit} f + b_0 + b_1 \operatorname{logit} f \\
    \text{beta: } & \operatorname{logit} g = b_0 + (1 + b_1) \ln(f + s) - (1 + b_2) \ln(1 - f + s)

with a saturation s of 0, 0.002 or 0.03, chosen by likelihood. They are fitted to at most 256 equal-mass cells of the
sample, all four at once, by damped Newton steps. A ridge that is worth half a row draws b towards 0, where g = f.

A fit gives the squared error of its curve, less what the noise of its parameters adds to it,

.. math:: \hat\theta = \frac1N \sum m \big[(f - g)^2 - (g(1 - g))^2 x^\top V x\big], \qquad V = H^{-1} J H^{-1},

with :math:`H = \sum m\,g(1-g)\,xx^\top` (and the ridge) and J the variance of the score vector:
:math:`\sum m_2\,g(1-g)\,xx^\top`, or the sum over clusters of the squares of their scores. For the beta curve
:math:`\frac2N \sum (f - g)(R - m(f - g))` is added, a step towards the data that has mean 0 if the curve is right and
removes to first order the error of a wrong one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from truecal._lib.logistic import expit
from truecal._lib.types import FloatArray
from truecal.multiscale.units import IntArray, Units

_MOST_CELLS = 256
_SATURATIONS = (0.0, 0.002, 0.03)
#: Price of a saturation other than 0, in units of twice the log-likelihood: it is one more parameter.
_SATURATION_PRICE = 2.0
_RIDGE_ROWS = 0.5
_FLOOR = 2.0**-53
#: Scores that are this close to 0 or 1 are taken for 0 or 1: no sample can tell how far a logit beyond 18 is wrong.
_CERTAIN = 1e-8
#: Gain in log-likelihood below which the fits stop.
_TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class Curve:
    r"""One fitted curve.

    Attributes
    ----------
    coefficients : ndarray of shape (3,)
        b of the module's docstring; the third is 0 for the logistic curve.
    logistic : bool
        Whether it is the logistic curve.
    saturation : float
        s.
    inverse, covariance : ndarray of shape (3, 3)
        :math:`H^{-1}` and V.
    square : float
        Debiased squared error under the curve; that of the beta curve is corrected for what the curve misses.
    support : float
        Twice the log-likelihood ratio against g = f; with clusters, a Wald statistic of the same distribution.
    freedom : float
        Its degrees of freedom, :math:`\operatorname{tr} H^{-1} J`.
    null_variance : float
        Variance of `square` if g = f.
    """

    coefficients: FloatArray
    logistic: bool
    saturation: float
    inverse: FloatArray
    covariance: FloatArray
    square: float
    support: float
    freedom: float
    null_variance: float
    ends: Ends
    noise: Noise

    def design(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the columns x of the linear predictor, and its offset, at scores."""
        low, high = self.ends.inside(score)
        low, high = np.log(low + self.saturation), np.log(high + self.saturation)
        offset = low - high
        second = (offset, np.zeros_like(offset)) if self.logistic else (low, -high)
        return np.stack([np.ones_like(offset), *second], axis=-1), offset

    def __call__(self, score: FloatArray) -> FloatArray:
        """Return the curve at scores."""
        design, offset = self.design(score)
        mean = expit(offset + design @ self.coefficients)
        if self.ends.right_at_0:
            mean = np.where(score <= _CERTAIN, score, mean)
        if self.ends.right_at_1:
            mean = np.where(score >= 1 - _CERTAIN, score, mean)
        return np.asarray(mean)

    def sd(self, score: FloatArray) -> FloatArray:
        """Return the standard deviation of the curve at scores."""
        design, _ = self.design(score)
        mean = self(score)
        variance = np.sum((design @ self.covariance) * design, axis=1)
        return np.asarray(mean * (1 - mean) * np.sqrt(np.maximum(variance, 0.0)))


@dataclass(frozen=True, eq=False)
class Noise:
    """What the noise of the parameters does to the curve, on the cells that it was fitted to.

    Attributes
    ----------
    start : ndarray of int
        First unit of each cell.
    weight : ndarray of shape (n_cells,)
        m of each cell.
    effect : ndarray of shape (n_cells, 3)
        :math:`m g (1 - g) x V^{1/2}`: the change of m g with three independent standard normal variables.
    """

    start: IntArray
    weight: FloatArray
    effect: FloatArray

    @property
    def total(self) -> float:
        """Sum of the variances of m g, each divided by m."""
        return float(np.sum(self.effect**2 / self.weight[:, np.newaxis]))


@dataclass(frozen=True)
class Ends:
    """What to do with scores of 0 and 1, or next to them, whose logit is infinite or far away.

    Attributes
    ----------
    low, high : float
        They are moved inwards by this much, half way to the nearest other score.
    right_at_0, right_at_1 : bool
        Whether all labels there agree with the score: then the curve passes through them.
    """

    low: float
    high: float
    right_at_0: bool
    right_at_1: bool

    def inside(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the scores and their complements, away from 0."""
        return (
            np.where(score > _CERTAIN, score, self.low),
            np.where(score < 1 - _CERTAIN, 1 - score, self.high),
        )


@dataclass(frozen=True, eq=False)
class _Fits:
    """Regressions of the same cells on several designs, side by side."""

    coefficients: FloatArray
    mean: FloatArray
    hessian: FloatArray
    log_likelihood: FloatArray
    identity: FloatArray


def fit_curves(units: Units) -> tuple[Curve, Curve]:
    """Fit the logistic and the beta curve."""
    start = _cell_starts(units)
    if len(start) < len(units):
        weight, residual = np.add.reduceat(units.weight, start), np.add.reduceat(units.residual, start)
        score = np.add.reduceat(units.weight * units.score, start) / weight
        weight2 = weight if units.weight2 is units.weight else np.add.reduceat(units.weight2, start)
    else:
        weight, residual, score, weight2 = units.weight, units.residual, units.score, units.weight2
    positives = np.clip(weight * score - residual, 0.0, weight)
    ends = _ends(score, positives, weight)
    low, high = ends.inside(score)
    # Where a score of 0 or 1 is always right there is nothing to fit.
    closed = (score <= _CERTAIN) & ends.right_at_0
    open_ = ~(closed | ((score >= 1 - _CERTAIN) & ends.right_at_1))

    saturations = _SATURATIONS if units.clusters is None else (0.0,)
    add = np.array(saturations)[:, np.newaxis]
    log_low, log_high = np.log(low + add), np.log(high + add)
    offset = log_low - log_high
    one, zero = np.ones_like(offset), np.zeros_like(offset)
    of_logistic = np.stack([one[:1], offset[:1], zero[:1]], axis=-1)
    designs = np.concatenate([of_logistic, np.stack([one, log_low, -log_high], axis=-1)])
    offsets = np.concatenate([offset[:1], offset])

    prior = weight * low * high
    scaled = designs * (prior / max(prior.sum(), 1e-300))[:, np.newaxis]
    ridge = _RIDGE_ROWS * designs.swapaxes(1, 2) @ scaled
    ridge += (1e-9 + 1e-12 * units.size) * np.eye(3)  # one distinct score cannot tell b0 from b1
    ridge[0, 2, 2] = 1.0  # the column of zeros

    count, hits = weight * open_, positives * open_
    fits = _fit(designs, offsets, count, hits, ridge)
    support = 2 * (fits.log_likelihood - fits.identity[0])
    price = np.where(np.array(saturations) > 0, _SATURATION_PRICE, 0.0)
    best = 1 + int(np.argmax(support[1:] - price))
    both = np.array([0, best])
    mean = np.where(open_, fits.mean[both], score)
    spread, share, x = mean * (1 - mean), weight / units.size, designs[both]
    transposed = x.swapaxes(1, 2)
    inverse = _inverse(fits.hessian[both])
    inverse[0, 2, 2] = 0.0
    # As squares: the inverse is huge along directions without information, where products would leave rounding errors.
    root = transposed * np.sqrt(weight2 * open_ * spread)[:, np.newaxis]
    half = inverse @ root
    curves = [
        Curve(
            coefficients=fits.coefficients[which],
            logistic=which == 0,
            saturation=0.0 if which == 0 else saturations[which - 1],
            inverse=inverse[number],
            covariance=half[number] @ half[number].T,
            square=0.0,
            support=float(support[which]),
            freedom=float(np.sum(half[number] * root[number])),
            null_variance=0.0,
            ends=ends,
            noise=Noise(start, weight, x[number]),
        )
        for number, which in enumerate((0, best))
    ]
    if units.clusters is not None:
        curves = [_clustered(curve, units) for curve in curves]
    covariance = np.stack([curve.covariance for curve in curves])
    effect = (weight * spread)[..., np.newaxis] * (x @ _root(covariance))
    curvature = covariance @ ((transposed * (share * spread**2)[:, np.newaxis]) @ x)
    gap = score - mean
    plug_in = gap**2 @ share
    plug_in[1] += 2 * float(gap[1] @ (residual - weight * gap[1])) / units.size
    logistic, beta = (
        replace(
            curve,
            square=float(plug_in[number]) - noise.total / units.size,
            noise=noise,
            null_variance=2 * float(np.sum(curvature[number] * curvature[number].T)),
        )
        for number, curve in enumerate(curves)
        for noise in [Noise(start, weight, effect[number])]
    )
    return logistic, beta


def _inverse(matrix: FloatArray) -> FloatArray:
    """Return the inverses of symmetric matrices.

    Few distinct scores may leave a direction without information; it has no variance either.
    """
    values, vectors = np.linalg.eigh(matrix)
    known = values > 1e-10 * values[..., -1:]
    reciprocal = np.divide(1.0, values, out=np.zeros_like(values), where=known)
    return np.asarray((vectors * reciprocal[..., np.newaxis, :]) @ vectors.swapaxes(-1, -2))


def _root(covariance: FloatArray) -> FloatArray:
    """Return matrices whose products with their transposes are the covariances."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[..., np.newaxis, :])


def _cell_starts(units: Units) -> IntArray:
    """Return where the cells of the fits start: all units, or 256 of equal mass."""
    if len(units) <= _MOST_CELLS:
        return np.arange(len(units))
    if units.depth >= _MOST_CELLS.bit_length() - 1:  # the bins of one of the levels
        place = units.bin >> (units.depth - (_MOST_CELLS.bit_length() - 1))
    else:
        rank = (np.cumsum(units.weight) - units.weight / 2) / units.size
        place = (rank * _MOST_CELLS).astype(np.intp)
    return np.flatnonzero(np.diff(place, prepend=-1))


def _ends(score: FloatArray, positives: FloatArray, weight: FloatArray) -> Ends:
    zero, one = score <= _CERTAIN, score >= 1 - _CERTAIN
    inner_low = float(score[~zero].min()) if not zero.all() else 1.0
    inner_high = float((1 - score[~one]).min()) if not one.all() else 1.0
    return Ends(
        low=max(inner_low / 2, _FLOOR / 2),
        high=max(inner_high / 2, _FLOOR / 2),
        right_at_0=bool((positives[zero] <= 1e-6).all()),
        right_at_1=bool((positives[one] >= weight[one] - 1e-6).all()),
    )


def _fit(
    design: FloatArray, offset: FloatArray, count: FloatArray, hits: FloatArray, ridge: FloatArray
) -> _Fits:
    """Maximise the penalised likelihood of several logistic regressions by damped Newton steps."""
    transposed = np.ascontiguousarray(design.swapaxes(1, 2))

    def evaluate(b: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the mean, the log-likelihood and the objective."""
        eta = offset + _times(design, b)
        small = np.exp(-np.abs(eta))
        mean = np.where(eta > 0, 1.0, small) / (1 + small)
        value = eta @ hits - (np.maximum(eta, 0.0) + np.log1p(small)) @ count
        return mean, value, value - 0.5 * np.sum(b * _times(ridge, b), axis=1)

    # Two starts: g = f, and least squares on smoothed logits, which is safe where scores are 0 or 1.
    smooth = (hits + 0.5) / (count + 1)
    spread = count * smooth * (1 - smooth)
    target = spread * (np.log(smooth / (1 - smooth)) - offset)
    b = _solve((transposed * spread) @ design + ridge, _times(transposed, target))
    mean, likelihood, value = evaluate(b)
    identity = evaluate(np.zeros_like(b))
    worse = identity[2] > value
    if worse.any():
        b[worse] = 0.0
        mean[worse], likelihood[worse], value[worse] = (one[worse] for one in identity)
    for _ in range(12):
        gradient = _times(transposed, hits - count * mean) - _times(ridge, b)
        hessian = (transposed * (count * mean * (1 - mean))[:, np.newaxis]) @ design + ridge
        step = _solve(hessian, gradient)
        if np.max(np.sum(step * gradient, axis=1)) < 2 * _TOLERANCE:  # twice what the step would gain
            break
        for _ in range(8):
            mean_there, likelihood_there, value_there = evaluate(b + step)
            bad = value_there < value - 1e-9
            if not bad.any():
                break
            step[bad] /= 3
        else:
            step[bad] = 0.0
            mean_there, likelihood_there, value_there = evaluate(b + step)
        stuck = not step.any()
        b, mean, likelihood, value = b + step, mean_there, likelihood_there, value_there
        if stuck:
            break
    hessian = (transposed * (count * mean * (1 - mean))[:, np.newaxis]) @ design + ridge
    return _Fits(b, mean, hessian, likelihood, identity[1])


def _times(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Return the products of matrices and vectors, one for each fit."""
    return np.asarray((matrix @ vector[..., np.newaxis])[..., 0])


def _solve(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Return the solutions of linear equations, one set for each fit."""
    return np.asarray(np.linalg.solve(matrix, vector[..., np.newaxis])[..., 0], dtype=np.float64)


def cluster_scores(curve: Curve, units: Units) -> tuple[FloatArray, FloatArray]:
    """Return the sums over each cluster of w (y - g) x, and the residual w (g - y) of each row of the table."""
    table = units.clusters
    assert table is not None
    design, _ = curve.design(units.score)
    mean = curve(units.score)
    error = (table.weight * (units.score - mean)[table.unit]) - table.residual  # w (y - g)
    columns = [
        np.bincount(table.cluster, error * design[table.unit, column], table.n_clusters)
        for column in range(3)
    ]
    return np.stack(columns, axis=-1), error


def _clustered(curve: Curve, units: Units) -> Curve:
    """Replace the variance of the parameters, and the support, by what holds for dependent rows."""
    assert units.clusters is not None
    n_clusters = units.clusters.n_clusters
    scores, _ = cluster_scores(curve, units)
    used = 2 if curve.logistic else 3
    half = curve.inverse @ scores.T
    covariance = n_clusters / max(n_clusters - 1, 1) * half @ half.T
    b = curve.coefficients[:used]
    wald = float(b @ np.linalg.lstsq(covariance[:used, :used], b, rcond=1e-9)[0])
    return replace(
        curve,
        covariance=covariance,
        support=_as_chi_square(wald, used, n_clusters),
        freedom=float(used),
    )


def _as_chi_square(wald: float, freedom: int, n_clusters: int) -> float:
    """Map a Wald statistic with an estimated covariance (Hotelling) to about the chi-square of the same tail.

    Bartlett's form of Wilks' statistic: exact for two parameters, within 1% for three and 15 clusters or more. Tails
    themselves underflow, and the supports of two curves are compared however large they are.
    """
    if n_clusters <= freedom:
        return 0.0
    return (n_clusters - 1 - freedom / 2) * math.log1p(wald / (n_clusters - 1))
