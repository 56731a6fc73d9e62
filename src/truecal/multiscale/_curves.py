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

Arrays have a leading axis for samples: each of several has its own curves, which are fitted together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from truecal._lib.types import FloatArray
from truecal.multiscale import _constants as const
from truecal.multiscale._units import BoolArray, ClusterUnits, IntArray, Units, over, place_of, total


@dataclass(frozen=True, eq=False)
class Curve:
    r"""One fitted curve for each sample.

    Attributes
    ----------
    coefficients : ndarray of shape (n_samples, 3)
        b of the module's docstring; the third is 0 for the logistic curve.
    logistic : bool
        Whether it is the logistic curve.
    saturation : ndarray of shape (n_samples,)
        s.
    inverse, covariance : ndarray of shape (n_samples, 3, 3)
        :math:`H^{-1}` and V.
    square : ndarray of shape (n_samples,)
        Debiased squared error under the curve; that of the beta curve is corrected for what the curve misses.
    support : ndarray of shape (n_samples,)
        Twice the log-likelihood ratio against g = f; with clusters, a Wald statistic of the same distribution if that
        is smaller.
    freedom : ndarray of shape (n_samples,)
        Its degrees of freedom, :math:`\operatorname{tr} H^{-1} J`.
    null_variance : ndarray of shape (n_samples,)
        Variance of `square` if g = f.
    ends : Ends
        What becomes of scores of 0 and 1.
    noise : Noise
        What the noise of the parameters does to the curve.
    """

    coefficients: FloatArray
    logistic: bool
    saturation: FloatArray
    inverse: FloatArray
    covariance: FloatArray
    square: FloatArray
    support: FloatArray
    freedom: FloatArray
    null_variance: FloatArray
    ends: Ends
    noise: Noise

    def __call__(self, score: FloatArray) -> FloatArray:
        """Return the curve at scores; it passes through certain scores that are right."""
        b, (low, high) = self.coefficients[:, :, np.newaxis], self.logs(score)
        logit = (1 + b[:, 1]) * low + b[:, 0] - (1 + b[:, 1 if self.logistic else 2]) * high
        return self.ends.through(score, _expit(logit))

    def logs(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the logarithms of scores and of their complements, each with the saturation added."""
        low, high = self.ends.inside(score)
        add = self.saturation[:, np.newaxis]
        return np.log(low + add), np.log(high + add)

    def design(self, score: FloatArray) -> FloatArray:
        """Return the rows x of the linear predictor at scores, of shape (n_samples, 3, n)."""
        low, high = self.logs(score)
        columns = (low - high, np.zeros_like(low)) if self.logistic else (low, -high)
        return np.stack([np.ones_like(low), *columns], axis=-2)

    def sd(self, score: FloatArray) -> FloatArray:
        """Return the standard deviation of the curve at scores."""
        design, mean = self.design(score), self(score)
        variance = np.sum((self.covariance @ design) * design, axis=-2)
        return np.asarray(mean * (1 - mean) * np.sqrt(np.maximum(variance, 0.0)))


@dataclass(frozen=True, eq=False)
class Noise:
    """What the noise of the parameters does to the curve, on the cells that it was fitted to.

    Attributes
    ----------
    total : ndarray of shape (n_samples,)
        Sum of the variances of m g, each divided by m.
    effect : ndarray of shape (n_samples, 3, n_cells)
        :math:`m g (1 - g) V^{1/2} x`: the change of m g with three independent standard normal variables.
    place : ndarray of int, of shape (n_samples, n_cells)
        Bin of each cell.
    depth : int
        These bins are those of the level with ``2**depth``; in finer ones the curve moves as one.
    """

    total: FloatArray
    effect: FloatArray
    place: IntArray
    depth: int


@dataclass(frozen=True, eq=False)
class Ends:
    """What to do with scores of 0 and 1, or next to them, whose logit is infinite or far away.

    Attributes
    ----------
    low, high : ndarray of shape (n_samples, 1)
        They are moved inwards by this much, half way to the nearest other score.
    right_at_0, right_at_1 : ndarray of bool, of shape (n_samples, 1)
        Whether all labels there agree with the score: then the curve passes through them.
    """

    low: FloatArray
    high: FloatArray
    right_at_0: BoolArray
    right_at_1: BoolArray

    def inside(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the scores and their complements, away from 0."""
        return (
            np.where(score > const.CERTAIN, score, self.low),
            np.where(score < 1 - const.CERTAIN, 1 - score, self.high),
        )

    def right(self, score: FloatArray) -> BoolArray:
        """Return which scores are certain, and right in all cases."""
        return np.asarray(
            (self.right_at_0 & (score <= const.CERTAIN)) | (self.right_at_1 & (score >= 1 - const.CERTAIN))
        )

    def through(self, score: FloatArray, mean: FloatArray) -> FloatArray:
        """Let a curve, whose values are `mean`, pass through the scores that are certain and right."""
        return np.where(self.right(score), score, mean)


def fit_curves(units: Units) -> tuple[Curve, Curve]:
    """Fit the logistic and the beta curve."""
    cells = _make_cells(units)
    weight, score = cells.weight[:, np.newaxis], cells.score[:, np.newaxis]  # axes for samples and curves
    ends = _ends(cells)
    # Where a score of 0 or 1 is always right there is nothing to fit.
    fitted = ~ends.right(cells.score)[:, np.newaxis]
    saturations = const.SATURATIONS if units.independent_truth else const.SATURATIONS[:1]
    regressions = _regressions(cells, ends, fitted, saturations, units.size)
    identity = regressions.at(np.zeros((*regressions.offset.shape[:2], 3)))
    fits, hessian = regressions.maximise(identity)
    support = 2 * (fits.likelihood - identity.likelihood[:, :1])

    # The logistic curve, and the beta curve with the best saturation.
    best = 1 + (support[:, 1:] - const.SATURATION_PRICES[: len(saturations)]).argmax(axis=1)
    both = np.arange(len(best))[:, np.newaxis], np.zeros((len(best), 2), dtype=np.intp)
    both[1][:, 1] = best
    coefficients, support, x = fits.b[both], support[both], regressions.design[both]
    inverse = _inverse(hessian[both])
    inverse[:, 0, 2, 2] = 0.0
    mean = np.where(fitted, fits.mean[both], score)
    spread = mean * (1 - mean)
    if units.clusters is not None:
        covariance, wald, freedom = _with_clusters(units, units.clusters, ends, coefficients, inverse)
        # Dependent rows show no more than independent ones, whose likelihoods have a known ratio if noise is g (1 - g).
        # A Wald statistic can: a curve that follows a few clusters leaves too little of how much they differ.
        support = wald if cells.noise is not None else np.minimum(wald, support)
    else:
        # As squares: the inverse is huge along directions without information, where products leave rounding errors.
        noise = cells.weight2[:, np.newaxis] * spread if cells.noise is None else cells.noise[:, np.newaxis]
        root = x * np.sqrt(noise * fitted)[:, :, np.newaxis]
        half = inverse @ root
        covariance, freedom = half @ half.swapaxes(-1, -2), np.vecdot(half, root).sum(axis=-1)
        if cells.noise is not None:
            # A ratio of likelihoods has a known distribution only if noise is proportional to g (1 - g).
            support, freedom = _wald(coefficients, covariance), np.array([[2.0, 3.0]])

    # Squared errors, less what the noise of the parameters adds; for the beta curve with a step towards the data.
    effect = (weight * spread)[:, :, np.newaxis] * (_root(covariance).swapaxes(-1, -2) @ x)
    noise = np.vecdot(np.square(effect).sum(axis=-2), over(np.ones(1), weight))
    curvature = covariance @ _squares(x, weight * spread**2) / units.size
    null_variance = 2 * (curvature * curvature.swapaxes(-1, -2)).sum(axis=(-2, -1))
    gap = score - mean
    square = np.vecdot(gap**2, weight) - noise
    square[:, 1] += 2 * np.vecdot(gap[:, 1], cells.residual - cells.weight * gap[:, 1])

    logistic, beta = (
        Curve(
            coefficients=coefficients[:, number],
            logistic=number == 0,
            saturation=saturations[best - 1] if number else np.zeros(len(best)),
            inverse=inverse[:, number],
            covariance=covariance[:, number],
            square=square[:, number] / units.size,
            support=support[:, number],
            freedom=freedom[:, number],
            null_variance=null_variance[:, number],
            ends=ends,
            noise=Noise(noise[:, number], effect[:, number], cells.place, cells.depth),
        )
        for number in (0, 1)
    )
    return logistic, beta


class _Cells(NamedTuple):
    """What the curves are fitted to: the units, or 256 cells of equal mass if these are fewer.

    The sums m, m_2 and R, the mean score, and the weight of the positive labels have an axis for samples. `place` is
    the bin of each cell at the finest level that cells resolve, of which there are ``2**depth``.
    """

    weight: FloatArray
    weight2: FloatArray
    residual: FloatArray
    score: FloatArray
    positives: FloatArray
    place: IntArray
    depth: int
    noise: FloatArray | None = None


def _make_cells(units: Units) -> _Cells:
    sums = [units.weight, units.residual, units.score, units.weight2]
    if units.noise is not None:
        sums.append(units.noise)
    place, depth = units.bin, units.depth
    if len(units) > const.CURVE_CELLS:
        sums[2] = units.weight * units.score
        depth = min(depth, const.CURVE_CELLS.bit_length() - 1)
        if units.depth <= depth and units.rank is not None:  # cells are finer than bins
            cell = np.minimum(place_of(units.rank, units.score, const.CURVE_CELLS), const.CURVE_CELLS - 1)
            sums = [total(cell, one, const.CURVE_CELLS) for one in sums]
        else:
            sums = [units.sums(one, depth) for one in sums]
        place = np.arange(const.CURVE_CELLS)[np.newaxis] // (const.CURVE_CELLS >> depth)
        sums[2] = over(sums[2], sums[0])
        # An empty cell gets the score of the one before.
        np.maximum.accumulate(sums[2], axis=-1, out=sums[2])
        np.maximum(sums[2], units.score[:, :1], out=sums[2])
    weight, residual, score, weight2, *noise = sums
    positives = weight * score - residual
    if units.noise is None:  # rounding aside it lies there
        positives = np.minimum(np.maximum(positives, 0.0), weight)
    return _Cells(weight, weight2, residual, score, positives, place, depth, *noise)


def _regressions(
    cells: _Cells, ends: Ends, fitted: BoolArray, saturations: FloatArray, size: float
) -> _Regressions:
    """Return the regressions of the logistic curve, and of the beta curve with each of the saturations."""
    low, high = ends.inside(cells.score)
    design, offset = _designs(low, high, saturations)
    prior = cells.weight * low * high
    prior /= np.maximum(prior.sum(axis=-1, keepdims=True), 1e-300)
    ridge = const.RIDGE_ROWS * _squares(design, prior[:, np.newaxis])
    ridge += (1e-9 + 1e-12 * size) * np.eye(3)  # one distinct score cannot tell b0 from b1
    ridge[:, 0, 2, 2] = 1.0  # the logistic curve has two parameters
    hits = cells.positives[:, np.newaxis] * fitted
    count = np.broadcast_to(
        cells.weight[:, np.newaxis] * fitted, hits.shape
    )  # samples may share their weights
    return _Regressions(design, offset, count, hits, ridge)


def _designs(low: FloatArray, high: FloatArray, saturations: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return x and the offset of the logistic curve, and of the beta curve with each of the saturations.

    Their shapes are (samples, curves, 3, scores) and (samples, curves, scores).
    """
    log_low = np.log(low[:, np.newaxis] + saturations[:, np.newaxis])
    log_high = np.log(high[:, np.newaxis] + saturations[:, np.newaxis])
    logit, ones = log_low - log_high, np.ones_like(log_low)
    logistic = np.stack([ones[:, :1], logit[:, :1], np.zeros_like(logit[:, :1])], axis=2)
    design = np.concatenate([logistic, np.stack([ones, log_low, -log_high], axis=2)], axis=1)
    return design, np.concatenate([logit[:, :1], logit], axis=1)


def _expit(logit: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(-logit)); logits below -700, where exp would overflow, count as -700."""
    return np.asarray(1 / (1 + np.exp(-np.maximum(logit, -700.0))))


def _squares(design: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the weighted sums of x x'."""
    return np.asarray((design * weight[..., np.newaxis, :]) @ design.swapaxes(-1, -2))


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


def _ends(cells: _Cells) -> Ends:
    weight, score, positives = cells.weight, cells.score, cells.positives
    zero, one = score <= const.CERTAIN, score >= 1 - const.CERTAIN
    low = np.where(zero, 1.0, score).min(axis=-1, keepdims=True)
    high = np.where(one, 1.0, 1 - score).min(axis=-1, keepdims=True)
    right_at_0 = np.asarray(~(zero & (positives > 1e-6)).any(axis=-1, keepdims=True))
    right_at_1 = np.asarray(~(one & (positives < weight - 1e-6)).any(axis=-1, keepdims=True))
    return Ends(
        np.maximum(low / 2, const.SMALLEST_SCORE / 2),
        np.maximum(high / 2, const.SMALLEST_SCORE / 2),
        right_at_0,
        right_at_1,
    )


class _State(NamedTuple):
    """Where the fits are: arrays of shape (samples, fits, 3), (samples, fits, cells), and twice (samples, fits)."""

    b: FloatArray
    mean: FloatArray
    likelihood: FloatArray
    objective: FloatArray


@dataclass(frozen=True, eq=False)
class _Regressions:
    """Penalised logistic regressions of the same cells on several designs, for one sample or several.

    Attributes
    ----------
    design, offset : ndarray of shape (samples, fits, 3, cells) and (samples, fits, cells)
        x and the offset.
    count, hits : ndarray of shape (samples, 1, cells)
        Weight, and that of the positive labels.
    ridge : ndarray of shape (samples, fits, 3, 3)
        Matrix of the penalty.
    """

    design: FloatArray
    offset: FloatArray
    count: FloatArray
    hits: FloatArray
    ridge: FloatArray

    def at(self, b: FloatArray) -> _State:
        """Return the state at given coefficients."""
        eta = (b[..., np.newaxis, :] @ self.design)[..., 0, :]
        eta += self.offset
        mean = _expit(eta)
        # y eta - ln(1 + e^eta) = (y - 1) eta + ln g
        likelihood = np.vecdot(eta, self.hits - self.count) + np.vecdot(np.log(mean), self.count)
        return _State(b, mean, likelihood, likelihood - 0.5 * np.vecdot(b, _times(self.ridge, b)))

    def hessian(self, mean: FloatArray) -> FloatArray:
        """Return the negative Hessian of the log-likelihood at the given means."""
        return _squares(self.design, self.count * mean * (1 - mean)) + self.ridge

    def least_squares(self) -> _State:
        """Return the fits of smoothed logits by least squares: a start that is safe where scores are 0 or 1."""
        smooth = (np.clip(self.hits, 0.0, self.count) + 0.5) / (self.count + 1)
        spread = self.count * smooth * (1 - smooth)
        target = spread * (np.log(smooth / (1 - smooth)) - self.offset)
        return self.at(_solve(_squares(self.design, spread) + self.ridge, _times(self.design, target)))

    def maximise(self, start: _State) -> tuple[_State, FloatArray]:
        """Return the maxima, by damped Newton steps, and the negative second derivatives there.

        A sample whose fits have converged stays as it is, whatever the others do.
        """
        state = _better(self.least_squares(), start)
        for _ in range(12):
            gradient = _times(self.design, self.hits - self.count * state.mean)
            gradient -= _times(self.ridge, state.b)
            hessian = self.hessian(state.mean)
            step = _solve(hessian, gradient)
            gain = np.vecdot(step, gradient).max(axis=1) / 2
            going = gain >= const.FIT_TOLERANCE
            if not going.any():
                return state, hessian
            step[~going] = 0.0
            there = self.at(state.b + step)
            for _ in range(8):
                worse = there.objective < state.objective - const.FIT_ROUNDING
                if not worse.any():
                    state = there
                    break
                step[worse] /= 3
                there = self.at(state.b + step)
            else:
                state = _better(there, state)
        return state, self.hessian(state.mean)


def _better(one: _State, other: _State) -> _State:
    """Return, for each fit, the state with the larger objective."""
    first = one.objective >= other.objective - const.FIT_ROUNDING
    wide = first[..., np.newaxis]
    return _State(
        np.where(wide, one.b, other.b),
        np.where(wide, one.mean, other.mean),
        np.where(first, one.likelihood, other.likelihood),
        np.where(first, one.objective, other.objective),
    )


def _times(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Return the products of matrices and vectors."""
    return np.asarray((matrix @ vector[..., np.newaxis])[..., 0])


def _solve(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Return the solutions of linear equations."""
    return np.asarray(np.linalg.solve(matrix, vector[..., np.newaxis])[..., 0], dtype=np.float64)


def cluster_scores(
    units: Units, table: ClusterUnits, mean: FloatArray, design: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the sums over each cluster of w (y - g) x, and the residual w (y - g) of each entry of the table.

    `mean` and `design` are g and x at the scores of the units.
    """
    error = (table.weight * (units.score[0] - mean)[table.unit]) - table.residual  # w (y - g)
    columns = [np.bincount(table.cluster, error * row[table.unit], table.n_clusters) for row in design]
    return np.stack(columns, axis=-1), error


def _with_clusters(
    units: Units, clusters: ClusterUnits, ends: Ends, coefficients: FloatArray, inverse: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the variance of the parameters of both curves, their support and its freedom, for dependent rows."""
    design, offset = _designs(*ends.inside(units.score), const.SATURATIONS[:1])
    mean = ends.through(
        units.score[0], _expit(offset + (coefficients[..., np.newaxis, :] @ design)[..., 0, :])
    )
    covariance, support, freedom = np.empty((1, 2, 3, 3)), np.empty((1, 2)), np.array([[2.0, 3.0]])
    for number in range(2):
        scores, _ = cluster_scores(units, clusters, mean[0, number], design[0, number])
        half = inverse[0, number] @ scores.T
        covariance[0, number] = clusters.variance_factor * half @ half.T
    wald = _wald(coefficients, covariance)
    for number, used in enumerate((2, 3)):
        support[0, number] = _as_chi_square(float(wald[0, number]), used, clusters.effective_number)
    return covariance, support, freedom


def _wald(coefficients: FloatArray, covariance: FloatArray) -> FloatArray:
    """Return the Wald statistics of both curves of one sample against g = f."""
    found = np.empty((1, 2))
    for number, used in enumerate((2, 3)):
        b, own = coefficients[0, number, :used], covariance[0, number, :used, :used]
        found[0, number] = float(b @ np.linalg.lstsq(own, b, rcond=1e-9)[0])
    return found


def _as_chi_square(wald: float, freedom: int, n_clusters: float) -> float:
    """Map a Wald statistic with an estimated covariance (Hotelling) to about the chi-square of the same tail.

    Bartlett's form of Wilks' statistic: exact for two parameters, within 1% for three and 15 clusters or more. Tails
    themselves underflow, and the supports of two curves are compared however large they are.
    """
    if n_clusters <= freedom:
        return 0.0
    return (n_clusters - 1 - freedom / 2) * math.log1p(wald / (n_clusters - 1))
