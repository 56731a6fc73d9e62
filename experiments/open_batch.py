"""Open question: whether the calibration error of a batch of 128 rows can guide the training of a model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from experiments._comparison import experiment
from truecal import paper
from truecal._lib.types import FloatArray
from truecal.estimators._registry import DEFAULT_ESTIMATOR
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings
from truecal.reproduce._draw import label_of, legend_below, line, new_figure, size_axis, style_of, tidy
from truecal.reproduce._studies import draw_estimates, pick

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ESTIMATORS = ("ew_bin", "em_debias", "em_sweep", DEFAULT_ESTIMATOR)
BATCH = 128


@experiment("Discussion", "Batches of 128 rows: does the smaller estimate belong to the better model?")
def main(settings: Settings) -> Outcome:
    """Estimate the error of a model and of its calibrated counterpart, which has the same scores, on single batches."""
    names = settings.of(paper.NAMES, paper.NAMES, paper.NAMES[::5])
    sizes = settings.of((32, 64, BATCH, 256, 512, 1024, 2048, 4096), (32, BATCH, 512, 2048), (32, BATCH))
    rows: Records = []
    for name in names:
        for n in sizes:
            estimates = {
                calibrated: draw_estimates(
                    settings,
                    f"batch_{name}_{'calibrated' if calibrated else 'fitted'}",
                    paper.population(name, calibrated),
                    n=n,
                    estimators=ESTIMATORS,
                    repeats=settings.of(400, 200, 10),
                )
                for calibrated in (False, True)
            }
            true_error = paper.population(name).true_error()
            rows += [
                {
                    "population": name,
                    "n": n,
                    "estimator": key,
                    "true_error": true_error,
                    "mean_fitted": float(estimates[False][key].mean()),
                    "mean_calibrated": float(estimates[True][key].mean()),
                    **_smaller_when_calibrated(estimates[True][key], estimates[False][key]),
                }
                for key in ESTIMATORS
            ]
    return Outcome({"": rows}, {"": _draw(rows, sizes)}, [_right_order(rows), _scores_against_curve(rows)])


def _smaller_when_calibrated(calibrated: FloatArray, fitted: FloatArray) -> dict[str, float]:
    """Return how often one batch of the calibrated model has the smaller estimate; equal ones count half."""
    ordered = np.sort(fitted)
    above = len(fitted) - ordered.searchsorted(calibrated, "right")
    equal = ordered.searchsorted(calibrated, "right") - ordered.searchsorted(calibrated, "left")
    share = float(np.mean(above + equal / 2)) / len(fitted)
    return {"right_order": share, "right_order_se": math.sqrt(share * (1 - share) / len(fitted))}


def _right_order(rows: Records) -> PaperComparison:
    shares = {
        key: float(np.mean([row["right_order"] for row in pick(rows, n=BATCH, estimator=key)]))
        for key in ESTIMATORS
    }
    errors = [row["right_order_se"] for row in pick(rows, n=BATCH)]
    return PaperComparison(
        f"share of batches of {BATCH} in which the calibrated model has the smaller estimate (%)",
        "batches of fewer than O(1000) rows are 'potentially flawed'",
        ", ".join(f"{label_of(key)} {100 * share:.0f}" for key, share in shares.items()),
        agrees=None,
        error=100 * max(errors),
        note="Mean over the populations; 50 would be a guess. Both models have the same scores.",
    )


def _scores_against_curve(rows: Records) -> PaperComparison:
    """Compare what the distribution of scores does to ECE_bin with what the true error does to it."""
    mine = list(pick(rows, n=BATCH, estimator="ew_bin"))
    by_scores = np.ptp([row["mean_calibrated"] for row in mine])
    by_curve = np.mean([row["mean_fitted"] - row["mean_calibrated"] for row in mine])
    return PaperComparison(
        f"mean ECE_bin of batches of {BATCH} (%)",
        "may depend more on the scores than on the true curve",
        f"between calibrated models, up to {100 * by_scores:.1f} apart; between a model and its calibrated "
        f"counterpart, {100 * by_curve:.1f} apart on average",
        agrees=bool(by_scores > by_curve),
        note="The calibrated models all have a true error of 0, and differ in their scores only.",
    )


def _draw(rows: Records, sizes: tuple[int, ...]) -> Figure:
    figure, axes = new_figure(1, 2, size=(10, 4.2))
    for key in ESTIMATORS:
        mine = [list(pick(rows, n=n, estimator=key)) for n in sizes]
        share = [100 * np.mean([row["right_order"] for row in group]) for group in mine]
        error = [100 * math.hypot(*(row["right_order_se"] for row in group)) / len(group) for group in mine]
        line(axes[0, 0], sizes, share, error, **style_of(key))
        mean = [100 * np.mean([row["mean_calibrated"] for row in group]) for group in mine]
        axes[0, 1].plot(sizes, mean, **style_of(key))
    for ax in axes[0]:
        size_axis(ax, sizes)
    axes[0, 0].axhline(50, color="#999999", linewidth=0.8)
    tidy(
        axes[0, 0],
        x="rows in a batch",
        y="smaller estimate is the calibrated model's (%)",
        title="(a) one batch each",
    )
    tidy(
        axes[0, 1],
        x="rows in a batch",
        y="mean estimate (%)",
        title="(b) calibrated models: the true error is 0",
    )
    legend_below(figure, axes[0, 0], columns=4)
    return figure
