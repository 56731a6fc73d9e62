"""The parts of the error by direction: they add up, and are near the truth."""

import numpy as np
import pytest

import truecal
from truecal.simulation import BetaScores, FunctionCurve, PowerCurve, UniformScores


def bow(score):
    """Too high below 1/2, too low above: the true parts are equal."""
    return score - 0.12 * np.sin(2 * np.pi * score)


@pytest.mark.parametrize("norm", [1, 2, 3])
def test_the_parts_add_up(norm):
    y, p = truecal.Population(UniformScores(), FunctionCurve(bow)).sample(3000, rng=0)
    over, under, whole = (
        truecal.calibration_error(y, p, estimator=name, norm=norm)
        for name in ("overconfidence", "underconfidence", "multiscale")
    )
    assert over**norm + under**norm == pytest.approx(whole**norm)
    assert min(over, under) > 0.02


def test_near_the_truth():
    population = truecal.Population(UniformScores(), FunctionCurve(bow))
    for name in ("overconfidence", "underconfidence"):
        truth = population.true_value(name)
        assert truth == pytest.approx(0.12 / 2, abs=1e-5)  # root of 0.12^2 / 2 / 2
        values = [
            truecal.calibration_error(*population.sample(5000, rng=seed), estimator=name)
            for seed in range(20)
        ]
        assert abs(np.mean(values) - truth) < 0.004 + 4.5 * np.std(values, ddof=1) / np.sqrt(20)


def test_one_direction():
    population = truecal.Population(BetaScores(1, 1), PowerCurve(2))
    y, p = population.sample(5000, rng=0)
    assert truecal.calibration_error(y, p, estimator="underconfidence") < 0.01
    swapped = truecal.calibration_error(1 - y, 1 - p, estimator="underconfidence")
    assert swapped == pytest.approx(truecal.calibration_error(y, p, estimator="overconfidence"), rel=0.02)
    assert population.true_value("underconfidence") == 0
    assert population.true_value("overconfidence") == pytest.approx(population.true_error(), abs=1e-6)
