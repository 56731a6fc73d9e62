from __future__ import annotations

import numpy as np
import pytest

from truecal.recalibration import IsotonicCalibration


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("decimals", [2, 15])
def test_it_agrees_with_scikit_learn(golden, weighted, decimals):
    isotonic = pytest.importorskip("sklearn.isotonic")
    y, p = golden(500)
    p = np.round(p, decimals)
    weight = 0.5 + (np.arange(500) % 7) if weighted else None
    grid = np.linspace(0, 1, 1001)
    theirs = isotonic.IsotonicRegression(out_of_bounds="clip").fit(p, y, sample_weight=weight).transform(grid)
    ours = IsotonicCalibration().fit(p, y, sample_weight=weight).transform(grid)
    np.testing.assert_allclose(ours, theirs, atol=1e-10)


def test_falling_labels_become_the_base_rate():
    fitted = IsotonicCalibration().fit([0.1, 0.4, 0.6, 0.9], [1, 1, 0, 0])
    np.testing.assert_allclose(fitted.transform([0.0, 0.5, 1.0]), 0.5)


def test_knots_are_the_ends_of_level_stretches():
    fitted = IsotonicCalibration().fit([0.1, 0.2, 0.3, 0.4, 0.5], [0, 1, 0, 1, 1])
    (rising,) = fitted.maps_
    np.testing.assert_allclose(rising.score, [0.1, 0.2, 0.3, 0.4, 0.5])
    np.testing.assert_allclose(rising.value, [0, 0.5, 0.5, 1, 1])
