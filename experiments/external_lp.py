"""Berta, Braun, Holzmüller, Bach, Jordan (2026), variational estimators of Lp errors: their binary study.

The five curves, the scores Beta(1/2, 1/2) and the 15 sizes are those of their published program. With their results
(``variational_lp_binary.csv`` in the data folder) the table has both.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments._comparison import experiment
from truecal._lib.types import FloatArray
from truecal.estimators._registry import DEFAULT_ESTIMATOR, get_estimator
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings
from truecal.reproduce._draw import label_of, legend_below, line, new_figure, size_axis, style_of, tidy
from truecal.reproduce._studies import pick, run_study
from truecal.simulation import BetaScores, Curve, FunctionCurve, GLMCurve, IdentityCurve, Population
from truecal.simulation._study import draw_blocks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = tuple(round(n) for n in np.geomspace(200, 10_000, 15))
ESTIMATORS = (DEFAULT_ESTIMATOR, "em_debias", "em_sweep", "em_bin", "ew_bin")
THEIRS = "variational_lp_binary.csv"


def _shifted(score: FloatArray) -> FloatArray:
    return np.minimum(score + 0.02, 1.0)


def _wavy(score: FloatArray) -> FloatArray:
    waves = 2 * np.sin(10 * np.pi * score) + np.sin(40 / 3 * np.pi * score)
    return np.clip(score + waves / (10 * np.pi), 0.0, 1.0)


CURVES: dict[str, Curve] = {
    "perfectly_calibrated_bin": IdentityCurve(),
    "almost_perfectly_calibrated_binary": FunctionCurve(_shifted, breakpoints=[0.98]),
    "overconfident_binary": GLMCurve("logit", "logit", 0.3, 0.4),
    "underconfident_binary": GLMCurve("logit", "logit", 1.0, 4.0),
    "wavy_increasing_function_bin": FunctionCurve(_wavy),
}


@experiment("Berta et al. 2026", "The l1 error on their 75 binary settings")
def main(settings: Settings) -> Outcome:
    """Estimate the l1 error with 10 draws of each setting, as they do, and with 1,000."""
    populations = {name: Population(BetaScores(0.5, 0.5), curve) for name, curve in CURVES.items()}
    sizes = settings.of(SIZES, SIZES, SIZES[::7])
    theirs = _published(settings, sizes)
    rows: Records = []
    for repeats in settings.of((10, 1000), (10, 50), (3,)):
        study = run_study(
            settings, "lp", populations, estimators=ESTIMATORS, sizes=sizes, repeats=repeats, norm=1
        )
        rows += [
            {**row, "limit": populations[row["population"]].efficiency_limit(row["n"], 1)} for row in study
        ]
    seconds = _seconds(populations["overconfident_binary"], sizes, settings)
    summary = [
        {"estimator": key, "source": "truecal", "draws": draws, **_means(mine), "seconds": seconds[key]}
        for draws in sorted({row["repeats"] for row in rows})
        for key in ESTIMATORS
        if (mine := list(pick(rows, repeats=draws, estimator=key)))
    ]
    flagship = list(pick(rows, repeats=max(row["repeats"] for row in rows), estimator=DEFAULT_ESTIMATOR))
    summary += [_their_summary(name, group, flagship) for name, group in theirs.items()]
    tables = {"": rows, "summary": summary}
    return Outcome(tables, {"": _draw(rows, theirs, sizes)}, _compare(summary, flagship))


def _means(cells: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return means over the settings, in points, and the Monte Carlo error of the mean RMSE for normal estimates."""
    cells = list(cells)
    variance = [2 * row["sd"] ** 4 + 4 * row["bias"] ** 2 * row["sd"] ** 2 for row in cells]
    errors = [
        math.sqrt(value / row["repeats"]) / (2 * row["rmse"])
        for row, value in zip(cells, variance, strict=True)
    ]
    return {
        "mean_absolute_bias": 100 * float(np.mean([abs(row["bias"]) for row in cells])),
        "rmse": 100 * float(np.mean([row["rmse"] for row in cells])),
        "rmse_se": 100 * math.hypot(*errors) / len(cells),
    }


def _seconds(population: Population, sizes: tuple[int, ...], settings: Settings) -> dict[str, float]:
    """Return the median over sizes of the processor time of one estimate."""
    taken: dict[str, list[float]] = {key: [] for key in ESTIMATORS}
    for n in sizes:
        blocks = draw_blocks(population, n, range(settings.of(20, 5, 1)), seed=settings.seed, key=(n,))
        samples = [sample for block in blocks for sample in block]
        for key in ESTIMATORS:
            spec = get_estimator(key)
            began = time.process_time()
            for sample in samples:
                spec(sample, norm=1)
            taken[key].append((time.process_time() - began) / len(samples))
    return {key: float(np.median(values)) for key, values in taken.items()}


