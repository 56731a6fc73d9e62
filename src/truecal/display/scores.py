"""The distribution of the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from truecal.data import as_sample
from truecal.display._base import Display, describe_plot
from truecal.display._style import (
    BLUE,
    RED,
    axes_or_new,
    axis_floor,
    legend_below,
    percent_axis,
    score_axis,
    text_handle,
    tidy,
)
from truecal.exceptions import InputError
from truecal.plotdata.histogram import ScoreHistogram, score_histogram
from truecal.simulation import BetaScores, PopulationFit, ScoreDistribution, fit_population

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    >>> display = ScoreDisplay.from_predictions(y, p, scale="complement")
    >>> display.plot(ax=Figure().subplots()).ax_.get_ylabel()
    '% of rows per decade'
    """

    def __init__(self, histogram: ScoreHistogram, *, name: str = "") -> None:
        self.histogram = histogram
        self.name = name

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any = None,
        *,
        fit: PopulationFit | ScoreDistribution | str | None = "beta",
        scale: str = "linear",
        n_bins: int = 40,
        **reading: Any,
    ) -> Self:
        """Make the display from labels and probabilities, or from a `Sample`.

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
        **reading
            As in `truecal.estimate`.

        Returns
        -------
        Self
        """
        sample = as_sample(y_true, y_proba, **reading)
        if isinstance(fit, str):
            if fit != "beta":
                raise InputError(
                    f"must be 'beta', a fit, a score distribution or None. Got {fit!r} instead",
                    argument="fit",
                )
            fit = fit_population(sample)
        scores = fit.scores if isinstance(fit, PopulationFit) else fit
        return cls(score_histogram(sample, fit=scores, scale=scale, n_bins=n_bins), name=_name(scores))

    @describe_plot
    def plot(
        self, ax: Any = None, *, name: str | None = None, color: str = BLUE, legend: bool = True, **line: Any
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
        ax = axes_or_new(ax)
        edges, height = _outline(shown, shown.share, shown.at_zero, shown.at_one)
        ax.stairs(height, edges, fill=True, color=color, alpha=0.5, label="scores")
        top = float(height.max())
        if shown.expected is not None:
            edges, height = _outline(shown, shown.expected, shown.expected_at_zero, shown.expected_at_one)
            options = {"color": RED, "linewidth": 1.5, "label": self.name or "fit", **line}
            ax.stairs(height, edges, baseline=None, **options)
            top = max(top, float(height.max()))
        title = f"{name or shown.target}, n = {shown.n:,.10g}"
        tidy(ax, xlabel=_AXES[shown.scale], ylabel=_UNITS[shown.scale], title=title)
        score_axis(ax, shown.scale, axis_floor(shown))
        ax.set_ylim(0, 1.05 * top)
        if shown.scale != "linear":
            percent_axis(ax.yaxis)
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
        handles = [*ax.get_legend_handles_labels()[0], *map(text_handle, notes)]
        legend_below([ax], handles=handles)


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
