"""Table 1: the recalibrator chosen by ECE_bin, ECE_sweep and other criteria, and the best one.

On simulated models the best recalibrator is known; on real ones the paper's reference, the true error of a fitted
population, replaces it.
"""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from truecal import paper
from truecal._lib.numeric import keyed_generator
from truecal._lib.types import FloatArray
from truecal.data import as_sample
from truecal.data.sample import Sample
from truecal.estimators._registry import get_estimator
from truecal.inference.decompose import decompose
from truecal.recalibration import HistogramBinning, IsotonicCalibration, TemperatureScaling
from truecal.reproduce._contract import Outcome, PaperComparison, Records, Settings, part
from truecal.reproduce._data import LogitSplits, split_sets
from truecal.reproduce._draw import BLACK, BLUE, GREY, RED, label_of, legend_below, new_figure, points, tidy
from truecal.reproduce._studies import SEVEN, kept_in_parallel, quantile_grid
from truecal.simulation import Population, fit_population

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RECALIBRATORS = {
    "histogram": HistogramBinning,
    "isotonic": IsotonicCalibration,
    "temperature": TemperatureScaling,
}
CRITERIA = (*SEVEN, "brier", "log_loss", "always_temperature", "fitted")
LABELS = {
    "brier": "Brier score",
    "log_loss": "log loss",
    "always_temperature": "always temperature",
    "fitted": "fitted true error",
}
#: Criteria in the comparisons.
COMPARED = {
    "em_sweep": "ECE_sweep",
    "ew_bin": "ECE_bin",
    "em_bin": "EM bin",
    "log_loss": "log loss",
    "always_temperature": "always temperature",
}


@part("Table 1", "Which recalibrator each estimator chooses, and which is best")
def table1(settings: Settings) -> Outcome:
    """Choose on simulated models many times, and on every real set with two splits."""
    names = settings.of(paper.NAMES, paper.NAMES[::3], paper.NAMES[::5])
    repeats = settings.of(100, 6, 2)
    calibration, test = settings.of((5000, 10_000), (2000, 4000), (300, 500))
    jobs = [(name, repeat, calibration, test, settings.seed) for name in names for repeat in range(repeats)]
    simulated: Records = kept_in_parallel(settings, "table1", simulated_choice, jobs)
    real = [real_choice(name, splits) for name, splits in split_sets(settings).items()]
    comparisons = [*compare_choices(simulated, "one-dimensional scores"), *_on_real_sets(real)]
    tables = {"": _summary(simulated), "simulated": simulated, **({"real": real} if real else {})}
    return Outcome(tables, {"": _draw(simulated, real)}, comparisons)


def simulated_choice(name: str, repeat: int, calibration: int, test: int, seed: int) -> dict[str, Any]:
    """Return the choice of each criterion on a population of the paper, and the best one."""
    found = list(recalibrated(name, repeat, calibration, test, seed))
    chosen = choices({title: sample for title, sample, _ in found})
    return {"model": name, "repeat": repeat, **chosen, **_best({title: error for title, _, error in found})}


def recalibrated(
    name: str, repeat: int, calibration: int, test: int, seed: int
) -> Iterator[tuple[str, Sample, float]]:
    """Recalibrate a population of the paper; yield the name of each recalibrator, a test sample and its true error."""
    rng = keyed_generator(seed, zlib.crc32(name.encode()), repeat)
    population = paper.population(name)
    y_fit, p_fit = population.sample(calibration, rng=rng)
    y_test, p_test = population.sample(test, rng=rng)
    for title, recalibrator_class in RECALIBRATORS.items():
        recalibrator = recalibrator_class(input="probabilities").fit(p_fit, y_fit)
        sample = as_sample(y_test, recalibrator.transform(p_test))
        yield title, sample, true_error_after(recalibrator, population)


