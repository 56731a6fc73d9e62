"""Table 1 again, on simulated logits of many classes: the paper's experiment with a known truth.

Row i has a class y and a vector x, normal with mean m in component y and 0 elsewhere and unit variances, so that the
probabilities of the classes given x are softmax(m x). The logits of a model are ``s m x + b``, over-confident if s > 1,
with a bias b for each class. The three recalibrators are fitted to a calibration split as in the paper, histogram
binning and isotonic regression for each class against the rest, and renormalised. The probability that the top label is
right is known for every row, so that the true error of a recalibrated model needs no labels.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax

from truecal._lib.numeric import keyed_generator
from truecal._lib.types import FloatArray
from truecal.data import LogitSplits
from truecal.reproduce._contract import Outcome, Records, Settings, part
from truecal.reproduce._draw import BLUE, RED, label_of, new_figure, tidy
from truecal.reproduce._studies import kept_in_parallel
from truecal.reproduce.table1 import (
    CRITERIA,
    LABELS,
    RECALIBRATORS,
    compare_choices,
    real_choice,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    return Outcome(
        {"": rows},
        {"": _draw(rows)},
        compare_choices(rows, "logits of 10 and 100 classes"),
    )


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
    splits = LogitSplits(logits(x_fit), y_fit, logits(x_test), y_test)
    chosen = real_choice(f"{classes} classes, x {scale:g}, biases {bias:g}", splits)
    posterior = softmax(signal * x_many, axis=1)
    errors = {}
    for title, recalibrator_class in RECALIBRATORS.items():
        proba = recalibrator_class(input="logits").fit(splits.val_logits, y_fit).transform(logits(x_many))
        top = proba.argmax(axis=1)[:, np.newaxis]
        score = np.take_along_axis(proba, top, axis=1)[:, 0]
        errors[title] = known_error(score, np.take_along_axis(posterior, top, axis=1)[:, 0])
    best = min(errors, key=lambda title: errors[title])
    kept = {key: value for key, value in chosen.items() if key in ("model", *CRITERIA)}
    return {
        **kept,
        "repeat": repeat,
        "best": best,
        **{f"true_error_{key}": value for key, value in errors.items()},
    }


def known_error(score: FloatArray, probability: FloatArray, n_bins: int = 500) -> float:
    """Return the l2 error of scores whose rows have known probabilities of the event.

    The conditional probability given the score is the mean of those probabilities. It is taken over `n_bins` bins of
    equal mass, and the variance of each mean is subtracted from its square.

    Examples
    --------
    >>> score = np.linspace(0, 1, 100_000)
    >>> round(known_error(score, score**2), 4)  # the root of 1/30
    0.1826
    """
    order = np.argsort(score, kind="stable")
    gaps = np.array_split((score - probability)[order], n_bins)
    square = sum(len(gap) * (gap.mean() ** 2 - gap.var(ddof=1) / len(gap)) for gap in gaps)
    return math.sqrt(max(float(square) / len(score), 0.0))


def _draw(rows: Records) -> Figure:
    figure, axes = new_figure(1, 1, size=(7, 4.6))
    height = np.arange(len(CRITERIA))[::-1]
    for against, colour, shift, label in (
        ("best", BLUE, 0.12, "chooses the best"),
        ("fitted", RED, -0.12, "agrees with the fitted true error"),
    ):
        share = np.array([np.mean([row[key] == row[against] for row in rows]) for key in CRITERIA])
        error = 200 * np.sqrt(share * (1 - share) / len(rows))
        shown = [key != against for key in CRITERIA]
        axes[0, 0].errorbar(
            100 * share[shown],
            height[shown] + shift,
            xerr=error[shown],
            fmt="o",
            color=colour,
            markersize=5,
            capsize=2,
            label=label,
        )
    axes[0, 0].set_yticks(height, [LABELS.get(key) or label_of(key) for key in CRITERIA])
    axes[0, 0].set_xlim(0, 103)
    tidy(
        axes[0, 0],
        x=f"share of {len(rows)} simulated models (%)",
        y="choice by smallest",
        title="top labels of 10 and 100 classes",
    )
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return figure
