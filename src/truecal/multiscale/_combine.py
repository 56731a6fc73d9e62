r"""Several classes at once: the mean of their squared errors, with the dependence between them.

The classes of one row share its label, so that their estimates depend on each other. To first order that is in the
influence functions: the mean over classes of :math:`\psi_k = 2 r_k d_k - d_k^2`, row by row, has the variance of the
mean squared error. What is left at an error of 0 is added as for independent classes. The evidence is the mean of the
classes' Bayes factors, which needs no assumption on their dependence: the p-value is the harmonic mean of theirs.

The difference of two calibration errors.

On the scale of the roots the variance of an error is :math:`\tau^2 = \sigma^2 + s^2`: a first-order part
:math:`\sigma^2` (the influence of the rows) and a second-order part :math:`s^2` (what is left at an error of 0, with
its noise :math:`n^2`). The difference of two models has the variance :math:`\tau_A^2 + \tau_B^2 - 2c`, with c = 0 on
different rows. On the same rows

.. math:: c = G\,(\rho\,\sigma_A \sigma_B + \kappa\,n_A n_B) - (1 - G)\,\tau_A \tau_B ,

with G the product of the gates: what is known of the dependence, as far as both errors are established, and the worst
case, a correlation of -1, as far as they are not. :math:`\kappa` is the overlap of the models' 8-bin partitions, the
share of second-order noise that they have in common.

:math:`\rho` is the correlation of the rows' influence :math:`\psi = 2 r d - d^2` with the true errors d. That of the
estimated ones, r, is too high: both :math:`\hat d` contain the noise of the same labels, which adds
:math:`\eta_A^2 = 2 (n_A/\sigma_A)^2\,\theta_A` to the energy of the first, likewise to that of the second, and
:math:`\kappa\,\eta_A \eta_B` to their product. Hence

.. math:: \rho\,\sigma_A \sigma_B = r \sqrt{(\sigma_A^2 + 2 n_A^2)(\sigma_B^2 + 2 n_B^2)} - 2\kappa\,n_A n_B ,

at most :math:`\sigma_A \sigma_B` in absolute value. For instance, one model too high by what the other is too low has
:math:`\rho` near -1, while r may be near 0.

The same variance serves the l1 error, whose own first-order variance is too small where signs of errors are uncertain;
c is then at most :math:`r_1 \tau_A \tau_B`, with the correlation :math:`r_1` of the rows' influence on the l1 errors.

**Models with the same order.** If both models order all rows alike, with the same ties, as a model does before and
after recalibration, one is a rising function of the other. Both then have the same curve, and the difference of the
squared errors is that of the Brier scores,

.. math:: \theta_A - \theta_B = E\big[(f_A - y)^2 - (f_B - y)^2\big] ,

the mean of a quantity that is known for each row. Student's t then tests equal errors without any estimate of a
curve, and its limits :math:`\delta` of the difference of the squares give those of the errors,
:math:`\sqrt{e_B^2 + \delta} - e_B`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from truecal._lib.types import FloatArray
from truecal.data.clusters import variance_factor
from truecal.data.question import Question, Rows
from truecal.multiscale import _constants as const
from truecal.multiscale._error import Multiscale
from truecal.multiscale._intervals import combined
from truecal.multiscale._limits import Limits
from truecal.multiscale._units import enough_clusters, inflation


def joint_limits(
    classes: Sequence[Multiscale],
    influence: FloatArray | None = None,
    question: Question | None = None,
    *,
    norm: float = 2,
    independent: bool = False,
    resolution: int | None = None,
    dependence: float = 1.0,
) -> Limits:
    """Return the confidence limits of the lp mean over classes of their errors, p being 1 or 2.

    `influence` is the mean over the classes of the rows' influence for the norm; of parts with rows of their own, which
    are `independent`, that of each row on its own part. Without it the estimates of the classes are taken to rise and
    fall together, which is the worst case. `question` has the weights and clusters of the rows, and the share of each
    class in the mean; without it all count the same. `dependence` is explained in `class_dependence`.
    """
    weight, cluster, counts, part = None, None, False, np.full(len(classes), 1 / len(classes))
    if question is not None:
        weight, cluster, counts, part = question.weight, question.cluster, question.counts, question.share
        independent = question.apart
    parts = [one.limits_for(norm, resolution) for one in classes]

    def of(results: Sequence[Limits | Multiscale], name: str) -> FloatArray:
        return np.array([getattr(one, name) for one in results])

    def mean(squares: FloatArray) -> float:
        """Return the mean of squares, or the square of the mean root."""
        return float(part @ squares if norm == 2 else (part @ np.sqrt(np.maximum(squares, 0.0))) ** 2)

    if influence is not None:
        variance = float(mean_covariance(influence[np.newaxis], weight, cluster, counts=counts)[0, 0])
    else:
        each = np.array([one.variance(norm) for one in classes])
        variance = float(part**2 @ each) if independent else float(part @ np.sqrt(each)) ** 2
    slope = variance / max(float(part @ of(classes, "energy")), 1e-30) if norm == 2 else 4 * variance
    size = of(classes, "size")
    n_clusters, effective_number = _count_clusters(classes, weight, cluster, independent=independent)
    return Limits(
        error=math.sqrt(mean(of(parts, "error") ** 2)),
        square=mean(of(parts, "square")),
        slope=inflation(effective_number) * (slope + 2 / float(size.sum() if independent else size[0]) ** 2),
        null_variance=float(part**2 @ of(parts, "null_variance")),
        noise_variance=float(part**2 @ of(parts, "noise_variance")),
        largest=math.sqrt(mean(of(parts, "largest") ** 2)),
        pvalue=1 / float(part @ (1 / of(parts, "pvalue"))),
        above=combined(
            [one.above for one in parts], part, 0.0 if independent or len(parts) == 1 else dependence
        ),
        reliable=enough_clusters(n_clusters, effective_number),
    )


def class_dependence(scores: Sequence[NDArray[Any]]) -> float:
    r"""Return the relative increase of the variance of sums of squares, because classes of a row share its label.

    If calibrated, the labels of a row have the covariances :math:`-p_j p_k`. If rows that share an interval in one
    class share it in all, which is the worst case, that is
    :math:`\sum_i \sum_{j \ne k} p_{ij}^2 p_{ik}^2 / \sum_i \sum_j p_{ij}^2 (1 - p_{ij})^2`, at most 1.
    """
    second, fourth, own = np.zeros((3, len(scores[0])))
    for score in scores:
        square = np.square(score, dtype=np.float64)
        second += square
        fourth += square**2
        own += square * (1 - np.asarray(score, dtype=np.float64)) ** 2
    total = float(own.sum())
    return min(max(float(np.sum(second**2 - fourth)) / total, 0.0), 1.0) if total > 0 else 1.0


def label_dependence(labels: Sequence[NDArray[Any]], scores: Sequence[NDArray[Any]]) -> float:
    r"""Return this increase for multilabel rows, from the correlations of their residuals.

    With :math:`v_k = p_k (1 - p_k)` and :math:`\hat\rho_{jk}` the correlation of :math:`y_j - p_j` and
    :math:`y_k - p_k`, it is :math:`\sum_{j \ne k} \hat\rho_{jk}^2 \langle v_j, v_k \rangle / \sum_k \langle v_k, v_k
    \rangle`. Noise makes the squared correlations too large by 1/n.
    """
    score = np.stack(scores).astype(np.float64)
    spread, residual = score * (1 - score), np.stack(labels) - score
    product = residual @ residual.T
    square = product**2 / np.maximum(np.outer(np.diag(product), np.diag(product)), 1e-300)
    inner = spread @ spread.T
    own = float(np.trace(inner))
    return float((square * inner).sum() - (np.diag(square) * np.diag(inner)).sum()) / own if own > 0 else 1.0


def _count_clusters(
    classes: Sequence[Multiscale],
    weight: FloatArray | None,
    cluster: NDArray[np.intp] | None,
    *,
    independent: bool,
) -> tuple[float, float]:
    """Return the number of clusters of all classes or parts, and their effective number; infinite without clusters."""
    if cluster is not None:
        weights = np.bincount(cluster, weight)
        return int(np.count_nonzero(weights)), float(weights.sum() ** 2 / (weights @ weights))
    tables = [one.sample.dependence for one in classes]
    if not independent:
        return tables[0].n_clusters, tables[0].effective_number
    size = np.array([one.size for one in classes])
    squares = float((size**2 / [table.effective_number for table in tables]).sum())
    return sum(table.n_clusters for table in tables), size.sum() ** 2 / squares if squares > 0 else math.inf


def mean_covariance(
    values: FloatArray,
    weight: FloatArray | None = None,
    cluster: NDArray[np.intp] | None = None,
    *,
    counts: bool = False,
) -> FloatArray:
    """Return the covariance of the (weighted) means of several values over rows, or over dependent rows in clusters."""
    weight = np.ones(values.shape[1]) if weight is None else weight
    total = float(weight.sum())
    spread = np.sqrt(weight) if counts and cluster is None else weight
    each = spread * (values - (values @ weight)[:, np.newaxis] / total)
    if cluster is not None:
        each = np.stack([np.bincount(cluster, row) for row in each])
        each = each * math.sqrt(variance_factor(each.shape[1]))
    return np.asarray(each @ each.T) / total**2


@dataclass(frozen=True)
class Difference:
    """Difference of two errors, first less second.

    Attributes
    ----------
    value : float
        Difference of the two errors without their gates, on which the inference is based.
    reported : float
        Difference of the two reported errors; every interval contains it.
    sd : float
        Standard deviation of `value`.
    first, second : Multiscale
        The two models.
    norm : float
        Order of the norm, 1 or 2.
    brier : tuple of float or None
        For models that order the rows alike: difference of their Brier scores, its standard deviation and the
        degrees of freedom of that.
    """

    value: float
    reported: float
    sd: float
    first: Multiscale
    second: Multiscale
    norm: float
    brier: tuple[float, float, float] | None = None

    def interval(self, confidence_level: float, resolution: int | None = None) -> tuple[float, float]:
        """Return a confidence interval, within what the limits of the two errors allow.

        Parameters
        ----------
        confidence_level : float
            Level of the interval.
        resolution : int, optional
            Number of intervals of scores for the upper limits of the two errors.
        """
        tail = (1 - confidence_level) / 2
        one, two = (core.limits_for(self.norm, resolution) for core in (self.first, self.second))
        if self.brier is None:
            reach = float(-scipy.special.ndtri(tail)) * self.sd
            low, high = self.value - reach, self.value + reach
        else:
            mean, sd, freedom = self.brier
            reach = float(-scipy.special.stdtrit(freedom, tail)) * sd
            low = _difference_of_roots(mean - reach, one.lower(tail), two.upper(tail))
            high = -_difference_of_roots(-mean - reach, two.lower(tail), one.upper(tail))
        # The limits are computed only where they can matter.
        low = max(low, -two.upper(tail)) if low < -two.error else low
        high = min(high, one.upper(tail)) if high > one.error else high
        return min(low, self.reported), max(high, self.reported)

    @property
    def pvalue(self) -> float:
        """Two-sided p-value of equal errors: the smallest level at which an interval leaves out 0."""
        if self.brier is not None:
            mean, sd, freedom = self.brier
            if self.reported * mean <= 0 or sd <= 0:
                return 1.0
            return float(2 * scipy.special.stdtr(freedom, -abs(mean) / sd))
        if self.reported * self.value <= 0 or self.sd <= 0:
            return 1.0
        return float(2 * scipy.special.ndtr(-abs(self.value) / self.sd))


def _difference_of_roots(squares: float, first: float, second: float) -> float:
    """Return the smallest a - b with a^2 - b^2 = `squares`, if a is at least `first` and b at most `second`."""
    if squares >= 0:
        return math.sqrt(second**2 + squares) - second
    return first - math.sqrt(first**2 - squares)


#: The same rows, scored by two models; top labels may be right for one of them only.
Pair = tuple[Rows, Rows]


def difference(
    first: Multiscale, second: Multiscale, rows: Pair | None = None, *, norm: float = 2
) -> Difference:
    """Return the difference of two errors, on the same rows if these are given."""
    parts = [_Parts.of(one) for one in (first, second)]
    variance = parts[0].total + parts[1].total
    if rows is not None:
        variance -= 2 * _covariance(first, second, rows, parts[0], parts[1], norm)
    return Difference(
        value=first.ungated(norm) - second.ungated(norm),
        reported=first.error(norm) - second.error(norm),
        sd=math.sqrt(max(variance, 0.0)) if first.reliable and second.reliable else math.inf,
        first=first,
        second=second,
        norm=norm,
        brier=_brier(first, second, rows) if rows is not None and norm == 2 else None,
    )


@dataclass(frozen=True)
class _Parts:
    """Parts of the variance of an error: sigma^2, s^2 and n^2 of the module's docstring."""

    first_order: float
    second_order: float
    noise: float

    @property
    def total(self) -> float:
        return self.first_order + self.second_order

    @classmethod
    def of(cls, core: Multiscale) -> _Parts:
        limits = core.limits
        scale = 4 * (max(limits.square, 0.0) + math.sqrt(limits.null_variance))
        if scale == 0:
            return cls(limits.slope / 4, 0.0, 0.0)
        return cls(limits.slope / 4, limits.null_variance / scale, limits.noise_variance / scale)


