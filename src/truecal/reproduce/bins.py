"""Figure 2 and Appendices B to D: bias by number of bins and of samples, by true error, and the bins of the sweep."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from truecal import paper
from truecal._lib.types import FloatArray
from truecal.reproduce import _draw as draw
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings, part
from truecal.reproduce._studies import SEVEN, best_bins, bins_of, pick, run_study, sizes_in
from truecal.simulation import BetaScores, IdentityCurve, LogisticCurve, Population, PowerCurve, UniformScores

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# --- Figure 2: the components of the true error, and the bias of ECE_bin ----------------------------

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
        both = len(clear) == 2
        comparisons += [
            PaperComparison(f"sign of the bias, {name}", "both", "both" if both else "one", agrees=both),
            _grow_with_n(f"number of bins with the smallest bias, {name}", mine),
        ]
    return Outcome({"": rows}, {"": _draw_fig2(rows)}, comparisons)


def _grow_with_n(what: str, rows: Iterable[Mapping[str, Any]]) -> PaperComparison:
    """Compare how the number of bins with the smallest bias depends on n."""
    best = best_bins(rows)
    grows = sorted(best.values()) == list(best.values()) and len(set(best.values())) > 1
    return PaperComparison(
        what, "grow with n", ", ".join(f"{b} at {n}" for n, b in best.items()), agrees=grows
    )


def _draw_fig2(rows: Records) -> Figure:
    figure, axes = draw.new_figure(1, 3, size=(12, 4), width_ratios=[1, 1.25, 1.25])
    _draw_assumptions(axes[0, 0])
    for letter, ax, name in zip("bc", axes[0, 1:], POPULATIONS, strict=True):
        mine = list(pick(rows, population=name))
        best = best_bins(mine)
        for colour, (n, b) in zip(draw.CYCLE, best.items(), strict=False):
            points = sorted(pick(mine, n=n), key=lambda row: row["n_bins"])
            draw.line_of(ax, points, "n_bins", "bias", color=colour, label=f"n = {n:,}")
            star: dict[str, Any] = {"marker": "*", "markersize": 12, "markeredgecolor": "white", "zorder": 4}
            ax.plot([b], [100 * next(pick(points, n_bins=b))["bias"]], color=colour, **star)
        draw.zero_line(ax)
        draw.log_axis(ax, [2, 4, 8, 16, 32, 64])
        truth = 100 * POPULATIONS[name].true_error()
        title = f"({letter}) {name}: true error {truth:.2f}%"
        draw.tidy(ax, x="number of bins", y="bias of EW ECE$_{BIN}$ (%)", title=title)
    draw.legend(axes[0, 1], title="star: smallest bias", title_fontsize="small")
    return figure


def _draw_assumptions(ax: Axes) -> None:
    """Draw the distribution function of the scores, whose density is infinite at 1, and the curve."""
    score = np.linspace(0, 1, 400)
    ax.plot(score, score, color=draw.BLACK, linewidth=0.9, linestyle=":", label="perfect calibration")
    ax.plot(score, score**2, color=draw.RED, label="E[Y | f(X) = c] = c²")
    ax.plot(score, BetaScores(2.8, 0.05).cdf(score), color=draw.BLUE, label="P(f(X) ≤ c), Beta(2.8, 0.05)")
    ax.fill_between(score, score**2, score, color=draw.RED, alpha=0.08, linewidth=0)
    above = 1 - float(BetaScores(2.8, 0.05).cdf(0.99))
    ax.text(
        0.97, 0.2, f"{above:.0%} of the scores\nlie above 0.99", fontsize="small", color=draw.BLUE, ha="right"
    )
    draw.legend(ax, loc="upper left")
    ax.set(xlim=(0, 1.01), ylim=(0, 1.01))
    draw.tidy(ax, x="score c", y="", title="(a) scores and curve")


# --- Appendix B: bias and standard deviation by number of bins and of samples, three populations --

POPULATIONS_B = {
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
        {name: paper.population(name) for name in POPULATIONS_B},
        estimators=[*({"estimator": e, "n_bins": b} for e in BINNED for b in bins), *SWEEPS],
        sizes=settings.of((200, 400, 800, 1600, 3200, 6400), (200, 800, 3200), (100, 200)),
        repeats=settings.of(1000, 40, 4),
    )
    # The number of bins of a sweep is -1, as in the paper.
    rows = [
        {**row, "estimator": row["estimator"].partition("(")[0], "n_bins": bins_of(row["estimator"]) or -1}
        for row in study
    ]
    figures = {"bias": _draw_b(rows, "bias"), "sd": _draw_b(rows, "sd")}
    comparisons = [
        _grow_with_n(
            f"number of EW bins with the smallest bias, {title}",
            pick(rows, population=name, estimator="ew_bin"),
        )
        for name, title in POPULATIONS_B.items()
    ]
    return Outcome({"": rows}, figures, [*comparisons, _equal_mass(rows), *_spread(rows)])


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
    for name in POPULATIONS_B:
        for n in sizes_in(rows):
            sd = [row["sd"] for row in pick(rows, population=name, n=n, estimator="em_bin")]
            ratios.append(max(sd) / min(sd))
    debias, sweep = (
        {(row["population"], row["n"]): row["sd"] for row in pick(rows, **chosen)}
        for chosen in ({"estimator": "em_debias", "n_bins": _middle(rows)}, {"estimator": "em_sweep"})
    )
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


def _draw_b(rows: Records, key: str) -> Figure:
    figure, axes = draw.new_figure(3, 5, size=(16, 9.6), width_ratios=[6, 6, 6, 6, 2.6])
    sizes = sizes_in(rows)
    bins = sorted({row["n_bins"] for row in rows if row["n_bins"] > 0})
    top = float(np.quantile([100 * abs(row[key]) for row in rows], 0.97))
    image = None
    for line, (name, title) in enumerate(POPULATIONS_B.items()):
        mine = list(pick(rows, population=name))
        for column, estimator in enumerate(BINNED):
            squares = [[next(pick(mine, estimator=estimator, n=n, n_bins=b)) for b in bins] for n in sizes]
            image = _heat_map(axes[line, column], squares, key, top, [str(b) for b in bins], sizes)
            axes[line, column].set_xlabel("bins")
            axes[line, column].set_title(f"{title}: {draw.label_of(estimator)}", fontsize="small", loc="left")
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


# --- Appendix C: mean estimates against the true error, for curves c^d of increasing miscalibration

#: The paper's two distributions. It calls the second Beta(1.1, 0.1), the fit to Wide ResNet-32 on CIFAR-100, and prints
#: that fit as (1.0611, 0.0650) in Table 2; both are simulated.
FITTED, ROUNDED = "Beta(1.0611, 0.0650)", "Beta(1.1, 0.1)"
SCORES = {"Uniform(0, 1)": BetaScores(1, 1), FITTED: BetaScores(1.0611, 0.065), ROUNDED: BetaScores(1.1, 0.1)}
COLOURS = {"Uniform(0, 1)": draw.BLUE, FITTED: draw.RED, ROUNDED: draw.ORANGE}
PAIR = ("ew_bin", "em_sweep")
SIZES = (200, 5000)


@part("Appendix C", "Mean estimates against the true error")
def appendix_c(settings: Settings) -> Outcome:
    """Study two estimators over d from 1 to 10, two sizes and two distributions of scores."""
    exponents = settings.of(
        (1, 1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6.5, 8, 10), (1, 1.2, 1.5, 2, 3, 5, 10), (1, 2, 10)
    )
    populations = {
        f"{name}, d = {d:g}": Population(scores, PowerCurve(d))
        for name, scores in SCORES.items()
        for d in exponents
    }
    # Section 7.3 speaks of all metrics; the figure has two.
    studies = (("appendix_c", PAIR, (1000, 80, 5)), ("appendix_c_all", SEVEN, (200, 20, 3)))
    rows, all_rows = (
        [
            {"scores": row["population"].partition(", d")[0], **row}
            for row in run_study(
                settings, name, populations, estimators=of, sizes=SIZES, repeats=settings.of(*repeats)
            )
        ]
        for name, of, repeats in studies
    )
    comparisons = [_ambiguity(rows), *_at_perfect_calibration(rows), _grows(all_rows)]
    return Outcome({"": rows, "all_metrics": all_rows}, {"": _draw_c(rows)}, comparisons)


def _by_truth(rows: Records, **values: Any) -> list[Mapping[str, Any]]:
    """Return the rows with these values, smallest true error first."""
    return sorted(pick(rows, **values), key=lambda row: row["true_error"])


def _ambiguity(rows: Records) -> PaperComparison:
    """Return the true errors for which the mean EW estimate at n = 200 is 12%."""
    errors = {}
    for name in SCORES:
        mine = _by_truth(rows, scores=name, n=200, estimator="ew_bin")
        mean, truth = ([row[key] for row in mine] for key in ("mean", "true_error"))
        errors[name] = 100 * float(np.interp(0.12, mean, truth))
    return PaperComparison(
        "true errors (%) for an EW estimate of 12% at n = 200",
        "5 or 8",
        " or ".join(f"{value:.1f} ({name})" for name, value in errors.items()),
        agrees=abs(errors["Uniform(0, 1)"] - 5) < 1 and abs(errors[FITTED] - 8) < 1,
        note="By linear interpolation between simulated points. The paper's label Beta(1.1, 0.1) is the rounded fit.",
    )


def _at_perfect_calibration(rows: Records) -> list[PaperComparison]:
    chosen = pick(rows, true_error=0, n=5000)
    value = {(row["estimator"], row["scores"]): 100 * row["mean"] for row in chosen}
    shown = {name: ", ".join(f"{value[name, scores]:.2f} ({scores})" for scores in SCORES) for name in PAIR}
    less = all(value["em_sweep", scores] < 0.8 * value["ew_bin", scores] for scores in SCORES)
    return [
        PaperComparison(
            "ECE_bin of a calibrated model at n = 5000 (%)",
            "can still be off by 2",
            shown["ew_bin"],
            agrees=abs(max(value["ew_bin", scores] for scores in SCORES) - 2) < 0.5,
        ),
        PaperComparison(
            "ECE_sweep of the same model (%)",
            "significantly reduced",
            shown["em_sweep"],
            agrees=less,
            note=""
            if less
            else "For uniform scores the sweep is hardly better: equal-mass bins are then equal-width "
            "bins, and it uses about as many.",
        ),
    ]


def _grows(rows: Records) -> PaperComparison:
    """Count the curves of bias against true error whose largest bias is that of the calibrated model."""
    exceptions, curves = [], 0
    for scores, n, name in itertools.product(SCORES, SIZES, SEVEN):
        mine = _by_truth(rows, scores=scores, n=n, estimator=name)
        calibrated, largest = mine[0], max(mine, key=lambda row: row["bias"])
        curves += 1
        if largest["bias"] - calibrated["bias"] > 2 * math.hypot(largest["bias_se"], calibrated["bias_se"]):
            exceptions.append(f"{draw.label_of(name)} at n = {n:,} for {scores}")
    return PaperComparison(
        "curves of the bias that are highest for the calibrated model, seven metrics",
        "for all metrics, bias increases as the true error decreases",
        f"{curves - len(exceptions)} of {curves}",
        agrees=not exceptions,
        note=f"Not {', '.join(exceptions)}." if exceptions else "",
    )


def _draw_c(rows: Records) -> Figure:
    figure, axes = draw.new_figure(1, 2, size=(9.6, 4.8), sharey=True, sharex=True)
    for ax, estimator in zip(axes[0], PAIR, strict=True):
        ax.plot([0, 30], [0, 30], color=draw.BLACK, linewidth=0.9, linestyle=":", label="no bias")
        for name, colour in COLOURS.items():
            for n, style in zip(SIZES, ("-", "--"), strict=True):
                mine = _by_truth(rows, scores=name, n=n, estimator=estimator)
                look = {"color": colour, "linestyle": style, "label": f"{name}, n = {n:,}"}
                look["markerfacecolor"] = colour if n == SIZES[0] else "white"
                draw.line_of(ax, mine, "true_error", "mean", scale=100, **look)
        ax.axhline(12, color=draw.GREY, linewidth=0.8)
        ticks = range(0, 21, 5)
        ax.set(xlim=(-0.3, 20), ylim=(0, 20), aspect="equal", xticks=ticks, yticks=ticks)
        y = "mean estimate (%)" if estimator == PAIR[0] else ""
        draw.tidy(ax, x="true calibration error (%)", y=y, title=draw.label_of(estimator))
    axes[0, 0].text(19.8, 12.2, "12%", color=draw.GREY, ha="right", fontsize="small")
    draw.legend(axes[0, 1], loc="lower right")
    return figure


# --- Appendix D: ECE_bin against the number of bins, and the number of bins that the sweep chooses

POPULATIONS_D = {
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
        POPULATIONS_D,
        estimators=[*({"estimator": "em_bin", "n_bins": b} for b in bins), "em_sweep"],
        sizes=settings.of((200, 400, 800, 1600, 3200, 6400), (200, 800, 3200), (100, 200)),
        repeats=settings.of(1000, 80, 5),
    )
    rows = [{**row, "n_bins": bins_of(row["estimator"])} for row in study]
    return Outcome({"": rows}, {"": _draw_d(rows)}, [_near_best(rows), _too_many(rows)])


def _chosen_and_best(rows: Records, population: str) -> list[tuple[int, float, int]]:
    """Return for each n the mean number of bins of the sweep, and the number with the smallest bias."""
    mine = list(pick(rows, population=population))
    sweep = {row["n"]: row["mean_bins"] for row in pick(mine, estimator="em_sweep")}
    return [(n, sweep[n], best) for n, best in best_bins(mine).items()]


def _shown(pairs: list[tuple[int, float, int]]) -> str:
    return ", ".join(f"{chosen:.1f} (best {best}) at {n}" for n, chosen, best in pairs)


def _near_best(rows: Records) -> PaperComparison:
    pairs = _chosen_and_best(rows, "uncalibrated")
    off = max(abs(row["bias"]) for row in pick(rows, population="uncalibrated", estimator="em_sweep"))
    factor = max(max(chosen / best, best / chosen) for _, chosen, best in pairs)
    return PaperComparison(
        "bins of the sweep when uncalibrated",
        "close to optimal",
        _shown(pairs),
        agrees=bool(factor < 1.5),
        note=f"Within a factor of {factor:.1f} of the best number tried. "
        f"The bias of the sweep is at most {100 * off:.2f}%: ECE_bin is flat near its optimum.",
    )


def _too_many(rows: Records) -> PaperComparison:
    pairs = _chosen_and_best(rows, "calibrated")
    return PaperComparison(
        "bins of the sweep when calibrated",
        "too many; the optimum is at most 4",
        _shown(pairs),
        agrees=all(chosen > 4 >= best for _, chosen, best in pairs),
    )


def _draw_d(rows: Records) -> Figure:
    figure, axes = draw.new_figure(1, 2, size=(10.5, 4.4))
    titles = {
        "uncalibrated": "(a) curve logistic(10c - 5)",
        "calibrated": "(b) curve c: perfectly calibrated",
    }
    for ax, (name, title) in zip(axes[0], titles.items(), strict=True):
        for colour, n in zip(draw.CYCLE, sizes_in(rows), strict=False):
            mine = [row for row in pick(rows, population=name, n=n) if row["n_bins"] is not None]
            draw.line_of(ax, mine, "n_bins", "mean", color=colour, label=f"n = {n:,}")
            sweep = next(pick(rows, population=name, n=n, estimator="em_sweep"))
            ax.axvline(sweep["mean_bins"], color=colour, linestyle="--", linewidth=0.9)
            star: dict[str, Any] = {"fmt": "*", "color": colour, "markersize": 10, "markeredgecolor": "white"}
            star |= {"yerr": 200 * sweep["bias_se"], "zorder": 4}
            ax.errorbar(sweep["mean_bins"], 100 * sweep["mean"], **star)
        truth = 100 * POPULATIONS_D[name].true_error()
        ax.axhline(truth, color=draw.BLACK, linestyle=":", linewidth=1.2)
        draw.log_axis(ax, [1, 2, 4, 8, 16, 32, 64])
        ax.set_ylim(0, None)
        title = f"{title}, true error {truth:.2f}%"
        draw.tidy(ax, x="number of bins", y="mean of EM ECE$_{BIN}$ (%)", title=title)
    draw.legend(axes[0, 1], title="star and dashed line: the sweep", title_fontsize="small")
    return figure
