r"""The core of one sample: its squared error, the noise of it, and the evidence against calibration.

The l1 error: lower bounds in expectation, so that noise is never taken for error.

For a unit with observed residual sum R, weight m and estimated error d with standard deviation s, let
:math:`h = 2\Phi(a d/s) - 1`, a smooth sign. By Stein's identity

.. math:: E\big[R\,h - 2 a s m\,\phi(a d/s)\big] = m\,E[d]\,E[h] \le m\,|E d| ,

exactly 0 where there is no error. Summed over units this estimates the l1 error from below, closely where errors exceed
their noise. For bins Hölder's inequality gives another bound, :math:`E|d| \ge (E d^2)^{3/2} / (E d^4)^{1/2}`; the
larger of the two counts. For the smooth curve the root of its squared error, times the ratio of the two norms of
its gap, counts if it is larger.
The bounds of the levels are averaged with the probability that each is the finest that holds error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from truecal._lib.types import FloatArray
from truecal.data.sample import Block, Sample
from truecal.multiscale import _constants as const
from truecal.multiscale._curves import Curve, fit_curves
from truecal.multiscale._evidence import Blocks, Posterior, contributions, make_blocks, prior_odds, weigh
from truecal.multiscale._intervals import cut_scores, holders, make_upper
from truecal.multiscale._levels import Level, Levels, make_levels, one_bin
from truecal.multiscale._limits import Limits, jensen_limit
from truecal.multiscale._null import FlipScale, flip_scale
from truecal.multiscale._units import (
    IntArray,
    Units,
    enough_clusters,
    inflation,
    make_units,
    over,
    units_of_samples,
)
from truecal.multiscale._upper import UpperLimit


@dataclass(frozen=True, eq=False)
class SquaredErrors:
    """The squared errors of samples that are analysed together; arrays have a leading axis for these.

    Attributes
    ----------
    units : Units
        Sums of the predictions.
    logistic, beta : Curve
        The smooth curves.
    gaps : tuple of ndarray
        Score less curve at the units, for both.
    levels : Levels
        Nested bins.
    blocks : Blocks
        Increments of the squared error: logistic, beta, and the levels that differ from the one before.
    posterior : Posterior
        Which blocks hold error.
    """

    units: Units
    logistic: Curve
    beta: Curve
    gaps: tuple[FloatArray, FloatArray]
    levels: Levels
    blocks: Blocks
    posterior: Posterior

    @property
    def size(self) -> float:
        """Effective number of rows."""
        return self.units.size

    @cached_property
    def square(self) -> FloatArray:
        """Estimate of the squared calibration error; it may be negative."""
        return np.asarray(contributions(self.blocks, self.posterior).sum(axis=0))

    @cached_property
    def gate(self) -> FloatArray:
        """Factor on the error: near 0 without evidence of miscalibration, near 1 with it.

        With posterior odds o of miscalibration it is :math:`o^2 / (1 + o^2)`, between the posterior mean
        and the posterior median of an error that may be exactly 0.
        """
        log_odds = self.posterior.log_evidence + math.log(prior_odds(self.size))
        return np.asarray(1 / (1 + np.exp(-2 * np.minimum(np.maximum(log_odds, -300.0), 300.0))))

    @cached_property
    def root(self) -> FloatArray:
        r"""Root of the squared error, without the gate.

        The real part of :math:`\sqrt{\theta + i\sqrt V}`, with V the variance of the squared error: it removes
        the bias of the root to second order, and is never imaginary.
        """
        variance = self.slope * np.maximum(self.square, 0.0)
        half = (self.square + np.hypot(self.square, np.sqrt(variance))) / 2
        score = self.units.score
        largest = np.vecdot(np.maximum(score, 1 - score) ** 2, self.units.weight) / self.size
        return np.asarray(np.sqrt(np.minimum(np.maximum(half, 0.0), np.minimum(largest, 1.0))))

    @cached_property
    def gap(self) -> FloatArray:
        """Estimated score - curve of each unit: smooth curves and bins, each shrunk by the evidence for it."""
        q = self.posterior.probability[..., np.newaxis]
        gap = q[1] * self.gaps[1] + (1 - q[1]) * self.gaps[0]
        share = q[2:] * self.blocks.shrinkage[2:, ..., np.newaxis]
        shift: FloatArray | None = None  # of the bins of the level at hand
        below = dict(zip(self.blocks.levels, share, strict=True))
        for number, level in enumerate(self.levels.levels):
            if shift is not None:
                shift = level.up(shift)
            if number in below and (below[number] > 1e-6).any():
                error = level.mean_error
                before = 0.0 if level.parent is None else level.up(level.parent.mean_error)
                step = below[number] * (error - before)
                shift = step if shift is None else shift + step
        if shift is None:
            return np.asarray(gap)
        if self.levels.levels[-1].inside is None:  # from bins to units
            shift = shift[np.arange(len(shift))[:, np.newaxis], self.units.bin]
        return np.asarray(gap - shift)

    @cached_property
    def slope(self) -> FloatArray:
        """First-order variance of the squared error, divided by the squared error; at least that of half a row."""
        variance = self.units.variance(2 * self.gap, self.gap**2)
        return np.asarray(variance / np.maximum(self.energy, 1e-30) + 2 / self.size**2)

    @cached_property
    def energy(self) -> FloatArray:
        """Mean of the squared gap."""
        return np.asarray(np.vecdot(self.gap**2, self.units.weight) / self.size)


@dataclass(frozen=True, eq=False)
class Multiscale:
    """Results of the core analysis of a sample.

    Attributes
    ----------
    squared : SquaredErrors
        Its squared error.
    sample : Sample
        The predictions.
    """

    squared: SquaredErrors
    sample: Sample

    @property
    def units(self) -> Units:
        """Sums of the predictions."""
        return self.squared.units

    @property
    def size(self) -> float:
        """Effective number of rows."""
        return self.squared.units.size

    @property
    def score(self) -> FloatArray:
        """Mean score of each unit."""
        return np.asarray(self.squared.units.score[0])

    @property
    def weight(self) -> FloatArray:
        """Weight of each unit."""
        return np.asarray(self.squared.units.weight[0])

    @property
    def gap(self) -> FloatArray:
        """Estimated score - curve of each unit."""
        return np.asarray(self.squared.gap[0])

    @property
    def square(self) -> float:
        """Estimate of the squared calibration error; it may be negative."""
        return float(self.squared.square[0])

    @property
    def energy(self) -> float:
        """Mean of the squared gap."""
        return float(self.squared.energy[0])

    @property
    def gate(self) -> float:
        """Factor on the error: near 0 without evidence of miscalibration, near 1 with it."""
        return float(self.squared.gate[0])

    @property
    def log_evidence(self) -> float:
        """ln Z: logarithm of the Bayes factor of miscalibration against calibration."""
        return float(self.squared.posterior.log_evidence[0])

    @property
    def smooth(self) -> Curve:
        """The beta curve if it probably improves on the logistic curve, else the logistic curve."""
        squared = self.squared
        return squared.beta if squared.posterior.probability[1, 0] > 0.5 else squared.logistic

    # --- the error ---------------------------------------------------------------------------------

    @cached_property
    def pvalue(self) -> float:
        """Closed-form p-value of calibration, min(1, 0.13 / Z); with clusters, as the test sees them."""
        return self.flip_scale.discounted(pvalue_of_evidence(self.log_evidence))

    @cached_property
    def flip_scale(self) -> FlipScale:
        """How far the sums of clusters, if there are any, show how much clusters differ."""
        table = self.units.clusters
        if table is None or self.units.noise is not None:
            return FlipScale(1.0, 0.0)
        few = holders(self.units, table) < const.FEWEST_HOLDERS
        known = "the rarer or less likely outcome occurs in too few clusters" if few else ""
        return flip_scale(self.score[table.unit], table.residual, table.weight, table.cluster, known)

    def error(self, norm: float = 2) -> float:
        """Return the calibration error."""
        return self.gate * self.ungated(norm)

    def ungated(self, norm: float) -> float:
        """Return the error without the gate.

        Orders other than 1 and 2 come from these two and the shape of the estimated curve.
        """
        root = float(self.squared.root[0])
        if norm == 2:
            return root
        absolute = min(max(self.absolute.value, 0.0), root)
        if norm == 1:
            return absolute
        size = np.abs(self.gap)
        largest = float(size.max())
        if largest == 0:
            return root

        def shape(p: float) -> float:
            return largest * math.pow(float(self.weight @ (size / largest) ** p) / self.size, 1 / p)

        if norm > 2:
            return min(root * shape(norm) / shape(2), self.largest(norm))
        share = 2 / norm - 1  # Lyapunov: |d|_p <= |d|_1^share |d|_2^(1 - share)
        ratio = shape(norm) / (math.pow(shape(1), share) * math.pow(shape(2), 1 - share))
        between = math.pow(absolute, share) * math.pow(root, 1 - share) * ratio
        return max(absolute, min(between, root))

    def largest(self, norm: float) -> float:
        """Return the largest error that the scores allow: every label on the far side."""
        far = np.maximum(self.score, 1 - self.score)
        most = float(far.max())  # the powers of a large norm would underflow
        return min(most * math.pow(float(self.weight @ (far / most) ** norm) / self.size, 1 / norm), 1.0)

    # --- the l1 error ------------------------------------------------------------------------------

    def _place(self, level: Level) -> IntArray:
        """Return the bin of each unit at a level."""
        if level.inside is not None:
            return np.arange(len(self.units))
        return np.asarray(self.units.bin[0] >> (self.units.depth - (level.weight.shape[-1].bit_length() - 1)))

    @cached_property
    def absolute(self) -> AbsoluteError:
        """The l1 error before the gate."""
        squared, none = self.squared, 1.0
        scales: list[Scale] = []
        levels, beta = squared.levels, squared.beta
        for q, number in zip(
            squared.posterior.probability[:1:-1, 0], squared.blocks.levels[::-1], strict=True
        ):
            if q * none > 1e-3:
                level, square = levels.levels[number], levels.square[number, 0]
                scales.append((float(q) * none, level, self._place(level), float(square)))
            none *= 1 - float(q)
        (sd,) = _evaluate(lambda score: (beta.sd(score),), self.units.score)
        return absolute_error(self.units, scales, squared.gaps[1], sd, (none, float(beta.square[0])))

    # --- variances ---------------------------------------------------------------------------------

    def unit_of(self, score: NDArray[Any]) -> IntArray:
        """Return the unit of each row of the sample."""
        group = np.searchsorted(self.sample.score, score.astype(np.float64))
        group = np.minimum(group, len(self.sample) - 1)  # a row of weight 0 may lie outside
        start = self.units.start
        return np.asarray(group if start is None else np.searchsorted(start, group, side="right") - 1)

    def influence(self, label: NDArray[Any], score: NDArray[Any], *, norm: float = 2) -> FloatArray:
        """Return the influence of rows of the sample on the error, up to a constant, in their order.

        For l2 that is psi = 2 r d - d^2, whose mean has the noise of the squared error to first order.
        """
        unit = self.unit_of(score)
        if norm == 1:
            return np.asarray(self.absolute.sign[unit] * (score - label))
        gap = self.gap[unit]
        return np.asarray(gap * (2 * (score - label) - gap))

    def limits_for(self, norm: float, resolution: int | None = None) -> Limits:
        """Return the confidence limits of the l1 or the l2 error."""
        limits = self.limits if norm == 2 else self.absolute_limits
        return limits if resolution is None else replace(limits, above=self.upper_limit(resolution))

    def variance(self, norm: float) -> float:
        """Return the variance of the mean of the rows' influence; see `influence`."""
        if norm == 1:
            sign = self.absolute.sign[np.newaxis]
            return float(self.units.variance(sign, np.zeros_like(sign))[0])
        return float(self.units.variance(2 * self.squared.gap, self.squared.gap**2)[0])

    # --- limits ------------------------------------------------------------------------------------

    @property
    def reliable(self) -> bool:
        """Whether there are no clusters, or enough of them to estimate how much they differ."""
        dependence, pseudo = self.sample.dependence, self.sample.pseudo
        if pseudo is not None and pseudo.too_few:
            return False
        return enough_clusters(dependence.n_clusters, dependence.effective_number)

    @property
    def inflation(self) -> float:
        """Factor on variances in limits; above 1 if there are clusters."""
        return inflation(self.sample.dependence.effective_number)

    def upper_limit(self, resolution: int | None = None) -> UpperLimit:
        """Return what upper limits need; the intervals are fixed before the labels are looked at."""
        n_distinct, most = len(self.sample), self.sample.dependence.effective_number
        place = cut_scores(self.score, self.weight, n_distinct, resolution, most)
        votes = 1.0 if self.sample.pseudo is None else self.sample.pseudo.votes
        limit = make_upper(self.units, self.squared.gaps[1][0], place, n_distinct, votes)
        # Error that was found on finer scales is error inside intervals.
        levels = [self.squared.levels.levels[number] for number in self.squared.blocks.levels]
        finer = [
            float(square)
            for square, level in zip(self._established[2:], levels, strict=True)
            if level.filled[0] > len(limit)
        ]
        return replace(limit, inside=max(limit.inside, sum(finer), 0.0))

    @property
    def _established(self) -> FloatArray:
        """Parts of the squared error for which there is evidence, from which lower limits start."""
        return np.asarray(self.squared.posterior.probability[:, 0] * self.squared.blocks.increment[:, 0])

    @cached_property
    def limits(self) -> Limits:
        """Confidence limits of the l2 error."""
        q = self.squared.posterior.probability[:, 0]
        reach = q.copy()
        reach[3:] = np.maximum(q[3:], q[2:-1])  # one level finer than found
        increment, null = self.squared.blocks.increment[:, 0], self.squared.blocks.null_variance[:, 0]
        factor = self.inflation
        return Limits(
            error=self.error(2),
            square=float(self._established.sum()),
            slope=factor * float(self.squared.slope[0]),
            null_variance=float(factor**2 * (reach**2 @ null) + (q * (1 - q)) @ increment**2),
            noise_variance=float(factor**2 * (reach**2 @ null)),
            largest=self.largest(2),
            pvalue=self.pvalue,
            above=self.upper_limit(),
            reliable=self.reliable,
        )

    @cached_property
    def absolute_limits(self) -> Limits:
        """Confidence limits of the l1 error.

        The lower limit is as for l2, with the influence r h of the smooth sign h. The upper limit is that of l2, which
        the l1 error cannot exceed.
        """
        two = self.limits
        absolute, root = self.ungated(1), self.ungated(2)
        ratio = absolute / root if root > 0 else 1.0
        scale = (1 - self.gate * (1 - ratio)) ** 2  # without evidence, no less than for l2
        return replace(
            two,
            error=self.error(1),
            square=min(two.square, max(self.absolute.below, 0.0) ** 2),
            slope=self.inflation * (4 * self.variance(1) + 2 / self.size**2),
            null_variance=scale**2 * two.null_variance,
            noise_variance=scale**2 * two.noise_variance,
            largest=self.largest(1),
        )

    def lower_limit(self, tail: float) -> float:
        """Return a lower limit of the l2 error that holds for any curve."""
        units, squared = self.units, self.squared
        model = units.weight2 * units.score * (1 - units.score) if units.noise is None else units.noise
        levels = [squared.levels.levels[number] for number in squared.blocks.levels]
        spread = [model.sum(axis=1)]
        spread += [np.bincount(self._place(one), model[0], one.weight.shape[-1]) for one in levels]
        return min(jensen_limit(units.size, [one_bin(units), *levels], spread, tail), self.error(2))


