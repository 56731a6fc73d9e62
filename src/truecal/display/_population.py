"""The calibration curve of a population, fitted or made up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from truecal._lib.checks import check_choice, check_count
from truecal._lib.types import FloatArray
from truecal.data import as_sample
from truecal.display._base import Display, describe_plot
from truecal.display._style import (
    BLUE,
    INK,
    RED,
    axes_or_new,
    draw_diagonal,
    legend_below,
    score_axis,
    text_handle,
    tidy,
)
from truecal.estimators._binning import EqualMass, partition, summarize_bins
from truecal.plotdata.histogram import SCALES
from truecal.results import BinTable
from truecal.simulation import (
    Curve,
    GLMCurve,
    IdentityCurve,
    LogisticCurve,
    Population,
    PopulationFit,
    PowerCurve,
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
    >>> display = CurveDisplay.from_population(truecal.paper.population("resnet110_c10"))
    >>> display.name
    'log(1 − p) = −0.24 + 0.3 log(1 − c)'
    >>> display.plot(ax=Figure().subplots()).ax_.get_ylabel()
    'observed frequency'
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
    def from_population(cls, population: Population, *, target: str = "", norm: float = 2) -> Self:
        """Make the display of any population, and of its true error.

        Parameters
        ----------
        population : Population
            Scores and curve.
        target : str
            What the scores are probabilities of.
        norm : float
            Order of the norm of the true error.

        Returns
        -------
        Self
        """
        return cls(population, target=target, true_error=population.true_error(norm))

    @classmethod
    def from_fit(cls, fit: PopulationFit, *, bins: BinTable | None = None) -> Self:
        """Make the display from what `truecal.fit_population` returned.

        Parameters
        ----------
        fit : PopulationFit
            The fit.
        bins : BinTable, optional
            Data to draw beside the curve.

        Returns
        -------
        Self
        """
        return cls(fit.population, bins=bins, target=fit.target, true_error=fit.population.true_error())

    @classmethod
    def from_predictions(cls, y_true: Any, y_proba: Any = None, *, n_bins: int = 15, **reading: Any) -> Self:
        """Fit a population to predictions, and make the display of it and of `n_bins` equal-mass bins.

        Parameters
        ----------
        y_true, y_proba
            As in `truecal.estimate`.
        n_bins : int
            Number of bins of the data.
        **reading
            As in `truecal.estimate`.

        Returns
        -------
        Self
        """
        sample = as_sample(y_true, y_proba, **reading)
        bins = summarize_bins(sample, partition(EqualMass(sample), check_count("n_bins", n_bins)))
        return cls.from_fit(fit_population(sample), bins=bins)

    @describe_plot
    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        color: str = RED,
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
        ax = axes_or_new(ax, figsize=(4.2, 3.9))
        draw_diagonal(ax)
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
        tidy(ax, xlabel="score", ylabel="observed frequency", title=name or self.target)
        score_axis(ax, scale, self._floor(score, complement, below))
        rows = 1e4 if self.bins is None else max(float(self.bins.count.sum()), 10)
        score_axis(ax, scale, 10.0 ** -math.ceil(math.log10(rows)), "y")
        if legend:
            handles = ax.get_legend_handles_labels()[0]
            if self.true_error is not None:
                what = "true error" if self.bins is None else "error of the fit"
                handles.append(text_handle(f"{what} {100 * self.true_error:.2f}%"))
            legend_below([ax], columns=1, handles=handles)
        return self._drawn(ax)

    def _floor(self, score: FloatArray, complement: FloatArray, below: FloatArray) -> float:
        """Return how near to an end a stretched axis goes: all bins, or else nine scores in ten, are to be seen."""
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
            bins.mean_score, bins.mean_label, yerr=bars, fmt="o", color=BLUE, ecolor=INK, markersize=3.5,
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
