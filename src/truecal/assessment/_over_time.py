"""Calibration over time: the rows in the order of their times, watched by a monitor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.text import counted
from truecal.data.question import Rows
from truecal.exceptions import InputError
from truecal.inference.monitor import CalibrationMonitor, ChangePoint, Diagnosis, Look
from truecal.inference.monitor._batch import last_by_cluster, read_moments
from truecal.results import Result

#: Most windows, and the rows that a window should have.
_MOST_WINDOWS, _WINDOW_ROWS = 50, 100


@dataclass(frozen=True, eq=False)
class OverTime(Result):
    """Whether predictions were calibrated all the time.

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
    """Return whether rows were calibrated all the time."""
    if rows.weight is not None:
        raise InputError("cannot be combined with sample_weight", argument="time")
    moments = read_moments(time)
    if len(moments) != len(rows.label):
        raise InputError(f"has {len(moments):,} values for {len(rows.label):,} rows", argument="time")
    if rows.cluster is not None:
        moments = last_by_cluster(rows.cluster, moments)
    monitor, shown = CalibrationMonitor(alpha), _shown(moments)
    for window in _windows(moments):
        clusters = None if rows.cluster is None else rows.cluster[window]
        times = shown[window[0]], shown[window[-1]]
        monitor.update(rows.label[window], rows.score[window], time=times, clusters=clusters)
    found = monitor.change, monitor.diagnosis
    return OverTime(_verdict(monitor), monitor.alarm, monitor.threshold, monitor.history, *found)


def _windows(moments: NDArray[Any]) -> Iterator[NDArray[np.intp]]:
    """Yield rows in the order of time, in windows of about as many rows, none of which divides a time."""
    order = np.argsort(moments, kind="stable")
    first = np.flatnonzero(np.append(True, np.diff(moments[order]).astype(np.float64) > 0))
    most = max(min(_MOST_WINDOWS, len(order) // _WINDOW_ROWS), 1)
    place = first * most // len(order)
    yield from np.split(order, first[np.flatnonzero(np.diff(place)) + 1])


def _shown(moments: NDArray[Any]) -> NDArray[Any]:
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
    begun = "" if monitor.change is None else f"{monitor.change.sentence} "
    what = str(monitor.diagnosis)
    return (
        f"Alarm at {first.time}: the e-value against perfect calibration reached {first.evalue:.3g}, and is "
        f"{monitor.evalue:.3g} in the last of {windows}. {begun}{what[0].upper()}{what[1:]}."
    )