def pvalue_of_evidence(log_evidence: float) -> float:
    """Return the p-value of calibration that corresponds to a Bayes factor, or to the mean of several."""
    return min(1.0, const.EVIDENCE_SCALE * math.exp(-max(log_evidence, -3.0)))


def analyse(sample: Sample) -> Multiscale:
    """Return the core's analysis of a sample; it is computed once.

    Examples
    --------
    >>> import truecal
    >>> from truecal.data import as_sample
    >>> population = truecal.paper.population("resnet152_imgnet")
    >>> sample = as_sample(*population.sample(5000, rng=0))
    >>> core = analyse(sample)
    >>> core is analyse(sample)
    True
    """
    known: Multiscale | None = sample.__dict__.get("_multiscale")
    if known is None:
        known = Multiscale(squared_errors(make_units(sample)), sample)
        sample.__dict__["_multiscale"] = known
    return known


def errors_in_block(block: Block) -> tuple[FloatArray, FloatArray]:
    """Return the l2 errors of the samples of a block, and the estimates of their squares.

    Samples whose scores are mostly different are analysed together, in pieces that fit into the cache.
    """
    error, square = np.empty(len(block)), np.empty(len(block))
    step = min(max(const.ROWS_TOGETHER // block.n, 16), 64)
    mostly_different = np.diff(block.bounds) > block.n / 2
    alone = [*np.flatnonzero(~mostly_different)]
    together = np.flatnonzero(mostly_different)
    for piece in (together[first : first + step] for first in range(0, len(together), step)):
        found = analyse_many(block.row_score[piece], block.row_label[piece])
        if found is None:
            alone.extend(piece)
        else:
            error[piece], square[piece] = found.gate * found.root, found.square
    for k in alone:
        core = analyse(block.samples[k])
        error[k], square[k] = core.error(2), core.square
    return error, square


def analyse_many(score: FloatArray, label: FloatArray) -> SquaredErrors | None:
    """Return the squared errors of several samples, which are analysed together; None if that is not possible."""
    units = units_of_samples(score, label)
    if units is None:
        return None
    found = squared_errors(units)
    return found if len(found.blocks.levels) == len(found.levels) else None  # the same levels in all samples


def squared_errors(units: Units) -> SquaredErrors:
    """Fit the curves, sum in bins, and weigh the evidence."""
    logistic, beta = fit_curves(units)
    gap, mean = _evaluate(lambda score: (logistic(score), beta(score)), units.score)
    np.subtract(units.score, gap, out=gap)  # the logistic curve is not needed again
    gaps = gap, units.score - mean
    levels = make_levels(units, beta, mean)
    blocks = make_blocks(logistic, beta, levels)
    return SquaredErrors(units, logistic, beta, gaps, levels, blocks, weigh(blocks))


def _evaluate(
    curves: Callable[[FloatArray], tuple[FloatArray, ...]], score: FloatArray
) -> tuple[FloatArray, ...]:
    """Return smooth functions at ascending scores, interpolated if these are many, as those of one sample can be."""
    if score.shape[-1] <= const.MOST_EXACT_UNITS:
        return curves(score)
    nodes = score[:, np.linspace(0, score.shape[-1] - 1, const.MOST_EXACT_UNITS // 8 + 1).astype(np.intp)]
    return tuple(np.interp(score[0], nodes[0], values[0])[np.newaxis] for values in curves(nodes))


@dataclass(frozen=True, eq=False)
class AbsoluteError:
    """The l1 error before the gate.

    Attributes
    ----------
    value : float
        The estimate; it may be slightly negative.
    below : float
        A smaller one, by the smooth sign alone: lower limits start from it.
    sign : ndarray
        Smooth sign of the error of each unit, averaged over the levels; r times it is the influence of a row.
    """

    value: float
    below: float
    sign: FloatArray


#: A level that may be the finest that holds error: the probability of that, its bins, the bin of each unit, and the
#: squared error of its bins.
Scale = tuple[float, Level, IntArray, float]


def absolute_error(
    units: Units,
    scales: list[Scale],
    gap: FloatArray,
    sd: FloatArray,
    smooth: tuple[float, float],
) -> AbsoluteError:
    """Average the bounds of the smooth curve and of the levels."""
    share, square = smooth
    bound = _bound(units, gap, sd)
    value, below = share * max(bound.value, _of_shape(units, gap, square)), share * bound.value
    sign = share * bound.sign
    for share, level, place, square in scales:
        noise = np.sqrt(over(level.noise, level.weight**2))
        bound = _bound(units, gap - level.mean_error[:, place], noise[:, place])
        value += share * max(bound.value, _hoelder(level, noise, square, units.size))
        below += share * bound.value
        sign = sign + share * bound.sign
    return AbsoluteError(value, below, sign[0])


def _bound(units: Units, error: FloatArray, sd: FloatArray) -> AbsoluteError:
    """Return the bound by the smooth sign at one level."""
    sd = np.maximum(sd, 1e-12)
    scaled = const.SHARPNESS * error / sd
    sign = 2 * scipy.special.ndtr(scaled) - 1
    # sd times the derivative of the sign
    density = 2 * const.SHARPNESS * np.exp(-0.5 * scaled**2) / math.sqrt(2 * math.pi)
    value = float((np.vecdot(units.residual, sign) - np.vecdot(units.weight, sd * density))[0]) / units.size
    return AbsoluteError(value, value, sign)


def _of_shape(units: Units, gap: FloatArray, square: float) -> float:
    """Return the l1 error of a smooth curve from its squared error, if that is positive, and its shape."""
    energy = float(np.vecdot(units.weight, gap**2)[0]) * units.size
    if square <= 0 or energy <= 0:
        return -math.inf
    return math.sqrt(square / energy) * float(np.vecdot(units.weight, np.abs(gap))[0])


def _hoelder(level: Level, sd: FloatArray, square: float, size: float) -> float:
    mean = level.mean_residual
    fourth = float(np.vecdot(level.weight, mean**4 - 6 * sd**2 * mean**2 + 3 * sd**4)[0]) / size
    if square <= 0 or fourth <= square**2:
        return 0.0
    return math.sqrt(square**3 / fourth)