def _covariance(
    first: Multiscale, second: Multiscale, rows: Pair, one: _Parts, other: _Parts, norm: float
) -> float:
    """Return the covariance c of the two errors on the same rows."""
    noise = _overlap(first, second, rows) * math.sqrt(one.noise * other.noise)
    largest = math.sqrt(one.first_order * other.first_order)
    observed = math.sqrt((one.first_order + 2 * one.noise) * (other.first_order + 2 * other.noise))
    first_order = _correlation(first, second, rows, 2) * observed - 2 * noise
    known = min(max(first_order, -largest), largest) + noise
    both, totals = first.gate * second.gate, math.sqrt(one.total * other.total)
    covariance = both * known - (1 - both) * totals
    return covariance if norm == 2 else min(covariance, _correlation(first, second, rows, norm) * totals)


def _brier(first: Multiscale, second: Multiscale, rows: Pair) -> tuple[float, float, float] | None:
    """Return the difference of the Brier scores if the models order the rows alike, else None.

    Rows of one label do not show how much it varies.
    """
    label = rows[0].label
    enough = first.reliable and second.reliable and len(label) >= const.FEWEST_ORDERED_ROWS
    one_label = bool((label == label[0]).all())
    if not enough or one_label or len(first.sample) != len(second.sample) or (label != rows[1].label).any():
        return None
    groups = [
        np.searchsorted(core.sample.score, one.score.astype(np.float64))
        for core, one in zip((first, second), rows, strict=True)
    ]
    if (groups[0] != groups[1]).any():
        return None
    squares = [(one.score.astype(np.float64) - label) ** 2 for one in rows]
    each = squares[0] - squares[1]
    variance = float(_mean_covariance(each[np.newaxis], rows)[0, 0])
    n = first.size if rows[0].cluster is None else len(np.unique(rows[0].cluster))
    return float(np.average(each, weights=rows[0].weight)), math.sqrt(variance), max(n - 1, 1.0)


