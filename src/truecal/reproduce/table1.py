"""Table 1: the recalibrator chosen by ECE_bin, ECE_sweep and other criteria, and the best one.

On simulated models the best recalibrator is known; on real ones the paper's reference, the true error of a fitted
population, replaces it.
"""

from __future__ import annotations

import math
import warnings
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from truecal import paper
from truecal._lib.numeric import keyed_generator
from truecal.data import LogitSplits, as_sample
from truecal.data.sample import Sample
from truecal.estimators._registry import get_estimator
from truecal.inference.decompose import decompose
from truecal.recalibration import HistogramBinning, IsotonicCalibration, TemperatureScaling
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings, part
from truecal.reproduce._data import split_sets
from truecal.reproduce._draw import BLACK, BLUE, GREY, RED, label_of, legend_below, new_figure, tidy
from truecal.reproduce._studies import in_parallel, quantile_grid
from truecal.simulation import Population, fit_population

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECALIBRATORS = {
    "histogram": HistogramBinning,
    "isotonic": IsotonicCalibration,
    "temperature": TemperatureScaling,
}
ESTIMATORS = ("ew_bin", "em_bin", "ew_debias", "em_debias", "ew_sweep", "em_sweep", "kde")
CRITERIA = (*ESTIMATORS, "brier", "log_loss", "fitted")
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


def simulated_choice(
    name: str, repeat: int, calibration: int, test: int, seed: int, points: int = 20_000
) -> dict[str, Any]:
    """Recalibrate a population of the paper; return the choice of each criterion and the best one."""
    rng = keyed_generator(seed, zlib.crc32(name.encode()), repeat)
    population = paper.population(name)
    y_fit, p_fit = population.sample(calibration, rng=rng)
    y_test, p_test = population.sample(test, rng=rng)
    samples, errors = {}, {}
    for title, recalibrator_class in RECALIBRATORS.items():
        recalibrator = recalibrator_class(input="probabilities").fit(p_fit, y_fit)
        samples[title] = as_sample(y_test, recalibrator.transform(p_test))
        errors[title] = true_error_after(recalibrator, population, points)
    best = min(errors, key=lambda title: errors[title])
    row = {"model": name, "repeat": repeat, **choices(samples), "best": best}
    row |= {f"true_error_{title}": error for title, error in errors.items()}
    return row


def true_error_after(recalibrator: Any, population: Population, points: int = 20_000) -> float:
    """Return the true l2 error of the recalibrated model.

    Scores that are mapped to the same value are merged: the conditional probability given that value counts.

    Examples
    --------
    >>> population = paper.population("resnet152_imgnet")
    >>> y, p = population.sample(500, rng=0)
    >>> before, after = population.true_error(), true_error_after(IsotonicCalibration().fit(p, y), population)
    >>> after < before
    True
    """
    score, _, truth = quantile_grid(population, points)
    value, group, count = np.unique(recalibrator.transform(score), return_inverse=True, return_counts=True)
    frequency = np.bincount(group, truth) / count
    return math.sqrt(float(count @ (value - frequency) ** 2) / points)


def real_choice(name: str, splits: LogitSplits) -> dict[str, Any]:
    """Fit the recalibrators to the calibration split, and choose by the top labels of the test split."""
    samples = {}
    for title, recalibrator_class in RECALIBRATORS.items():
        recalibrator = recalibrator_class(input="logits").fit(splits.val_logits, splits.val_labels)
        proba = recalibrator.transform(splits.test_logits)
        samples[title] = as_sample(splits.test_labels, proba, multiclass="top")
    values = {
        f"{key}_{title}": get_estimator(key)(sample).value
        for key in ("ew_bin", "em_sweep")
        for title, sample in samples.items()
    }
    return {"model": name, **choices(samples), **values}


def choices(samples: dict[str, Sample]) -> dict[str, str]:
    """Return for each criterion the recalibrator with the smallest value."""

    def best(values: list[float]) -> str:
        return list(samples)[int(np.argmin(values))]

    chosen = {
        name: best([get_estimator(name)(sample).value for sample in samples.values()]) for name in ESTIMATORS
    }
    chosen |= {
        name: best([decompose(s, score=name).score for s in samples.values()])
        for name in ("brier", "log_loss")
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the paper's criterion fits a Beta even to a few atoms
        fitted = [fit_population(sample).population.true_error() for sample in samples.values()]
    return chosen | {"fitted": best(fitted)}


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
    legend_below(figure, axes[0, 0], columns=3)
    return figure
