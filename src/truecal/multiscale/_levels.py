r"""Sums in nested bins, and the unbiased squared errors that they give.

For a bin with weight m, sum of squared weights :math:`m_2`, residual sum R and sum of squared residuals Q,

.. math:: u = \frac{R^2 - Q}{m^2 - m_2}

is the mean of :math:`r_i r_{i'}` over all pairs of different rows in the bin (of different clusters, if there are any).
It is unbiased for the square of the mean error in the bin, up to the variance of the error within it over the number
of rows. A row that is alone in its bin says nothing there, and takes over u from the bin around it. The binned squared
error is

.. math:: U = \frac1N \sum_k m_k u_k .

If the residuals are noise, its increment from one level to the next is a quadratic form :math:`e^\top A e` of their
sums in bins, less its mean: :math:`e^\top A e = \sum_k a_k e_k^2 - \sum_p a_p e_p^2` over bins k of the level and
bins p of the one before, with :math:`a = m / (m^2 - m_2)`.

The bins of all levels are kept together, level after level from 4 bins on: with t the first of a level that has
:math:`t + 4` bins, bins :math:`t + 2k` and :math:`t + 2k + 1` lie in bin :math:`t/2 - 2 + k`, of the level before.

Sums in nested bins when the rows of a cluster depend on each other.

Products of residuals count only if their rows belong to different clusters, so that :math:`m_2` and Q of a bin are sums
over clusters of the squares of their sums. With :math:`e_{kc}` the residual sum of cluster c in bin k under the beta
curve, less what the cluster moves the fit by, the covariance of the bin sums is :math:`\sum_c e_{kc} e_{lc}`, and the
variance of a level's increment is

.. math:: \frac{2}{N^2} \sum_{c \ne c'} \Big(\sum_k a_k e_{kc} e_{kc'} - \sum_p a_p e_{pc} e_{pc'}\Big)^2 ,

with k the bins of the level and p those of the level before.

Variances that are sums over clusters are themselves uncertain. How much depends on the effective number of clusters
:math:`G = (\sum_c m_c)^2 / \sum_c m_c^2`, the number of clusters of equal weight m that would be as uncertain. With it
sums of squared deviations get the factor :math:`G / (G - 1)`, Wald statistics the distribution of Hotelling, and
confidence limits the variance :math:`\nu / (\nu - 2)` of Student's t with :math:`\nu = G - 1` degrees of freedom.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy

from truecal._lib.types import FloatArray
from truecal.multiscale._curves import Curve, cluster_scores
from truecal.multiscale._units import BoolArray, IntArray, Units, gram, over, sum_matrices, total


@dataclass(frozen=True, eq=False)
class Bins:
    """Sums over bins, some of which may be empty.

    Attributes
    ----------
    weight, weight2 : ndarray of shape (n_samples, n_bins)
        m and m_2.
    residual, residual2 : ndarray
        Sum of w (f - y), and of w^2 (f - y)^2.
    gap : ndarray
        Sum of w (f - g), for the beta curve g.
    error2 : ndarray
        Sum of w^2 (y - g)^2.
    noise : ndarray
        Variance of the residual sum under the beta curve, sum of w^2 g (1 - g).
    """

    weight: FloatArray
    weight2: FloatArray
    residual: FloatArray
    residual2: FloatArray
    gap: FloatArray
    error2: FloatArray
    noise: FloatArray

    @property
    def pairs(self) -> FloatArray:
        """m^2 - m_2: the weight of the pairs of rows in each bin; 0 where a row is alone."""
        square = self.weight**2
        pairs = square - self.weight2
        return np.where(pairs > 1e-9 * square, pairs, 0.0)

    @cached_property
    def alone(self) -> BoolArray:
        """Which bins hold a single row."""
        return np.asarray((self.factor == 0) & (self.weight > 0))

    @cached_property
    def any_alone(self) -> bool:
        """Whether any bin holds a single row."""
        return bool(np.count_nonzero(self.factor) < np.count_nonzero(self.weight))

    @cached_property
    def factor(self) -> FloatArray:
        """m / (m^2 - m_2), or 0 where a row is alone."""
        return over(self.weight, self.pairs)

    def inverse_weight(self) -> FloatArray:
        """Return 1 / m, or 0 in an empty bin."""
        return over(np.ones(1), self.weight)

    @cached_property
    def residual_energy(self) -> FloatArray:
        """m u of each bin, for the residuals score - label."""
        return (self.residual**2 - self.residual2) * self.factor

    @cached_property
    def error_energy(self) -> FloatArray:
        """m u of each bin, for the residuals label - g of the beta curve."""
        return ((self.gap - self.residual) ** 2 - self.error2) * self.factor

    @cached_property
    def mean_residual(self) -> FloatArray:
        """Mean residual score - label; 0 in an empty bin."""
        return over(self.residual, self.weight)

    @cached_property
    def mean_error(self) -> FloatArray:
        """Mean residual label - g of the beta curve; 0 in an empty bin."""
        return over(self.gap - self.residual, self.weight)

    @cached_property
    def noise_density(self) -> FloatArray:
        """Squared noise over m, or 0 where a row is alone: without the pairs of a row with itself."""
        return np.where(self.alone, 0.0, self.noise**2 * self.inverse_weight())


@dataclass(frozen=True, eq=False)
class Level:
    """One of the partitions into bins.

    Attributes
    ----------
    bins : Bins
        Its bins, and those of the other levels.
    where : slice
        Which of them are its own.
    filled : ndarray of int, of shape (n_samples,)
        Number of its bins that are not empty.
    parent : Level or None
        The next coarser level.
    inside : ndarray of int or None
        Bin of the parent in which each bin lies; None if bins 2k and 2k + 1 lie in k.
    """

    bins: Bins
    where: slice = field(default_factory=lambda: slice(None))
    filled: IntArray = field(default_factory=lambda: np.ones(1, dtype=np.intp))
    parent: Level | None = None
    inside: IntArray | None = None

    def up(self, values: FloatArray) -> FloatArray:
        """Return, for each bin, the value of the parent's bin around it."""
        return np.asarray(np.repeat(values, 2, axis=-1) if self.inside is None else values[..., self.inside])

    @property
    def weight(self) -> FloatArray:
        """Weight of each bin."""
        return self.bins.weight[..., self.where]

    @property
    def noise(self) -> FloatArray:
        """Variance of the residual sum of each bin under the beta curve."""
        return self.bins.noise[..., self.where]

    @property
    def mean_residual(self) -> FloatArray:
        """Mean residual score - label of each bin; 0 if it is empty."""
        return self.bins.mean_residual[..., self.where]

    @property
    def mean_error(self) -> FloatArray:
        """Mean residual label - g of each bin; 0 if it is empty."""
        return self.bins.mean_error[..., self.where]


