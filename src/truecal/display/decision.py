"""Decision curves: net benefit against the threshold."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from truecal._lib.checks import check_choice, check_flag
from truecal._lib.text import level
from truecal.display._base import Display, describe_plot
from truecal.display._style import BLUE, GREEN, INK, RED, axes_or_new, legend_below, percent_axis, tidy
from truecal.inference.net_benefit import NetBenefit, net_benefit

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
    >>> display = truecal.display.DecisionCurveDisplay.from_predictions(data.y_true, data.y_proba)
    >>> display.plot(ax=Figure().subplots()).ax_.get_xlabel()
    'threshold probability (%)'
    """

    def __init__(self, curve: NetBenefit) -> None:
        self.curve = curve

    @classmethod
    def from_predictions(cls, y_true: Any, y_proba: Any = None, **options: Any) -> Self:
        """Compute the decision curve of predictions.

        Parameters
        ----------
        y_true, y_proba
            As in `truecal.net_benefit`.
        **options
            As in `truecal.net_benefit`.

        Returns
        -------
        Self
        """
        return cls(net_benefit(y_true, y_proba, **options))

    @describe_plot
    def plot(
        self,
        ax: Any = None,
        *,
        quantity: str = "net_benefit",
        name: str = "model",
        color: str = BLUE,
        band: bool = True,
        recalibrated: bool = True,
        legend: bool = True,
        **line: Any,
    ) -> Self:
        """Draw the curve with its pointwise confidence band.

        Parameters
        ----------
        {ax}
        quantity : {"net_benefit", "interventions_avoided", "cost"}
            Net benefit; actions avoided without missing more events, compared with acting always; or what
            miscalibration costs, the net benefit that a logistic recalibration would add.
        name : str
            Name of the model in the legend.
        color : color
            Colour of the curve.
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
        ax = axes_or_new(ax, figsize=(4.6, 3.6))
        curve, x = self.curve, self.curve.thresholds
        value = getattr(curve, quantity)
        ends = {"net_benefit": (curve.low, curve.high), "cost": (curve.cost_low, curve.cost_high)}.get(
            quantity
        )
        if check_flag("band", band) and ends is not None:
            label = f"{level(curve.confidence_level)} interval, pointwise"
            ax.fill_between(x, *ends, color=color, alpha=0.2, linewidth=0, label=label)
        if quantity == "net_benefit":
            ax.plot(x, curve.treat_all, color=RED, linewidth=1.2, label="act always")
            if recalibrated:
                style = {"color": GREEN, "linewidth": 1.2, "linestyle": "--", "label": "recalibrated"}
                ax.plot(x, curve.recalibrated, **style)
        ax.axhline(0, color=INK, linewidth=1.0, label="act never" if quantity == "net_benefit" else None)
        ax.plot(x, value, **{"color": color, "linewidth": 1.8, "label": name, **line})
        tidy(ax, xlabel="threshold probability (%)", ylabel=_QUANTITIES[quantity], title=curve.target)
        percent_axis(ax.xaxis)
        ax.set_xlim(float(x.min()), float(x.max()) if len(x) > 1 else float(x.min()) + 0.01)
        if quantity == "net_benefit":
            # Acting always falls without limit as the threshold rises; the part near the model matters.
            top = float(np.nanmax([value.max(), curve.high.max(), curve.treat_all.max(), 0.01]))
            low = float(min(curve.low.min(), 0.0)) if band else float(min(value.min(), 0.0))
            ax.set_ylim(min(-0.15 * top, max(1.1 * low, -0.5 * top)), 1.08 * top)
        if legend:
            legend_below([ax], columns=2)
        return self._drawn(ax)
