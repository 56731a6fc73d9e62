"""ICI and the quantiles of the distance between score and curve."""

import numpy as np
import pytest

import truecal
from truecal.inference.weak_calibration import _quantiles
from truecal.simulation import IdentityCurve, PowerCurve, UniformScores

SQUARE = truecal.Population(UniformScores(), PowerCurve(2))


def test_the_index_is_the_l1_error_with_its_interval():
    y, p = SQUARE.sample(2000, rng=1)
    index = truecal.calibration_index(y, p)
    estimate = truecal.estimate(y, p, norm=1, confidence_level=0.95)
    assert float(index) == estimate.value
    assert index.interval == estimate.interval
    assert str(index).startswith(f"ICI {index.ici:.4f}, ")
    assert index.to_dict()["e90"] == index.e90


def test_quantiles_are_near_those_of_the_true_curve():
    # |c - c^2| of uniform c: quantile q is (1 - (1 - q)^2) / 4.
    found = np.array(
        [
            [index.e50, index.e90, index.emax]
            for seed in range(10)
            for index in [truecal.calibration_index(*SQUARE.sample(10_000, rng=seed))]
        ]
    )
    error = found.std(axis=0, ddof=1) / np.sqrt(10)
    np.testing.assert_array_less(np.abs(found.mean(axis=0) - [0.1875, 0.2475, 0.25]), 0.01 + 4.5 * error)


def test_they_are_ordered_and_small_for_a_calibrated_model():
    y, p = truecal.Population(UniformScores(), IdentityCurve()).sample(3000, rng=0)
    index = truecal.calibration_index(y, p)
    assert 0 <= index.e50 <= index.e90 <= index.emax < 0.03
    assert 0 in index.interval


def test_weights_and_clusters():
    y, p = SQUARE.sample(1500, rng=2)
    with pytest.warns(truecal.CalibrationWarning, match="1,500 scores occur 2 times each"):
        doubled = truecal.calibration_index(np.repeat(y, 2), np.repeat(p, 2))
    with pytest.warns(truecal.CalibrationWarning, match="1,500 scores occur 2 times each"):
        counts = truecal.calibration_index(y, p, sample_weight=np.full(1500, 2), weighting="counts")
    assert counts.ici == pytest.approx(doubled.ici)
    assert counts.e90 == pytest.approx(doubled.e90)
    clustered = truecal.calibration_index(y, p, clusters=np.arange(1500) // 30)
    assert clustered.interval.low < clustered.ici < clustered.interval.high
    sample = truecal.Sample.from_predictions(y, p)
    assert truecal.calibration_index(sample).ici == truecal.calibration_index(y, p).ici


def test_weighted_quantiles():
    values, weight = np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 1.0])
    assert _quantiles(values, weight, (0.5, 0.75, 0.76, 1.0)) == [1.0, 2.0, 3.0, 3.0]


def test_no_row_is_farther_than_the_other_end():
    index = truecal.calibration_index(np.zeros(200, int), np.linspace(0.5, 1, 200))
    assert index.emax <= 1
    assert index.e50 <= index.e90 <= index.emax
