"""Studies of estimators and tests: bias, miss rates, and the error against the number of bins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from truecal._lib.checks import check_choice
from truecal._lib.text import short_count
from truecal._lib.types import FloatArray, NormLike
from truecal.assessment._plotdata import BinCounts, bin_counts, bin_counts_of_study
from truecal.data import as_sample
from truecal.display import _style as draw
from truecal.display._base import Display, check_rows, column, describe_plot
from truecal.exceptions import InputError
from truecal.simulation import Study

_QUANTITIES = ("bias", "median_bias", "sd", "rmse")
#: What error bars show, for legends.
_BARS = "bars: \N{PLUS-MINUS SIGN}2 Monte Carlo s.e."
_NEEDED = ("population", "n", "estimator", "bias", "bias_se", "sd", "rmse")


class BiasDisplay(Display):
    """Bias of estimators against the number of rows, with its Monte Carlo error; a panel for each population.

    Equal-width estimators are dashed and hollow, equal-mass ones solid and filled.

    Parameters
    ----------
    rows : iterable of dict
        The rows of a study, as in `truecal.simulation.Study.rows`.

    Examples
    --------
    >>> import truecal
    >>> from matplotlib.figure import Figure
    >>> from truecal.display import BiasDisplay
    >>> calibrated = truecal.Population(truecal.simulation.BetaScores(2.8, 0.05), truecal.simulation.IdentityCurve())
    >>> study = truecal.bias_study(
    ...     {"calibrated": calibrated}, estimators=["ew_bin", "em_sweep"], sizes=[100, 400], repeats=50, rng=0
    ... )
    >>> BiasDisplay.from_study(study, ax=Figure().subplots()).ax_.get_ylabel()
    'bias (% points)'
    """

    def __init__(self, rows: Iterable[Any]) -> None:
        self.rows = check_rows(rows, _NEEDED, "BiasDisplay")

    @classmethod
    @describe_plot
    def from_study(
        cls,
        study: Study,
        *,
        populations: Sequence[str] | None = None,
        estimators: Sequence[str] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw a study, or some of its populations and estimators.

        Parameters
        ----------
        study : Study
            What `truecal.bias_study` returned.
        populations, estimators : sequence of str, optional
            Which to show, in that order; by default all.
        {draw}

        {display}
        """
        rows = study.rows
        for name, wanted in (("population", populations), ("estimator", estimators)):
            if wanted is not None:
                for one in wanted:
                    check_choice(name, one, column(rows, name))
                rows = [row for one in wanted for row in rows if row.get(name) == one]
        return cls(rows).plot(ax, **options)

    @describe_plot
    def plot(self, ax: Any = None, *, quantity: str = "bias", legend: bool = True, **line: Any) -> Self:
        """Draw one panel for each population.

        Parameters
        ----------
        ax : matplotlib Axes, or several, optional
            Where to draw; by default a new figure. Axes are divided if there are several populations.
        quantity : {"bias", "median_bias", "sd", "rmse"}
            What to draw. Bars of two Monte Carlo standard errors are known for the bias.
        {legend}
        **line
            Passed to matplotlib for the lines.

        {panels}
        """
        check_choice("quantity", quantity, _QUANTITIES)
        known = [row for row in self.rows if row.get(quantity) is not None]
        if not known:
            raise InputError(f"These estimators do not estimate the true error, so there is no {quantity}.")
        populations, signed = column(known, "population"), quantity.endswith("bias")
        axes = draw.panels(ax, len(populations))
        for panel, population in zip(axes, populations, strict=True):
            panel.axhline(0, color=draw.INK, linewidth=1, linestyle=(0, (1, 1.5)), zorder=1)
            shown = [row for row in known if row["population"] == population]
            for name, rows, style in _lines(shown, column(known, "estimator"), "n", line):
                n, values, errors = (_values(rows, key) for key in ("n", quantity, "bias_se"))
                bars = 2 * errors if quantity == "bias" else None
                panel.errorbar(n, values, yerr=bars, label=name, **style)
            draw.tidy(panel, title=str(population or ""))
            draw.size_axis(panel, column(known, "n"))
            draw.percent_axis(panel.yaxis, sign=signed)
        for panel in (
            () if signed else axes
        ):  # after all: they share their scale, and this fixes its upper end
            panel.set_ylim(bottom=0)
        draw.label_outer(axes, "n (rows)", f"{quantity.replace('_', ' ')} (% points)")
        if legend:
            draw.estimator_legend(axes, _BARS if quantity == "bias" else "")
        return self._drawn(*axes)


