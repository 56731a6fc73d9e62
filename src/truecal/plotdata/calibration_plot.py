"""What a calibration plot of clinical papers shows: flexible and logistic curves, groups of patients, and outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from truecal._lib.types import FloatArray
from truecal.data.question import as_sample
from truecal.data.reading import Reading, takes_predictions
from truecal.data.sample import Sample
from truecal.inference.c_statistic import c_statistic
from truecal.inference.calibration_index import CalibrationIndex, calibration_index
from truecal.inference.weak_calibration import Parameter, WeakCalibration, weak_calibration
from truecal.multiscale.analysis import analyse
from truecal.plotdata.reliability import Reliability, reliability_curve
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
    {clusters}

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
