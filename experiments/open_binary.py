"""Open question: binary classification, where scores are P(y = 1) and fill the whole interval."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from experiments._comparison import binary_sets, experiment
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings
from truecal.reproduce._draw import (
    label_of,
    legend_below,
    line,
    new_figure,
    size_axis,
    style_of,
    tidy,
    zero_line,
)
from truecal.reproduce._studies import SEVEN, mean_absolute_bias, pick, run_study, sizes
from truecal.simulation import BetaScores, GLMCurve, Population, fit_population

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POPULATIONS = {
    "sharp, over-confident": Population(BetaScores(0.3, 0.4), GLMCurve("logit", "logit", b0=0.0, b1=0.6)),
    "blunt, under-confident": Population(BetaScores(4, 4), GLMCurve("logit", "logit", b0=0.0, b1=1.6)),
    "shifted base rate": Population(BetaScores(1, 1), GLMCurve("logit", "logit", b0=-0.5, b1=1.0)),
    "rare event, 5%": Population(BetaScores(0.5, 9.5), GLMCurve("logit", "logit", b0=-0.3, b1=0.8)),
}
#: Minimum number of rows to fit a population to a real data set.
LEAST_ROWS = 1000


@experiment("Discussion", "Binary classification: bias where scores fill the whole interval")
def main(settings: Settings) -> Outcome:
    """Study four kinds of binary classifier, and populations fitted to the available binary data sets."""
    populations = dict(POPULATIONS)
    for name, sample in binary_sets(settings).items():
        if sample.n >= LEAST_ROWS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                populations[name] = fit_population(sample).population
    rows = run_study(
        settings,
        f"binary_{len(populations)}",
        populations,
        estimators=SEVEN,
        sizes=sizes(settings),
        repeats=settings.of(500, 30, 4),
    )
    return Outcome({"": rows}, {"": _draw(rows)}, [_ranking(rows), _equal_mass(rows)])


def _ranking(rows: Records) -> PaperComparison:
    size = {name: mean_absolute_bias(rows, name) for name in SEVEN}
    return PaperComparison(
        "mean absolute bias (%), binary",
        "left open",
        "; ".join(f"{label_of(e)} {100 * size[e][0]:.2f}" for e in sorted(SEVEN, key=lambda e: size[e][0])),
        agrees=None,
        error=100 * max(error for _, error in size.values()),
    )


def _equal_mass(rows: Records) -> PaperComparison:
    better, total = 0, 0
    for idea in ("bin", "debias", "sweep"):
        wide, mass = (list(pick(rows, estimator=f"{binning}_{idea}")) for binning in ("ew", "em"))
        better += sum(abs(b["bias"]) < abs(a["bias"]) for a, b in zip(wide, mass, strict=True))
        total += len(wide)
    return PaperComparison(
        "settings in which EM has the smaller bias, binary", "left open", f"{better} of {total}", agrees=None
    )


def _draw(rows: Records) -> Figure:
    names = list(dict.fromkeys(row["population"] for row in rows))
    lines = -(-len(names) // 4)
    figure, axes = new_figure(lines, 4, size=(13, 3.6 * lines + 0.5))
    for ax, name in zip(axes.flat, names, strict=False):
        every = sorted({row["n"] for row in rows})
        for estimator in SEVEN:
            mine = list(pick(rows, population=name, estimator=estimator))
            line(
                ax,
                every,
                [100 * row["bias"] for row in mine],
                [100 * row["bias_se"] for row in mine],
                **style_of(estimator),
            )
        zero_line(ax)
        size_axis(ax, every)
        ax.tick_params(axis="x", rotation=45)
        truth = 100 * next(pick(rows, population=name))["true_error"]
        prefix = "" if name in POPULATIONS else "fit to "
        tidy(ax, x="number of samples", y="bias (%)", title=f"{prefix}{name}: true error {truth:.2f}%")
    for ax in axes.flat[len(names) :]:
        ax.set_visible(False)
    legend_below(figure, axes[0, 0], columns=7)
    return figure
