"""Checkpoints stay few, and the confidence set of the change point contains it."""

import numpy as np

from truecal.inference.monitor.alternatives import leaves, weigh
from truecal.inference.monitor.change import KEPT, N_REGIONS, N_SUMS, Checkpoints, region_sums


def _stream(seed, change, windows=40, rows=200, drift=0.12):
    rng = np.random.default_rng(seed)
    points, total = Checkpoints(), np.zeros(len(KEPT))
    for window in range(windows):
        points.add(window, window * rows, window, total, np.zeros(N_SUMS))
        score = rng.uniform(0.1, 0.8, rows)
        truth = score + (drift if window >= change else 0)
        total = total + weigh(score, np.ones(rows), (rng.random(rows) < truth).astype(float)).log_ratio[KEPT]
    return points.locate(total, windows * rows, windows, 0.05)


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


def test_checkpoints_are_dense_near_the_end_and_bounded():
    points = Checkpoints()
    for window in range(5000):
        points.add(window, window, None, np.zeros(1), np.zeros(1))
    assert points.window[0] == 0
    assert points.window[-8:] == list(range(4992, 5000))
    assert len(points.window) < 130
    gaps = np.diff(points.window)
    ages = 4999 - np.array(points.window[:-1])
    assert (gaps <= np.maximum(ages / 4, 1)).all()


def test_region_sums_add_up():
    score = np.array([0.0, 0.01, 0.5, 0.99])
    sums = region_sums(leaves(score), np.ones(4), np.array([0.0, 1, 1, 1]), score).reshape(3, N_REGIONS)
    assert sums.sum(axis=1).tolist() == [4, 3, 1.5]
    assert sums[0, 0] == 2


def test_time_is_optional():
    points = Checkpoints()
    points.add(0, 0, None, np.zeros(len(KEPT)), np.zeros(N_SUMS))
    point, _ = points.locate(np.zeros(len(KEPT)), 10, None, 0.05)
    assert str(point) == "after row 0 (95%: 0 to 10)"