class MissRateDisplay(Display):
    """Miss rates of tests, one panel for each true error, or for each number of rows.

    Parameters
    ----------
    rows : iterable of dict
        With the keys ``n``, ``estimator``, ``true_error``, ``miss_rate`` and ``se``, its standard error.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from truecal.display import MissRateDisplay
    >>> rows = [
    ...     {"n": 200, "estimator": "em_sweep", "true_error": 0.1, "miss_rate": 0.21, "se": 0.01},
    ...     {"n": 500, "estimator": "em_sweep", "true_error": 0.1, "miss_rate": 0.00, "se": 0.00},
    ... ]
    >>> MissRateDisplay(rows).plot(ax=Figure().subplots()).ax_.get_title(loc="left")
    'true error 10%'
    """

    def __init__(self, rows: Iterable[Any]) -> None:
        self.rows = check_rows(rows, ("n", "estimator", "true_error", "miss_rate", "se"), "MissRateDisplay")
        for row in self.rows:
            # Errors that were solved for differ in their last digits.
            row["true_error"] = float(f"{row['true_error']:.6g}")

    @classmethod
    @describe_plot
    def from_miss_rates(cls, result: Any, *, ax: Any = None, **options: Any) -> Self:
        """Draw what `truecal.simulation.miss_rates` returned.

        Parameters
        ----------
        result : MissRates
            The miss rates.
        {draw}

        {display}
        """
        names = {"method": "estimator", "standard_error": "se"}
        rows = ({names.get(key, key): value for key, value in row.items()} for row in result.to_rows())
        return cls(rows).plot(ax, **options)

    @describe_plot
    def plot(self, ax: Any = None, *, x: str = "n", legend: bool = True, **line: Any) -> Self:
        """Draw one panel for each true error, or for each number of rows.

        Parameters
        ----------
        ax : matplotlib Axes, or several, optional
            Where to draw; by default a new figure. Axes are divided if there are several panels.
        x : {"n", "true_error"}
            What the horizontal axis is; the other has a panel for each value.
        {legend}
        **line
            Passed to matplotlib for the lines.

        {panels}
        """
        check_choice("x", x, ("n", "true_error"))
        other = "true_error" if x == "n" else "n"
        values, estimators = sorted(column(self.rows, other)), column(self.rows, "estimator")
        axes = draw.panels(ax, len(values))
        for panel, value in zip(axes, values, strict=True):
            shown = [row for row in self.rows if row[other] == value]
            for name, rows, style in _lines(shown, estimators, x, line):
                rate, error = _values(rows, "miss_rate"), _values(rows, "se")
                # Error bars are clipped to [0, 1].
                bars = np.array([np.minimum(2 * error, rate), np.minimum(2 * error, 1 - rate)])
                panel.errorbar(_values(rows, x), rate, yerr=bars, label=name, **style)
            title = f"true error {100 * value:g}%" if x == "n" else f"n = {short_count(value)}"
            draw.tidy(panel, title=title)
            if x == "n":
                draw.size_axis(panel, column(self.rows, "n"))
            else:
                panel.set_xlim(left=0)
                draw.percent_axis(panel.xaxis)
            panel.set_ylim(-0.03, 1.03)
            panel.set_yticks([0, 0.25, 0.5, 0.75, 1])
            draw.percent_axis(panel.yaxis)
        draw.label_outer(axes, "n (rows)" if x == "n" else "true error (%)", "miss rate (%)")
        if legend:
            draw.estimator_legend(axes, _BARS)
        return self._drawn(*axes)


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
    ...     *population.sample(1000, rng=0), true_error=population.true_error(), ax=Figure().subplots()
    ... )
    >>> display.ax_.get_xlabel()
    'number of bins'
    """

    def __init__(self, curve: BinCounts) -> None:
        self.curve = curve

    @classmethod
    @describe_plot
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any = None,
        *,
        binning: str = "em",
        norm: NormLike = 2,
        n_bins: Any = None,
        true_error: float | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the curve of labels and probabilities, or of a `Sample`.

        Parameters
        ----------
        y_true, y_proba
            As in `truecal.estimate`.
        binning, norm, n_bins, true_error
            As in `truecal.assessment.bin_counts`.
        {read_and_draw}

        {display}
        """
        drawing, reading = cls._split(options)
        sample = as_sample(y_true, y_proba, **reading)
        curve = bin_counts(sample, binning=binning, norm=norm, n_bins=n_bins, true_error=true_error)
        return cls(curve).plot(ax, **drawing)

    @classmethod
    @describe_plot
    def from_study(cls, study: Study, *, ax: Any = None, **options: Any) -> Self:
        """Draw means over simulations.

        Parameters
        ----------
        study : Study
            With the estimators that `truecal.assessment.bin_counts_of_study` needs.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure of `matplotlib.pyplot`.
        **options
            Options of `plot`, and `population`, `n` and `binning`, as there.

        {display}
        """
        drawing, which = cls._split(options)
        return cls(bin_counts_of_study(study, **which)).plot(ax, **drawing)

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
        ax = draw.axes_or_new(ax)
        style = draw.estimator_style(f"{curve.binning}_bin")
        simulated = bool(curve.value_se.any())
        marker = style["marker"] if len(curve.n_bins) <= 12 else ""
        options = {**style, "marker": marker, "markersize": 4, "linewidth": 1.5, **line}
        ax.plot(curve.n_bins, curve.value, label=f"{curve.binning}_bin", **options)
        if simulated:
            low, high = curve.value - 2 * curve.value_se, curve.value + 2 * curve.value_se
            ax.fill_between(curve.n_bins, low, high, color=style["color"], alpha=0.2, linewidth=0)
        if curve.true_error is not None:
            dots = {"linewidth": 1.2, "linestyle": (0, (1, 1.5)), "label": "true error"}
            ax.axhline(curve.true_error, color=draw.INK, **dots)
        if not math.isnan(curve.sweep_bins):
            text = f"{curve.binning}_sweep, {curve.sweep_bins:.3g} bins"
            ax.vlines(curve.sweep_bins, 0, curve.sweep_value, color=draw.BLUE, linewidth=1, alpha=0.6)
            dot = {"marker": "o", "linestyle": "none", "markersize": 6, "label": text, "zorder": 4}
            ax.plot([curve.sweep_bins], [curve.sweep_value], color=draw.BLUE, **dot)
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.set_ylim(bottom=0)
        ylabel = f"{'mean' if simulated else 'calibration'} error, l{curve.norm:g} (%)"
        title = f"{name or curve.target}, n = {curve.n:,.10g}"
        draw.tidy(ax, xlabel="number of bins", ylabel=ylabel, title=title)
        draw.percent_axis(ax.yaxis)
        if legend:
            draw.legend_below([ax])
        return self._drawn(ax)


def _lines(
    rows: list[dict[str, Any]], estimators: Sequence[str], x: str, line: dict[str, Any]
) -> Iterator[tuple[str, list[dict[str, Any]], dict[str, Any]]]:
    """Yield the name of each estimator, its rows in order of `x`, and the style of its line."""
    style = {"linewidth": 1.3, "markersize": 4, "elinewidth": 1}
    for number, name in enumerate(estimators):
        ordered = sorted((row for row in rows if row["estimator"] == name), key=lambda row: float(row[x]))
        yield name, ordered, {**style, **draw.estimator_style(name, number), **line}


def _values(rows: Sequence[dict[str, Any]], name: str) -> FloatArray:
    return np.array([row[name] for row in rows])
