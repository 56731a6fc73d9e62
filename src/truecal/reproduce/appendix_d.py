"""Appendix D: ECE_bin against the number of bins, and the number of bins that the sweep chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings, part
from truecal.reproduce._draw import BLACK, CYCLE, line, new_figure, tidy
from truecal.reproduce._studies import pick, run_study
from truecal.simulation import IdentityCurve, LogisticCurve, Population, UniformScores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POPULATIONS = {
    "uncalibrated": Population(UniformScores(), LogisticCurve(10, -5)),
    "calibrated": Population(UniformScores(), IdentityCurve()),
}


@part("Appendix D", "The number of bins that the sweep chooses")
def appendix_d(settings: Settings) -> Outcome:
    """Study equal-mass ECE_bin over 1 to 100 bins beside the sweep, for uniform scores."""
    bins = settings.of((1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 90), (1, 2, 4, 8, 16, 32, 64), (1, 4, 16))
    study = run_study(
        settings,
        "appendix_d",
        POPULATIONS,
        estimators=[*({"estimator": "em_bin", "n_bins": b} for b in bins), "em_sweep"],
        sizes=settings.of((200, 400, 800, 1600, 3200, 6400), (200, 800, 3200), (100, 200)),
        repeats=settings.of(1000, 80, 5),
    )
    rows = [
        {
            **row,
            "n_bins": int(row["estimator"].split("=")[1].rstrip(")")) if "=" in row["estimator"] else None,
        }
        for row in study
    ]
    return Outcome({"": rows}, {"": _draw(rows)}, [_near_best(rows), _too_many(rows)])


def best_bins(rows: Records, population: str, n: int) -> int:
    """Return the number of bins with the smallest absolute bias."""
    binned = (row for row in pick(rows, population=population, n=n) if row["n_bins"] is not None)
    best: int = min(binned, key=lambda row: abs(row["bias"]))["n_bins"]
    return best


def _chosen(rows: Records, population: str, n: int) -> float:
    chosen: float = next(pick(rows, population=population, n=n, estimator="em_sweep"))["mean_bins"]
    return chosen


def _near_best(rows: Records) -> PaperComparison:
    sizes = sorted({row["n"] for row in rows})
    pairs = [(n, _chosen(rows, "uncalibrated", n), best_bins(rows, "uncalibrated", n)) for n in sizes]
    off = max(
        abs(next(pick(rows, population="uncalibrated", n=n, estimator="em_sweep"))["bias"]) for n in sizes
    )
    factor = max(max(chosen / best, best / chosen) for _, chosen, best in pairs)
    return PaperComparison(
        "bins of the sweep when uncalibrated",
        "close to optimal",
        ", ".join(f"{chosen:.1f} (best {best}) at {n}" for n, chosen, best in pairs),
        agrees=bool(factor < 1.5),
        note=f"Within a factor of {factor:.1f} of the best number tried. "
        f"The bias of the sweep is at most {100 * off:.2f}%: ECE_bin is flat near its optimum.",
    )


def _too_many(rows: Records) -> PaperComparison:
    sizes = sorted({row["n"] for row in rows})
    pairs = [(n, _chosen(rows, "calibrated", n), best_bins(rows, "calibrated", n)) for n in sizes]
    return PaperComparison(
        "bins of the sweep when calibrated",
        "too many; the optimum is at most 4",
        ", ".join(f"{chosen:.1f} (best {best}) at {n}" for n, chosen, best in pairs),
        agrees=all(chosen > 4 >= best for _, chosen, best in pairs),
    )


def _draw(rows: Records) -> Figure:
    figure, axes = new_figure(1, 2, size=(10.5, 4.4))
    titles = {
        "uncalibrated": "(a) curve logistic(10c - 5)",
        "calibrated": "(b) curve c: perfectly calibrated",
    }
    for ax, (name, title) in zip(axes[0], titles.items(), strict=True):
        for colour, n in zip(CYCLE, sorted({row["n"] for row in rows}), strict=False):
            mine = [row for row in pick(rows, population=name, n=n) if row["n_bins"] is not None]
            line(
                ax,
                [row["n_bins"] for row in mine],
                [100 * row["mean"] for row in mine],
                [100 * row["bias_se"] for row in mine],
                color=colour,
                marker="o",
                markersize=3,
                label=f"n = {n:,}",
            )
            sweep = next(pick(rows, population=name, n=n, estimator="em_sweep"))
            ax.axvline(sweep["mean_bins"], color=colour, linestyle="--", linewidth=0.9)
            ax.errorbar(
                sweep["mean_bins"],
                100 * sweep["mean"],
                yerr=200 * sweep["bias_se"],
                fmt="*",
                color=colour,
                markersize=10,
                markeredgecolor="white",
                zorder=4,
            )
        truth = 100 * POPULATIONS[name].true_error()
        ax.axhline(truth, color=BLACK, linestyle=":", linewidth=1.2)
        ax.set_xscale("log")
        ticks = [1, 2, 4, 8, 16, 32, 64]
        ax.set_xticks(ticks, [str(b) for b in ticks])
        ax.set_xticks([], minor=True)
        ax.set_ylim(0, None)
        tidy(
            ax, x="number of bins", y="mean of EM ECE$_{BIN}$ (%)", title=f"{title}, true error {truth:.2f}%"
        )
    axes[0, 1].legend(
        frameon=False, fontsize="small", title="star and dashed line: the sweep", title_fontsize="small"
    )
    return figure
