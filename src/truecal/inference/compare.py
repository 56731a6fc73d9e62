"""Which of two models is better calibrated, and how sure that is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from truecal._lib.checks import check_fraction, check_norm
from truecal.data.predictions import Rows, read_rows
from truecal.estimators._curves import CurveAverage, average_curves
from truecal.exceptions import InputError
from truecal.inference.interval import interval_of
from truecal.results import SCHEMA_VERSION, Interval


@dataclass(frozen=True)
class Comparison:
    """The calibration errors of two models, and their difference.

    Attributes
    ----------
    errors : tuple of float
        Calibration error of each model, by the ``averaged`` estimator.
    intervals : tuple of Interval
        Confidence interval for each.
    difference : float
        Error of the first less that of the second: negative if the first is better calibrated.
    interval : Interval
        Confidence interval for the true difference.
    pvalue : float
        The least level at which an interval leaves out a difference of 0.
    paired : bool
        Whether both models were judged on the same labels.
    n : tuple of float
        Rows of each.
    norm : float
        The p of the norm.
    names : tuple of str
        What the models are called.
    """

    errors: tuple[float, float]
    intervals: tuple[Interval, Interval]
    difference: float
    interval: Interval
    pvalue: float
    paired: bool
    n: tuple[float, float]
    norm: float
    names: tuple[str, str] = ("A", "B")

    @property
    def verdict(self) -> str:
        """One sentence on which is better calibrated."""
        first, second = self.names
        numbers = f"{self.errors[0]:.4f} against {self.errors[1]:.4f}, difference {self.interval}"
        if self.pvalue > 1 - self.interval.confidence_level:
            return f"No difference in calibration between {first} and {second} was found: {numbers}."
        better = first if self.difference < 0 else second
        return f"{better} is better calibrated: {numbers}, p = {self.pvalue:.2g}."

    def __str__(self) -> str:
        return self.verdict

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain Python objects."""
        return {
            "schema_version": SCHEMA_VERSION,
            "names": list(self.names),
            "errors": list(self.errors),
            "intervals": [one.to_dict() for one in self.intervals],
            "difference": self.difference,
            "interval": self.interval.to_dict(),
            "pvalue": self.pvalue,
            "paired": self.paired,
            "n": list(self.n),
            "norm": self.norm,
            "verdict": self.verdict,
        }


def compare(
    y_true: Any,
    y_proba_a: Any,
    y_proba_b: Any,
    *,
    y_true_b: Any = None,
    norm: float = 2,
    confidence_level: float = 0.95,
    names: tuple[str, str] = ("A", "B"),
    **reading: Any,
) -> Comparison:
    r"""Compare the calibration errors of two models.

    The interval for the difference is put together from those of the two errors (MOVER): with estimates a, b,
    intervals [l, u] and the correlation r of the two estimates,

    .. math:: a - b - \sqrt{(a - l_a)^2 + (u_b - b)^2 - 2 r (a - l_a)(u_b - b)}

    is its lower end, and likewise the upper one. It needs no normality, and as both intervals hold down to an
    error of 0, so does this one: two calibrated models are told apart no oftener than the level allows. For
    models judged on the same labels, r comes from the rows' influence functions; it is taken as 0 if negative.

    Parameters
    ----------
    y_true : array-like
        Labels of both models, or of the first.
    y_proba_a, y_proba_b : array-like
        Probabilities of the two models.
    y_true_b : array-like, optional
        Labels of the second model if it was judged on other rows.
    norm : {1, 2}
        The p of the norm.
    confidence_level : float
        Level of all intervals.
    names : tuple of str
        What to call the models.
    **reading
        `sample_weight`, `pos_label`, `labels` and `multiclass`, as in `truecal.estimate`.

    Returns
    -------
    Comparison
        Both errors, their difference, and intervals for all three.

    References
    ----------
    Zou, Donner (2008), Construction of confidence limits about effect measures, Statistics in Medicine.

    Examples
    --------
    >>> import truecal
    >>> y, p = truecal.paper.population("resnet110_c100").sample(5000, rng=0)
    >>> recalibrated = truecal.paper.population("resnet110_c100").curve(p)
    >>> truecal.compare(y, p, recalibrated, names=("raw", "recalibrated")).verdict[:33]
    'recalibrated is better calibrated'
    """
    if check_norm(norm) not in (1, 2):
        raise InputError(f"norm must be 1 or 2 to compare models. Got {norm!r} instead.")
    level = check_fraction("confidence_level", confidence_level)
    paired = y_true_b is None
    rows = (_one(y_true, y_proba_a, reading), _one(y_true if paired else y_true_b, y_proba_b, reading))
    samples = (rows[0].group(), rows[1].group())
    curves = (average_curves(samples[0]), average_curves(samples[1]))
    errors = (curves[0].error(norm), curves[1].error(norm))
    correlation = _correlation(rows, curves) if paired else 0.0

    def at(some_level: float) -> Interval:
        return _difference(curves, errors, correlation, norm, some_level)

    return Comparison(
        errors=errors,
        intervals=(interval_of(curves[0], norm, level), interval_of(curves[1], norm, level)),
        difference=errors[0] - errors[1],
        interval=at(level),
        pvalue=_pvalue(at),
        paired=paired,
        n=(samples[0].n, samples[1].n),
        norm=norm,
        names=names,
    )


def _one(y_true: Any, y_proba: Any, reading: dict[str, Any]) -> Rows:
    rows = read_rows(y_true, y_proba, **reading)
    if len(rows) > 1:
        raise InputError(
            "compare takes one class at a time: name it with pos_label, or use multiclass='top'."
        )
    return rows[0]


def _correlation(rows: tuple[Rows, Rows], curves: tuple[CurveAverage, CurveAverage]) -> float:
    """Return the correlation of the two estimates, from row to row; 0 where it is not positive."""
    first, second = (curve.influence(one.label, one.score) for one, curve in zip(rows, curves, strict=True))
    weight = rows[0].weight
    covariance = np.cov(first, second, aweights=weight)
    scale = math.sqrt(covariance[0, 0] * covariance[1, 1])
    return max(float(covariance[0, 1]) / scale, 0.0) if scale > 0 else 0.0


def _difference(
    curves: tuple[CurveAverage, CurveAverage],
    errors: tuple[float, float],
    correlation: float,
    norm: float,
    level: float,
) -> Interval:
    one, two = (interval_of(curve, norm, level) for curve in curves)
    # An estimate can lie just outside its interval at low levels; it is then taken as its end.
    a, b = (min(max(error, part.low), part.high) for error, part in zip(errors, (one, two), strict=True))
    down = _length(a - one.low, two.high - b, correlation)
    up = _length(one.high - a, b - two.low, correlation)
    return Interval(a - b - down, a - b + up, level, "MOVER of averaged-curve intervals")


def _length(first: float, second: float, correlation: float) -> float:
    return math.sqrt(max(first**2 + second**2 - 2 * correlation * first * second, 0.0))


def _pvalue(at: Any) -> float:
    """Return 1 less the level at which the interval just touches 0."""

    def reach(level: float) -> float:
        interval = at(level)
        return float(max(interval.low, -interval.high))  # positive where 0 is left out

    most, least = 1 - 1e-6, 1e-3
    if reach(least) <= 0:
        return 1.0
    if reach(most) > 0:
        return 1 - most
    return 1 - float(brentq(reach, least, most, xtol=1e-6))
