"""Pictures of clinical papers: the calibration plot and the decision curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from truecal._lib.checks import check_choice, check_flag
from truecal._lib.text import counted, level
from truecal._lib.types import FloatArray
from truecal.assessment._plotdata import CalibrationPlot, axis_top, calibration_plot
from truecal.display import _style as draw
from truecal.display._base import Display, describe_plot
from truecal.inference.thresholds import NetBenefit, net_benefit
from truecal.inference.weak_calibration import Parameter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Width in inches that axes must exceed for the measures to leave the curve free.
_WRITTEN = 2.5


class CalibrationPlotDisplay(Display):
    """Observed against predicted risk, as clinical papers draw it, with O:E, intercept, slope, ICI and C statistic.

    Parameters
    ----------
    data : CalibrationPlot
        What `truecal.assessment.calibration_plot` returned.

    Attributes
    ----------
    ax_, figure_
        Axes and figure, after `plot`.
    outcomes_ax_ : matplotlib Axes or None
        The axes with the predicted risks of rows with the event (upwards) and without it (downwards).

    Examples
    --------
    >>> import truecal
    >>> from matplotlib.figure import Figure
    >>> data = truecal.datasets.load("flights")
    >>> display = truecal.display.CalibrationPlotDisplay.from_predictions(
    ...     data.y_true, data.y_proba, ax=Figure().subplots()
    ... )
    >>> display.ax_.get_ylabel()
    'observed risk (%)'
    """

    outcomes_ax_: Any

    def __init__(self, data: CalibrationPlot) -> None:
        self.data = data

    @classmethod
    @describe_plot
    def from_predictions(cls, y_true: Any, y_proba: Any = None, *, ax: Any = None, **options: Any) -> Self:
        """Draw the plot of labels and predicted risks, or of a `Sample`.

        Parameters
        ----------
        y_true, y_proba
            As in `truecal.weak_calibration`.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure of `matplotlib.pyplot`.
        **options
            Options of `plot`; ``n_groups`` (10), ``confidence_level``; and how to read the predictions: ``clusters``,
            ``pos_label`` and so on.

        {display}
        """
        drawing, others = cls._split(options)
        return cls(calibration_plot(y_true, y_proba, **others)).plot(ax, **drawing)

    @classmethod
    @describe_plot
    def from_assessment(cls, assessment: Any, *, n_groups: int = 10, ax: Any = None, **options: Any) -> Self:
        """Draw the result of `truecal.assess`.

        Parameters
        ----------
        assessment : Assessment
            The assessment.
        n_groups : int
            Number of groups of equal size.
        {draw}

        {display}
        """
        level = assessment.confidence_level
        data = calibration_plot(assessment.sample, n_groups=n_groups, confidence_level=level)
        return cls(data).plot(ax, **options)

    def plot(
        self,
        ax: Any = None,
        *,
        color: Any = draw.BLUE,
        groups: bool = True,
        logistic: bool = True,
        outcomes: bool = True,
        text: bool = True,
        legend: bool = True,
        **line: Any,
    ) -> Self:
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        color : color
            Colour of the flexible curve.
        groups : bool
            Whether to draw groups of equal size with intervals.
        logistic : bool
            Whether to draw the logistic curve, whose intercept and slope are given.
        outcomes : bool
            Whether to draw the predicted risks of rows with and without the event, below.
        text : bool
            Whether to write the measures into the plot, if it is at least 2.5 inches wide.
        legend : bool
            Whether to draw a legend.
        **line
            Passed to matplotlib for the flexible curve.

        Returns
        -------
        Self
            With its axes in `ax_` and `outcomes_ax_`, and its figure in `figure_`.
        """
        data, curve = self.data, self.data.groups
        ax = draw.axes_or_new(ax, figsize=(4.8, 5.4) if outcomes else (4.8, 4.6))
        self.outcomes_ax_ = below = draw.split_below(ax, 0.22) if outcomes else None
        draw.draw_diagonal(ax)
        if logistic and np.isfinite(data.logistic).any():
            style = {"color": draw.GREEN, "linewidth": 1.4, "linestyle": "--", "label": "logistic curve"}
            ax.plot(data.score, data.logistic, **style)
        options = {"color": color, "linewidth": 1.8, "label": "flexible curve", **line}
        ax.plot(data.score, data.flexible, **options)
        if groups:
            x, y = curve.bins.mean_score, curve.bins.mean_label
            ends = np.maximum([y - curve.interval_lower, curve.interval_upper - y], 0)
            name = f"{counted(len(x), 'group')}, {level(curve.confidence_level)} intervals"
            ax.errorbar(x, y, ends, fmt="^", color=draw.INK, markersize=5, linewidth=1.0, label=name)
        for axis in (ax.xaxis, ax.yaxis):
            draw.percent_axis(axis)
        top = axis_top(float(np.nanmax([*data.score, *data.flexible, *curve.bins.mean_label])))
        ax.set_xlim(0, top)
        ax.set_ylim(0, top)
        title = f"{curve.target}, n = {curve.n:,.10g}"
        draw.tidy(ax, xlabel="predicted risk (%)", ylabel="observed risk (%)", title=title)
        if below is not None:
            self._draw_outcomes(ax, below, legend)
        if legend:
            draw.legend_below([below or ax], handles=ax.get_legend_handles_labels()[0], columns=3)
        if text and draw.width_of(ax) > _WRITTEN:
            # Where the curve is not: above the diagonal, or below it if risks are too low.
            above = bool(np.nanmean(data.flexible - data.score) <= 0)
            corner = (0.03, 0.97, "top", "left") if above else (0.98, 0.03, "bottom", "right")
            self._write_measures(ax, *corner)
        return self._drawn(ax)

    def _draw_outcomes(self, ax: Axes, below: Axes, legend: bool) -> None:
        """Draw how many rows with the event (upwards) and without it (downwards) have each risk."""
        data = self.data
        middle, width = (data.edges[:-1] + data.edges[1:]) / 2, 0.8 * float(data.edges[1])
        below.bar(middle, data.events, width, color=draw.RED)
        below.bar(middle, -data.others, width, color=draw.INK)
        below.axhline(0, color=draw.INK, linewidth=0.8)
        below.set_xlim(ax.get_xlim())
        draw.percent_axis(below.xaxis)
        draw.count_axis(below.yaxis)
        below.yaxis.set_major_formatter(lambda value, _: f"{abs(value):,.10g}")
        draw.tidy(below, xlabel="predicted risk (%)", ylabel="rows")
        ax.set_xlabel("")
        ax.tick_params(labelbottom=False)
        ax.figure.align_ylabels([ax, below])
        if legend:
            style: dict[str, Any] = {"transform": below.transAxes, "fontsize": "small"}
            below.text(1.02, 1.0, "event", color=draw.RED, va="top", **style)
            below.text(1.02, 0.0, "none", color=draw.ink(), va="bottom", **style)

    def _write_measures(self, ax: Axes, x: float, y: float, va: str, ha: str) -> None:
        """Write the measures with their intervals into a corner of the axes."""
        weak, index = self.data.weak, self.data.index
        low, high = index.interval.low, index.interval.high
        lines = [
            f"O:E {_shown(weak.observed_expected)}",
            f"intercept {_shown(weak.intercept)}",
            f"slope {_shown(weak.slope)}",
            f"ICI {index.ici:.3f} ({low:.3f} to {high:.3f})",
            f"C statistic {_shown(self.data.c_statistic)}",
        ]
        style: dict[str, Any] = {
            "color": draw.ink(),
            "fontsize": "small",
            "linespacing": 1.4,
            "va": va,
            "ha": ha,
        }
        ax.text(x, y, "\n".join(lines).replace("-", "−"), transform=ax.transAxes, **style)


