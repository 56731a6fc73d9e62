r"""Open question: KS, MCE and KCE under bias by construction.

They do not estimate the true calibration error, so each is compared with its own population value. For
scores C with gap g(c) = c - E[Y | c]:

- KS: :math:`\sup_c |E[g(C)\, 1(C \le c)]|`;
- MCE: :math:`\sup_c |g(c)|`, and its limit for fifteen bins B_k, :math:`\max_k |E[g(C) | B_k]|`;
- KCE: the root of :math:`E[g(C)\, g(C')\, e^{-|C - C'| / \gamma}]` for two independent scores.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments._comparison import experiment
from truecal import paper
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings
from truecal.reproduce._draw import IMAGE_SET_COLOURS, line, new_figure, size_axis, tidy, zero_line
from truecal.reproduce._studies import draw_estimates, image_set_of, quantile_grid, sizes
from truecal.simulation import Population

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Names of the estimands, by estimator.
MEASURES = {"ks": "KS", "ew_mce": "EW MCE", "em_mce": "EM MCE", "kce": "KCE"}
N_BINS, BANDWIDTH = 15, 0.2
#: Number of points of the integrals over the population.
POINTS = 1 << 17


@experiment("Discussion", "KS, MCE and KCE under bias by construction")
def main(settings: Settings) -> Outcome:
    """Compare the estimates with their population values, on fitted and on calibrated populations."""
    names = settings.of(paper.NAMES, paper.NAMES[::3], paper.NAMES[::4])
    rows: Records = []
    for calibrated in (False, True):
        for name in names:
            population = paper.population(name, calibrated)
            truth = truths(population)
            for n in sizes(settings):
                rows += _rows(settings, name, calibrated, population, truth, n)
    return Outcome({"": rows}, {"": _draw(rows)}, [_compare(rows, measure) for measure in MEASURES])


def truths(population: Population, points: int = POINTS) -> dict[str, float]:
    """Return the population's KS, MCE (the supremum, and for fifteen bins) and KCE.

    Examples
    --------
    >>> from truecal.simulation import BetaScores, PowerCurve
    >>> estimates = truths(Population(BetaScores(1, 1), PowerCurve(2)))
    >>> round(estimates["ks"], 5), round(estimates["mce"], 5)  # 1/6 at c = 1, and 1/4 at c = 1/2
    (0.16667, 0.25)
    """
    score, _, truth = quantile_grid(population, points)
    gap = score - truth
    by_width = np.minimum((score * N_BINS).astype(int), N_BINS - 1)
    by_mass = np.arange(points) * N_BINS // points
    # exp(-(c_j - c_i) / w) for i < j is a product of two factors, so a cumulative sum covers all pairs.
    growth = np.exp((score - 1) / BANDWIDTH)
    before = np.cumsum(gap * growth) - gap * growth
    square = float(2 * np.sum(gap * before / growth) + np.sum(gap**2)) / points**2
    everywhere = np.concatenate([np.linspace(0, 1, 20_001), score])
    return {
        "ks": float(np.abs(np.cumsum(gap)).max()) / points,
        "mce": float(np.abs(population.curve.gap(everywhere)).max()),
        "ew_mce": _largest_mean(gap, by_width),
        "em_mce": _largest_mean(gap, by_mass),
        "kce": math.sqrt(max(square, 0.0)),
    }


def _largest_mean(gap: Any, group: Any) -> float:
    count = np.bincount(group)
    mean = np.bincount(group, gap)[count > 0] / count[count > 0]
    return float(np.abs(mean).max())


def _rows(
    settings: Settings, name: str, calibrated: bool, population: Population, truth: dict[str, float], n: int
) -> Records:
    label = f"measures_{name}{'_calibrated' if calibrated else ''}"
    estimates = draw_estimates(
        settings,
        label,
        population,
        n=n,
        estimators=["ks", "ew_mce", "em_mce", "skce"],
        repeats=settings.of(500, 40, 4),
    )
    estimates["kce"] = np.sqrt(np.maximum(estimates["skce"], 0))
    rows = []
    for measure, own in {**truth, "skce": truth["kce"] ** 2}.items():
        if measure == "mce":
            continue
        values = estimates[measure]
        rows.append(
            {
                "population": name,
                "calibrated": calibrated,
                "n": n,
                "measure": measure,
                "truth": own,
                "supremum": truth["mce"] if measure.endswith("mce") else None,
                "mean": float(values.mean()),
                "bias": float(values.mean()) - own,
                "bias_se": float(values.std(ddof=1)) / math.sqrt(len(values)),
                "sd": float(values.std(ddof=1)),
            }
        )
    return rows


def _compare(rows: Records, measure: str) -> PaperComparison:
    parts = []
    for calibrated in (False, True):
        mine = [row for row in rows if row["measure"] == measure and row["calibrated"] == calibrated]
        ends = [
            100 * np.mean([row["bias"] for row in mine if row["n"] == n])
            for n in (min(row["n"] for row in mine), max(row["n"] for row in mine))
        ]
        parts.append(f"{'calibrated' if calibrated else 'fitted'} {ends[0]:+.2f} to {ends[1]:+.2f}")
    few, many = min(row["n"] for row in rows), max(row["n"] for row in rows)
    return PaperComparison(
        f"mean bias of {MEASURES[measure]} (%), n = {few} to {many}",
        "left open",
        "; ".join(parts),
        agrees=None,
        error=100 * max(row["bias_se"] for row in rows if row["measure"] == measure),
    )


def _draw(rows: Records) -> Figure:
    figure, axes = new_figure(2, 4, size=(13, 6.4), sharex=True)
    every = sorted({row["n"] for row in rows})
    for column, (measure, title) in enumerate(MEASURES.items()):
        for row, calibrated in enumerate((False, True)):
            ax = axes[row, column]
            for image_set, colour in IMAGE_SET_COLOURS.items():
                mine = [
                    r
                    for r in rows
                    if r["measure"] == measure
                    and r["calibrated"] == calibrated
                    and image_set_of(r["population"]) == image_set
                ]
                if mine:
                    groups = [[r for r in mine if r["n"] == n] for n in every]
                    mean = [100 * np.mean([r["bias"] for r in group]) for group in groups]
                    error = [
                        100 * math.hypot(*(r["bias_se"] for r in group)) / len(group) for group in groups
                    ]
                    line(ax, every, mean, error, color=colour, marker="o", label=image_set)
            zero_line(ax)
            size_axis(ax, every)
            ax.tick_params(axis="x", rotation=45)
            model = "calibrated" if calibrated else "fitted"
            tidy(
                ax,
                x="number of samples" if row else "",
                y="" if column else "bias (%)",
                title=f"{title}, {model}",
            )
    axes[0, 0].legend(frameon=False, fontsize="small")
    return figure
