r"""The difference of two calibration errors.

On the scale of the roots the variance of an error has a first-order part :math:`\sigma^2` (the influence of the rows)
and a second-order part :math:`s^2` (what is left at an error of 0, with its noise :math:`n^2`). For two models

.. math:: V = \sigma_A^2 + \sigma_B^2 - 2\rho\,\sigma_A \sigma_B + s_A^2 + s_B^2 - 2\kappa\,n_A n_B .

On the same rows, :math:`\rho` is the correlation r of the rows' influence, as far as both errors are established. Where
they are not, that correlation is itself noise and the worst one takes its place: :math:`\rho = G r - (1 - G)`, with G
the product of the gates. :math:`\kappa` is the overlap of the models' 8-bin partitions: how far their second-order
noise is shared. On different rows both are 0.

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
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from truecal._lib.types import FloatArray
from truecal.multiscale.analysis import Multiscale
from truecal.multiscale.joint import mean_covariance

#: Fewer rows may be ordered alike by chance.
_MIN_ROWS = 20


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

    def interval(self, confidence_level: float) -> tuple[float, float]:
        """Return a confidence interval, within what the limits of the two errors allow.

        Parameters
        ----------
        confidence_level : float
            Level of the interval.
        """
        tail = (1 - confidence_level) / 2
        one, two = self.first.limits_for(self.norm), self.second.limits_for(self.norm)
        if self.brier is None:
            reach = float(-scipy.special.ndtri(tail)) * self.sd
            low, high = self.value - reach, self.value + reach
        else:
            mean, sd, freedom = self.brier
            reach = float(-scipy.special.stdtrit(freedom, tail)) * sd
            low = _difference_of_roots(mean - reach, one.lower(tail), two.upper(tail))
            high = -_difference_of_roots(-mean - reach, two.lower(tail), one.upper(tail))
        low, high = max(low, -two.upper(tail)), min(high, one.upper(tail))
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


@dataclass(frozen=True, eq=False)
class PairedRows:
    """The same rows, scored by two models.

    Attributes
    ----------
    labels : tuple of ndarray
        Labels of the rows for the two models; top labels may be right for one of them only.
    scores : tuple of ndarray
        Scores of the two models.
    weight : ndarray of shape (n,), or None
        Weights.
    cluster : ndarray of int, or None
        Numbers of clusters.
    counts : bool
        Whether weight 2 stands for two rows.
    """

    labels: tuple[NDArray[Any], NDArray[Any]]
    scores: tuple[NDArray[Any], NDArray[Any]]
    weight: FloatArray | None = None
    cluster: NDArray[np.intp] | None = None
    counts: bool = False

    def mean_covariance(self, values: FloatArray) -> FloatArray:
        """Return the covariance of the means of several values over these rows."""
        return mean_covariance(values, self.weight, self.cluster, counts=self.counts)


def difference(
    first: Multiscale, second: Multiscale, rows: PairedRows | None = None, *, norm: float = 2
) -> Difference:
    """Return the difference of two errors, on the same rows if these are given.

    Parameters
    ----------
    first, second : Multiscale
        The two models.
    rows : PairedRows, optional
        The rows that both were judged on.
    norm : {1, 2}
        Order of the norm.
    """
    limits = [one.limits_for(norm) for one in (first, second)]
    sigma = [math.sqrt(one.slope) / 2 for one in limits]
    second_order = [
        one.null_variance / (4 * (max(one.square, 0.0) + math.sqrt(one.null_variance))) for one in limits
    ]
    noise = [
        one.noise_variance / (4 * (max(one.square, 0.0) + math.sqrt(one.null_variance))) for one in limits
    ]
    variance = sigma[0] ** 2 + sigma[1] ** 2 + sum(second_order)
    if rows is not None:
        both = first.gate * second.gate
        correlation = both * _correlation(first, second, rows, norm) - (1 - both)
        variance -= 2 * correlation * sigma[0] * sigma[1]
        variance -= 2 * _overlap(first, second, rows) * math.sqrt(noise[0] * noise[1])
    return Difference(
        value=first.ungated(norm) - second.ungated(norm),
        reported=first.error(norm) - second.error(norm),
        sd=math.sqrt(max(variance, 0.0)) if first.reliable and second.reliable else math.inf,
        first=first,
        second=second,
        norm=norm,
        brier=_brier(first, second, rows) if rows is not None and norm == 2 else None,
    )


def _brier(first: Multiscale, second: Multiscale, rows: PairedRows) -> tuple[float, float, float] | None:
    """Return the difference of the Brier scores if the models order the rows alike, else None."""
    enough = first.reliable and second.reliable and len(rows.labels[0]) >= _MIN_ROWS
    if not enough or len(first.sample) != len(second.sample) or (rows.labels[0] != rows.labels[1]).any():
        return None
    groups = [
        np.searchsorted(one.sample.score, score.astype(np.float64))
        for one, score in zip((first, second), rows.scores, strict=True)
    ]
    if (groups[0] != groups[1]).any():
        return None
    squares = [(score.astype(np.float64) - rows.labels[0]) ** 2 for score in rows.scores]
    each = squares[0] - squares[1]
    variance = float(rows.mean_covariance(each[np.newaxis])[0, 0])
    n = len(np.unique(rows.cluster)) if rows.cluster is not None else first.size
    return float(np.average(each, weights=rows.weight)), math.sqrt(variance), max(n - 1, 1.0)


def _correlation(first: Multiscale, second: Multiscale, rows: PairedRows, norm: float) -> float:
    influence = [
        one.influence(label, score, norm=norm)
        for one, label, score in zip((first, second), rows.labels, rows.scores, strict=True)
    ]
    covariance = rows.mean_covariance(np.stack(influence))
    scale = math.sqrt(covariance[0, 0] * covariance[1, 1])
    return float(covariance[0, 1]) / scale if scale > 0 else 0.0


def _overlap(first: Multiscale, second: Multiscale, rows: PairedRows) -> float:
    """Return the overlap of the two partitions into 8 bins: 1 if they are the same, about 1/8 if unrelated."""
    bins = []
    for one, score in zip((first, second), rows.scores, strict=True):
        if one.units.depth < 3:
            return 0.0
        bins.append(one.units.bin[one.unit_of(score)] >> (one.units.depth - 3))
    table = np.bincount(8 * bins[0] + bins[1], rows.weight, 64).reshape(8, 8)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    return float(np.sum(np.divide(table**2, expected, out=np.zeros((8, 8)), where=expected > 0))) / 8