def _shown(part: Parameter) -> str:
    if math.isnan(part.value):
        return "not determined"
    return f"{part.value:.2f} ({part.interval.low:.2f} to {part.interval.high:.2f})"


#: Marks the curves of models, and their colours: without red, which is acting always.
_CURVE, _MODELS = "truecal-decision", tuple(colour for colour in draw.CYCLE if colour != draw.RED)
#: Where model and acting always differ by less than this share of the largest net benefit, nothing is shown.
_SEEN = 0.02
#: What can be drawn against the threshold, with the label of the axis.
_QUANTITIES = {
    "net_benefit": "net benefit",
    "interventions_avoided": "actions avoided per 100 rows",
    "cost": "cost of miscalibration",
}


class DecisionCurveDisplay(Display):
    """The net benefit of acting on the scores, against acting always and acting never.

    Parameters
    ----------
    curve : NetBenefit
        What `truecal.net_benefit` returned.

    Examples
    --------
    >>> import truecal
    >>> from matplotlib.figure import Figure
    >>> data = truecal.datasets.load("flights")
    >>> display = truecal.display.DecisionCurveDisplay.from_predictions(
    ...     data.y_true, data.y_proba, ax=Figure().subplots()
    ... )
    >>> display.ax_.get_xlabel()
    'threshold probability (%)'
    """

    def __init__(self, curve: NetBenefit) -> None:
        self.curve = curve

    @classmethod
    @describe_plot
    def from_predictions(cls, y_true: Any, y_proba: Any = None, *, ax: Any = None, **options: Any) -> Self:
        """Draw the decision curve of predictions.

        Parameters
        ----------
        y_true, y_proba
            As in `truecal.net_benefit`.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure of `matplotlib.pyplot`.
        **options
            Options of `plot`, and of `truecal.net_benefit`.

        {display}
        """
        drawing, others = cls._split(options)
        return cls(net_benefit(y_true, y_proba, **others)).plot(ax, **drawing)

    @describe_plot
    def plot(
        self,
        ax: Any = None,
        *,
        quantity: str = "net_benefit",
        name: str = "model",
        color: Any = None,
        band: bool = True,
        recalibrated: bool = True,
        legend: bool = True,
        **line: Any,
    ) -> Self:
        """Draw the curve with its pointwise confidence band.

        The axes begin where the model can be told from acting always, and end where nobody acts.

        Axes that already have curves get one more in the next colour, so that several models can be compared.

        Parameters
        ----------
        {ax}
        quantity : {"net_benefit", "interventions_avoided", "cost"}
            Net benefit; actions avoided without missing more events, compared with acting always; or what
            miscalibration costs, the net benefit that a logistic recalibration would add.
        name : str
            Name of the model in the legend.
        color : color, optional
            Colour of the curve; by default the next one that the axes do not have.
        band : bool
            Whether to draw the confidence band.
        recalibrated : bool
            Whether to draw the net benefit after recalibration, beside the net benefit.
        {legend}
        **line
            Passed to matplotlib for the curve.

        {drawn}
        """
        check_choice("quantity", quantity, tuple(_QUANTITIES))
        ax = draw.axes_or_new(ax, figsize=(4.6, 3.6))
        curve, x = self.curve, self.curve.thresholds
        before = sum(other.get_gid() == _CURVE for other in ax.lines)
        color = _MODELS[before % len(_MODELS)] if color is None else color
        benefit, value = quantity == "net_benefit", getattr(curve, quantity)
        ends = {"net_benefit": (curve.low, curve.high), "cost": (curve.cost_low, curve.cost_high)}
        if check_flag("band", band) and quantity in ends:
            label = "" if before else f"{level(curve.confidence_level)} interval, pointwise"
            ax.fill_between(x, *ends[quantity], color=color, alpha=0.2, linewidth=0, label=label)
        strategies = benefit and not before
        if strategies:
            ax.plot(x, curve.treat_all, color=draw.RED, linewidth=1.2, label="act always")
        if benefit and recalibrated:
            style = {"color": color, "linewidth": 1.2, "linestyle": "--"}
            ax.plot(x, curve.recalibrated, label="" if before else "recalibrated", **style)
        ax.axhline(0, color=draw.INK, linewidth=1.0, label="act never" if strategies else None)
        ax.plot(x, value, **{"color": color, "linewidth": 1.8, "label": name, "gid": _CURVE, **line})
        draw.tidy(ax, xlabel="threshold probability (%)", ylabel=_QUANTITIES[quantity], title=curve.target)
        draw.percent_axis(ax.xaxis)
        shown = (*ax.get_xlim(), *ax.get_ylim()) if before else None
        self._set_limits(ax, shown, curve.low if band else curve.net_benefit, benefit)
        if legend:
            draw.legend_below([ax], columns=2)
        return self._drawn(ax)

    def _set_limits(self, ax: Axes, shown: Sequence[float] | None, low: FloatArray, benefit: bool) -> None:
        """Set the limits of the axes to the curves of this model and those `shown` of others."""
        curve, x = self.curve, self.curve.thresholds
        # Below all scores everybody acts, and above them nobody, whatever the model: there is nothing to see.
        distance = np.abs(np.array([curve.net_benefit, curve.recalibrated]) - curve.treat_all).max(axis=0)
        differs = distance > _SEEN * float(np.abs(curve.treat_all[0]))
        acting = x[(curve.net_benefit != 0) | (curve.recalibrated != 0)]
        first = float(x[max(int(differs.argmax()) - 1, 0)])
        last = min(axis_top(float(acting.max(initial=0.0))), float(x.max()))
        if shown:
            first, last = min(first, shown[0]), max(last, shown[1])
        last = last if last > first else first + 0.01
        ax.set_xlim(first, last)
        if benefit:
            # Acting always falls without limit as the threshold rises; the part near the model matters.
            inside = (x >= first) & (x <= last)
            most = np.array([curve.net_benefit, curve.high, curve.treat_all])[:, inside]
            top, least = max(float(np.nanmax(most)), 0.01), min(float(low[inside].min()), 0.0)
            bottom, top = min(-0.15 * top, max(1.1 * least, -0.5 * top)), 1.08 * top
            ax.set_ylim(min(bottom, *shown[2:]) if shown else bottom, max(top, *shown[2:]) if shown else top)