@dataclass(frozen=True, eq=False)
class Levels:
    """All levels, coarse to fine, and what they say; arrays have a leading axis for the levels.

    Attributes
    ----------
    size : float
        N.
    levels : list of Level
        The partitions.
    square : ndarray of shape (n_levels, n_samples)
        U: the binned squared error of the scores.
    within : ndarray
        Squared gap of the beta curve inside the bins, averaged, less what the noise of its parameters adds.
    error_increment : ndarray
        Increment of U for the residuals of the beta curve; its mean is 0 if the curve is right.
    noise_mean, null_variance : ndarray
        Mean of e'Ae, divided by N, and variance of the increment, if the beta curve is right.
    covariance : ndarray of shape (n_samples, 4, 4)
        At the coarsest level, covariance of the bin sums of the beta curve's residuals.
    """

    size: float
    levels: list[Level]
    square: FloatArray
    within: FloatArray
    error_increment: FloatArray
    noise_mean: FloatArray
    null_variance: FloatArray
    covariance: FloatArray

    def __len__(self) -> int:
        return len(self.levels)


def make_levels(units: Units, curve: Curve, mean: FloatArray) -> Levels:
    """Return the levels from 4 bins on; `mean` is the curve at the units' scores."""
    if units.depth < 2:
        none = np.empty((0, len(units.score)))
        return Levels(units.size, [], none, none, none, none, none, np.empty((len(units.score), 4, 4)))
    by_unit, gap2 = _by_unit(units, mean)
    bins = _bins(units, by_unit)
    clusters = sums_by_cluster(units, curve)
    if clusters:
        noise = np.concatenate([np.diag(one.covariance) for one in clusters])[np.newaxis]
        bins = replace(
            bins,
            weight2=np.concatenate([one.weight2 for one in clusters])[np.newaxis],
            residual2=np.concatenate([one.residual2 for one in clusters])[np.newaxis],
            error2=noise,  # it allows for the fit already
            noise=noise,
        )
    levels = _levels(units, curve, bins, gap2, clusters)
    return _with_level_of_units(levels, units, by_unit) if units.saturated else levels


