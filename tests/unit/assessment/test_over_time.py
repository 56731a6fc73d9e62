"""Calibration over time: windows in the order of time, an alarm after a change, and what is refused."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import truecal
from truecal import CalibrationMonitor, InputError
from truecal.assessment._sections import assess_over_time
from truecal.data import read_rows

RNG = np.random.default_rng(0)
N = 4000
P = RNG.uniform(0.05, 0.85, N)
DAY = RNG.permutation(np.repeat(np.arange(40), N // 40))
Y = RNG.random(N) < P + 0.15 * (DAY >= 28)
GOOD = RNG.random(N) < P
DAYS = np.datetime64("2026-03-01") + np.arange(40).astype("timedelta64[D]")
DATE = DAYS[DAY]


def _over_time(y, time, **options):
    (rows,) = read_rows(y, P, **options)
    return assess_over_time(rows, time, 0.05)


def test_windows_are_in_the_order_of_time_and_do_not_divide_a_day():
    part = _over_time(Y, DATE)
    monitor = CalibrationMonitor()
    for day in range(40):
        monitor.update(Y[day == DAY], P[day == DAY], time=str(DAYS[day]))
    assert part.history == monitor.history
    assert part.alarm
    assert part.change == monitor.change
    assert part.change.low_time <= "2026-03-29" <= part.change.high_time
    assert part.verdict.startswith("Alarm at 2026-0")
    assert "The level changed" in part.verdict


def test_calibrated_rows():
    part = _over_time(GOOD, DAY)
    assert (part.alarm, part.change, part.diagnosis) == (False, None, None)
    assert part.verdict.startswith("No alarm in 40 windows")
    assert part.threshold == pytest.approx(20)


def test_an_error_from_the_start():
    assert "from the start" in _over_time(RNG.random(N) < P**2, DAY).verdict


@pytest.mark.parametrize(
    ("time", "windows", "last"),
    [
        (np.zeros(N), 1, 0),
        (np.arange(N) / 10, 40, 399.9),
        (DATE.astype(str), 40, "2026-04-09"),
        (np.datetime64("2026-03-01T00:00") + np.arange(N), 40, "2026-03-03T18:39:00"),
        ([f"2026-03-01T23:30:00-0{hour}:00" for hour in DAY % 5 + 1], 5, "2026-03-02T04:30:00"),
    ],
)
def test_times(time, windows, last):
    looks = _over_time(GOOD, time).history
    assert len(looks) == windows
    assert looks[-1].time == last
    assert looks[-1].rows == N


def test_a_cluster_is_in_one_window():
    cluster = np.arange(N) // 4
    part = _over_time(GOOD, DAY, clusters=cluster)
    last = DAY.reshape(-1, 4).max(axis=1)
    assert part.history[0].rows == 4 * np.count_nonzero(last <= part.history[0].time)


def test_in_an_assessment():
    assessment = truecal.assess(Y, P, time=DATE, n_resamples=99, recalibration=False, rng=0)
    assert assessment.over_time.alarm
    assert "Alarm at" in str(assessment)
    assert assessment.to_dict()["over_time"]["alarm"] is True
    display = truecal.display.MonitorDisplay.from_monitor(assessment.over_time)
    assert len(display.plot(ax=Figure().subplots()).axes_) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"time": DAY[:10]}, "time has 10 values for 4,000 rows"),
        ({"time": ["x"] * N}, "time has missing times"),
        ({"time": DAY, "sample_weight": P}, "cannot be combined with sample_weight"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        truecal.assess(Y, P, n_resamples=9, recalibration=False, **arguments)


def test_samples_have_no_rows():
    with pytest.raises(InputError, match="needs individual rows"):
        truecal.assess(truecal.Sample.from_predictions(Y, P), time=DAY)
