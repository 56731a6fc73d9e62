"""True errors of recalibrated populations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit, logit

import truecal
from truecal.recalibration import HistogramBinning, IdentityCalibration, TemperatureScaling
from truecal.reproduce.table1 import true_error_after

SQUARE = truecal.Population(truecal.simulation.BetaScores(1, 1), truecal.simulation.PowerCurve(2))


def test_true_error_after_no_recalibration_is_the_true_error():
    y, p = SQUARE.sample(10, rng=0)
    assert true_error_after(IdentityCalibration().fit(p, y), SQUARE) == pytest.approx(
        math.sqrt(1 / 30), abs=1e-4
    )


def test_true_error_after_one_bin_is_its_distance_from_the_base_rate():
    y, p = SQUARE.sample(200, rng=0)
    error = true_error_after(HistogramBinning(n_bins=1).fit(p, y), SQUARE)
    assert error == pytest.approx(abs(y.mean() - 1 / 3), abs=1e-4)


def test_true_error_after_temperature_is_the_integral_over_the_mapped_scores():
    y, p = SQUARE.sample(500, rng=1)
    scaling = TemperatureScaling(input="probabilities").fit(p, y)
    score = (np.arange(200_000) + 0.5) / 200_000
    gap = expit(logit(score) / scaling.temperature_) - score**2
    assert true_error_after(scaling, SQUARE) == pytest.approx(math.sqrt(np.mean(gap**2)), abs=1e-4)
