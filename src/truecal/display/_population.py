"""Displays of a population or a fit: its calibration curve and the distribution of its scores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from truecal._lib.checks import check_choice
from truecal._lib.types import FloatArray, NormLike
from truecal.assessment._plotdata import SCALES, ScoreHistogram, score_histogram
from truecal.data import as_sample
from truecal.display import _style as draw
from truecal.display._base import Display, describe_plot
from truecal.estimators._binning import EqualMass, cut
from truecal.exceptions import InputError
from truecal.results import BinTable
from truecal.simulation import (
    BetaScores,
    Curve,
    GLMCurve,
    IdentityCurve,
    LogisticCurve,
    Population,
    PopulationFit,
    PowerCurve,
    ScoreDistribution,
    fit_population,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The curve is drawn boldly over this share of the scores, and faintly beyond.
_CENTRAL = 0.98


class CurveDisplay(Display):
    """The calibration curve of a population, with the data that it was fitted to.

    The curve is bold where the central 98% of the scores lie, and faint where it extrapolates.

    Parameters
    ----------
    population : Population
        Scores and curve.
    bins : BinTable, optional
        Data to draw beside the curve.
    name : str, optional
        What the curve is called.
    target : str
        What the scores are probabilities of.
    true_error : float, optional
        The calibration error of the population, to be written into the picture.

    Examples
    --------
    >>> import truecal
    >>> from matplotlib.figure import Figure
    >>> from truecal.display import CurveDisplay
    >>> population = truecal.paper.population("resnet110_c10")
    >>> display = CurveDisplay.from_population(population, ax=Figure().subplots())
    >>> display.name, display.ax_.get_ylabel()
    ('log(1 − p) = −0.24 + 0.3 log(1 − c)', 'observed frequency')
    """

    def __init__(
        self,
        population: Population,
        *,
        bins: BinTable | None = None,
        name: str = "",
        target: str = "",
        true_error: float | None = None,
    ) -> None:
        self.population = population
        self.bins = bins
        self.name = name or formula(population.curve)
        self.target = target
        self.true_error = true_error

    @classmethod
    @describe_plot
    def from_population(
        cls, population: Population, *, target: str = "", norm: NormLike = 2, ax: Any = None, **options: Any
    ) -> Self:
        """Draw any population, and its true error.

        Parameters
        ----------
        population : Population
            Scores and curve.
        target : str
            What the scores are probabilities of.
        norm : float, "l1" or "l2"
            Order of the norm of the true error.
        {draw}

        {display}
        """
        display = cls(population, target=target, true_error=population.true_error(norm))
        return display.plot(ax, **options)

    @classmethod
    @describe_plot
    def from_fit(
        cls, fit: PopulationFit, *, bins: BinTable | None = None, ax: Any = None, **options: Any
    ) -> Self:
        """Draw what `truecal.fit_population` returned.

        Parameters
        ----------
        fit : PopulationFit
            The fit.
        bins : BinTable, optional
            Data to draw beside the curve.
        {draw}

        {display}
        """
        true_error = fit.population.true_error()
        return cls(fit.population, bins=bins, target=fit.target, true_error=true_error).plot(ax, **options)

    @classmethod
    @describe_plot
    def from_predictions(
        cls, y_true: Any, y_proba: Any = None, *, n_bins: int = 15, ax: Any = None, **options: Any
    ) -> Self:
        """Fit a population to predictions, and draw it and `n_bins` equal-mass bins.

        Parameters
        ----------
        y_true, y_proba
            As in `truecal.estimate`.
        n_bins : int
            Number of bins of the data.
        {read_and_draw}

        {display}
        """
        drawing, reading = cls._split(options)
        sample = as_sample(y_true, y_proba, **reading)
        _, bins = cut(EqualMass(sample), n_bins)
        return cls.from_fit(fit_population(sample), bins=bins, ax=ax, **drawing)

    @describe_plot
    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        color: str = draw.RED,
        scale: str = "linear",
        legend: bool = True,
        **line: Any,
    ) -> Self:
        """Draw the curve, and the bins of the data.

        Parameters
        ----------
        {ax}
        {title}
        color : color
            Colour of the curve.
        scale : {"linear", "logit", "complement"}
            Both axes linear, or stretched towards both ends or towards 1.
        {legend}
        **line
            Passed to matplotlib for the curve.

        {drawn}
        """
        check_choice("scale", scale, SCALES)
        ax = draw.axes_or_new(ax, figsize=(4.2, 3.9))
        draw.draw_diagonal(ax)
        score, complement = _grid()
        value = self.population.curve(score, complement)
        options = {"color": color, "linewidth": 1.8, "label": self.name or "curve", **line}
        below, tail = self.population.scores.cdf(score), (1 - _CENTRAL) / 2
        ax.plot(score, value, **{**options, "alpha": 0.35, "linewidth": 1.0, "label": None})
        bold = (below >= tail) & (below <= 1 - tail)
        bold[1:] |= bold[:-1] & (np.diff(below) > _CENTRAL / 2)  # a jump of the cdf at 1 is inside, too
        ax.plot(np.where(bold, score, np.nan), value, **options)
        if self.bins is not None:
            self._draw_bins(ax, self.bins)
        draw.tidy(ax, xlabel="score", ylabel="observed frequency", title=name or self.target)
        draw.score_axis(ax, scale, self._floor(score, complement, below))
        rows = 1e4 if self.bins is None else max(float(self.bins.count.sum()), 10)
        draw.score_axis(ax, scale, 10.0 ** -math.ceil(math.log10(rows)), "y")
        if legend:
            handles = ax.get_legend_handles_labels()[0]
            if self.true_error is not None:
                what = "true error" if self.bins is None else "error of the fit"
                handles.append(draw.text_handle(f"{what} {100 * self.true_error:.2f}%"))
            draw.legend_below([ax], columns=1, handles=handles)
        return self._drawn(ax)

    def _floor(self, score: FloatArray, complement: FloatArray, below: FloatArray) -> float:
        """Return how close to an end a stretched axis extends: it shows all bins, or else nine scores in ten."""
        if self.bins is None:
            reached = np.array([complement[below <= 0.9].min(), score[below >= 0.1].min()])
        else:
            reached = np.concatenate([self.bins.mean_score, 1 - self.bins.mean_score])
            reached = reached[reached > 1e-12]  # a mean of ones may miss 1 by rounding
        nearest = float(np.clip(reached.min(initial=0.01), 1e-16, 0.01))
        return 10.0 ** -(math.ceil(-math.log10(nearest)) + (self.bins is not None))

    def _draw_bins(self, ax: Axes, bins: BinTable) -> None:
        """Draw the bins as dots with bars of two standard errors."""
        spread = np.sqrt(bins.mean_label * (1 - bins.mean_label) / bins.count)
        bars = np.array(
            [np.minimum(2 * spread, bins.mean_label), np.minimum(2 * spread, 1 - bins.mean_label)]
        )
        ax.errorbar(
            bins.mean_score, bins.mean_label, yerr=bars, fmt="o", color=draw.BLUE, ecolor=draw.INK, markersize=3.5,
            elinewidth=1, clip_on=False, label=f"data, {len(bins)} bins", zorder=3,
        )  # fmt: skip


def formula(curve: Curve) -> str:
    """Return what a curve computes, with p for the frequency and c for the score.

    Examples
    --------
    >>> import truecal
    >>> formula(truecal.simulation.GLMCurve("logit", "log", b0=1, b1=0.5)), formula(truecal.simulation.PowerCurve(2))
    ('logit p = 1 + 0.5 log c', 'p = c^2')
    """
    if isinstance(curve, GLMCurve):
        names = {"log": "log {}", "logit": "logit {}", "logflip": "log(1 - {})"}
        slope = "" if curve.b1 is None else f"{curve.b1:.3g} {names[curve.transform].format('c')}"
        start = "" if curve.b0 is None else f"{curve.b0:.3g}"
        right = f"{start} + {slope}".replace("+ -", "- ") if start and slope else start or slope
        return f"{names[curve.link].format('p')} = {right}".replace("-", "\N{MINUS SIGN}")
    if isinstance(curve, PowerCurve):
        return f"p = c^{curve.d:g}"
    if isinstance(curve, LogisticCurve):
        sign = "-" if curve.intercept < 0 else "+"
        right = f"{curve.slope:g} c {sign} {abs(curve.intercept):g}"
        return f"logit p = {right}".replace("-", "\N{MINUS SIGN}")
    return "p = c" if isinstance(curve, IdentityCurve) else ""


def _grid() -> tuple[Any, Any]:
    """Return scores and complements, dense at both ends."""
    ends, middle = np.logspace(-17, -2, 121), np.linspace(0.0125, 0.9875, 157)
    return (
        np.concatenate([[0.0], ends, middle, 1 - ends[::-1], [1.0]]),
        np.concatenate([[1.0], 1 - ends, 1 - middle, ends[::-1], [0.0]]),
    )


_UNITS = {
    "linear": "density",
    "logit": "% of rows per decade",
    "complement": "% of rows per decade",
}
_AXES = {
    "linear": "score",
    "logit": "score (in decades of the odds)",
    "complement": "score (in decades of 1 \N{MINUS SIGN} score)",
}


class ScoreDisplay(Display):
    """The distribution of the scores, with a distribution fitted to them.

    Parameters
    ----------
    histogram : ScoreHistogram
        Shares of the scores, and what the fit expects.
    name : str, optional
        Name of the fitted distribution.

    Examples
    --------
    >>> import truecal
    >>> from matplotlib.figure import Figure
    >>> from truecal.display import ScoreDisplay
    >>> y, p = truecal.paper.population("resnet110_c10").sample(2000, rng=0)
    >>> display = ScoreDisplay.from_predictions(y, p, scale="complement", ax=Figure().subplots())
    >>> display.ax_.get_ylabel()
    '% of rows per decade'
    """

    def __init__(self, histogram: ScoreHistogram, *, name: str = "") -> None:
        self.histogram = histogram
        self.name = name

    @classmethod
    @describe_plot
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any = None,
        *,
        fit: PopulationFit | ScoreDistribution | str | None = "beta",
        scale: str = "linear",
        n_bins: int = 40,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the scores of labels and probabilities, or of a `Sample`.

        Parameters
        ----------
        y_true, y_proba
            As in `truecal.estimate`.
        fit : "beta", PopulationFit, ScoreDistribution or None
            What to compare with: a Beta distribution to be fitted, what `truecal.fit_population` returned, any
            distribution of scores, or nothing.
        scale : {"linear", "logit", "complement"}
            ``"complement"`` has equal steps of log(1 - score): the scores of a confident model, which are all in
            the last bin of a linear axis, can be seen. ``"logit"`` does so at both ends.
        n_bins : int
            Number of bins, about.
        {read_and_draw}

        {display}
        """
        drawing, reading = cls._split(options)
        sample = as_sample(y_true, y_proba, **reading)
        if isinstance(fit, str):
            if fit != "beta":
                raise InputError(
                    f"must be 'beta', a fit, a score distribution or None. Got {fit!r} instead",
                    argument="fit",
                )
            fit = fit_population(sample)
        scores = fit.scores if isinstance(fit, PopulationFit) else fit
        histogram = score_histogram(sample, fit=scores, scale=scale, n_bins=n_bins)
        return cls(histogram, name=_name(scores)).plot(ax, **drawing)

    @describe_plot
    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        color: str = draw.BLUE,
        legend: bool = True,
        **line: Any,
    ) -> Self:
        """Draw the histogram and the fit.

        Parameters
        ----------
        {ax}
        {title}
        color : color
            Colour of the histogram.
        {legend}
        **line
            Passed to matplotlib for the line of the fit.

        {drawn}
        """
        shown = self.histogram
        ax = draw.axes_or_new(ax)
        edges, height = _outline(shown, shown.share, shown.at_zero, shown.at_one)
        ax.stairs(height, edges, fill=True, color=color, alpha=0.5, label="scores")
        top = float(height.max())
        if shown.expected is not None:
            edges, height = _outline(shown, shown.expected, shown.expected_at_zero, shown.expected_at_one)
            options = {"color": draw.RED, "linewidth": 1.5, "label": self.name or "fit", **line}
            ax.stairs(height, edges, baseline=None, **options)
            top = max(top, float(height.max()))
        title = f"{name or shown.target}, n = {shown.n:,.10g}"
        draw.tidy(ax, xlabel=_AXES[shown.scale], ylabel=_UNITS[shown.scale], title=title)
        draw.score_axis(ax, shown.scale, draw.axis_floor(shown))
        ax.set_ylim(0, 1.05 * top)
        if shown.scale != "linear":
            draw.percent_axis(ax.yaxis)
        if legend:
            self._draw_legend(ax)
        return self._drawn(ax)

    def _draw_legend(self, ax: Axes) -> None:
        """Draw the legend, with what the picture shows least well: how many scores are exactly 0 or 1."""
        shown = self.histogram
        ends = ((0, shown.at_zero, shown.expected_at_zero), (1, shown.at_one, shown.expected_at_one))
        fit = "" if shown.expected is None else " (fit {:.3g})"
        notes = [
            f"exactly {end}: {100 * share:.3g}%" + fit.format(100 * expected)
            for end, share, expected in ends
            if share
        ]
        handles = [*ax.get_legend_handles_labels()[0], *map(draw.text_handle, notes)]
        draw.legend_below([ax], handles=handles)


def _outline(histogram: ScoreHistogram, share: Any, at_zero: float, at_one: float) -> tuple[Any, Any]:
    """Return edges and heights. Scores of exactly 0 and 1 are in the outermost bins, or have one beyond them."""
    if histogram.scale == "linear":
        total = np.array(share)
        total[0] += at_zero
        total[-1] += at_one
        return histogram.edges, total / histogram.width
    edges, height = np.minimum(histogram.edges, 1 - 2.0**-53), share / histogram.width
    if histogram.scale == "logit":
        edges, height = np.append(0.0, edges), np.append(at_zero, height)
    return np.append(edges, 1.0), np.append(height, at_one)


def _name(scores: ScoreDistribution | None) -> str:
    if isinstance(scores, BetaScores):
        return f"Beta({scores.a:.3g}, {scores.b:.3g})"
    return "" if scores is None else type(scores).__name__.removesuffix("Scores").lower()
