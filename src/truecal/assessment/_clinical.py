"""What reports on clinical prediction models give: calibration plot, ICI, C statistic and decision curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from truecal._lib.text import counted, level, percent
from truecal._lib.types import FloatArray
from truecal.data.question import as_sample
from truecal.data.reading import Reading, takes_predictions
from truecal.data.sample import Sample
from truecal.exceptions import InputError
from truecal.inference.c_statistic import c_statistic
from truecal.inference.calibration_index import CalibrationIndex, calibration_index
from truecal.inference.net_benefit import NetBenefit, net_benefit, read_thresholds
from truecal.inference.reliability import Reliability, reliability_curve
from truecal.inference.weak_calibration import FEW_CLUSTERS, Parameter, WeakCalibration, weak_calibration
from truecal.multiscale import analyse
from truecal.results import Result

#: Points of a curve, and bins of the histograms of the two outcomes.
_POINTS, _BINS = 400, 60


@dataclass(frozen=True, eq=False)
class CalibrationPlot(Result):
    """The parts of a calibration plot.

    Attributes
    ----------
    score : ndarray of shape (k,)
        Predicted risks in ascending order.
    flexible : ndarray of shape (k,)
        Observed risk by the curve behind ICI, E50, E90 and Emax.
    logistic : ndarray of shape (k,)
        Observed risk by the logistic model with the calibration intercept and slope; NaN if it cannot be fitted.
    groups : Reliability
        Groups of equal size: mean predicted risk, observed frequency and its interval.
    edges : ndarray of shape (b + 1,)
        Edges of the bins of the two histograms.
    events, others : ndarray of shape (b,)
        Rows with and without the event in each bin of predicted risks.
    weak : WeakCalibration
        O:E, calibration intercept and slope.
    index : CalibrationIndex
        ICI, E50, E90 and Emax.
    c_statistic : Parameter
        C statistic.
    """

    score: FloatArray
    flexible: FloatArray
    logistic: FloatArray
    groups: Reliability
    edges: FloatArray
    events: FloatArray
    others: FloatArray
    weak: WeakCalibration
    index: CalibrationIndex
    c_statistic: Parameter


@takes_predictions
def calibration_plot(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    n_groups: int = 10,
    confidence_level: float = 0.95,
    **reading: Unpack[Reading],
) -> CalibrationPlot:
    """Return what a calibration plot shows.

    Parameters
    ----------
    {predictions}
    n_groups : int
        Number of groups of equal size.
    confidence_level : float
        Level of all intervals.
    {reading}

    Returns
    -------
    CalibrationPlot

    Examples
    --------
    >>> import truecal
    >>> data = truecal.datasets.load("flights")
    >>> plot = calibration_plot(data.y_true, data.y_proba)
    >>> len(plot.groups.bins), round(float(plot.weak.slope), 2)
    (10, 0.83)
    """
    sample = as_sample(y_true, y_proba, **reading)
    weak = weak_calibration(sample, confidence_level=confidence_level)
    core = analyse(sample)
    some = np.unique(np.linspace(0, len(core.units.score) - 1, _POINTS).astype(np.intp))
    score = core.units.score[some]
    with np.errstate(divide="ignore", invalid="ignore"):
        logistic = expit(float(weak.joint_intercept) + float(weak.slope) * logit(score))
    edges = np.linspace(0, 1, _BINS + 1)
    events = np.histogram(sample.score, edges, weights=sample.positives)[0]
    return CalibrationPlot(
        score=score,
        flexible=np.clip(score - core.gap[some], 0.0, 1.0),
        logistic=logistic,
        groups=reliability_curve(sample, n_bins=n_groups, band=False, confidence_level=confidence_level),
        edges=edges,
        events=events,
        others=np.histogram(sample.score, edges, weights=sample.count)[0] - events,
        weak=weak,
        index=calibration_index(sample, confidence_level=confidence_level),
        c_statistic=c_statistic(sample, confidence_level=confidence_level),
    )


#: Thresholds of the table, if none are given.
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.5)


@dataclass(frozen=True, eq=False)
class Clinical(Result):
    """Clinical validation, beyond the calibration intercept, slope and O:E in `Assessment.weak`.

    Attributes
    ----------
    verdict : str
        What O:E, slope and decision curve show, in plain sentences.
    index : CalibrationIndex
        ICI with its interval, E50, E90 and Emax.
    c_statistic : Parameter
        C statistic (area under the ROC curve), with its interval.
    decision_curve : NetBenefit
        Net benefit at thresholds 0.01 to 0.99.
    decisions : NetBenefit
        Net benefit at the thresholds of interest.
    events : float
        Number of rows with the event, or their total weight.
    """

    verdict: str
    index: CalibrationIndex
    c_statistic: Parameter
    decision_curve: NetBenefit
    decisions: NetBenefit
    events: float

    def __str__(self) -> str:
        return f"{self.index}\nC statistic {self.c_statistic}\n{self.decisions}"


def check_clinical(sample: Sample, thresholds: Any) -> FloatArray:
    """Return the thresholds of interest; refuse bad ones, and scores that are not those of one event."""
    if sample.target.startswith("top"):
        raise InputError(
            "needs the probability of one event, and not of the top label",
            argument="clinical",
            remedy="Choose the event with pos_label (--pos-label on the command line).",
        )
    return read_thresholds(THRESHOLDS if thresholds is None else thresholds)


def assess_clinical(
    sample: Sample, weak: WeakCalibration, thresholds: FloatArray, confidence_level: float
) -> Clinical:
    """Return the clinical part of an assessment."""
    curve = net_benefit(sample, confidence_level=confidence_level)
    return Clinical(
        verdict=f"{_weak_in_words(weak)} {_utility_in_words(curve)}{_caution(sample)}",
        index=calibration_index(sample, confidence_level=confidence_level),
        c_statistic=c_statistic(sample, confidence_level=confidence_level),
        decision_curve=curve,
        decisions=net_benefit(sample, thresholds=thresholds, confidence_level=confidence_level),
        events=float(sample.positives.sum()),
    )


def _weak_in_words(weak: WeakCalibration) -> str:
    """Return in which direction the risks are wrong, as far as the intervals show it."""
    ratio, slope = weak.observed_expected, weak.slope
    found = []
    if 1 not in ratio.interval:
        found.append(f"too {'high' if ratio.value < 1 else 'low'} on average (O:E {_shown(ratio)})")
    if 1 not in slope.interval:
        found.append(
            f"too {'extreme' if slope.value < 1 else 'moderate'} (calibration slope {_shown(slope)})"
        )
    if found:
        return f"The predicted risks are {' and '.join(found)}."
    return f"Neither O:E ({_shown(ratio)}) nor the calibration slope ({_shown(slope)}) is shown to differ from 1."


def _caution(sample: Sample) -> str:
    table = sample.clusters
    if table is None or table.n_clusters >= FEW_CLUSTERS:
        return ""
    return f" With only {counted(table.n_clusters, 'cluster')} these intervals are unreliable."


def _shown(part: Parameter) -> str:
    low, high = part.interval.low, part.interval.high
    return f"{part.value:.2f}, {level(part.interval.confidence_level)} interval {low:.2f} to {high:.2f}"


def _utility_in_words(curve: NetBenefit) -> str:
    """Return at which thresholds the model is shown to be better than acting always and acting never."""
    better = np.flatnonzero(curve.gain_low > 0)
    if not len(better):
        return "At no threshold is the model shown to have a higher net benefit than treating all or treating none."
    runs = np.split(better, np.flatnonzero(np.diff(better) > 1) + 1)
    longest = max(runs, key=len)
    low, high = (percent(float(curve.thresholds[k]), 0) for k in (longest[0], longest[-1]))
    where = f"At a threshold of {low}" if low == high else f"At thresholds from {low} to {high}"
    return f"{where} acting on the model has a higher net benefit than treating all or treating none (pointwise)."
