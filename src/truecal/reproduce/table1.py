"""Table 1: the recalibrator chosen by ECE_bin, ECE_sweep and other criteria, and the best one.

On simulated models the best recalibrator is known; on real ones the paper's reference, the true error of a fitted
population, replaces it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from truecal import paper
from truecal.reproduce.contract import Outcome, PaperComparison, Records, Settings, part
from truecal.reproduce.draw import BLACK, BLUE, GREY, RED, label_of, new_figure, tidy
from truecal.reproduce.real_sets import split_sets
from truecal.reproduce.recalibration import CRITERIA, real_choice, simulated_choice
from truecal.reproduce.simulate import in_parallel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {"brier": "Brier score", "log_loss": "log loss", "fitted": "fitted true error"}


@part("Table 1", "Which recalibrator each estimator chooses, and which is best")
def table1(settings: Settings) -> Outcome:
    """Choose on simulated models many times, and on every real set with two splits."""
    names = settings.of(paper.NAMES, paper.NAMES[::3], paper.NAMES[::5])
    repeats = settings.of(100, 6, 2)
    calibration, test = settings.of((5000, 10_000), (2000, 4000), (300, 500))
    jobs = [(name, repeat, calibration, test, settings.seed) for name in names for repeat in range(repeats)]
    simulated: Records = list(in_parallel(settings, "table1", simulated_choice, jobs))
    real = [real_choice(name, splits) for name, splits in split_sets(settings).items()]
    comparisons = [
        _against_fit(simulated, real, "ew_bin", 3),
        _against_fit(simulated, real, "em_sweep", 7),
        _pair_of_the_paper(simulated),
        choices_with_known_truth(
            simulated,
            "",
            ("brier", "Brier score"),
            "With known truth. Isotonic regression leaves errors of either sign close together, which average out in "
            "equal-mass bins: the sweep underestimates its error by about 0.4 points and prefers it to histogram "
            "binning.",
        ),
    ]
    tables = {"": _summary(simulated), "simulated": simulated, **({"real": real} if real else {})}
    return Outcome(tables, {"": _draw(simulated, real)}, comparisons)


def _share(rows: Records, criterion: str, against: str) -> tuple[float, float]:
    hits = sum(row[criterion] == row[against] for row in rows)
    share = hits / len(rows)
    return share, math.sqrt((share * (1 - share) + 0.25 / len(rows)) / len(rows))


def _regret(rows: Records, criterion: str) -> tuple[float, float]:
    """Return the mean excess true error of the choice over the best one, and its standard error."""
    lost = [row[f"true_error_{row[criterion]}"] - row[f"true_error_{row['best']}"] for row in rows]
    return float(np.mean(lost)), float(np.std(lost) / math.sqrt(len(lost)))


def _summary(rows: Records) -> Records:
    table = []
    for name in CRITERIA:
        truly, truly_se = _share(rows, name, "best")
        fitted, fitted_se = _share(rows, name, "fitted")
        regret, regret_se = _regret(rows, name)
        table.append(
            {
                "criterion": name,
                "models": len(rows),
                "chooses_truly_best": truly,
                "chooses_truly_best_se": truly_se,
                "agrees_with_fitted": fitted,
                "agrees_with_fitted_se": fitted_se,
                "true_error_lost": regret,
                "true_error_lost_se": regret_se,
            }
        )
    return table


def _against_fit(simulated: Records, real: Records, criterion: str, printed: int) -> PaperComparison:
    """Count the models on which a criterion agrees with the fitted true error, as the paper does for its ten."""
    models = len({row["model"] for row in simulated})
    repeats = [row["repeat"] for row in simulated]
    counts = np.bincount(repeats, [row[criterion] == row["fitted"] for row in simulated])
    mean, spread = float(counts.mean()), float(counts.std(ddof=1))
    agree = sum(row[criterion] == row["fitted"] for row in real)
    on_real = f"; {agree} of {len(real)} real sets" if real else ""
    name = {"ew_bin": "ECE_bin", "em_sweep": "ECE_sweep"}[criterion]
    return PaperComparison(
        f"models for which {name} agrees with the fitted true error",
        f"{printed} of 10",
        f"{mean:.1f} of {models} simulated models, with a standard deviation of {spread:.1f}{on_real}",
        agrees=abs(mean / models - printed / 10) <= 2 * spread / models,
        error=spread / math.sqrt(len(counts)),
        note="We do not have the ten logit files: these are simulated models of the same ten populations, and "
        "other real models. Add logit files with --logits. The standard deviation is that of a single count.",
    )


def pair_share(rows: Records) -> tuple[float, float]:
    """Return how often ECE_bin agrees with the fitted error on 3 of 10 models or fewer, and ECE_sweep on 7 or more.

    Each repetition of all models is one such experiment. The second number is the standard error.
    """
    repeats = [row["repeat"] for row in rows]
    models = len(rows) / (max(repeats) + 1)
    low, high = (
        np.bincount(repeats, [row[key] == row["fitted"] for row in rows]) / models
        for key in ("ew_bin", "em_sweep")
    )
    share = float(np.mean((low <= 0.3) & (high >= 0.7)))
    return share, math.sqrt((share * (1 - share) + 0.25 / len(low)) / len(low))


def _pair_of_the_paper(rows: Records) -> PaperComparison:
    share, error = pair_share(rows)
    return PaperComparison(
        "probability of the paper's pair or a more extreme one (%)",
        "3 of 10 and 7 of 10",
        f"{100 * share:.0f}",
        agrees=bool(share >= 0.05),
        error=100 * error,
        note="Both counts of one experiment together. The simulated models have one-dimensional scores, which are "
        "recalibrated themselves; the paper recalibrates logits of many classes: see table1_classes.",
    )


def choices_with_known_truth(rows: Records, name: str, other: tuple[str, str], note: str) -> PaperComparison:
    """Compare how often ECE_bin and ECE_sweep choose the best recalibrator, on the same models.

    Parameters
    ----------
    rows : records
        The choice of each criterion, and the best.
    name : str
        End of the name of the comparison.
    other : tuple of str
        One more criterion to show, and its label.
    note : str
        Note of the comparison.
    """
    right = {key: np.array([row[key] == row["best"] for row in rows], dtype=float) for key in CRITERIA}
    gain = right["em_sweep"] - right["ew_bin"]
    error = float(gain.std() / math.sqrt(len(gain)))
    labels = {"em_sweep": "ECE_sweep", "ew_bin": "ECE_bin", "em_debias": "EM debias"}
    labels |= {other[0]: other[1], "fitted": "the fitted error itself"}
    shown = ", ".join(f"{label} {right[key].mean():.0%}" for key, label in labels.items())
    return PaperComparison(
        f"ECE_sweep chooses better than ECE_bin (%){name}",
        "70 against 30 of its choices",
        f"best in {len(rows)} simulated models: {shown}; sweep minus bin {100 * gain.mean():+.1f}",
        agrees=bool(gain.mean() > 2 * error),
        error=100 * error,
        note=note,
    )


def _draw(simulated: Records, real: Records) -> Figure:
    figure, axes = new_figure(1, 2, size=(10, 4.2), sharey=True)
    height = np.arange(len(CRITERIA))[::-1]
    for key, colour, shift, label in (
        ("best", BLUE, 0.12, "chooses the best"),
        ("fitted", RED, -0.12, "agrees with the fitted true error"),
    ):
        shown = [name for name in CRITERIA if name != key]
        share, error = zip(*(_share(simulated, name, key) for name in shown), strict=True)
        axes[0, 0].errorbar(
            100 * np.array(share),
            height[: len(shown)] + shift,
            xerr=200 * np.array(error),
            fmt="o",
            color=colour,
            markersize=5,
            capsize=2,
            label=f"{label} ({len(simulated)} simulated models)",
        )
    if real:
        agree = [100 * np.mean([row[name] == row["fitted"] for row in real]) for name in CRITERIA[:-1]]
        axes[0, 0].scatter(
            agree,
            height[:-1],
            marker="|",
            s=90,
            color=BLACK,
            zorder=3,
            label=f"agrees with the fitted ({len(real)} real sets)",
        )
    lost, error = zip(*(_regret(simulated, name) for name in CRITERIA), strict=True)
    axes[0, 1].errorbar(
        100 * np.array(lost), height, xerr=200 * np.array(error), fmt="o", color=BLUE, capsize=2
    )
    axes[0, 1].axvline(0, color=GREY, linewidth=0.8)
    axes[0, 0].set_yticks(height, [LABELS.get(name) or label_of(name) for name in CRITERIA])
    axes[0, 0].set_xlim(0, 103)
    tidy(
        axes[0, 0],
        x="share of models (%)",
        y="choice by smallest",
        title="(a) is the best recalibrator chosen?",
    )
    tidy(axes[0, 1], x="excess true error over the best choice (%)", y="", title="(b) cost of a wrong choice")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize="small",
    )
    return figure
