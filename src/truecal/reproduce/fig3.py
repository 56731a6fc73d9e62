"""Figure 3: fitted score distributions (a) and calibration curves (b), and the goodness of fit (c)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from truecal import paper
from truecal.data.sample import Sample
from truecal.estimators._binning import EqualMass, partition, summarize_bins
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings, part
from truecal.reproduce._data import paper_sets, real_fits
from truecal.reproduce._draw import BLACK, GREY, IMAGE_SET_COLOURS, legend, new_figure, tidy
from truecal.reproduce._studies import image_set_of
from truecal.reproduce.table4 import ece_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Points of the curves: dense near 1, where the scores are.
GRID = np.unique(np.concatenate([np.linspace(0, 1, 201), 1 - np.logspace(-8, -2, 121)]))


@part("Figure 3", "Fitted score distributions and calibration curves, and goodness of fit")
def fig3(settings: Settings) -> Outcome:
    """Tabulate the printed fits and those to the available real data sets, and draw them over the data."""
    rows: Records = []
    for name in paper.NAMES:
        population = paper.population(name)
        rows += _curve_rows(name, "printed", population.scores.cdf(GRID), population.curve(GRID))
    for name, fit in real_fits(settings).items():
        rows += _curve_rows(name, "fitted here", fit.scores.cdf(GRID), fit.curve(GRID))
    sets, ece = paper_sets(settings), ece_rows(settings)
    figure = _draw(sets, ece)
    return Outcome({"": rows}, {"": figure}, [_closest(ece), *_quality(settings)])


def _curve_rows(name: str, fit: str, cdf: Any, curve: Any) -> Records:
    return [
        {"set": name, "fit": fit, "score": c, "cdf": below, "probability": probability}
        for c, below, probability in zip(GRID.tolist(), cdf.tolist(), curve.tolist(), strict=True)
    ]


def _closest(rows: Records) -> PaperComparison:
    gap = [abs(row["printed_simulated"] - row["printed_real"]) for row in rows]
    sign = [row["printed_simulated"] > row["printed_real"] for row in rows]
    return PaperComparison(
        "simulated ECE_bin closely matches the real one",
        "stated",
        f"printed: {np.mean(gap):.1f} points apart on average, up to {max(gap):.1f}, above on "
        f"{sum(sign)} and below on {len(sign) - sum(sign)}",
        agrees=None,
        note="On CIFAR-10 the simulated errors are a quarter to two fifths above the real ones: a Beta does not "
        "describe those scores.",
    )


def _quality(settings: Settings) -> list[PaperComparison]:
    comparisons = []
    for name, fit in real_fits(settings).items():
        gap, close = fit.goodness.ks_distance, fit.goodness.ks_distance < 0.05
        curve = f"curve: chi-square p = {fit.goodness.pvalue:.2g}"
        found = f"largest gap between the distribution functions {gap:.2f}; {curve}"
        note = "" if close else "See panel (a). A gap below 0.05 counts as agreement."
        what = f"a Beta describes the scores of {name}"
        comparisons.append(PaperComparison(what, "well captured", found, agrees=close, note=note))
    return comparisons


def _draw(sets: dict[str, Sample], ece: Records) -> Figure:
    figure, axes = new_figure(1, 3, size=(13, 4.4))
    for name in paper.NAMES:
        population, colour = paper.population(name), IMAGE_SET_COLOURS[image_set_of(name)]
        axes[0, 0].plot(_stretch(GRID), population.scores.cdf(GRID), color=colour, linewidth=1)
        axes[0, 1].plot(GRID, population.curve(GRID), color=colour, linewidth=1)
    for name, sample in sets.items():
        colour = IMAGE_SET_COLOURS[image_set_of(name)]
        below = sample.cumulative_count[1:] / sample.n
        axes[0, 0].plot(_stretch(sample.score), below, color=colour, linestyle=":")
        bins = summarize_bins(sample, partition(EqualMass(sample), 40))
        error = np.sqrt(bins.mean_label * (1 - bins.mean_label) / bins.count)
        style: dict[str, Any] = {
            "fmt": "o",
            "markersize": 2.5,
            "color": colour,
            "elinewidth": 0.7,
            "alpha": 0.7,
        }
        axes[0, 1].errorbar(bins.mean_score, bins.mean_label, yerr=2 * error, **style)
    _score_axis(axes[0, 0])
    axes[0, 1].plot([0, 1], [0, 1], color=BLACK, linestyle=":", linewidth=0.9)
    title = "(a) scores: printed Beta (lines), real (dotted)"
    tidy(axes[0, 0], x="score c, logarithmic near 1", y="share of scores ≤ c", title=title)
    tidy(axes[0, 1], x="score c", y="E[Y | c]", title="(b) curves: printed (lines), real bins ± 2 se")
    _draw_ece(axes[0, 2], ece)
    for name, colour in IMAGE_SET_COLOURS.items():
        axes[0, 1].plot([], [], color=colour, label=name)
    legend(axes[0, 1], loc="upper left")
    return figure


def _draw_ece(ax: Axes, rows: Records) -> None:
    ax.plot([0, 25], [0, 25], color=BLACK, linestyle=":", linewidth=0.9)
    for row in rows:
        colour = IMAGE_SET_COLOURS[image_set_of(row["set"])]
        ax.plot(row["printed_real"], row["printed_simulated"], "o", color=colour, markerfacecolor="white")
        if row["ours_real"] is not None:
            style: dict[str, Any] = {
                "yerr": 2 * row["ours_simulated_se"],
                "fmt": "D",
                "color": colour,
                "markersize": 5,
            }
            ax.errorbar(row["ours_real"], row["ours_simulated"], **style)
    ax.plot([], [], "o", color=GREY, markerfacecolor="white", label="printed")
    ax.plot([], [], "D", color=GREY, label="test split, fitted here")
    legend(ax, loc="upper left")
    ax.set(xlim=(0, 25), ylim=(0, 25), aspect="equal")
    tidy(ax, x="real ECE$_{BIN}$ (%)", y="simulated ECE$_{BIN}$ (%)", title="(c) quality of the fits")


def _stretch(score: Any) -> Any:
    """Return minus the decimal logarithm of the distance from 1, at most 8, the resolution of float32."""
    return -np.log10(np.maximum(1 - np.asarray(score), 1e-8))


def _score_axis(ax: Axes) -> None:
    ax.set_xticks([0, 1, 2, 4, 6, 8], ["0", "0.9", "0.99", "1-10⁻⁴", "1-10⁻⁶", "1"])
    ax.set_xlim(0, 8.1)
    ax.set_ylim(0, 1.02)
