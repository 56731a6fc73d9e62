"""The history keeps a bounded number of looks, and always the first and the last."""

import itertools
from dataclasses import replace

import pytest

from truecal import CalibrationMonitor
from truecal.inference.monitor.history import History

LOOK = CalibrationMonitor().update([0, 1], [0.2, 0.7], time=0)


@pytest.mark.parametrize("n", [0, 1, 5, 256, 257, 1000])
def test_first_last_and_at_most_257(n):
    history = History()
    for window in range(n):
        history.add(replace(LOOK, time=window), window)
    times = [look.time for look in history.looks]
    assert len(times) <= 257
    assert times == sorted(set(times))
    assert times[:1] == [0][:n]
    assert times[-1:] == [n - 1][:n]
    assert len({b - a for a, b in itertools.pairwise(times[:-1])}) <= 1
    again = History.from_state(history.to_state())
    assert again == history
    again.add(LOOK, n)
    history.add(LOOK, n)
    assert again == history
