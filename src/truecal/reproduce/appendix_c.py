"""Appendix C: mean estimates against the true error, for curves c^d of increasing miscalibration."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings, part
from truecal.reproduce._draw import BLACK, BLUE, GREY, ORANGE, RED, label_of, line, new_figure, tidy
from truecal.reproduce._studies import SEVEN, pick, run_study
from truecal.simulation import BetaScores, Population, PowerCurve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The paper's two distributions. It calls the second Beta(1.1, 0.1), the fit to Wide ResNet-32 on CIFAR-100, and prints
#: that fit as (1.0611, 0.0650) in Table 2; both are simulated.
FITTED, ROUNDED = "Beta(1.0611, 0.0650)", "Beta(1.1, 0.1)"
SCORES = {"Uniform(0, 1)": BetaScores(1, 1), FITTED: BetaScores(1.0611, 0.065), ROUNDED: BetaScores(1.1, 0.1)}
COLOURS = {"Uniform(0, 1)": BLUE, FITTED: RED, ROUNDED: ORANGE}
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
    study = run_study(
        settings,
        "appendix_c",
        populations,
        estimators=PAIR,
        sizes=SIZES,
        repeats=settings.of(1000, 80, 5),
    )
    # Section 7.3 speaks of all metrics; the figure has two.
    every = run_study(
        settings,
        "appendix_c_all",
        populations,
        estimators=SEVEN,
        sizes=SIZES,
        repeats=settings.of(200, 20, 3),
    )
    rows, all_rows = (
        [{"scores": row["population"].partition(", d")[0], **row} for row in part] for part in (study, every)
    )
    comparisons = [_ambiguity(rows), *_at_perfect_calibration(rows), _grows(all_rows)]
    return Outcome({"": rows, "all_metrics": all_rows}, {"": _draw(rows)}, comparisons)


def _ambiguity(rows: Records) -> PaperComparison:
    """Return the true errors for which the mean EW estimate at n = 200 is 12%."""
    errors = {}
    for name in SCORES:
        mine = sorted(pick(rows, scores=name, n=200, estimator="ew_bin"), key=lambda row: row["true_error"])
        errors[name] = 100 * float(
            np.interp(0.12, [row["mean"] for row in mine], [row["true_error"] for row in mine])
        )
    return PaperComparison(
        "true errors (%) for an EW estimate of 12% at n = 200",
        "5 or 8",
        " or ".join(f"{value:.1f} ({name})" for name, value in errors.items()),
        agrees=abs(errors["Uniform(0, 1)"] - 5) < 1 and abs(errors[FITTED] - 8) < 1,
        note="By linear interpolation between simulated points. The paper's label Beta(1.1, 0.1) is the rounded fit.",
    )


def _at_perfect_calibration(rows: Records) -> list[PaperComparison]:
    value = {
        (row["estimator"], row["scores"]): (100 * row["mean"], 100 * row["bias_se"])
        for row in rows
        if row["true_error"] == 0 and row["n"] == 5000
    }
    shown = {
        name: ", ".join(f"{value[name, scores][0]:.2f} ({scores})" for scores in SCORES) for name in PAIR
    }
    less = [value["em_sweep", scores][0] < 0.8 * value["ew_bin", scores][0] for scores in SCORES]
    return [
        PaperComparison(
            "ECE_bin of a calibrated model at n = 5000 (%)",
            "can still be off by 2",
            shown["ew_bin"],
            agrees=abs(max(value["ew_bin", scores][0] for scores in SCORES) - 2) < 0.5,
        ),
        PaperComparison(
            "ECE_sweep of the same model (%)",
            "significantly reduced",
            shown["em_sweep"],
            agrees=all(less),
            note=""
            if all(less)
            else "For uniform scores the sweep is hardly better: equal-mass bins are then equal-width "
            "bins, and it uses about as many.",
        ),
    ]


def _grows(rows: Records) -> PaperComparison:
    """Count the curves of bias against true error whose largest bias is that of the calibrated model."""
    exceptions, curves = [], 0
    for scores, n, name in itertools.product(SCORES, SIZES, SEVEN):
        mine = sorted(pick(rows, scores=scores, n=n, estimator=name), key=lambda row: row["true_error"])
        calibrated, largest = mine[0], max(mine, key=lambda row: row["bias"])
        curves += 1
        if largest["bias"] - calibrated["bias"] > 2 * math.hypot(largest["bias_se"], calibrated["bias_se"]):
            exceptions.append(f"{label_of(name)} at n = {n:,} for {scores}")
    return PaperComparison(
        "curves of the bias that are highest for the calibrated model, seven metrics",
        "for all metrics, bias increases as the true error decreases",
        f"{curves - len(exceptions)} of {curves}",
        agrees=not exceptions,
        note=f"Not {', '.join(exceptions)}." if exceptions else "",
    )


def _draw(rows: Records) -> Figure:
    figure, axes = new_figure(1, 2, size=(9.6, 4.8), sharey=True, sharex=True)
    for ax, estimator in zip(axes[0], PAIR, strict=True):
        ax.plot([0, 30], [0, 30], color=BLACK, linewidth=0.9, linestyle=":", label="no bias")
        for name, colour in COLOURS.items():
            for n, style in zip(SIZES, ("-", "--"), strict=True):
                mine = sorted(
                    pick(rows, scores=name, n=n, estimator=estimator), key=lambda row: row["true_error"]
                )
                line(
                    ax,
                    [100 * row["true_error"] for row in mine],
                    [100 * row["mean"] for row in mine],
                    [100 * row["bias_se"] for row in mine],
                    color=colour,
                    linestyle=style,
                    marker="o",
                    markersize=3,
                    markerfacecolor=colour if n == SIZES[0] else "white",
                    label=f"{name}, n = {n:,}",
                )
        ax.axhline(12, color=GREY, linewidth=0.8)
        ticks = range(0, 21, 5)
        ax.set(xlim=(-0.3, 20), ylim=(0, 20), aspect="equal", xticks=ticks, yticks=ticks)
        tidy(
            ax,
            x="true calibration error (%)",
            y="mean estimate (%)" if estimator == PAIR[0] else "",
            title=label_of(estimator),
        )
    axes[0, 0].text(19.8, 12.2, "12%", color=GREY, ha="right", fontsize="small")
    axes[0, 1].legend(frameon=False, fontsize="small", loc="lower right")
    return figure
