"""The diagnosis names what changed."""

import numpy as np
import pytest
from scipy.special import expit, logit

import truecal
from truecal.inference.monitor.batch import N_REGIONS
from truecal.inference.monitor.diagnosis import diagnose
from truecal.inference.monitor.evidence import tally, weigh


def _diagnosis(curve, failures=0):
    rng = np.random.default_rng(0)
    score = rng.random(20_000)
    y = (rng.random(20_000) < curve(score)).astype(float)
    cells = tally(score, np.ones(20_000), y)
    return diagnose(weigh(cells).log_ratio, cells.reshape(3, N_REGIONS, -1).sum(axis=2), failures)


def test_level():
    found = _diagnosis(lambda p: expit(logit(p) + 0.4))
    assert found.change == "level"
    assert found.gap == pytest.approx(0.064, abs=0.01)
    assert "above the mean score" in str(found)


@pytest.mark.parametrize("slope", [0.7, 1.4])
def test_slope(slope):
    found = _diagnosis(lambda p: expit(slope * logit(p)))
    assert found.change == "slope"
    assert str(found).startswith("the slope changed")


def test_shape():
    assert _diagnosis(lambda p: expit(logit(p) + 0.42 * np.log(p))).change == "shape"


def test_region():
    found = _diagnosis(lambda p: np.where((p > 0.5) & (p < 0.6), p - 0.2, p))
    assert found.change == "region"
    assert 0.45 <= found.low < found.high <= 0.65
    assert found.gap < 0
    assert "below the mean score there" in str(found)


def test_certain_failures_come_first():
    found = _diagnosis(lambda p: p, failures=2)
    assert str(found) == "2 labels contradicted a score of exactly 0 or 1"


def test_a_slope_beyond_the_alternatives_is_a_bound():
    """Reversed scores have a slope of -1, and the alternatives end at 0.5."""
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    monitor = truecal.CalibrationMonitor()
    monitor.update(rng.random(4000) < 1 - p, p)
    assert "about 0.50 or less (scores too extreme)" in str(monitor)
