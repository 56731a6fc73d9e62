r"""Two smooth calibration curves: logistic, and beta calibration (Kull, Silva Filho, Flach 2017).

.. math::

    \text{logistic: } & \operatorname{logit} g = \operatorname{logit} f + b_0 + b_1 \operatorname{logit} f \\
    \text{beta: } & \operatorname{logit} g = b_0 + (1 + b_1) \ln(f + s) - (1 + b_2) \ln(1 - f + s)

with a saturation s of 0, 0.002 or 0.03, chosen by likelihood. They are fitted to at most 256 equal-mass cells of the
sample, all four at once, by damped Newton steps. A ridge that is worth half a row draws b towards 0, where g = f.

A fit gives the squared error of its curve, less what the noise of its parameters adds to it,

.. math:: \hat\theta = \frac1N \sum m \big[(f - g)^2 - (g(1 - g))^2 x^\top V x\big], \qquad V = H^{-1} J H^{-1},

with :math:`H = \sum m\,g(1-g)\,xx^\top` (and the ridge) and J the variance of the score vector:
:math:`\sum m_2\,g(1-g)\,xx^\top`, or the sum over clusters of the squares of their scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri, expit, fdtrc

from truecal._lib.types import FloatArray
from truecal.multiscale.units import IntArray, Units

_MOST_CELLS = 256
_SATURATIONS = (0.0, 0.002, 0.03)
#: Price of a saturation other than 0, in units of twice the log-likelihood: it is one more parameter.
_SATURATION_PRICE = 2.0
_RIDGE_ROWS = 0.5
_FLOOR = 2.0**-53


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
        Debiased squared error under the curve.
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
            mean = np.where(score == 0, 0.0, mean)
        if self.ends.right_at_1:
            mean = np.where(score == 1, 1.0, mean)
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
    """What to do with scores of exactly 0 and 1, whose logit is infinite.

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
            np.where(score > _FLOOR / 4, score, self.low),
            np.where(score < 1 - _FLOOR / 4, 1 - score, self.high),
        )


@dataclass(frozen=True, eq=False)
class _Fits:
    """Regressions of the same cells on several designs, side by side."""

    coefficients: FloatArray
    mean: FloatArray
    weight: FloatArray
    hessian: FloatArray
    log_likelihood: FloatArray


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
    open_ = ~(((score == 0) & ends.right_at_0) | ((score == 1) & ends.right_at_1))

    saturations = _SATURATIONS if units.clusters is None else (0.0,)
    add = np.array(saturations)[:, np.newaxis]
    log_low, log_high = np.log(low + add), np.log(high + add)
    offset = log_low - log_high
    one, zero = np.ones_like(offset), np.zeros_like(offset)
    beta = np.stack([one, log_low, -log_high], axis=-1)
    logistic = np.stack([one[:1], offset[:1], zero[:1]], axis=-1)
    designs, offsets = np.concatenate([logistic, beta]), np.concatenate([offset[:1], offset])

    prior = weight * low * high
    scaled = designs * (prior / max(prior.sum(), 1e-300))[:, np.newaxis]
    ridge = _RIDGE_ROWS * designs.swapaxes(1, 2) @ scaled
    ridge += (1e-9 + 1e-12 * units.size) * np.eye(3)  # one distinct score cannot tell b0 from b1
    ridge[0, 2, 2] = 1.0  # the column of zeros

    count, hits = weight * open_, positives * open_
    fits = _fit(designs, offsets, count, hits, ridge)
    identity = _log_likelihood(offset[0], count, hits)
    support = 2 * (fits.log_likelihood - identity)
    price = np.where(np.array(saturations) > 0, _SATURATION_PRICE, 0.0)
    best = 1 + int(np.argmax(support[1:] - price))
    curves = []
    for which in (0, best):
        mean = np.where(open_, fits.mean[which], score)
        spread = mean * (1 - mean)
        x = designs[which]
        # Few distinct scores may leave a direction without information; it has no variance either.
        inverse = np.linalg.pinv(fits.hessian[which], rcond=1e-10, hermitian=True)
        information = (x.T * (weight2 * spread * open_)) @ x
        if which == 0:
            information[2, 2] = inverse[2, 2] = 0.0
        covariance = inverse @ information @ inverse
        curve = Curve(
            coefficients=fits.coefficients[which],
            logistic=which == 0,
            saturation=0.0 if which == 0 else saturations[which - 1],
            inverse=inverse,
            covariance=covariance,
            square=0.0,
            support=float(support[which]),
            freedom=float(np.trace(inverse @ information)),
            null_variance=0.0,
            ends=ends,
            noise=Noise(start, weight, designs[which]),
        )
        if units.clusters is not None:
            curve = _clustered(curve, units)
        gap, share = score - mean, weight / units.size
        noise = Noise(start, weight, (weight * spread)[:, np.newaxis] * (x @ _root(curve.covariance)))
        curvature = curve.covariance @ ((x.T * (share * spread**2)) @ x)
        curves.append(
            replace(
                curve,
                square=float(share @ gap**2) - noise.total / units.size,
                noise=noise,
                null_variance=2 * float(np.sum(curvature * curvature.T)),
            )
        )
    return curves[0], curves[1]


