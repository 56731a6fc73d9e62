"""Figure 2: the components of the true error, and the bias of ECE_bin by number of bins and of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from truecal import paper
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings, part
from truecal.reproduce._draw import (
    BLACK,
    BLUE,
    CYCLE,
    RED,
    legend,
    line_of,
    log_axis,
    new_figure,
    tidy,
    zero_line,
)
from truecal.reproduce._studies import best_bins, bins_of, pick, run_study
from truecal.simulation import BetaScores, Population, PowerCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POPULATIONS = {
    "Beta(2.8, 0.05), curve c²": Population(BetaScores(2.8, 0.05), PowerCurve(2)),
    "ResNet-110 CIFAR-10, fitted": paper.population("resnet110_c10"),
}


@part("Figure 2", "Components of the true error, and the bias of ECE_bin by bins and samples")
def fig2(settings: Settings) -> Outcome:
    """Study equal-width ECE_bin with 2 to 128 bins."""
    bins = settings.of((2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 90, 128), (2, 4, 8, 16, 32, 64), (2, 8))
    study = run_study(
        settings,
        "fig2",
        POPULATIONS,
        estimators=[{"estimator": "ew_bin", "n_bins": b} for b in bins],
        sizes=settings.of((200, 400, 800, 1600, 3200, 6400), (200, 800, 3200), (50, 200)),
        repeats=settings.of(1000, 100, 5),
    )
    rows = [{**row, "n_bins": bins_of(row["estimator"])} for row in study]
    comparisons = []
    for name in POPULATIONS:
        mine = list(pick(rows, population=name))
        clear = {np.sign(row["bias"]) for row in mine if abs(row["bias"]) > 3 * row["bias_se"]}
        best = best_bins(mine)
        both = len(clear) == 2
        comparisons += [
            PaperComparison(f"sign of the bias, {name}", "both", "both" if both else "one", agrees=both),
            PaperComparison(
                f"number of bins with the smallest bias, {name}",
                "grow with n",
                ", ".join(f"{b} at {n}" for n, b in best.items()),
                agrees=sorted(best.values()) == list(best.values()) and len(set(best.values())) > 1,
            ),
        ]
    return Outcome({"": rows}, {"": _draw(rows)}, comparisons)


def _draw(rows: Records) -> Figure:
    figure, axes = new_figure(1, 3, size=(12, 4), width_ratios=[1, 1.25, 1.25])
    _draw_assumptions(axes[0, 0])
    for letter, ax, name in zip("bc", axes[0, 1:], POPULATIONS, strict=True):
        mine = list(pick(rows, population=name))
        best = best_bins(mine)
        for colour, (n, b) in zip(CYCLE, best.items(), strict=False):
            points = sorted(pick(mine, n=n), key=lambda row: row["n_bins"])
            line_of(ax, points, "n_bins", "bias", color=colour, label=f"n = {n:,}")
            star: dict[str, Any] = {"marker": "*", "markersize": 12, "markeredgecolor": "white", "zorder": 4}
            ax.plot([b], [100 * next(pick(points, n_bins=b))["bias"]], color=colour, **star)
        zero_line(ax)
        log_axis(ax, [2, 4, 8, 16, 32, 64])
        truth = 100 * POPULATIONS[name].true_error()
        title = f"({letter}) {name}: true error {truth:.2f}%"
        tidy(ax, x="number of bins", y="bias of EW ECE$_{BIN}$ (%)", title=title)
    legend(axes[0, 1], title="star: smallest bias", title_fontsize="small")
    return figure


def _draw_assumptions(ax: Axes) -> None:
    """Draw the distribution function of the scores, whose density is infinite at 1, and the curve."""
    score = np.linspace(0, 1, 400)
    ax.plot(score, score, color=BLACK, linewidth=0.9, linestyle=":", label="perfect calibration")
    ax.plot(score, score**2, color=RED, label="E[Y | f(X) = c] = c²")
    ax.plot(score, BetaScores(2.8, 0.05).cdf(score), color=BLUE, label="P(f(X) ≤ c), Beta(2.8, 0.05)")
    ax.fill_between(score, score**2, score, color=RED, alpha=0.08, linewidth=0)
    above = 1 - float(BetaScores(2.8, 0.05).cdf(0.99))
    ax.text(0.97, 0.2, f"{above:.0%} of the scores\nlie above 0.99", fontsize="small", color=BLUE, ha="right")
    legend(ax, loc="upper left")
    ax.set(xlim=(0, 1.01), ylim=(0, 1.01))
    tidy(ax, x="score c", y="", title="(a) scores and curve")
