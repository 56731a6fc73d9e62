"""atb against its integral, and its expectation for a calibrated model."""

import numpy as np
import pytest

import truecal


def test_is_the_integral():
    rng = np.random.default_rng(0)
    p = np.round(rng.random(30), 2)
    y = rng.random(30) < p**2
    weight = rng.integers(1, 5, 30) / 4
    edges = (np.arange(100_000) + 0.5) / 100_000
    residual = weight * (p - y) / weight.sum()
    below = np.array([residual[p < edge].sum() for edge in edges[::100]])
    above = residual.sum() - below
    found = truecal.calibration_error(y, p, estimator="atb", sample_weight=weight)
    assert found == pytest.approx(np.mean(below**2 + above**2), rel=0.02)


def test_two_rows_by_hand():
    # Residuals -0.8 / 2 at 0.2 and 0.6 / 2 at 0.6; edges in (0.2, 0.6] divide them.
    found = truecal.calibration_error([1, 0], [0.2, 0.6], estimator="atb")
    assert found == pytest.approx(0.6 * 0.1**2 + 0.4 * (0.4**2 + 0.3**2))


def test_expectation_of_a_calibrated_model():
    # Every row is in exactly one bin, so that the variances add up.
    rng = np.random.default_rng(1)
    p = rng.random(100)
    values = [truecal.calibration_error(rng.random(100) < p, p, estimator="atb") for _ in range(2000)]
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    assert abs(np.mean(values) - np.sum(p * (1 - p)) / 100**2) < 4.5 * error


def test_reference_values(shared):
    """Values computed independently for the review of 2026-11-16."""
    for name, value in {"EMOS": 0.003093, "ENS": 0.038237}.items():
        file = np.load(shared / "data" / f"weather_niamey_{name}.npz")
        found = truecal.calibration_error(file["labels"], file["scores"], estimator="atb")
        assert found == pytest.approx(value, abs=1e-6)