def _best(errors: dict[str, float]) -> dict[str, Any]:
    """Return the recalibrator with the smallest true error, and the true error of each."""
    best = min(errors, key=errors.__getitem__)
    return {"best": best, **{f"true_error_{title}": error for title, error in errors.items()}}


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
        name: best([get_estimator(name)(sample).value for sample in samples.values()]) for name in SEVEN
    }
    chosen |= {
        name: best([decompose(s, score=name).score for s in samples.values()])
        for name in ("brier", "log_loss")
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the paper's criterion fits a Beta even to a few atoms
        fitted = [fit_population(sample).population.true_error() for sample in samples.values()]
    return chosen | {"always_temperature": "temperature", "fitted": best(fitted)}


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


def compare_choices(rows: Records, models: str) -> list[PaperComparison]:
    """Compare ECE_sweep and ECE_bin on the same models: agreement with the fitted error, best choices, true error.

    Each repetition of all models is one experiment like the paper's.
    """
    agreement, best = (
        {key: np.array([row[key] == row[against] for row in rows], dtype=float) for key in COMPARED}
        for against in ("fitted", "best")
    )
    after = {key: np.array([row[f"true_error_{row[key]}"] for row in rows]) for key in COMPARED}
    return [
        _counts(rows, models),
        _sweep_beside_bin(
            f"agreement with the fitted error (%), {models}",
            "ECE_sweep 70, ECE_bin 30",
            agreement,
            digits=0,
            note="'Agrees' here means that the sweep agrees significantly more often; the size of the difference "
            "is not the paper's.",
        ),
        _sweep_beside_bin(f"truly best recalibrator chosen (%), {models}", "not studied", best, digits=0),
        _sweep_beside_bin(
            f"true error after the chosen recalibration (%), {models}",
            "smaller with the sweep (section 8)",
            after,
            digits=2,
        ),
    ]


def _counts(rows: Records, models: str) -> PaperComparison:
    """Compare the two counts of one experiment; they agree only if their order is the paper's."""
    repeats = np.array([row["repeat"] for row in rows])
    n_models = len({row["model"] for row in rows})
    low, high = (
        np.bincount(repeats, [row[key] == row["fitted"] for row in rows]) for key in ("ew_bin", "em_sweep")
    )
    share = float(np.mean((low <= 0.3 * n_models) & (high >= 0.7 * n_models)))
    return PaperComparison(
        f"models on which ECE_bin and ECE_sweep agree with the fitted error, {models}",
        "3 and 7 of 10",
        f"{low.mean():.1f} and {high.mean():.1f} of {n_models}; 3 or fewer of 10 and 7 or more in {share:.0%} of "
        f"{len(low)} experiments",
        agrees=bool(share >= 0.05),
        note="We do not have the ten logit files: these are simulated models. Add logit files with --logits.",
    )


def _sweep_beside_bin(
    quantity: str, published: str, values: dict[str, FloatArray], *, digits: int, note: str = ""
) -> PaperComparison:
    """Compare the means of a value over the models, in percent, by criterion: of a share, or (two digits) an error."""
    gain = 100 * (values["em_sweep"] - values["ew_bin"])
    error = float(gain.std() / math.sqrt(len(gain)))
    shown = ", ".join(f"{label} {100 * values[key].mean():.{digits}f}" for key, label in COMPARED.items())
    advantage = gain.mean() if digits == 0 else -gain.mean()
    return PaperComparison(
        quantity,
        published,
        f"{shown}; sweep minus bin {gain.mean():+.{digits + 1}f} ± {error:.{digits + 1}f}",
        agrees=None if published == "not studied" else bool(advantage > 2 * error),
        note=note,
    )


def _on_real_sets(real: Records) -> list[PaperComparison]:
    if not real:
        return []
    agree = [sum(row[key] == row["fitted"] for row in real) for key in ("ew_bin", "em_sweep")]
    return [
        PaperComparison(
            "real sets on which ECE_bin and ECE_sweep agree with the fitted error",
            "3 and 7 of 10",
            f"{agree[0]} and {agree[1]} of {len(real)}",
            agrees=None,
            note="Other models than the paper's.",
        )
    ]


#: What a choice is compared with: its key, colour, vertical offset and label.
AGAINST = (
    ("best", BLUE, 0.12, "chooses the best"),
    ("fitted", RED, -0.12, "agrees with the fitted true error"),
)


def _draw(simulated: Records, real: Records) -> Figure:
    figure, axes = new_figure(1, 2, size=(10, 4.6), sharey=True)
    height = _draw_shares(axes[0, 0], simulated, "(a) is the best recalibrator chosen?")
    if real:
        agree = [100 * np.mean([row[name] == row["fitted"] for row in real]) for name in CRITERIA[:-1]]
        label = f"agrees with the fitted ({len(real)} real sets)"
        axes[0, 0].scatter(agree, height[:-1], marker="|", s=90, color=BLACK, zorder=3, label=label)
    lost, error = zip(*(_regret(simulated, name) for name in CRITERIA), strict=True)
    points(axes[0, 1], 100 * np.array(lost), height, BLUE, xerr=200 * np.array(error), capsize=2)
    axes[0, 1].axvline(0, color=GREY, linewidth=0.8)
    tidy(axes[0, 1], x="excess true error over the best choice (%)", y="", title="(b) cost of a wrong choice")
    legend_below(figure, axes[0, 0], columns=3)
    return figure


def _draw_shares(ax: Axes, rows: Records, title: str) -> NDArray[Any]:
    """Draw how often each criterion chooses the best, and as the fitted error; return the heights of the criteria."""
    height = np.arange(len(CRITERIA))[::-1]
    for key, colour, shift, label in AGAINST:
        shown = [name for name in CRITERIA if name != key]
        share, error = zip(*(_share(rows, name, key) for name in shown), strict=True)
        style: dict[str, Any] = {
            "label": f"{label} ({len(rows)} simulated models)",
            "markersize": 5,
            "capsize": 2,
        }
        y, xerr = height[: len(shown)] + shift, 200 * np.array(error)
        points(ax, 100 * np.array(share), y, colour, xerr=xerr, **style)
    ax.set_yticks(height, [LABELS.get(key) or label_of(key) for key in CRITERIA])
    ax.set_xlim(0, 103)
    tidy(ax, x="share of models (%)", y="choice by smallest", title=title)
    return height


# --- The same on simulated logits of many classes: the paper's experiment with a known truth ----------------
#
# Row i has a class y and a vector x, normal with mean m in component y and 0 elsewhere and unit variances, so that
# the probabilities of the classes given x are softmax(m x). The logits of a model are ``s m x + b``, over-confident
# if s > 1, with a bias b for each class. The three recalibrators are fitted to a calibration split; histogram binning
# and isotonic regression for each class against the rest, and renormalised, as in Guo et al. (2017). The probability
# that the top label is right is known for every row, so that the true error of a recalibrated model needs no labels.

#: Number of classes, signal m, over-confidence s and standard deviation of the biases of ten models.
MODELS = tuple(
    (classes, signal, scale, bias)
    for classes, signal in ((10, 3.5), (100, 4.0))
    for scale, bias in ((1.0, 0.3), (1.4, 0.0), (1.4, 0.3), (2.0, 0.0), (2.0, 0.6))
)


@part("Table 1", "Choice of a recalibrator on simulated logits of 10 and 100 classes")
def table1_classes(settings: Settings) -> Outcome:
    """Recalibrate simulated logits, and compare the choice of each criterion with the best one."""
    models = settings.of(MODELS, MODELS[::3], ((5, 3.0, 1.5, 0.3),))
    repeats = settings.of(20, 3, 2)
    rows_of = settings.of((5000, 10_000, 50_000), (2000, 4000, 20_000), (300, 500, 2000))
    jobs = [(model, repeat, rows_of, settings.seed) for model in models for repeat in range(repeats)]
    rows: Records = kept_in_parallel(settings, "table1_classes", choice_on_logits, jobs)
    comparisons = compare_choices(rows, "logits of 10 and 100 classes")
    return Outcome({"": rows}, {"": _draw_classes(rows)}, comparisons)


def choice_on_logits(
    model: tuple[int, float, float, float], repeat: int, sizes: tuple[int, int, int], seed: int
) -> dict[str, Any]:
    """Return the choice of each criterion on one model, the best recalibrator, and the true error of each."""
    classes, signal, scale, bias = model
    key = (classes, round(10 * signal), round(10 * scale), round(10 * bias))
    biases = keyed_generator(seed, *key).normal(0, bias, classes)
    rng = keyed_generator(seed, *key, repeat)

    def draw(n: int) -> tuple[FloatArray, Any]:
        label = rng.integers(0, classes, n)
        x = rng.normal(size=(n, classes))
        x[np.arange(n), label] += signal
        return x, label

    def logits(x: FloatArray) -> FloatArray:
        return scale * signal * x + biases

    (x_fit, y_fit), (x_test, y_test), (x_many, _) = (draw(n) for n in sizes)
    posterior = softmax(signal * x_many, axis=1)
    samples, errors = {}, {}
    for title, recalibrator_class in RECALIBRATORS.items():
        recalibrator = recalibrator_class(input="logits").fit(logits(x_fit), y_fit)
        samples[title] = as_sample(y_test, recalibrator.transform(logits(x_test)), multiclass="top")
        proba = recalibrator.transform(logits(x_many))
        top = proba.argmax(axis=1)[:, np.newaxis]
        score = np.take_along_axis(proba, top, axis=1)[:, 0]
        errors[title] = known_error(score, np.take_along_axis(posterior, top, axis=1)[:, 0])
    name = f"{classes} classes, x {scale:g}, biases {bias:g}"
    return {"model": name, **choices(samples), "repeat": repeat, **_best(errors)}


def known_error(score: FloatArray, probability: FloatArray) -> float:
    """Return the l2 error of scores whose rows have known probabilities of the event.

    The conditional probability given the score is the mean of those probabilities. It is taken over 500 bins of equal
    mass, and the variance of each mean is subtracted from its square.

    Examples
    --------
    >>> score = np.linspace(0, 1, 100_000)
    >>> round(known_error(score, score**2), 4)  # the root of 1/30
    0.1826
    """
    order = np.argsort(score, kind="stable")
    gaps = np.array_split((score - probability)[order], 500)
    square = sum(len(gap) * (gap.mean() ** 2 - gap.var(ddof=1) / len(gap)) for gap in gaps)
    return math.sqrt(max(float(square) / len(score), 0.0))


def _draw_classes(rows: Records) -> Figure:
    figure, axes = new_figure(1, 1, size=(7, 4.6))
    _draw_shares(axes[0, 0], rows, "top labels of 10 and 100 classes")
    legend_below(figure, axes[0, 0], columns=2)
    return figure
