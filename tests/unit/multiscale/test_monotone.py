"""The band for rising curves: it holds everywhere at once, and its largest error bounds the truth."""

import numpy as np
import pytest

from truecal.data.sample import Sample
from truecal.multiscale._limits import band, largest_error


@pytest.mark.parametrize("curve", [lambda p: p, lambda p: p**2, lambda p: np.where(p < 0.5, 0.25, 0.75)])
@pytest.mark.parametrize("decimals", [1, 9])
def test_the_band_holds_the_curve(curve, decimals):
    rng = np.random.default_rng(5)
    missed = beaten = 0
    for _ in range(60):
        score = np.round(rng.random(400), decimals)
        sample = Sample.from_rows((rng.random(400) < curve(score)).astype(int), score)
        low, high = band(sample, 0.1)
        truth = curve(sample.score)
        missed += bool(((truth < low - 1e-12) | (truth > high + 1e-12)).any())
        error = np.sqrt(sample.count @ (sample.score - truth) ** 2 / sample.n)
        beaten += largest_error(sample, low, high, 2) < error
    assert missed <= 6
    assert beaten <= missed


def test_the_band_rises_and_narrows_with_more_rows(draw):
    widths = []
    for n in (200, 20_000):
        low, high = band(draw(n), 0.05)
        assert (np.diff(low) >= 0).all()
        assert (np.diff(high) >= 0).all()
        assert (low <= high).all()
        widths.append(np.mean(high - low))
    assert widths[1] < widths[0] / 2
