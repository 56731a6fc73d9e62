import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import truecal
from truecal.data import read
from truecal.inference.weak_calibration import weak_calibration


def test_slope_is_that_of_scikit_learn():
    y, p = truecal.paper.population("resnet110_c100").sample(3000, rng=0)
    p = np.clip(p, 1e-6, 1 - 1e-6)
    model = LogisticRegression(C=np.inf, tol=1e-10).fit(np.log(p / (1 - p))[:, np.newaxis], y)
    assert float(weak_calibration(y, p).slope) == pytest.approx(model.coef_[0, 0], rel=1e-4)


def test_a_calibrated_model_is_near_the_ideal_and_intervals_cover_it():
    rng = np.random.default_rng(0)
    repeats, covered = 400, np.zeros(3)
    for _ in range(repeats):
        p = rng.random(300)
        result = weak_calibration(rng.random(300) < p, p)
        parts = ((result.slope, 1), (result.intercept, 0), (result.observed_expected, 1))
        covered += [ideal in part.interval for part, ideal in parts]
    assert (covered / repeats > 0.95 - 4 * math.sqrt(0.05 * 0.95 / repeats)).all()


def test_a_score_test_of_the_slope_agrees_with_the_interval():
    rng = np.random.default_rng(1)
    p = rng.random(4000)
    result = weak_calibration(rng.random(4000) < 0.5 + 0.5 * (p - 0.5), p)
    assert result.slope.pvalue < 1e-6
    assert result.slope.interval.high < 1
    assert result.intercept.pvalue > 1e-3


def test_ratio_is_exact_arithmetic():
    result = weak_calibration([1, 0, 1, 0], [0.25, 0.25, 0.5, 0.0])
    assert float(result.observed_expected) == 2.0


@pytest.mark.parametrize(("y", "p"), [([1, 1], [0.2, 0.9]), ([1, 0], [1.0, 0.0]), ([0], [0.5])])
def test_what_is_not_determined_is_nan(y, p):
    result = weak_calibration(y, p)
    assert math.isnan(float(result.slope))
    assert result.slope.interval.high == math.inf
    assert result.to_dict()["slope"]["value"] is None


def test_samples_are_accepted():
    y, p = [1, 0, 1, 0, 1], [0.6, 0.4, 0.5, 0.2, 0.3]
    assert weak_calibration(read(y, p)[0]) == weak_calibration(y, p)
