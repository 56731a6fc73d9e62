"""Calibration over time: the evidence, the error and the change point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from truecal.display._base import Display, describe_plot
from truecal.display._style import BLUE, INK, RED, axes_or_new, legend_below, percent_axis, stack_below, tidy
from truecal.exceptions import InputError

#: The largest e-value that is drawn; evidence beyond that needs no scale.
_MOST = 1e12


class MonitorDisplay(Display):
    """The history of a `truecal.CalibrationMonitor`: e-value, error of the level, and root mean square error.

    Parameters
    ----------
    looks : sequence of Look
        The history.
    threshold : float
        The e-value at which there is an alarm.
    change : ChangePoint, optional
        When the change began.

    Examples
    --------
    >>> import numpy as np, truecal
    >>> from matplotlib.figure import Figure
    >>> monitor = truecal.CalibrationMonitor()
    >>> for day in range(3):
    ...     _ = monitor.update([0, 1, 1], [0.2, 0.7, 0.9], time=day)
    >>> display = truecal.display.MonitorDisplay.from_monitor(monitor, ax=Figure().subplots())
    >>> display.ax_.get_ylabel()
    'e-value'
    """

    def __init__(self, looks: Sequence[Any], threshold: float, change: Any = None) -> None:
        self.looks = tuple(looks)
        if not self.looks:
            raise InputError("MonitorDisplay needs at least one look. Call update first.")
        self.threshold, self.change = threshold, change

    @classmethod
    @describe_plot
    def from_monitor(cls, monitor: Any, *, ax: Any = None, **options: Any) -> Self:
        """Draw the history of a monitor, or the part of an assessment that is over time.

        Parameters
        ----------
        monitor : CalibrationMonitor or OverTime
            The monitor, or `Assessment.over_time`.
        {draw}

        {display}
        """
        return cls(monitor.history, monitor.threshold, monitor.change).plot(ax, **options)

    @describe_plot
    def plot(self, ax: Any = None, *, legend: bool = True, **options: Any) -> Self:
        """Draw the e-value on a logarithmic scale, and observed less predicted in each batch and in all rows so far.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure of `matplotlib.pyplot`. The axes are divided into three.
        {legend}
        **options
            Passed to matplotlib for the line of the e-value.

        {panels}
        """
        ax = axes_or_new(ax, figsize=(6.4, 5.6))
        batches, last = stack_below(ax, 0.45, 0.5)
        times, dated = self._times()
        logs = [min(max(look.log_evalue, -math.log(_MOST)), math.log(_MOST)) for look in self.looks]
        ax.plot(times, np.exp(logs), **{"color": BLUE, "linewidth": 1.6, **options})
        ax.axhline(
            self.threshold, color=RED, linestyle="--", linewidth=1.2, label=f"alarm at {self.threshold:g}"
        )
        ax.set_yscale("log")
        tidy(ax, ylabel="e-value")
        batches.vlines(times, 0, [look.batch_gap for look in self.looks], color=INK, linewidth=2)
        tidy(batches, ylabel="gap of each\nbatch (%)")
        low, high = ([getattr(look, name) for look in self.looks] for name in ("gap_low", "gap_high"))
        last.fill_between(times, low, high, color=BLUE, alpha=0.2, linewidth=0, label="confidence sequence")
        last.plot(times, [look.gap for look in self.looks], color=BLUE, linewidth=1.6)
        # Early bounds are wide; the scale is that of the second half.
        half = len(self.looks) // 2
        extent = 1.15 * max(*np.abs([*low[half:], *high[half:]]), 1e-3)
        last.set_ylim(-extent, extent)
        tidy(last, xlabel="time" if dated else "rows", ylabel="gap so far\n(%)")
        for one in (batches, last):
            one.axhline(0, color=INK, linewidth=0.8)
            percent_axis(one.yaxis)
        for one in (ax, batches):
            one.tick_params(labelbottom=False)
        ax.figure.align_ylabels([ax, batches, last])
        self._draw_change((ax, batches, last), dated)
        if dated and isinstance(self.looks[0].time, str):
            last.tick_params(axis="x", labelrotation=30)
        if legend:
            handles = [*ax.get_legend_handles_labels()[0], *last.get_legend_handles_labels()[0]]
            legend_below([ax, last], columns=3, handles=handles)
        return self._drawn(ax, batches, last)

    def _times(self) -> tuple[list[Any], bool]:
        """Return where each look is on the horizontal axis: its time, or its number of rows."""
        if any(look.time is None for look in self.looks):
            return [look.rows for look in self.looks], False
        return [_on_axis(look.time) for look in self.looks], True

    def _draw_change(self, axes: Sequence[Any], dated: bool) -> None:
        if self.change is None:
            return
        change = self.change
        ends = (change.low_time, change.high_time) if dated else (change.low, change.high)
        start = change.time if dated else change.row
        for number, one in enumerate(axes):
            one.axvspan(*map(_on_axis, ends), color=RED, alpha=0.12, linewidth=0)
            one.axvline(_on_axis(start), color=RED, linewidth=1.2, label=None if number else "change")


def _on_axis(time: Any) -> Any:
    """Return a time as matplotlib takes it: a number, or a date."""
    if not isinstance(time, str):
        return time
    try:
        return np.datetime64(time.removesuffix("+00:00"))
    except ValueError:
        return time
