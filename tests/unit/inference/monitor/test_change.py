"""When a change began, and what changed."""

import numpy as np
import pytest
from scipy.special import expit, logit

import truecal
from truecal.inference.monitor._batch import N_REGIONS
from truecal.inference.monitor._evidence import Processes, tally, weigh
from truecal.inference.monitor._state import KEPT, Checkpoints, diagnose, kept_evidence

NOTHING = np.zeros((3, N_REGIONS))


def _stream(seed, change, windows=40, rows=200, drift=0.12, before=0.0, at_most=0.0):
    rng = np.random.default_rng(seed)
    points, processes = Checkpoints(), Processes(at_most)
    for window in range(windows):
        points.add(window, window * rows, window, kept_evidence(processes), NOTHING)
        score = rng.uniform(0.1, 0.8, rows)
        truth = score + (drift if window >= change else before)
        processes.add(weigh(tally(score, np.ones(rows), (rng.random(rows) < truth).astype(float))))
    return points.locate(kept_evidence(processes), windows * rows, windows, 0.05)


def test_change_is_found_and_inside_its_interval():
    inside, near = 0, 0
    for seed in range(30):
        point, _ = _stream(seed, 25)
        inside += point.low <= 25 * 200 <= point.high
        near += abs(point.row - 25 * 200) <= 4 * 200
        assert (point.time, point.low_time) == (point.row / 200, point.low / 200)
    assert inside >= 28
    assert near >= 25


def test_interval_excludes_times_that_are_far_off():
    point, _ = _stream(1, 25, drift=0.2)
    assert point.low >= 20 * 200
    assert point.high <= 30 * 200


def test_change_at_the_start():
    point, place = _stream(2, 0)
    assert point.low == 0
    assert place <= 2


@pytest.mark.parametrize("seed", range(4))
def test_an_allowed_error_before_the_change_is_not_taken_for_it(seed):
    point, _ = _stream(seed, 60, windows=80, drift=0.1, before=0.04, at_most=0.05)
    assert abs(point.row - 60 * 200) <= 8 * 200
    assert point.low <= 60 * 200 <= point.high
    strict, _ = _stream(seed, 60, windows=80, drift=0.1, before=0.04)
    assert strict.high < 20 * 200


def test_checkpoints_are_dense_near_the_end_and_bounded():
    points = Checkpoints()
    for window in range(5001):
        points.add(window, window, None, np.zeros(1), np.zeros(1))
    assert points.window[0] == 0
    assert points.window[-8:] == list(range(4993, 5001))
    assert len(points.window) < 140
    gaps = np.diff(points.window)
    ages = 5000 - np.array(points.window[:-1])
    assert (gaps <= np.maximum(ages / 4, 1)).all()


@pytest.mark.parametrize("at_most", [0.0, 0.03])
def test_state(at_most):
    points, processes = Checkpoints(), Processes(at_most)
    processes.add(weigh(tally(np.array([0.3]), np.ones(1), np.ones(1))))
    points.add(0, 0.0, "a", kept_evidence(processes), NOTHING + 1)
    again = Checkpoints.from_state(points.to_state())
    assert again.evidence[0].shape == (2 if at_most else 1, len(KEPT))
    assert again.evidence[0].tolist() == points.evidence[0].tolist()
    assert again.to_state() == points.to_state()


def test_time_is_optional():
    points, processes = Checkpoints(), Processes()
    points.add(0, 0, None, kept_evidence(processes), NOTHING)
    point, _ = points.locate(kept_evidence(processes), 10, None, 0.05)
    assert str(point) == "after row 0 (95%: 0 to 10)"


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
