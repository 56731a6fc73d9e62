"""Open question: scores and curves outside the paper's families, a Beta distribution and a generalised linear model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments._comparison import experiment
from truecal.estimators._registry import DEFAULT_ESTIMATOR
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings
from truecal.reproduce._draw import label_of, legend_below, line, new_figure, size_axis, style_of, tidy
from truecal.reproduce._studies import SEVEN, mean_absolute_bias, pick, run_study
from truecal.simulation.suites import SIZES, suite

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Suites of populations; see `truecal.simulation.suites`.
SUITES = {
    "C1": "other scores and curves, on which truecal's constants were chosen",
    "C2": "other scores and curves, set aside",
    "D2": "fine, discrete and local structure, set aside",
}
EIGHT = (*SEVEN, DEFAULT_ESTIMATOR)


@experiment("Discussion", "Scores and curves that are not a Beta and a generalised linear model")
def main(settings: Settings) -> Outcome:
    """Study the bias of the paper's estimators on populations that violate its distributional assumptions."""
    rows: Records = []
    for name in SUITES:
        populations = suite(name)
        if settings.effort == "tiny":
            populations = dict(list(populations.items())[:2])
        study = run_study(
            settings,
            f"families_{name}",
            populations,
            estimators=EIGHT,
            sizes=settings.of(SIZES, SIZES, SIZES[:2]),
            repeats=settings.of(100, 30, 3),
        )
        rows += [{"suite": name, **row} for row in study]
    return Outcome({"": rows}, {"": _draw(rows)}, [_ranking(rows, name) for name in SUITES])


def _ranking(rows: Records, name: str) -> PaperComparison:
    biases = {key: mean_absolute_bias(pick(rows, suite=name), key) for key in EIGHT}
    ranked = sorted(EIGHT, key=lambda key: biases[key][0])
    return PaperComparison(
        f"mean absolute bias (%), {SUITES[name]}",
        "left open",
        ", ".join(f"{label_of(key)} {100 * biases[key][0]:.2f}" for key in ranked),
        agrees=None,
        error=100 * max(error for _, error in biases.values()),
        note="Noise raises a mean of absolute values: by up to 0.8 of the standard error of each bias.",
    )


def _draw(rows: Records) -> Figure:
    figure, axes = new_figure(1, len(SUITES), size=(12, 4.2), sharey=True)
    sizes = sorted({row["n"] for row in rows})
    for ax, (name, title) in zip(axes[0], SUITES.items(), strict=True):
        for key in EIGHT:
            pairs = [mean_absolute_bias(pick(rows, suite=name, n=n), key) for n in sizes]
            line(
                ax,
                sizes,
                [100 * bias for bias, _ in pairs],
                [100 * error for _, error in pairs],
                **style_of(key),
            )
        size_axis(ax, sizes)
        ax.set_yscale("log")
        ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10]
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.set_yticks([], minor=True)
        heading = title.replace(", ", ",\n")
        tidy(
            ax,
            x="number of samples",
            y="mean absolute bias (%)" if name == "C1" else "",
            title=f"{name}: {heading}",
        )
    legend_below(figure, axes[0, 0], columns=8)
    return figure
