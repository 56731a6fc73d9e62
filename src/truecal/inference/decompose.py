"""Decomposition of a proper score into miscalibration, discrimination and uncertainty (CORP)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, xlogy

from truecal._lib.checks import check_choice, check_fraction
from truecal._lib.types import FloatArray
from truecal.data.arrays import Reading, takes_predictions
from truecal.data.question import as_sample, no_use_for_clusters
from truecal.data.sample import Sample
from truecal.inference.interval import confidence_interval
from truecal.multiscale import analyse
from truecal.results import Interval, Result

SCORES = ("brier", "log_loss")


@dataclass(frozen=True)
class Decomposition(Result):
    r"""A mean score, smaller is better, split as ``score = miscalibration - discrimination + uncertainty``.

    Attributes
    ----------
    name : str
        ``"brier"`` or ``"log_loss"``.
    score : float
        Mean score of the predictions; infinite for the log loss if an event with probability 0 occurred. (In fits of
        recalibrators and their comparison such an event counts as no less than the rows can show.)
    miscalibration : float
        What recalibration by isotonic regression would gain on these rows.
    discrimination : float
        What the recalibrated scores gain over always predicting the base rate.
    uncertainty : float
        Mean score of always predicting the base rate.
    score_interval, uncertainty_interval : Interval or None
        Confidence intervals of the population's values, if a level was given.
    miscalibration_interval, discrimination_interval : Interval or None
        The same for the Brier score. The isotonic fit makes both parts too large, and these intervals do not: a part
        may lie above its interval.
    """

    name: str
    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    score_interval: Interval | None = None
    miscalibration_interval: Interval | None = None
    discrimination_interval: Interval | None = None
    uncertainty_interval: Interval | None = None

    def __str__(self) -> str:
        return (
            f"{self.name} {self.score:.4f} = miscalibration {self.miscalibration:.4f} "
            f"- discrimination {self.discrimination:.4f} + uncertainty {self.uncertainty:.4f}"
        )


@takes_predictions
def decompose(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    score: str = "brier",
    confidence_level: float | None = None,
    **reading: Unpack[Reading],
) -> Decomposition:
    r"""Decompose the Brier score or the log loss of predictions.

    .. math:: \bar S(f) = \underbrace{\bar S(f) - \bar S(g)}_{\text{miscalibration}}
              - \underbrace{(\bar S(\bar y) - \bar S(g))}_{\text{discrimination}}
              + \underbrace{\bar S(\bar y)}_{\text{uncertainty}}

    with g the isotonic regression of the labels on the scores. None of the three parts is negative.

    With `confidence_level` there are intervals. Those of the score and of the discrimination are normal, with the
    variance of rows, or of sums over clusters and Student's t; that of the uncertainty follows from the base rate. For
    the Brier score the miscalibration of the population is the squared l2 error, whose interval is that of
    `truecal.confidence_interval`, and the discrimination is the variance of the calibration curve. The log loss has no
    interval for these two. Clusters have an effect on intervals only, and are refused without a level.

    Parameters
    ----------
    {predictions}
    score : {"brier", "log_loss"}
        Which score to decompose.
    confidence_level : float, optional
        Level of the intervals.
    {reading}

    Returns
    -------
    Decomposition

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers, PNAS.

    Examples
    --------
    >>> print(decompose([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9]))
    brier 0.1850 = miscalibration 0.0600 - discrimination 0.1250 + uncertainty 0.2500
    """
    check_choice("score", score, SCORES)
    if confidence_level is None:
        no_use_for_clusters(reading.pop("clusters", None), "decompose")
    else:
        check_fraction("confidence_level", confidence_level)
    sample = as_sample(y_true, y_proba, **reading)
    loss = _brier if score == "brier" else _log_loss
    rate = np.full(len(sample), sample.positives.sum() / sample.n)
    given, constant = loss(sample, sample.score), loss(sample, rate)
    recalibrated = loss(sample, sample.isotonic)
    found = Decomposition(score, given, given - recalibrated, constant - recalibrated, constant)
    return found if confidence_level is None else _with_intervals(found, sample, confidence_level)


def _with_intervals(found: Decomposition, sample: Sample, level: float) -> Decomposition:
    """Return the decomposition with its intervals."""
    reach = sample.quantile((1 - level) / 2)
    rate = float(sample.positives.sum()) / sample.n

    def around(value: float, if_0: FloatArray, if_1: FloatArray) -> tuple[float, float]:
        half = reach * sample.standard_error(if_0, if_1)
        return value - half, value + half

    def interval(low: float, high: float) -> Interval:
        return Interval(max(low, 0.0), max(high, 0.0), level)

    brier, score, ones = found.name == "brier", sample.score, np.ones(len(sample))
    with np.errstate(divide="ignore"):
        losses = (score**2, (1 - score) ** 2) if brier else (-np.log1p(-score), -np.log(score))
    low, high = (min(max(end, 0.0), 1.0) for end in around(rate, 0 * ones, ones))
    middle = [0.5] if low < 0.5 < high else []
    spread = [p * (1 - p) if brier else float(entr(p) + entr(1 - p)) for p in (low, high, *middle)]
    intervals: dict[str, Any] = {"uncertainty_interval": interval(min(spread), max(spread))}
    if np.isfinite(found.score):
        # A label that does not occur with a score has no loss there.
        known = [np.where(np.isfinite(loss), loss, 0.0) for loss in losses]
        intervals["score_interval"] = interval(*around(found.score, *known))
    if brier:
        error, core = confidence_interval(sample, confidence_level=level), analyse(sample)
        curve = score - core.gap[core.unit_of(score)]
        gain = [rate**2 - curve**2, (1 - rate) ** 2 - (1 - curve) ** 2]
        value = found.uncertainty - found.score + max(core.square, 0.0)
        intervals["miscalibration_interval"] = interval(error.low**2, error.high**2)
        intervals["discrimination_interval"] = interval(*around(value, *gain))
    return replace(found, **intervals)


def _brier(sample: Sample, score: NDArray[np.float64]) -> float:
    total = sample.positives * (1 - score) ** 2 + (sample.count - sample.positives) * score**2
    return float(total.sum() / sample.n)


def _log_loss(sample: Sample, score: NDArray[np.float64]) -> float:
    with np.errstate(divide="ignore"):
        total = xlogy(sample.positives, score) + xlogy(sample.count - sample.positives, 1 - score)
    return float(-total.sum() / sample.n)
