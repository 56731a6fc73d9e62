"""Appendix B: bias and standard deviation by number of bins and of samples, three populations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from truecal import paper
from truecal._lib.types import FloatArray
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings, part
from truecal.reproduce._draw import label_of, new_figure
from truecal.reproduce._studies import pick, run_study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POPULATIONS = {
    "resnet110_c10": "ResNet-110 CIFAR-10",
    "resnet_wide32_c100": "Wide ResNet-32 CIFAR-100",
    "resnet152_imgnet": "ResNet-152 ImageNet",
}
BINNED = ("ew_bin", "em_bin", "ew_debias", "em_debias")
SWEEPS = ("ew_sweep", "em_sweep")


@part("Appendix B", "Bias and standard deviation by bins and samples")
def appendix_b(settings: Settings) -> Outcome:
    """Study four estimators with 2 to 64 bins, and the sweeps, which choose the number of bins."""
    bins = settings.of((2, 4, 8, 16, 32, 64), (2, 4, 8, 16, 32, 64), (2, 8))
    study = run_study(
        settings,
        "appendix_b",
        {name: paper.population(name) for name in POPULATIONS},
        estimators=[*({"estimator": e, "n_bins": b} for e in BINNED for b in bins), *SWEEPS],
        sizes=settings.of((200, 400, 800, 1600, 3200, 6400), (200, 800, 3200), (100, 200)),
        repeats=settings.of(1000, 40, 4),
    )
    rows = [{**row, **_split(row["estimator"])} for row in study]
    figures = {"bias": _draw(rows, "bias"), "sd": _draw(rows, "sd")}
    return Outcome({"": rows}, figures, [*_optimal_bins(rows), _equal_mass(rows), *_spread(rows)])


def _split(estimator: str) -> dict[str, Any]:
    """Return the estimator's name and its number of bins; -1 for the sweep, as in the paper."""
    name, _, option = estimator.partition("(n_bins=")
    return {"estimator": name, "n_bins": int(option.rstrip(")")) if option else -1}


def _optimal_bins(rows: Records) -> list[PaperComparison]:
    comparisons = []
    for name, title in POPULATIONS.items():
        sizes = sorted({row["n"] for row in rows})
        best = [
            min(pick(rows, population=name, estimator="ew_bin", n=n), key=lambda row: abs(row["bias"]))[
                "n_bins"
            ]
            for n in sizes
        ]
        comparisons.append(
            PaperComparison(
                f"number of EW bins with the smallest bias, {title}",
                "grow with n",
                ", ".join(f"{b} at {n}" for n, b in zip(sizes, best, strict=True)),
                agrees=best == sorted(best) and best[0] < best[-1],
            )
        )
    return comparisons


def _equal_mass(rows: Records) -> PaperComparison:
    pairs = [
        (abs(wide["bias"]), abs(mass["bias"]))
        for idea in ("bin", "debias", "sweep")
        for wide, mass in zip(
            pick(rows, estimator=f"ew_{idea}"), pick(rows, estimator=f"em_{idea}"), strict=True
        )
    ]
    better = sum(mass < wide for wide, mass in pairs)
    return PaperComparison(
        "settings in which EM is less biased than EW",
        "generally",
        f"{better} of {len(pairs)}",
        agrees=better > len(pairs) / 2,
    )


def _spread(rows: Records) -> list[PaperComparison]:
    """Compare the paper's statements on the variance: no dependence on bins, larger for debias than for sweep."""
    ratios = []
    for name in POPULATIONS:
        for n in {row["n"] for row in rows}:
            sd = [row["sd"] for row in pick(rows, population=name, n=n, estimator="em_bin")]
            ratios.append(max(sd) / min(sd))
    debias = {
        (r["population"], r["n"]): r["sd"]
        for r in rows
        if r["estimator"] == "em_debias" and r["n_bins"] == _middle(rows)
    }
    sweep = {(r["population"], r["n"]): r["sd"] for r in rows if r["estimator"] == "em_sweep"}
    ratio = np.array([debias[key] / sweep[key] for key in sweep])
    higher = int((ratio > 1).sum())
    return [
        PaperComparison(
            "sd of EM bin, ratio of most to fewest bins",
            "no clear dependence",
            f"{np.median(ratios):.2f} in the median, at most {max(ratios):.2f}",
            agrees=bool(np.median(ratios) < 1.5),
        ),
        PaperComparison(
            f"sd of EM debias ({_middle(rows)} bins) above that of EM sweep",
            "higher variance",
            f"in {higher} of {len(sweep)} settings, by {100 * (ratio.mean() - 1):.0f}% on average",
            agrees=higher > len(sweep) / 2,
        ),
    ]


def _middle(rows: Records) -> int:
    """Return the number of bins nearest to the usual 15."""
    nearest: int = min({row["n_bins"] for row in rows}, key=lambda b: abs(b - 15))
    return nearest


def _draw(rows: Records, key: str) -> Figure:
    figure, axes = new_figure(3, 5, size=(16, 9.6), width_ratios=[6, 6, 6, 6, 2.6])
    sizes = sorted({row["n"] for row in rows})
    bins = sorted({row["n_bins"] for row in rows if row["n_bins"] > 0})
    top = float(np.quantile([100 * abs(row[key]) for row in rows], 0.97))
    image = None
    for line, (name, title) in enumerate(POPULATIONS.items()):
        mine = list(pick(rows, population=name))
        for column, estimator in enumerate(BINNED):
            squares = [[next(pick(mine, estimator=estimator, n=n, n_bins=b)) for b in bins] for n in sizes]
            image = _heat_map(axes[line, column], squares, key, top, [str(b) for b in bins], sizes)
            axes[line, column].set_xlabel("bins")
            axes[line, column].set_title(f"{title}: {label_of(estimator)}", fontsize="small", loc="left")
        squares = [[next(pick(mine, estimator=estimator, n=n)) for estimator in SWEEPS] for n in sizes]
        _heat_map(axes[line, 4], squares, key, top, ["EW", "EM"], sizes)
        axes[line, 4].set_title("sweep", fontsize="small", loc="left")
        axes[line, 0].set_ylabel("number of samples")
    assert image is not None
    what = "bias (%)" if key == "bias" else "standard deviation (%)"
    figure.colorbar(image, ax=axes, shrink=0.5, label=f"{what}; small: Monte Carlo standard error")
    return figure


def _heat_map(
    ax: Axes, squares: list[list[Any]], key: str, top: float, columns: list[str], sizes: list[int]
) -> Any:
    values: FloatArray = 100 * np.array([[square[key] for square in line] for line in squares])
    signed = key == "bias"
    image = ax.imshow(
        values, cmap="RdBu_r" if signed else "Purples", vmin=-top if signed else 0, vmax=top, aspect="auto"
    )
    for y, line in enumerate(squares):
        for x, square in enumerate(line):
            # The standard error of a standard deviation is that of a mean divided by the square root of two.
            error = 100 * square["bias_se"] / (1 if signed else np.sqrt(2))
            colour = "white" if abs(values[y, x]) > 0.7 * top else "black"
            text = f"{values[y, x]:+.2f}" if signed else f"{values[y, x]:.2f}"
            ax.text(x, y - 0.12, text, ha="center", va="center", fontsize=7, color=colour)
            ax.text(x, y + 0.28, f"± {error:.2f}", ha="center", va="center", fontsize=4.8, color=colour)
    ax.set_xticks(range(len(columns)), columns, fontsize="small")
    ax.set_yticks(range(len(sizes)), [f"{n:,}" for n in sizes], fontsize="small")
    return image
