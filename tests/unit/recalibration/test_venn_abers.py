"""Venn-Abers against isotonic regression with the new row in it, and its validity."""

import numpy as np
import pytest

import truecal
from truecal._lib.isotonic import isotonic_rate
from truecal.recalibration import VennAbersCalibration
from truecal.recalibration.venn_abers import with_a_positive


def test_every_group_is_isotonic_regression_with_one_more_row():
    rng = np.random.default_rng(0)
    for _ in range(200):
        size = rng.integers(1, 12)
        count = rng.integers(1, 5, size).astype(float)
        positives = np.floor(rng.random(size) * (count + 1))
        found = with_a_positive(count, positives)
        for k in range(size):
            more = np.eye(size)[k]
            assert found[k] == pytest.approx(isotonic_rate(count + more, positives + more)[k], abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_bounds_at_any_score(seed):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(30), 1 + seed % 2)
    y = (rng.random(30) < p).astype(int)
    (fitted,) = VennAbersCalibration().fit(p, y).maps_
    for new in (*np.unique(p), 0.0, 1.0, *rng.random(10)):
        low, high = fitted.bounds(np.array([new]))
        expected = []
        for label in (0, 1):
            score, group = np.unique(np.append(p, new), return_inverse=True)
            labels = np.append(y, label)
            rate = isotonic_rate(np.bincount(group).astype(float), np.bincount(group, labels))
            expected.append(rate[np.searchsorted(score, new)])
        assert [low[0], high[0]] == pytest.approx(expected, abs=1e-12)
        assert low[0] <= high[0]


def test_never_certain_and_close_to_the_curve():
    population = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
    y, p = population.sample(5000, rng=0)
    after = VennAbersCalibration().fit(p, y).transform(np.linspace(0, 1, 101))
    assert 0 < after.min() <= after.max() < 1
    assert (np.diff(after) >= -1e-12).all()
    assert np.abs(after - np.linspace(0, 1, 101) ** 2).mean() < 0.03
    assert np.all(VennAbersCalibration().fit([0.2, 0.8], [0, 1]).transform([0.0, 1.0]) % 1 > 0)


def test_validity():
    """The bound that belongs to the label of the new row is calibrated: its mean is the mean label, in 40 rows."""
    rng = np.random.default_rng(1)
    gap = []
    for _ in range(1500):
        p = rng.random(41)
        y = rng.random(41) < p**3
        (fitted,) = VennAbersCalibration().fit(p[1:], y[1:].astype(int)).maps_
        low, high = fitted.bounds(p[:1])
        gap.append(float((high if y[0] else low)[0]) - y[0])
    assert abs(np.mean(gap)) < 4 * np.std(gap, ddof=1) / np.sqrt(len(gap))
