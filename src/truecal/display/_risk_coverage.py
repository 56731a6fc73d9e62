"""Risk-coverage curves, and selective accuracy by threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from truecal._lib.checks import check_flag, require
from truecal._lib.text import level
from truecal.display._base import Display, describe_plot
from truecal.display._style import CYCLE, legend_below, percent_axis, tidy, wrapped
from truecal.inference.thresholds import RiskCoverage, risk_coverage

#: Marks what is a curve of a model in axes that several displays share.
_CURVE = "truecal risk-coverage"
#: Largest number of points for which a curve has markers.
_FEW = 25


class RiskCoverageDisplay(Display):
    """The share of wrong answers among the most confident rows, and beside it the accuracy by threshold.

    Parameters
    ----------
    curve : RiskCoverage
        What `truecal.inference.thresholds.risk_coverage` or `Answers.risk_coverage` returned.
    name : str, optional
        Name of the model in the legend.

    Examples
    --------
    >>> import truecal
    >>> from matplotlib.figure import Figure
    >>> data = truecal.datasets.load("digits")
    >>> display = truecal.display.RiskCoverageDisplay.from_predictions(
    ...     data.y_true, data.y_proba, labels=data.labels, ax=Figure().subplots(1, 2)
    ... )
    >>> [ax.get_ylabel() for ax in display.axes_]
    ['risk: wrong (%)', 'selective accuracy (%)']
    """

    def __init__(self, curve: RiskCoverage, *, name: str | None = None) -> None:
        self.curve = curve
        self.name = name

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_proba: Any = None, *, name: str | None = None, ax: Any = None, **options: Any
    ) -> Self:
        """Draw the curve of predictions.

        Parameters
        ----------
        y_true, y_proba
            Whether each answer is correct, and the confidence in it; or classes and their probabilities.
        name : str, optional
            Name of the model in the legend.
        ax : matplotlib Axes, or two, optional
            Where to draw; by default a new figure of `matplotlib.pyplot`.
        **options
            Options of `plot`, and of `truecal.inference.thresholds.risk_coverage`.

        Returns
        -------
        Self
            The display, drawn.
        """
        drawing, others = cls._split(options)
        return cls(risk_coverage(y_true, y_proba, **others), name=name).plot(ax, **drawing)

    @describe_plot
    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        color: Any = None,
        band: bool = True,
        legend: bool = True,
        **line: Any,
    ) -> Self:
        """Draw the risk against the coverage, and the selective accuracy against the threshold.

        Axes that already have curves get one more in the next colour, so that several models can be compared.

        Parameters
        ----------
        ax : matplotlib Axes, or two, optional
            Where to draw; by default a new figure. One axes gets the risk-coverage curve alone.
        name : str, optional
            Name of the model in the legend; by default that of the display.
        color : color, optional
            Colour of the curve; by default the next one that the axes do not have.
        band : bool
            Whether to draw the pointwise confidence band.
        {legend}
        **line
            Passed to matplotlib for the curves.

        {panels}
        """
        if ax is None:
            pyplot = require("matplotlib.pyplot", extra="app", purpose="Drawing")
            ax = pyplot.subplots(1, 2, figsize=(7.2, 3.4), layout="constrained")[1]
        axes = list(np.ravel(np.asarray(ax, dtype=object)))[:2]
        before = sum(other.get_gid() == _CURVE for other in axes[0].lines)
        style = {
            "color": CYCLE[before % len(CYCLE)] if color is None else color,
            "linewidth": 1.6,
            "gid": _CURVE,
        }
        if len(self.curve.threshold) <= _FEW:
            style = {"marker": "o", "markersize": 4, **style}
        self._draw(
            axes, name or self.name or self.curve.target, check_flag("band", band), before, style | line
        )
        self._label(axes, before)
        if legend:
            for old in filter(None, (*axes[0].figure.legends, *(one.get_legend() for one in axes))):
                old.remove()
            legend_below(axes, columns=3, handles=_handles(axes))
        return self._drawn(*axes)

    def _draw(self, axes: Sequence[Any], name: str, band: bool, before: int, style: dict[str, Any]) -> None:
        """Draw the curve in one or two panels; `before` curves in them already have their labels."""
        curve, color = self.curve, style["color"]
        panels = (
            (curve.coverage, curve.risk, 1 - curve.upper, 1 - curve.lower),
            (curve.threshold, curve.accuracy, curve.lower, curve.upper),
        )
        for one, (x, value, low, high) in zip(axes, panels, strict=False):
            if band:
                label = "" if before else f"{level(curve.confidence_level)} interval, pointwise"
                one.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0, label=label)
            if one is not axes[0]:
                label = "" if before else "accuracy if calibrated"
                dashes = {"linewidth": 1.0, "linestyle": (0, (4, 2)), "label": label}
                one.plot(x, curve.mean_score, color=color, **dashes)
            one.plot(x, value, **{"label": wrapped(name, one), **style})

    def _label(self, axes: Sequence[Any], before: int) -> None:
        title = f"AURC {self.curve.aurc:.4f}, n = {self.curve.n:,.10g}"
        tidy(axes[0], xlabel="coverage: answered (%)", ylabel="risk: wrong (%)", title=title)
        if before:  # the title is that of one model
            axes[0].set_title("", loc="left")
        if len(axes) > 1:
            tidy(axes[1], xlabel="confidence at least (%)", ylabel="selective accuracy (%)")
        for one in axes:
            one.autoscale()
            percent_axis(one.xaxis)
            percent_axis(one.yaxis)
        axes[0].set_xlim(0, 1.02)
        axes[0].set_ylim(0, axes[0].get_ylim()[1])


def _handles(axes: Sequence[Any]) -> list[Any]:
    """Return one entry for each label in any of the axes."""
    found = {
        label: handle for one in axes for handle, label in zip(*one.get_legend_handles_labels(), strict=True)
    }
    return list(found.values())
