"""The binned error against the number of bins."""

from __future__ import annotations

import math
from typing import Any, Self

from truecal.data import as_sample
from truecal.display._base import Display, describe_plot
from truecal.display._style import BLUE, INK, axes_or_new, estimator_style, legend_below, percent_axis, tidy
from truecal.plotdata.bin_counts import BinCounts, bin_counts, bin_counts_of_study
from truecal.simulation import Study


class BinCountDisplay(Display):
    """The binned error against the number of bins, with the sweep's choice and, if known, the truth.

    Parameters
    ----------
    curve : BinCounts
        What to draw.

    Examples
    --------
    >>> import truecal
    >>> from matplotlib.figure import Figure
    >>> population = truecal.paper.population("resnet110_c100")
    >>> display = truecal.display.BinCountDisplay.from_predictions(
    ...     *population.sample(1000, rng=0), true_error=population.true_error()
    ... )
    >>> display.plot(ax=Figure().subplots()).ax_.get_xlabel()
    'number of bins'
    """

    def __init__(self, curve: BinCounts) -> None:
        self.curve = curve

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any = None,
        *,
        binning: str = "em",
        norm: float = 2,
        n_bins: Any = None,
        true_error: float | None = None,
        **reading: Any,
    ) -> Self:
        """Make the display from labels and probabilities, or from a `Sample`.

        Parameters
        ----------
        y_true, y_proba
            As in `truecal.estimate`.
        binning, norm, n_bins, true_error
            As in `truecal.plotdata.bin_counts.bin_counts`.
        **reading
            As in `truecal.estimate`.

        Returns
        -------
        Self
        """
        sample = as_sample(y_true, y_proba, **reading)
        return cls(bin_counts(sample, binning=binning, norm=norm, n_bins=n_bins, true_error=true_error))

    @classmethod
    def from_study(cls, study: Study, **which: Any) -> Self:
        """Make the display of means over simulations.

        Parameters
        ----------
        study : Study
            With the estimators that `truecal.plotdata.bin_counts.bin_counts_of_study` needs.
        **which
            `population`, `n` and `binning`, as there.

        Returns
        -------
        Self
        """
        return cls(bin_counts_of_study(study, **which))

    @describe_plot
    def plot(self, ax: Any = None, *, name: str | None = None, legend: bool = True, **line: Any) -> Self:
        """Draw the curve.

        Parameters
        ----------
        {ax}
        {title}
        {legend}
        **line
            Passed to matplotlib for the curve.

        {drawn}
        """
        curve = self.curve
        ax = axes_or_new(ax)
        style = estimator_style(f"{curve.binning}_bin")
        simulated = bool(curve.value_se.any())
        few = len(curve.n_bins) <= 12
        options = {
            **style,
            "marker": style["marker"] if few else "",
            "markersize": 4,
            "linewidth": 1.5,
            **line,
        }
        ax.plot(curve.n_bins, curve.value, label=f"{curve.binning}_bin", **options)
        if simulated:
            low, high = curve.value - 2 * curve.value_se, curve.value + 2 * curve.value_se
            ax.fill_between(curve.n_bins, low, high, color=style["color"], alpha=0.2, linewidth=0)
        if curve.true_error is not None:
            ax.axhline(
                curve.true_error, color=INK, linewidth=1.2, linestyle=(0, (1, 1.5)), label="true error"
            )
        if not math.isnan(curve.sweep_bins):
            text = f"{curve.binning}_sweep, {curve.sweep_bins:.3g} bins"
            ax.vlines(curve.sweep_bins, 0, curve.sweep_value, color=BLUE, linewidth=1, alpha=0.6)
            ax.plot(
                [curve.sweep_bins], [curve.sweep_value], "o", color=BLUE, markersize=6, label=text, zorder=4
            )
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.set_ylim(bottom=0)
        tidy(
            ax,
            xlabel="number of bins",
            ylabel=f"{'mean ' if simulated else 'calibration '}error, l{curve.norm:g} (%)",
            title=f"{name or curve.target}, n = {curve.n:,.10g}",
        )
        percent_axis(ax.yaxis)
        if legend:
            legend_below([ax])
        return self._drawn(ax)
