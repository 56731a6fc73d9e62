"""Open question: the trade-off of bias and variance. Root mean square error and its components."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments._comparison import experiment
from truecal import paper
from truecal.estimators._registry import DEFAULT_ESTIMATOR
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings
from truecal.reproduce._draw import label_of, legend_below, new_figure, size_axis, style_of, tidy
from truecal.reproduce._studies import SEVEN, paper_study, pick, run_study, sizes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MODELS = ("fitted", "calibrated")
EIGHT = (*SEVEN, DEFAULT_ESTIMATOR)


@experiment("Discussion", "Trade-off of bias and variance")
def main(settings: Settings) -> Outcome:
    """Split the mean square error of Figures 4 and 6 into squared bias and variance."""
    rows: Records = []
    for model in MODELS:
        study = paper_study(settings, calibrated=model == "calibrated") + _own(settings, model)
        for n in sizes(settings):
            rows += [_split(model, n, name, list(pick(study, n=n, estimator=name))) for name in EIGHT]
    return Outcome({"": rows}, {"": _draw(rows)}, [*(_least(rows, model) for model in MODELS), _share(rows)])


def _own(settings: Settings, model: str) -> Records:
    """Study truecal's own estimator, which is slower, on some of the same samples."""
    names = settings.of(paper.NAMES, paper.NAMES, paper.NAMES[::4])
    return run_study(
        settings,
        f"{model}_{DEFAULT_ESTIMATOR}",
        {name: paper.population(name, calibrated=model == "calibrated") for name in names},
        estimators=[DEFAULT_ESTIMATOR],
        sizes=sizes(settings),
        repeats=settings.of(250, 20, 3),
    )


def _split(model: str, n: int, estimator: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    variance = float(np.mean([row["sd"] ** 2 for row in rows]))
    # The squared bias minus the Monte Carlo variance of the mean.
    square = float(np.mean([row["bias"] ** 2 - row["bias_se"] ** 2 for row in rows]))
    rmse = math.sqrt(max(square, 0.0) + variance)
    # The error of each mean square: that of its variance, assuming normal estimates, and that of its squared bias.
    errors = [
        row["sd"] ** 2 * math.sqrt(2 / row["repeats"]) + 2 * abs(row["bias"]) * row["bias_se"] for row in rows
    ]
    return {
        "curve": model,
        "n": n,
        "estimator": estimator,
        "squared_bias": max(square, 0.0),
        "variance": variance,
        "share_of_bias": max(square, 0.0) / (max(square, 0.0) + variance),
        "rmse": rmse,
        "rmse_se": math.hypot(*errors) / len(rows) / (2 * rmse),
    }


def _least(rows: Records, model: str) -> PaperComparison:
    lines = []
    for n in sorted({row["n"] for row in rows}):
        mine = {row["estimator"]: row for row in pick(rows, curve=model, n=n)}
        best = min(SEVEN, key=lambda name: mine[name]["rmse"])
        lines.append(
            f"{label_of(best)} {100 * mine[best]['rmse']:.2f} at {n} "
            f"({DEFAULT_ESTIMATOR} {100 * mine[DEFAULT_ESTIMATOR]['rmse']:.2f})"
        )
    return PaperComparison(
        f"smallest root mean square error (%), {model}",
        "left open",
        "; ".join(lines),
        agrees=None,
        error=100 * max(row["rmse_se"] for row in rows if row["curve"] == model),
        note="The constants of truecal's own estimator were chosen on these populations, among others.",
    )


def _share(rows: Records) -> PaperComparison:
    share = {
        (row["estimator"], row["n"]): f"{row['share_of_bias']:.0%} at {row['n']}"
        for row in pick(rows, curve="fitted")
    }
    ends = min(n for _, n in share), max(n for _, n in share)
    return PaperComparison(
        "share of squared bias in the mean square error, fitted",
        "variance not studied",
        "; ".join(
            f"{label_of(name)} {share[name, ends[0]]}, {share[name, ends[1]]}"
            for name in ("ew_bin", "em_debias", "em_sweep")
        ),
        agrees=None,
    )


def _draw(rows: Records) -> Figure:
    figure, axes = new_figure(2, 2, size=(10, 7.4), sharex=True, sharey="row")
    every = sorted({row["n"] for row in rows})
    for column, model in enumerate(MODELS):
        above, below = axes[:, column]
        for estimator in EIGHT:
            mine = list(pick(rows, curve=model, estimator=estimator))
            style = {"markersize": 4, "linewidth": 1.3, **style_of(estimator)}
            error = [200 * row["rmse_se"] for row in mine]
            above.errorbar(every, [100 * row["rmse"] for row in mine], yerr=error, elinewidth=0.8, **style)
            below.plot(every, [100 * row["share_of_bias"] for row in mine], **style)
        above.set_yscale("log")
        ticks = [0.2, 0.5, 1, 2, 5, 10]
        above.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        above.set_yticks([], minor=True)
        below.set_ylim(-2, 102)
        size_axis(below, every)
        y = ("", "") if column else ("root mean square error (%)", "share of squared bias in it (%)")
        tidy(above, x="", y=y[0], title=f"{model}, mean over the populations")
        tidy(below, x="number of samples", y=y[1])
    legend_below(figure, axes[0, 0], columns=8)
    return figure
