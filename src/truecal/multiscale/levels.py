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
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray
from truecal.multiscale.clusters import ClusterSums, null_variance, sums_by_cluster
from truecal.multiscale.curves import Curve
from truecal.multiscale.units import IntArray, Units, total


@dataclass(frozen=True, eq=False)
class Bins:
    """Sums over bins, some of which may be empty.

    Attributes
    ----------
    weight, weight2 : ndarray
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

    def part(self, where: slice) -> Bins:
        """Return some of the bins, with all that is known of them."""
        part = Bins(
            self.weight[where],
            self.weight2[where],
            self.residual[where],
            self.residual2[where],
            self.gap[where],
            self.error2[where],
            self.noise[where],
        )
        known = {key: value[where] for key, value in self.__dict__.items() if key not in part.__dict__}
        part.__dict__.update(known)
        return part

    @cached_property
    def pairs(self) -> FloatArray:
        """m^2 - m_2: the weight of the pairs of rows in each bin; 0 where a row is alone."""
        square = self.weight**2
        pairs = square - self.weight2
        pairs[pairs <= 1e-9 * square] = 0.0
        return pairs

    @cached_property
    def alone(self) -> NDArray[np.bool_]:
        """Which bins hold a single row."""
        return np.asarray((self.pairs == 0) & (self.weight > 0))

    @cached_property
    def factor(self) -> FloatArray:
        """M / (m^2 - m_2), or 0 where a row is alone."""
        return over(self.weight, self.pairs)

    @cached_property
    def residual_density(self) -> FloatArray:
        """U of each bin, for the residuals score - label."""
        return over(self.residual**2 - self.residual2, self.pairs)

    @cached_property
    def error_density(self) -> FloatArray:
        """U of each bin, for the residuals label - g of the beta curve."""
        return over((self.gap - self.residual) ** 2 - self.error2, self.pairs)

    @cached_property
    def noise_of_pairs(self) -> FloatArray:
        """Squared noise, without the pairs of a row with itself."""
        return self.noise**2 * over(self.pairs, self.weight**2)


@dataclass(frozen=True, eq=False)
class Level:
    """One partition into bins.

    Attributes
    ----------
    size : float
        N.
    bins : Bins
        The bins.
    parent : Level or None
        The next coarser level.
    inside : ndarray of int or None
        Bin of the parent in which each bin lies; None if bins 2k and 2k + 1 lie in k.
    square : float
        U: the binned squared error of the scores.
    within : float
        Squared gap of the beta curve inside the bins, averaged, less what the noise of its parameters adds.
    error_increment : float
        Increment of U for the residuals of the beta curve; its mean is 0 if the curve is right.
    noise_mean, null_variance : float
        Mean of e'Ae, divided by N, and variance of the increment, if the beta curve is right.
    covariance : ndarray or None
        At the coarsest level, covariance of the bin sums of the beta curve's residuals.
    """

    size: float
    bins: Bins
    parent: Level | None = None
    inside: IntArray | None = None
    square: float = 0.0
    within: float = 0.0
    error_increment: float = 0.0
    noise_mean: float = 0.0
    null_variance: float = 0.0
    covariance: FloatArray | None = None

    @property
    def weight(self) -> FloatArray:
        """Weight of each bin."""
        return self.bins.weight

    def up(self, values: FloatArray) -> FloatArray:
        """Return, for each bin, the value of the parent's bin around it."""
        return np.asarray(np.repeat(values, 2) if self.inside is None else values[self.inside])

    @cached_property
    def filled(self) -> int:
        """Number of bins that are not empty."""
        return int(np.count_nonzero(self.weight))

    @cached_property
    def mean_residual(self) -> FloatArray:
        """Mean residual score - label of each bin; 0 if it is empty."""
        return over(self.bins.residual, self.weight)

    @cached_property
    def mean_error(self) -> FloatArray:
        """Mean residual label - g of each bin; 0 if it is empty."""
        return over(self.bins.gap - self.bins.residual, self.weight)


