"""One model of Table 1, recalibrated by three methods, and the choice of each criterion."""

from __future__ import annotations

import math
import warnings
import zlib
from typing import Any

import numpy as np

from truecal import paper
from truecal.data import LogitSplits, as_sample
from truecal.data.sample import Sample
from truecal.estimators._registry import get_estimator
from truecal.inference.decompose import decompose
from truecal.recalibration import HistogramBinning, IsotonicCalibration, TemperatureScaling
from truecal.reproduce.populations import quantile_grid
from truecal.simulation import Population, fit_population

RECALIBRATORS = {
    "histogram": HistogramBinning,
    "isotonic": IsotonicCalibration,
    "temperature": TemperatureScaling,
}
ESTIMATORS = ("ew_bin", "em_bin", "ew_debias", "em_debias", "ew_sweep", "em_sweep", "kde")
CRITERIA = (*ESTIMATORS, "brier", "log_loss", "fitted")


def simulated_choice(
    name: str, repeat: int, calibration: int, test: int, seed: int, points: int = 20_000
) -> dict[str, Any]:
    """Recalibrate a population of the paper; return the choice of each criterion and the best one."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()), repeat)))
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
        name: best([decompose(s, name=name).score for s in samples.values()])
        for name in ("brier", "log_loss")
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the paper's criterion fits a Beta even to a few atoms
        fitted = [fit_population(sample).population.true_error() for sample in samples.values()]
    return chosen | {"fitted": best(fitted)}
