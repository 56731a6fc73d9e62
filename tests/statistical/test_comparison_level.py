"""Two calibrated models, or two equally miscalibrated ones, differ significantly no more often than the level."""

import numpy as np
import pytest

import truecal
from truecal.inference.compare import compare


@pytest.mark.parametrize("n", [300, 2000])
def test_two_calibrated_models_on_the_same_labels(n):
    wrong, repeats = 0, 120
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        # Both know one half of what decides the label, and say exactly what follows from it.
        one, two = rng.random(n), rng.random(n)
        y = rng.random(n) < (one + two) / 2
        wrong += compare(y, (one + 0.5) / 2, (two + 0.5) / 2).pvalue <= 0.05
    assert wrong / repeats < 0.05 + 4 * (0.05 * 0.95 / repeats) ** 0.5


def test_two_equally_miscalibrated_models_on_different_rows():
    population = truecal.paper.population("resnet152_imgnet")
    wrong, repeats = 0, 120
    for seed in range(repeats):
        y1, p1 = population.sample(800, rng=2 * seed)
        y2, p2 = population.sample(800, rng=2 * seed + 1)
        wrong += compare(y1, p1, p2, y_true_b=y2).pvalue <= 0.05
    assert wrong / repeats < 0.05 + 4 * (0.05 * 0.95 / repeats) ** 0.5
