"""Calibration in the large and calibration slope, as clinical prediction models report them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, expit, logit, ndtri

from truecal._lib.checks import check_fraction
from truecal._lib.newton import Optimum, maximise
from truecal._lib.types import FloatArray
from truecal.data import one_sample
from truecal.data.sample import Sample
from truecal.estimators._binning import EqualMass, merge_groups, partition
from truecal.results import Interval, Result

#: Samples with more distinct scores are merged into this many blocks of equal mass.
_BLOCKS = 4096


@dataclass(frozen=True)
class Coefficient(Result):
    """A number with its confidence interval and the p-value of its ideal value.

    Attributes
    ----------
    value : float
        The estimate; NaN where the data do not determine it.
    interval : Interval
        Confidence interval.
    pvalue : float
        P-value of the ideal value: 1 for the slope and the ratio, 0 for the intercept.
    """

    value: float
    interval: Interval
    pvalue: float

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class WeakCalibration(Result):
    """Slope, intercept and observed/expected ratio of a set of predictions.

    Attributes
    ----------
    slope : Coefficient
        Slope of the logistic regression of the label on logit(score); below 1 if scores are too extreme.
    intercept : Coefficient
        Intercept with the slope fixed at 1; above 0 if scores are too low.
    observed_expected : Coefficient
        Observed positives divided by the sum of the scores.
    n : float
        Number of rows, or the total weight.
    target : str
        What the scores are probabilities of.
    """

    slope: Coefficient
    intercept: Coefficient
    observed_expected: Coefficient
    n: float
    target: str

    def __str__(self) -> str:
        names = {
            "slope": self.slope,
            "intercept": self.intercept,
            "observed/expected": self.observed_expected,
        }
        return "\n".join(
            f"{name:18} {part.value:7.3f}  {part.interval.low:7.3f} to {part.interval.high:7.3f}"
            for name, part in names.items()
        )


def weak_calibration(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    multiclass: str | None = None,
) -> WeakCalibration:
    r"""Return the calibration slope, the intercept and the observed/expected ratio.

    The slope b is that of :math:`\mathrm{logit}\,P(y = 1) = a + b\,\mathrm{logit} f`, the intercept that of the
    same model with b = 1. Intervals of both are Wald intervals and their p-values those of likelihood-ratio
    tests. The interval of the ratio treats the number of positives as binomial. Scores of exactly 0 and 1
    have no logit and count in the ratio only.

    Parameters
    ----------
    y_true, y_proba
        Labels and probabilities as in `truecal.estimate`, or a `Sample` in place of both.
    confidence_level : float
        Level of the intervals.
    sample_weight, pos_label, labels, multiclass
        As in `truecal.estimate`.

    Returns
    -------
    WeakCalibration

    References
    ----------
    Cox (1958), Biometrika 45, 562-565; Van Calster et al. (2016), Journal of Clinical Epidemiology 74, 167-176.

    Examples
    --------
    >>> import truecal
    >>> data = truecal.datasets.load("flights")
    >>> print(weak_calibration(data.y_true, data.y_proba))
    slope                0.827    0.769 to   0.885
    intercept           -0.086   -0.138 to  -0.033
    observed/expected    0.943    0.907 to   0.980
    """
    reading = {
        "sample_weight": sample_weight,
        "pos_label": pos_label,
        "labels": labels,
        "multiclass": multiclass,
    }
    level = check_fraction("confidence_level", confidence_level)
    sample = one_sample(y_true, y_proba, **reading)
    score, count, positives = _inner(sample)
    offset = logit(score)
    intercept = slope = _undetermined(level)
    if 0 < positives.sum() < count.sum():
        ideal = float(positives @ np.log(score) + (count - positives) @ np.log1p(-score))
        shift = logistic_fit(np.ones((len(score), 1)), offset, count, positives)
        intercept = _coefficient(shift, 0, 0.0, ideal, level)
        if len(score) > 1:
            line = logistic_fit(np.column_stack([np.ones_like(offset), offset]), 0 * offset, count, positives)
            slope = _coefficient(line, 1, 1.0, shift.value, level)
    ratio = _ratio(sample, level)
    return WeakCalibration(slope, intercept, ratio, sample.n, sample.target)


def _inner(sample: Sample) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the scores strictly between 0 and 1 with their counts and positives, at most a few thousand."""
    if len(sample) > _BLOCKS:
        sample = merge_groups(sample, partition(EqualMass(sample), _BLOCKS).start)
    inside = (sample.score > 1e-12) & (sample.score < 1 - 1e-12)
    return sample.score[inside], sample.count[inside], sample.positives[inside]


def logistic_fit(design: FloatArray, offset: FloatArray, count: FloatArray, positives: FloatArray) -> Optimum:
    """Return the maximum-likelihood fit of a logistic regression with an offset.

    Parameters
    ----------
    design : ndarray of shape (k, 1) or (k, 2)
        Covariates.
    offset, count, positives : ndarray of shape (k,)
        Fixed part of the logit, rows and positive labels.
    """

    def objective(b: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        eta = offset + design @ b
        value = float(positives @ eta - count @ np.logaddexp(0.0, eta))
        rate = expit(eta)
        hessian = -(design.T * (count * rate * (1 - rate))) @ design
        return value, design.T @ (positives - count * rate), hessian

    return maximise(objective, np.zeros(design.shape[1]), lower=-1e3, upper=1e3)


def _coefficient(fit: Optimum, place: int, ideal: float, null: float, level: float) -> Coefficient:
    """Return one coefficient; `null` is the log-likelihood of its ideal value."""
    information = -fit.hessian
    if not fit.converged or fit.at_bound.any() or np.linalg.cond(information) > 1e12:
        return _undetermined(level)
    error = math.sqrt(float(np.linalg.inv(information)[place, place]))
    value, z = float(fit.x[place]), float(ndtri((1 + level) / 2))
    pvalue = float(chdtrc(1, 2 * max(fit.value - null, 0.0)))
    return Coefficient(value, Interval(value - z * error, value + z * error, level, "Wald"), pvalue)


def _undetermined(level: float) -> Coefficient:
    return Coefficient(math.nan, Interval(-math.inf, math.inf, level, "undetermined"), 1.0)


def _ratio(sample: Sample, level: float) -> Coefficient:
    expected, observed = float(sample.count @ sample.score), float(sample.positives.sum())
    if expected <= 0:
        return _undetermined(level)
    variance = float(sample.count @ (sample.score * (1 - sample.score)))
    shift, z = observed - expected, float(ndtri((1 + level) / 2))
    pvalue = math.erfc(abs(shift) / math.sqrt(2 * variance)) if variance > 0 else float(abs(shift) < 1e-9)
    # Wilson's interval of the observed rate, which holds down to no positives at all.
    n, rate = sample.n, observed / sample.n
    centre, spread = rate + z * z / (2 * n), z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low, high = (centre - spread) / (1 + z * z / n), (centre + spread) / (1 + z * z / n)
    scale = n / expected
    interval = Interval(min(max(low, 0.0), rate) * scale, max(high, rate) * scale, level, "Wilson")
    return Coefficient(observed / expected, interval, pvalue)
