"""Sections of an assessment that are made on request: clinical validation, and calibration over time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.text import counted, level, percent
from truecal._lib.types import FloatArray
from truecal.data.arrays import is_top
from truecal.data.question import Rows
from truecal.data.sample import Sample
from truecal.exceptions import InputError
from truecal.inference.c_statistic import c_statistic
from truecal.inference.monitor import CalibrationMonitor, ChangePoint, Diagnosis, Look
from truecal.inference.monitor._batch import last_by_cluster, read_moments
from truecal.inference.monitor._monitor import finding
from truecal.inference.thresholds import NetBenefit, net_benefit, read_thresholds
from truecal.inference.weak_calibration import (
    CalibrationIndex,
    Parameter,
    WeakCalibration,
    calibration_index,
)
from truecal.multiscale import MIN_CLUSTERS
from truecal.results import Result

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
    if is_top(sample.target):
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
    n_clusters = sample.dependence.n_clusters
    if n_clusters >= MIN_CLUSTERS:
        return ""
    return f" With only {counted(n_clusters, 'cluster')} these intervals are unreliable."


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


#: Most windows, and the rows that a window should have.
_MOST_WINDOWS, _WINDOW_ROWS = 50, 100


@dataclass(frozen=True, eq=False)
class OverTime(Result):
    """Whether predictions were calibrated at all times.

    Attributes
    ----------
    verdict : str
        Whether there was an alarm, when the change began, and what changed.
    alarm : bool
        Whether the e-value reached the threshold in any window. If the predictions were calibrated all the time, this
        has a probability of at most 1 less the confidence level.
    threshold : float
        The e-value at which there is an alarm.
    history : tuple of Look
        What was known after each window. `truecal.display.MonitorDisplay.from_monitor` draws it.
    change : ChangePoint or None
        When the change began, if there was an alarm.
    diagnosis : Diagnosis or None
        What changed, if there was an alarm.
    """

    verdict: str
    alarm: bool
    threshold: float
    history: tuple[Look, ...]
    change: ChangePoint | None
    diagnosis: Diagnosis | None


def assess_over_time(rows: Rows, time: Any, alpha: float) -> OverTime:
    """Return whether rows were calibrated at all times."""
    if rows.weight is not None:
        raise InputError("cannot be combined with sample_weight", argument="time")
    moments = read_moments(time)
    if len(moments) != len(rows.label):
        raise InputError(f"has {len(moments):,} values for {len(rows.label):,} rows", argument="time")
    if rows.cluster is not None:
        moments = last_by_cluster(rows.cluster, moments)
    monitor, shown = CalibrationMonitor(alpha), _shown_times(moments)
    for window in _windows(moments):
        clusters = None if rows.cluster is None else rows.cluster[window]
        times = shown[window[0]], shown[window[-1]]
        monitor.update(rows.label[window], rows.score[window], time=times, clusters=clusters)
    found = monitor.change, monitor.diagnosis
    return OverTime(_verdict(monitor), monitor.alarm, monitor.threshold, monitor.history, *found)


def _windows(moments: NDArray[Any]) -> Iterator[NDArray[np.intp]]:
    """Yield rows in order of time, in windows of about equal size; rows with the same time stay together."""
    order = np.argsort(moments, kind="stable")
    first = np.flatnonzero(np.append(True, np.diff(moments[order]).astype(np.float64) > 0))
    most = max(min(_MOST_WINDOWS, len(order) // _WINDOW_ROWS), 1)
    place = first * most // len(order)
    yield from np.split(order, first[np.flatnonzero(np.diff(place)) + 1])


def _shown_times(moments: NDArray[Any]) -> NDArray[Any]:
    """Return times as numbers, or as text: dates if none has a time of day."""
    if moments.dtype.kind != "M":
        return moments
    days = moments.astype("datetime64[D]")
    return np.datetime_as_string(days if (days == moments).all() else moments.astype("datetime64[s]"))


def _verdict(monitor: CalibrationMonitor) -> str:
    looks = monitor.history
    windows = counted(len(looks), "window")
    if not monitor.alarm:
        return (
            f"No alarm in {windows}: the e-value against perfect calibration is {monitor.evalue:.3g}, and there would "
            f"be an alarm at {monitor.threshold:.4g}."
        )
    first = next(look for look in looks if look.alarm)
    last = f"{monitor.evalue:.3g}" if math.isfinite(monitor.evalue) else "infinite"
    return (
        f"Alarm at {first.time}: the e-value against perfect calibration reached {first.evalue:.3g}, and is "
        f"{last} in the last of {windows}. {finding(monitor)}"
    )