def _published(settings: Settings, sizes: tuple[int, ...]) -> dict[str, Records]:
    """Return their results by method, for the settings that are repeated here."""
    path = settings.data and settings.data / THEIRS
    if path is None or not path.is_file():
        return {}
    groups: dict[str, Records] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["curve"] in CURVES and int(row["n"]) in sizes:
                numbers = {key: float(row[key] or "nan") for key in row if key not in ("curve", "method")}
                groups.setdefault(row["method"], []).append({**numbers, "population": row["curve"]})
    return groups


def _their_summary(name: str, group: Records, flagship: list[Mapping[str, Any]]) -> dict[str, Any]:
    ours = {(row["population"], row["n"]): row["rmse"] for row in flagship}
    pairs = [(ours[row["population"], int(row["n"])], row["rmse_clipped"]) for row in group]
    return {
        "estimator": name,
        "source": "Berta et al.",
        "draws": int(group[0]["draws"]),
        "mean_absolute_bias": 100 * float(np.mean([abs(row["bias"]) for row in group])),
        "rmse": 100 * float(np.mean([row["rmse"] for row in group])),
        "rmse_clipped": 100 * float(np.mean([row["rmse_clipped"] for row in group])),
        "seconds": float(np.median([row["seconds"] for row in group])),
        "settings": len(pairs),
        "multiscale_has_smaller_rmse": sum(mine < theirs for mine, theirs in pairs),
    }


def _compare(summary: Records, flagship: list[Mapping[str, Any]]) -> list[PaperComparison]:
    best = min(
        (row for row in summary if row["source"] != "truecal"),
        key=lambda row: row["rmse_clipped"],
        default=None,
    )
    published = (
        f"best of theirs, {best['estimator']}: {best['rmse']:.2f}, {best['rmse_clipped']:.2f} with negative values "
        f"set to 0 ({best['draws']} draws, {best['seconds']:.1f} s)"
        if best
        else "not given (pass their results with --data)"
    )
    found = [
        PaperComparison(
            f"mean RMSE of the l1 error (points), {row['draws']:,} draws of each setting",
            published,
            f"{row['rmse']:.2f}",
            agrees=None,
            error=row["rmse_se"],
            note=f"{label_of(DEFAULT_ESTIMATOR)}, {1000 * row['seconds']:.1f} ms of processor time per estimate. Their "
            "estimators measure a lower bound by design.",
        )
        for row in summary
        if row["estimator"] == DEFAULT_ESTIMATOR
    ]
    ratios = [row["rmse"] / row["limit"] for row in flagship if np.isfinite(row["limit"])]
    found.append(
        PaperComparison(
            "RMSE divided by the efficiency limit of the l1 error, median over the miscalibrated settings",
            "not reported",
            f"{np.median(ratios):.2f}",
            agrees=None,
        )
    )
    return found


def _draw(rows: Records, theirs: Mapping[str, Records], sizes: tuple[int, ...]) -> Figure:
    draws = max(row["repeats"] for row in rows)
    best = sorted(theirs, key=lambda name: np.mean([row["rmse_clipped"] for row in theirs[name]]))[:2]
    figure, axes = new_figure(1, len(CURVES), size=(15, 3.8), sharey=True)
    for ax, name in zip(axes[0], CURVES, strict=True):
        for key in ESTIMATORS:
            mine = [next(pick(rows, population=name, n=n, repeats=draws, estimator=key)) for n in sizes]
            line(ax, sizes, [100 * row["rmse"] for row in mine], 0, **style_of(key))
        for method, dashes in zip(best, ("-", ":"), strict=False):
            their = [next(pick(theirs[method], population=name, n=n)) for n in sizes]
            ax.plot(
                sizes,
                [100 * row["rmse_clipped"] for row in their],
                color="#333333",
                linestyle=dashes,
                label=f"{method} (theirs, clipped at 0, 10 draws)",
            )
        limit = [100 * next(pick(rows, population=name, n=n))["limit"] for n in sizes]
        ax.plot(sizes, limit, color="#999999", linewidth=3, alpha=0.5, label="efficiency limit", zorder=0)
        ax.set_xscale("log")
        size_axis(ax, sizes[::7])
        ax.set_yscale("log")
        ticks = [0.1, 0.2, 0.5, 1, 2, 5]
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.set_yticks([], minor=True)
        title = name.removesuffix("_binary").removesuffix("_bin").replace("_", " ")
        tidy(
            ax,
            x="number of samples",
            y="RMSE of the l1 error (points)" if ax is axes[0, 0] else "",
            title=title,
        )
    legend_below(figure, axes[0, -1], columns=4)
    return figure