def _by_unit(units: Units, mean: FloatArray) -> tuple[Bins, FloatArray]:
    """Return the units as bins, and the sum of w (f - g)^2."""
    distance, square = units.score - mean, mean**2
    bins = Bins(
        weight=units.weight,
        weight2=units.weight2,
        residual=units.residual,
        residual2=units.residual2,
        gap=units.weight * distance,
        error2=units.positives2 * (1 - 2 * mean) + units.weight2 * square,
        noise=units.weight2 * (mean - square),
    )
    if units.noise is not None:
        bins = replace(
            bins,
            error2=units.residual2 - 2 * distance * units.residual_weight2 + distance**2 * units.weight2,
            noise=units.noise,
        )
    return bins, np.vecdot(bins.gap, distance)


def one_bin(units: Units) -> Level:
    """Return the level of a single bin, for its residuals; it does not use the beta curve."""
    weight2, residual2 = units.squares()
    sums = [units.weight.sum(), weight2, units.residual.sum(), residual2, 0.0, 0.0, 0.0]
    return Level(Bins(*np.array(sums)[:, np.newaxis, np.newaxis]))


def _bins(units: Units, by_unit: Bins) -> Bins:
    """Return the bins of all levels together."""
    columns = [getattr(by_unit, column.name) for column in fields(Bins)]
    n_bins = 2**units.depth
    tree = np.empty((len(columns), *by_unit.gap.shape[:-1], 2 * n_bins - 4))
    for row, values in zip(tree, columns, strict=True):
        row[..., -n_bins:] = units.sums(values, units.depth)
    _sum_upwards(tree)
    return Bins(*tree)