def _root(covariance: FloatArray) -> FloatArray:
    """Return a matrix whose product with its transpose is the covariance."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _cell_starts(units: Units) -> IntArray:
    """Return where the cells of the fits start: all units, or 256 of equal mass."""
    if len(units) <= _MOST_CELLS:
        return np.arange(len(units))
    rank = (np.cumsum(units.weight) - units.weight / 2) / units.size
    return np.flatnonzero(np.diff((rank * _MOST_CELLS).astype(np.intp), prepend=-1))


def _ends(score: FloatArray, positives: FloatArray, weight: FloatArray) -> Ends:
    tiny, near = score <= _FLOOR / 4, score >= 1 - _FLOOR / 4
    inner_low = float(score[~tiny].min()) if not tiny.all() else 1.0
    inner_high = float((1 - score[~near]).min()) if not near.all() else 1.0
    return Ends(
        low=max(inner_low / 2, _FLOOR / 2),
        high=max(inner_high / 2, _FLOOR / 2),
        right_at_0=bool((positives[score == 0] == 0).all()),
        right_at_1=bool((positives[score == 1] == weight[score == 1]).all()),
    )


def _log_likelihood(eta: FloatArray, count: FloatArray, hits: FloatArray) -> FloatArray:
    return np.asarray(eta @ hits - np.logaddexp(0.0, eta) @ count)


def _fit(
    design: FloatArray, offset: FloatArray, count: FloatArray, hits: FloatArray, ridge: FloatArray
) -> _Fits:
    """Maximise the penalised likelihood of several logistic regressions by damped Newton steps."""
    transposed = np.ascontiguousarray(design.swapaxes(1, 2))

    def objective(b: FloatArray) -> tuple[FloatArray, FloatArray]:
        eta = offset + (design @ b[..., np.newaxis])[..., 0]
        penalty = np.einsum("fi,fij,fj->f", b, ridge, b)
        return eta, _log_likelihood(eta, count, hits) - 0.5 * penalty

    def solve(hessian: FloatArray, gradient: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.solve(hessian, gradient[..., np.newaxis])[..., 0])

    # Two starts: g = f, and least squares on smoothed logits, which is safe where scores are 0 or 1.
    smooth = (hits + 0.5) / (count + 1)
    spread = count * smooth * (1 - smooth)
    target = spread * (np.log(smooth / (1 - smooth)) - offset)
    b = solve((transposed * spread) @ design + ridge, (transposed @ target[..., np.newaxis])[..., 0])
    eta, value = objective(b)
    eta_zero, value_zero = objective(np.zeros_like(b))
    worse = value_zero > value
    b[worse], eta[worse], value[worse] = 0.0, eta_zero[worse], value_zero[worse]
    for _ in range(12):
        mean = expit(eta)
        gradient = (transposed @ (hits - count * mean)[..., np.newaxis])[..., 0]
        gradient -= (ridge @ b[..., np.newaxis])[..., 0]
        hessian = (transposed * (count * mean * (1 - mean))[:, np.newaxis]) @ design + ridge
        step = solve(hessian, gradient)
        for _ in range(8):
            new_eta, new_value = objective(b + step)
            bad = new_value < value - 1e-9
            if not bad.any():
                break
            step[bad] /= 3
        else:
            step[bad] = 0.0
            new_eta, new_value = objective(b + step)
        gain = float((new_value - value).max())
        b, eta, value = b + step, new_eta, new_value
        if gain < 1e-6:
            break
    mean = expit(eta)
    weight = count * mean * (1 - mean)
    hessian = (transposed * weight[:, np.newaxis]) @ design + ridge
    return _Fits(b, mean, weight, hessian, _log_likelihood(eta, count, hits))


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
    information = n_clusters / max(n_clusters - 1, 1) * scores.T @ scores
    inverse = curve.inverse
    covariance = inverse @ information @ inverse
    b = curve.coefficients[:used]
    wald = float(b @ np.linalg.lstsq(covariance[:used, :used], b, rcond=1e-9)[0])
    return replace(
        curve,
        covariance=covariance,
        support=_as_chi_square(wald, used, n_clusters),
        freedom=float(used),
    )


def _as_chi_square(wald: float, freedom: int, n_clusters: int) -> float:
    """Map a Wald statistic with an estimated covariance (Hotelling) to the chi-square of the same tail."""
    rest = n_clusters - freedom
    if rest < 1:
        return 0.0
    tail = float(fdtrc(freedom, rest, wald * rest / (freedom * (n_clusters - 1))))
    return float(chdtri(freedom, max(tail, 1e-300)))
