"""How far every estimator is from the efficiency limit, on populations of the paper and of other families.

The limit is the smallest asymptotic standard deviation of a regular estimator (`Population.efficiency_limit`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments._comparison import experiment
from experiments.open_families import EIGHT
from truecal.estimators._registry import DEFAULT_ESTIMATOR
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings
from truecal.reproduce._draw import label_of, legend_below, line, new_figure, size_axis, style_of, tidy
from truecal.reproduce._studies import pick, run_study
from truecal.simulation.suites import SIZES, suite

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Suites of populations; see `truecal.simulation.suites`.
SUITES = {
    "A": "the paper's ten populations",
    "C1": "other scores and curves",
    "C2": "other scores and curves, set aside",
    "D2": "fine, discrete, local structure, set aside",
}


@experiment("Efficiency limit", "RMSE of the l2 error, divided by the efficiency limit")
def main(settings: Settings) -> Outcome:
    """Study every estimator on the suites, and divide its RMSE by the limit."""
    rows: Records = []
    for name in SUITES:
        populations = {key: item for key, item in suite(name).items() if item.true_error() > 0}
        if settings.effort == "tiny":
            populations = dict(list(populations.items())[:2])
        study = run_study(
            settings,
            f"efficiency_{name}",
            populations,
            estimators=EIGHT,
            sizes=settings.of(SIZES, SIZES, SIZES[:2]),
            repeats=settings.of(100, 30, 3),
        )
        for row in study:
            limit = populations[row["population"]].efficiency_limit(row["n"])
            rows.append({"suite": name, **row, "limit": limit, "ratio": row["rmse"] / limit})
    return Outcome(
        {"": rows}, {"": _draw(rows)}, [_compare(rows, name, n) for name in SUITES for n in _sizes(rows)]
    )


def _sizes(rows: Records) -> list[int]:
    return sorted({row["n"] for row in rows})


def median_ratio(rows: Iterable[Mapping[str, Any]], estimator: str) -> tuple[float, float]:
    """Return the median over populations of RMSE / limit, and the Monte Carlo error of a mean of them.

    The relative error of a root mean square of R normal values is 1 / sqrt(2 R).
    """
    mine = list(pick(rows, estimator=estimator))
    ratios = [row["ratio"] for row in mine]
    return float(np.median(ratios)), float(np.mean(ratios)) / math.sqrt(2 * mine[0]["repeats"] * len(mine))


def _compare(rows: Records, name: str, n: int) -> PaperComparison:
    found = {key: median_ratio(pick(rows, suite=name, n=n), key) for key in EIGHT}
    ranked = sorted(EIGHT, key=lambda key: found[key][0])
    return PaperComparison(
        f"RMSE / efficiency limit, median over {SUITES[name]}, n = {n:,}",
        "1 (the limit)",
        ", ".join(f"{label_of(key)} {found[key][0]:.2f}" for key in ranked),
        agrees=None,
        error=found[DEFAULT_ESTIMATOR][1],
        note="Values below 1 are possible in small samples, and for an estimator with assumptions about the curve.",
    )


def _draw(rows: Records) -> Figure:
    figure, axes = new_figure(1, len(SUITES), size=(14, 4.2), sharey=True)
    sizes = _sizes(rows)
    for ax, (name, title) in zip(axes[0], SUITES.items(), strict=True):
        for key in EIGHT:
            pairs = [median_ratio(pick(rows, suite=name, n=n), key) for n in sizes]
            line(ax, sizes, [ratio for ratio, _ in pairs], [error for _, error in pairs], **style_of(key))
        ax.axhline(1, color="#999999", linewidth=0.9)
        size_axis(ax, sizes)
        ax.set_yscale("log")
        ticks = [0.7, 1, 1.5, 2, 3, 5, 10, 20]
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.set_yticks([], minor=True)
        heading = ",\n".join(title.rsplit(", ", 1))
        tidy(ax, x="number of samples", y="RMSE / limit" if name == "A" else "", title=f"{name}: {heading}")
    legend_below(figure, axes[0, 0], columns=8)
    return figure