def over(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return a ratio, or 0 where the denominator is 0."""
    return np.divide(above, below, out=np.zeros(np.shape(above)), where=below > 0)


def make_levels(units: Units, curve: Curve, mean: FloatArray) -> list[Level]:
    """Return the levels from 4 bins on, coarse to fine; `mean` is the curve at the units' scores."""
    if units.depth < 2:
        return []
    by_unit = Bins(
        weight=units.weight,
        weight2=units.weight2,
        residual=units.residual,
        residual2=units.residual2,
        gap=units.weight * (units.score - mean),
        error2=units.positives2 * (1 - 2 * mean) + units.weight2 * mean**2,
        noise=units.weight2 * mean * (1 - mean),
    )
    bins = _tree(units, by_unit)
    if units.clusters is None:
        clusters = None
    else:
        clusters = sums_by_cluster(units, curve)
        noise = np.concatenate([np.diag(one.covariance) for one in clusters])
        bins = replace(
            bins,
            weight2=np.concatenate([one.weight2 for one in clusters]),
            residual2=np.concatenate([one.residual2 for one in clusters]),
            error2=noise,  # it allows for the fit already
            noise=noise,
        )
    gap2 = float(by_unit.gap @ (units.score - mean))
    levels = _levels(units, curve, bins, gap2, clusters)
    if units.saturated:
        levels.append(_level_of_units(units, by_unit, levels[-1]))
    return levels


def one_bin(units: Units) -> Level:
    """Return the level of a single bin, for its residuals; it knows nothing of the beta curve."""
    weight2, residual2 = units.weight2.sum(), units.residual2.sum()
    if units.clusters is not None:
        table = units.clusters
        weight2 = np.square(np.bincount(table.cluster, table.weight)).sum()
        residual2 = np.square(np.bincount(table.cluster, table.residual)).sum()
    sums = [units.weight.sum(), weight2, units.residual.sum(), residual2, 0.0, 0.0, 0.0]
    return Level(units.size, Bins(*np.array(sums)[:, np.newaxis]))


def _starts(depth: int) -> IntArray:
    """Return where each level begins among the bins of all levels, and where the last ends."""
    return np.asarray(2 ** np.arange(2, depth + 2) - 4)


def _tree(units: Units, by_unit: Bins) -> Bins:
    """Return the bins of all levels."""
    n_bins = 2**units.depth
    rows = [by_unit.weight, by_unit.residual, by_unit.residual2, by_unit.gap, by_unit.error2, by_unit.noise]
    if by_unit.weight2 is not by_unit.weight:
        rows.append(by_unit.weight2)
    tree = np.empty((len(rows), 2 * n_bins - 4))
    for row, values in zip(tree, rows, strict=True):
        row[-n_bins:] = values if len(units) == n_bins else total(units.bin, values, n_bins)
    _sum_upwards(tree)
    weight, residual, residual2, gap, error2, noise = tree[:6]
    return Bins(weight, tree[6] if len(tree) > 6 else weight, residual, residual2, gap, error2, noise)


def _sum_upwards(tree: FloatArray) -> None:
    """Fill in the sums of all levels from those of the finest, which are the last."""
    first = tree.shape[1] // 2 - 2
    while first > 0:
        children = tree[:, first : 2 * first + 4]
        np.add(children[:, 0::2], children[:, 1::2], out=tree[:, first // 2 - 2 : first])
        first = first // 2 - 2


def _levels(
    units: Units, curve: Curve, bins: Bins, gap2: float, clusters: list[ClusterSums] | None
) -> list[Level]:
    """Return the levels; `gap2` is the sum of w (f - g)^2."""
    size, starts = units.size, _starts(units.depth)
    first, ends = starts[:-1], starts[1:]
    child, parent = slice(4, None), slice(None, first[-1])
    if bins.alone.any():
        for start, end in zip(first[1:], ends[1:], strict=True):
            here, before = slice(start, end), slice(start // 2 - 2, start)
            for density in (bins.residual_density, bins.error_density):
                np.copyto(density[here], np.repeat(density[before], 2), where=bins.alone[here])

    above = bins.factor[parent]
    if bins.alone[child].any():  # only bins of several rows have an increment
        several = np.where(bins.alone[child], 0.0, bins.weight[child])
        above = above * over(several[0::2] + several[1::2], bins.weight[parent])
    square = np.add.reduceat(bins.weight * bins.residual_density, first) / size
    error = np.diff(np.add.reduceat(bins.weight * bins.error_density, first), prepend=0.0)
    between = np.add.reduceat(over(bins.gap**2, bins.weight), first)
    mean, variance = np.zeros(len(first)), np.zeros(len(first))
    if len(first) > 1:
        factor, pairs = bins.factor[child], bins.noise_of_pairs
        begin = first[1:] - 4
        mean[1:] = np.add.reduceat(factor * bins.noise[child], begin)
        mean[1:] -= np.add.reduceat(above * bins.noise[parent], first[:-1])
        variance[1:] = np.add.reduceat(factor * (factor - 2 * np.repeat(above, 2)) * pairs[child], begin)
        variance[1:] += np.add.reduceat(above**2 * pairs[parent], first[:-1])

    # What the noise of the curve's parameters does, as far as the cells of the fit resolve it.
    effect = _effects(units, curve)
    width = effect.shape[1]
    known = first[first < width]
    noise_between = np.full(len(first), curve.noise.total)
    noise_between[: len(known)] = np.add.reduceat(over(np.sum(effect**2, axis=0), bins.weight[:width]), known)
    if clusters is None and len(known) > 1:
        inside, around = effect[:, 4:], effect[:, : known[-1]]
        contrast = bins.factor[4:width] * inside - np.repeat(above[: known[-1]] * around, 2, axis=1)
        taken = np.add.reduceat(inside[:, np.newaxis] * contrast, known[1:] - 4, axis=2)
        trace = np.trace(taken)
        mean[1 : len(known)] -= trace
        error[1 : len(known)] += trace
        variance[1 : len(known)] += np.sum(taken**2, axis=(0, 1)) - 2 * np.add.reduceat(
            np.sum(contrast**2, axis=0) * bins.noise[4:width], known[1:] - 4
        )
    within = (gap2 - curve.noise.total - between + noise_between) / size
    variance = np.maximum(2 * variance / size**2, 0.0)

    levels: list[Level] = []
    for number, (start, end) in enumerate(zip(first, ends, strict=True)):
        covariance = None
        if number == 0:
            fitted = effect[:, :4].T @ effect[:, :4]
            covariance = np.diag(bins.noise[:4]) - fitted if clusters is None else clusters[0].covariance
        elif clusters is not None:
            before = slice(start // 2 - 2, start)
            variance[number] = null_variance(
                clusters[number], bins.factor[start:end], clusters[number - 1], above[before], size
            )
        levels.append(
            Level(
                size=size,
                bins=bins.part(slice(start, end)),
                parent=levels[-1] if levels else None,
                square=float(square[number]),
                within=float(within[number]),
                error_increment=float(error[number]) / size,
                noise_mean=float(mean[number]) / size,
                null_variance=float(variance[number]),
                covariance=covariance,
            )
        )
    return levels


def _level_of_units(units: Units, by_unit: Bins, parent: Level) -> Level:
    """Return the level in which every distinct score is a bin."""
    size, inside = units.size, units.bin
    for density, above in (
        (by_unit.residual_density, parent.bins.residual_density),
        (by_unit.error_density, parent.bins.error_density),
    ):
        np.copyto(density, above[inside], where=by_unit.alone)
    several = total(inside, np.where(by_unit.alone, 0.0, by_unit.weight), len(parent.weight))
    above = parent.bins.factor * over(several, parent.weight)
    factor, pairs = by_unit.factor, by_unit.noise_of_pairs
    mean = float(factor @ by_unit.noise) - float(above @ parent.bins.noise)
    variance = float((factor * (factor - 2 * above[inside])) @ pairs)
    variance += float(above**2 @ parent.bins.noise_of_pairs)
    before = float(parent.weight @ parent.bins.error_density)
    return Level(
        size=size,
        bins=by_unit,
        parent=parent,
        inside=inside,
        square=float(by_unit.weight @ by_unit.residual_density) / size,
        error_increment=(float(by_unit.weight @ by_unit.error_density) - before) / size,
        noise_mean=mean / size,
        null_variance=max(2 * variance / size**2, 0.0),
    )


def _effects(units: Units, curve: Curve) -> FloatArray:
    """Return what the noise of the curve's parameters does to the sums of w g in bins: B, with B'B their covariance.

    It has three rows, and columns for the bins of the levels that are no finer than the cells of the fit; in finer bins
    the curve moves as one.
    """
    noise, depth = curve.noise, units.depth
    place = units.bin[noise.start]
    if len(noise.start) < len(units) and depth > 8:
        place, depth = place >> (depth - 8), 8
    tree = np.empty((3, 2 * 2**depth - 4))
    for row, column in zip(tree, noise.effect.T, strict=True):
        row[-(2**depth) :] = np.bincount(place, column, 2**depth)
    _sum_upwards(tree)
    return tree