def _sum_upwards(tree: FloatArray) -> None:
    """Fill in the sums of all levels from those of the finest, which are the last."""
    first = tree.shape[-1] // 2 - 2
    while first > 0:
        children = tree[..., first : 2 * first + 4]
        np.add(children[..., 0::2], children[..., 1::2], out=tree[..., first // 2 - 2 : first])
        first = first // 2 - 2


def _take_over(level: Level) -> None:
    """Give bins with a single row the u of their parent bin."""
    parent = level.parent
    assert parent is not None
    for energy, above in (
        (level.bins.residual_energy, parent.bins.residual_energy),
        (level.bins.error_energy, parent.bins.error_energy),
    ):
        around = level.up(over(above[..., parent.where], parent.weight)) * level.weight
        np.copyto(energy[..., level.where], around, where=level.bins.alone[..., level.where])


def _divide(bins: Bins, starts: IntArray) -> list[Level]:
    """Return the levels of bins; `starts` has the first bin of each, and at the end their number."""
    filled = np.add.reduceat(bins.weight > 0, starts[:-1], axis=-1, dtype=np.intp)
    levels: list[Level] = []
    for number, (start, end) in enumerate(pairwise(starts)):
        levels.append(Level(bins, slice(start, end), filled[:, number], levels[-1] if levels else None))
        if bins.any_alone and number > 0:
            _take_over(levels[-1])
    return levels


def _by_level(values: FloatArray, first: IntArray) -> FloatArray:
    """Return the sums of values over the bins of each level, which begin at `first`."""
    return np.asarray(np.add.reduceat(values, first, axis=-1))


def _noise_of_increments(bins: Bins, first: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean and half the variance of e'Ae of each level, 0 for the coarsest, and the factors a of its parents."""
    # Bins are compared with those around them, of which only the part with several rows in a bin has an increment.
    around, before = slice(None, first[-1]), first[:-1]
    share: FloatArray | float = 1.0
    if bins.any_alone:
        several = np.where(bins.alone, 0.0, bins.weight)[..., 4:]
        share = over(several[..., 0::2] + several[..., 1::2], bins.weight[..., around])
    above = bins.factor[..., around] * share
    mean = _by_level(bins.factor * bins.noise, first)
    variance = _by_level(bins.factor * bins.noise_density, first)
    mean[..., 0] = variance[..., 0] = 0.0
    if len(before):
        # A bin around others counts with its own noise, and twice with that of the bins inside.
        inside = bins.noise_density[..., 4:]
        outside = bins.noise_density[..., around] * share - 2 * (inside[..., 0::2] + inside[..., 1::2])
        mean[..., 1:] -= _by_level(above * bins.noise[..., around], before)
        variance[..., 1:] += _by_level(above * outside, before)
    return mean, variance, above


def _levels(units: Units, curve: Curve, bins: Bins, gap2: FloatArray, clusters: list[ClusterSums]) -> Levels:
    """Return the levels; `gap2` is the sum of w (f - g)^2."""
    size, starts = units.size, 2 ** np.arange(2, units.depth + 2) - 4  # the last is where the levels end
    levels, first = _divide(bins, starts), starts[:-1]
    square = _by_level(bins.residual_energy, first) / size
    error = _by_level(bins.error_energy, first)
    error[..., 1:] -= error[..., :-1].copy()
    between = _by_level(bins.gap**2 * bins.inverse_weight(), first)
    mean, variance, above = _noise_of_increments(bins, first)

    # What the noise of the curve's parameters does, as far as the cells of the fit resolve it.
    effect, noise = _effects(units, curve), curve.noise.total[:, np.newaxis]
    width = effect.shape[-1]
    known = first[first < width]
    noise_between = np.repeat(noise, len(levels), axis=-1)
    noise_between[..., : len(known)] = _by_level(
        over(np.square(effect).sum(axis=-2), bins.weight[..., :width]), known
    )
    if not clusters and len(known) > 1:
        begin = known[1:] - 4
        inside, outside = effect[..., 4:], above[..., np.newaxis, : known[-1]] * effect[..., : known[-1]]
        contrast = bins.factor[..., np.newaxis, 4:width] * inside - np.repeat(outside, 2, axis=-1)
        taken = _by_level(inside[..., np.newaxis, :] * contrast[..., np.newaxis, :, :], begin)
        trace = np.trace(taken, axis1=-3, axis2=-2)
        mean[..., 1 : len(known)] -= trace
        error[..., 1 : len(known)] += trace
        spread = np.square(contrast).sum(axis=-2) * bins.noise[..., 4:width]
        variance[..., 1 : len(known)] += np.square(taken).sum(axis=(-3, -2)) - 2 * _by_level(spread, begin)
    within = (gap2[:, np.newaxis] - noise - between + noise_between) / size
    variance = np.maximum(2 * variance / size**2, 0.0)
    for number, (outer, inner) in enumerate(pairwise(clusters), start=1):
        start, end = levels[number].where.start, levels[number].where.stop
        variance[:, number] = null_variance(
            inner, bins.factor[0, start:end], outer, above[0, start // 2 - 2 : start], size
        )
    fitted = effect[..., :4].swapaxes(-1, -2) @ effect[..., :4]
    covariance = bins.noise[..., :4, np.newaxis] * np.eye(4) - fitted
    return Levels(
        size=size,
        levels=levels,
        square=square.T,
        within=within.T,
        error_increment=error.T / size,
        noise_mean=mean.T / size,
        null_variance=variance.T,
        covariance=clusters[0].covariance[np.newaxis] if clusters else covariance,
    )


def _with_level_of_units(levels: Levels, units: Units, by_unit: Bins) -> Levels:
    """Return the levels with the one in which every distinct score is a bin."""
    size, parent = units.size, levels.levels[-1]
    level = Level(by_unit, filled=np.array([len(units)]), parent=parent, inside=units.bin[0])
    _take_over(level)
    around, where = parent.bins, parent.where
    several = np.where(by_unit.alone, 0.0, by_unit.weight)
    share = over(total(units.bin, several, parent.weight.shape[-1]), parent.weight)
    above = around.factor[:, where] * share
    mean = np.vecdot(by_unit.factor, by_unit.noise) - np.vecdot(above, parent.noise)
    variance = np.vecdot(by_unit.factor - 2 * level.up(above), by_unit.noise_density)
    variance += np.vecdot(above * share, around.noise_density[:, where])
    square = by_unit.residual_energy.sum(axis=-1)
    error = by_unit.error_energy.sum(axis=-1) - around.error_energy[:, where].sum(axis=-1)
    return replace(
        levels,
        levels=[*levels.levels, level],
        square=np.vstack([levels.square, square / size]),
        within=np.vstack([levels.within, np.zeros(1)]),
        error_increment=np.vstack([levels.error_increment, error / size]),
        noise_mean=np.vstack([levels.noise_mean, mean / size]),
        null_variance=np.vstack([levels.null_variance, np.maximum(2 * variance / size**2, 0.0)]),
    )


def _effects(units: Units, curve: Curve) -> FloatArray:
    """Return what the noise of the curve's parameters does to the sums of w g in bins: B, with B'B their covariance.

    It has three rows, and columns for the bins of the levels that are no finer than the cells of the fit.
    """
    noise = curve.noise
    n_bins = 2**noise.depth
    tree = np.empty((*noise.effect.shape[:-1], 2 * n_bins - 4))
    for row in range(3):
        tree[..., row, -n_bins:] = total(noise.place, noise.effect[..., row, :], n_bins)
    _sum_upwards(tree)
    return tree


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Sums of one level by cluster.

    Attributes
    ----------
    weight2, residual2 : ndarray
        Sums over clusters of the squared weight and of the squared residual sum, by bin.
    covariance : ndarray of shape (n_bins, n_bins)
        Covariance of the bin sums of the beta curve's residuals.
    error : sparse array or ndarray, of shape (n_clusters, n_bins)
        Residual sum of each cluster in each bin under the beta curve.
    scores, slope : ndarray of shape (n_clusters, 3) and (n_bins, 3)
        What the fit takes out of these sums is the product of the two.
    """

    weight2: FloatArray
    residual2: FloatArray
    covariance: FloatArray
    error: Any
    scores: FloatArray
    slope: FloatArray

    def squares(self, factor: FloatArray) -> FloatArray:
        """Return, for each cluster, the sum over bins of factor times its squared residual sum, less the fit."""
        weighted = factor[:, np.newaxis] * self.slope
        taken = self.scores @ (self.slope.T @ weighted) - 2 * (self.error @ weighted)
        return np.asarray(self.error**2 @ factor + np.vecdot(self.scores, taken))


def sums_by_cluster(units: Units, curve: Curve) -> list[ClusterSums]:
    """Return the sums of the levels from 4 bins on, coarse to fine; none for independent rows."""
    if (table := units.clusters) is None:
        return []
    mean, design = curve(units.score)[0], curve.design(units.score)[0]
    scores, error = cluster_scores(units, table, mean, design)
    weight = units.weight[0] * mean * (1 - mean)
    n_bins = 2**units.depth
    slope = np.stack([total(units.bin[0], weight * column, n_bins) for column in design], axis=1)
    slope = slope @ curve.inverse[0]  # effect of a cluster's score vector on the bin sums, through the fit

    bins, shape = units.bin[0][table.unit], (table.n_clusters, n_bins)
    matrices = sum_matrices(table.cluster, bins, shape, table.weight, table.residual, error)
    cross = (matrices[2].T @ scores) @ slope.T
    plain = gram(matrices[2]) - cross - cross.T + slope @ (scores.T @ scores) @ slope.T
    covariance = np.asarray(plain) * table.variance_factor
    found: list[ClusterSums] = []
    while True:
        weight2, residual2 = (np.asarray((matrix**2).sum(axis=0), np.float64) for matrix in matrices[:2])
        found.insert(0, ClusterSums(weight2, residual2, covariance, matrices[2], scores, slope))
        if n_bins <= 4:
            return found
        n_bins = n_bins // 2
        matrices = [_coarser(matrix) for matrix in matrices]
        covariance = covariance.reshape(n_bins, 2, n_bins, 2).sum(axis=(1, 3))
        slope = slope[0::2] + slope[1::2]


def _coarser(matrix: Any) -> Any:
    """Return the sums in bins of twice the width, as an array once most of them are not 0."""
    if isinstance(matrix, np.ndarray):
        return matrix[:, 0::2] + matrix[:, 1::2]
    # Bins of a cluster are in order, so that those with the same half follow one another.
    entries = matrix.data.copy(), matrix.indices >> 1, matrix.indptr.copy()
    coarse = scipy.sparse.csr_array(entries, shape=(matrix.shape[0], matrix.shape[1] // 2))
    coarse.sum_duplicates()
    return coarse.toarray() if 2 * coarse.nnz > math.prod(coarse.shape) else coarse


def null_variance(
    mine: ClusterSums, factor: FloatArray, above: ClusterSums | None, factor_above: FloatArray, size: float
) -> float:
    """Return the variance of a level's increment if its residuals are noise."""
    value = float(factor @ mine.covariance**2 @ factor)
    own = mine.squares(factor)
    if above is not None:
        n_above = len(factor_above)
        mixed = mine.covariance.reshape(len(factor), n_above, 2).sum(axis=2)
        value += float(factor_above @ above.covariance**2 @ factor_above)
        value -= 2 * float(factor @ mixed**2 @ factor_above)
        own = own - above.squares(factor_above)
    return max(2 * (value - float(own @ own)) / size**2, 0.0)