def _mean_covariance(values: FloatArray, rows: Pair) -> FloatArray:
    return mean_covariance(values, rows[0].weight, rows[0].cluster, counts=rows[0].counts)


def _correlation(first: Multiscale, second: Multiscale, rows: Pair, norm: float) -> float:
    """Return the correlation of the rows' influence on the two errors, r for norm 2."""
    cores = zip((first, second), rows, strict=True)
    influence = [core.influence(one.label, one.score, norm=norm) for core, one in cores]
    covariance = _mean_covariance(np.stack(influence), rows)
    scale = math.sqrt(covariance[0, 0] * covariance[1, 1])
    return float(covariance[0, 1]) / scale if scale > 0 else 0.0


def _overlap(first: Multiscale, second: Multiscale, rows: Pair) -> float:
    """Return the overlap of the two partitions into 8 bins: 1 if they are the same, about 1/8 if unrelated."""
    bins = []
    for core, one in zip((first, second), rows, strict=True):
        if core.units.depth < 3:
            return 0.0
        bins.append(core.units.bin[0, core.unit_of(one.score)] >> (core.units.depth - 3))
    table = np.bincount(8 * bins[0] + bins[1], rows[0].weight, 64).reshape(8, 8)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    return float(np.sum(np.divide(table**2, expected, out=np.zeros((8, 8)), where=expected > 0))) / 8
