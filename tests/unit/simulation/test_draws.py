import numpy as np
import pytest

import truecal
from truecal.simulation._draws import Simulator, detection

SQUARE = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))


def test_the_share_above_the_critical_value():
    null = np.arange(99.0)  # the 95th of 99 is exceeded by 5 in 100
    result = detection(np.array([0.0, 93.0, 94.0, 95.0]), null, 0.05)
    assert result.critical_value == 94
    assert result.share == 0.25
    assert result.standard_error > 0


def test_statistics_are_reproducible_and_the_calibrated_population_is_rarely_detected():
    simulator = Simulator.checked(["em_bin"], alpha=0.05, norm=2, repeats=200, rng=1)
    null = simulator.null(SQUARE, 300)
    assert (np.diff(null) >= 0).all()
    np.testing.assert_array_equal(null, simulator.null(SQUARE, 300))
    (calibrated,) = simulator.detections(SQUARE.calibrated(), 300, null)
    (miscalibrated,) = simulator.detections(SQUARE, 300, null)
    assert calibrated.share < 0.05 + 4.5 * np.sqrt(2 * 0.05 * 0.95 / 200)
    assert miscalibrated.share > 0.9


def test_too_few_repetitions_for_the_level_are_refused():
    with pytest.raises(ValueError, match="repeats must be a whole number >= 20"):
        Simulator.checked(["em_bin"], alpha=0.05, norm=2, repeats=19, rng=1)
