"""The monitor: alarms, batches, clusters, certain scores, shards and state files."""

import json
import math
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

import truecal
from truecal import CalibrationMonitor, CalibrationWarning, Cells, InputError, Sample, summarize
from truecal.inference.monitor._state import read_state, write_state


def _batch(rng, n=500, drift=0.0):
    score = rng.uniform(0.05, 0.9, n)
    return rng.random(n) < score + drift, score


def _filled(days=12, change=8, seed=0, drift=0.1, **settings):
    rng, monitor = np.random.default_rng(seed), CalibrationMonitor(**settings)
    for day in range(days):
        monitor.update(*_batch(rng, drift=drift if day >= change else 0.0), time=datetime(2026, 3, 1 + day))
    return monitor


def test_no_alarm_before_the_change_and_one_after_it():
    monitor = _filled()
    alarms = [look.alarm for look in monitor.history]
    assert alarms == sorted(alarms)
    assert not alarms[7]
    assert monitor.alarm
    assert monitor.history[-1].evalue == monitor.evalue > 20
    assert monitor.pvalue <= 0.05
    assert monitor.change.low_time <= "2026-03-09T00:00:00" <= monitor.change.high_time
    assert monitor.diagnosis.change == "level"
    assert str(monitor).startswith("ALARM: 6,000 rows")
    assert "The level changed" in str(monitor)


@pytest.mark.slow
def test_false_alarms_are_rare():
    """At a level of 30%, so that more than chance alone would show in few streams."""
    streams, alarms = 120, 0
    for seed in range(streams):
        rng, monitor = np.random.default_rng([19, seed]), CalibrationMonitor(alpha=0.3)
        for _ in range(12):
            monitor.update(*_batch(rng, 100))
        alarms += monitor.alarm
    assert alarms / streams <= 0.3 + 3 * math.sqrt(0.3 * 0.7 / streams)


def test_looking_more_often_does_not_change_the_totals():
    rng = np.random.default_rng(1)
    y, score = _batch(rng, 1000)
    whole, parts = CalibrationMonitor(), CalibrationMonitor()
    whole.update(y, score)
    for rows in np.array_split(np.arange(1000), 7):
        parts.update(y[rows], score[rows])
    assert parts._processes.total == pytest.approx(whole._processes.total, abs=1e-9)
    assert parts.history[-1].gap == pytest.approx(whole.history[-1].gap)


def test_cells_of_a_window_give_nearly_the_same_and_never_more():
    rng = np.random.default_rng(2)
    rows, cells = CalibrationMonitor(), CalibrationMonitor()
    for day in range(4):
        y, score = _batch(rng, 5000, 0.03 * day)
        rows.update(y, score)
        cells.update(Cells.from_sample(Sample.from_predictions(y, score)))
    assert rows.log_evalue > 10
    assert cells.log_evalue == pytest.approx(rows.log_evalue, rel=5e-4)
    assert cells.log_evalue <= rows.log_evalue + 1e-3
    assert cells.n == rows.n == 20_000


def test_an_allowed_error_is_tolerated():
    tolerant, strict = _filled(drift=0.04, change=0, at_most=0.05), _filled(drift=0.04, change=0)
    assert strict.alarm
    assert not tolerant.alarm
    assert _filled(drift=0.2, change=0, at_most=0.05).alarm


def test_reference():
    rng = np.random.default_rng(3)
    y, score = _batch(rng, 5000, drift=0.05)
    monitor = CalibrationMonitor(reference=(y, score))
    assert monitor.at_most > 0.05
    assert monitor.threshold == 40
    for _ in range(5):
        monitor.update(*_batch(rng, drift=0.05))
    assert not monitor.alarm
    for _ in range(10):
        monitor.update(*_batch(rng, drift=0.3))
    assert monitor.alarm
    assert 0.025 <= monitor.pvalue <= 0.05
    same = CalibrationMonitor(reference=Sample.from_predictions(y, score))
    assert same.at_most == monitor.at_most


def test_certain_scores():
    monitor = CalibrationMonitor()
    monitor.update([0, 0, 1, 1], [0.0, 0.0, 1.0, 1.0])
    assert math.isfinite(monitor.evalue)
    assert monitor.evalue == pytest.approx(1)
    monitor.update([1], [0.0])
    assert monitor.evalue == math.inf
    assert monitor.pvalue == 0
    assert monitor.alarm
    assert monitor.diagnosis.failures == 1
    assert "exactly 0 or 1" in str(monitor)
    tolerant = CalibrationMonitor(at_most=0.02)
    tolerant.update([1], [0.0])
    assert math.isfinite(tolerant.evalue)


def test_change_detector_has_its_own_alarm():
    monitor = _filled(average_run_length=5000)
    assert monitor.change_alarm
    assert monitor.log_detector > math.log(5000)
    assert not any(look.change_alarm for look in monitor.history[:4])
    assert not _filled(drift=0.1).change_alarm


def test_clusters_count_once():
    rng = np.random.default_rng(4)
    score = np.repeat(rng.random(300), 5)
    label = np.repeat(rng.random(300) < score[::5], 5)  # five copies of each label
    cluster = np.repeat(np.arange(300), 5)
    copied, clustered, single = CalibrationMonitor(), CalibrationMonitor(), CalibrationMonitor()
    copied.update(label, score)
    clustered.update(label, score, clusters=cluster)
    single.update(label[::5], score[::5])
    assert clustered._processes.total == pytest.approx(single._processes.total, abs=1e-3)
    assert copied._processes.total == pytest.approx(5 * single._processes.total)
    assert clustered.history[-1].gap == pytest.approx(single.history[-1].gap)
    by_cells = CalibrationMonitor()
    frame = pl.DataFrame({"y": label, "p": score, "c": cluster})
    by_cells.update(summarize(frame, label="y", score="p", cluster="c"))
    assert by_cells._processes.total == pytest.approx(clustered._processes.total, abs=1e-3)


def _returning(rng, n=200, times=12):
    """Return labels, scores and names of clusters of one calibrated label, all of which are in each batch."""
    score = rng.random(n)
    label = rng.random(n) < score
    return [(label, score, np.arange(n))] * times


@pytest.mark.filterwarnings("ignore:.*clusters that were in an earlier batch")
@pytest.mark.parametrize(("route", "repeats"), [("arrays", 20), ("cells", 2), ("saved", 2)])
def test_clusters_that_come_back_raise_no_false_alarm(route, repeats, tmp_path):
    alarms = 0
    for seed in range(repeats):
        monitor = CalibrationMonitor()
        for label, score, cluster in _returning(np.random.default_rng(seed)):
            if route == "cells":
                frame = pl.DataFrame({"y": label, "p": score, "c": cluster})
                monitor.update(summarize(frame, label="y", score="p", cluster="c"))
                continue
            monitor.update(label, score, clusters=cluster)
            if route == "saved":
                monitor.save(tmp_path / "state.json")
                monitor = CalibrationMonitor.load(tmp_path / "state.json")
        alarms += monitor.alarm
        assert (monitor.n, monitor.rows_left_out) == (200, 2200)
        assert "2,200 rows left out: a cluster counts in its first batch only" in str(monitor)
    assert (
        alarms <= 0.2 * repeats
    )  # 0.05 is the most to be expected; it was 1 before clusters were remembered


def test_rows_of_new_clusters_count_beside_those_that_come_back():
    (label, score, cluster), *_ = _returning(np.random.default_rng(1))
    monitor, expected = CalibrationMonitor(), CalibrationMonitor()
    monitor.update(label[:150], score[:150], clusters=cluster[:150])
    with pytest.warns(CalibrationWarning, match="50 rows of this batch belong to clusters"):
        look = monitor.update(label[100:], score[100:], clusters=cluster[100:])
    expected.update(label[:150], score[:150], clusters=cluster[:150])
    expected.update(label[150:], score[150:], clusters=cluster[150:])
    assert look == expected.history[-1]
    assert monitor.update(label, score, clusters=cluster) is None
    assert monitor.n == 200
    assert monitor.rows_left_out == 250


def test_shards_must_not_share_clusters():
    (label, score, cluster), *_ = _returning(np.random.default_rng(2))
    one, two, three = CalibrationMonitor(), CalibrationMonitor(), CalibrationMonitor()
    one.update(label[:100], score[:100], clusters=cluster[:100])
    two.update(label[100:], score[100:], clusters=cluster[100:])
    three.update(label[150:], score[150:], clusters=cluster[150:])
    one.merge(two)
    with pytest.raises(InputError, match="share 50"):
        one.merge(three)
    with pytest.warns(CalibrationWarning, match="200 rows"):
        assert one.update(label, score, clusters=cluster) is None


def test_one_batch_cannot_tell_when_a_change_began():
    rng = np.random.default_rng(3)
    monitor, score = CalibrationMonitor(), rng.random(2000)
    monitor.update(rng.random(2000) < score**2, score)
    assert monitor.alarm
    assert monitor.change is None
    assert "after row 0" not in str(monitor)
    for _ in range(3):
        score = rng.random(2000)
        monitor.update(rng.random(2000) < score**2, score)
    assert monitor.change.low == 0
    assert "The error has been there from the start, or began by row 2,000." in str(monitor)


def test_interrupted_and_resumed_gives_the_same_numbers(tmp_path):
    rng = np.random.default_rng(5)
    batches = [_batch(rng, drift=0.08 if day > 6 else 0) for day in range(12)]
    steady, path = CalibrationMonitor(average_run_length=1e4), tmp_path / "state.json"
    CalibrationMonitor(average_run_length=1e4).save(path)
    for day, batch in enumerate(batches):
        steady.update(*batch, time=day)
        resumed = CalibrationMonitor.load(path)
        assert resumed.update(*batch, time=day) == steady.history[-1]
        resumed.save(path)
    assert resumed.to_state() == steady.to_state()
    assert resumed.history == steady.history
    assert str(resumed) == str(steady)


def test_a_changed_state_file_is_refused(tmp_path):
    path = tmp_path / "state.json"
    _filled(3).save(path)
    body = json.loads(path.read_text())
    body["settings"]["alpha"] = 0.5
    path.write_text(json.dumps(body))
    with pytest.raises(InputError, match="was changed"):
        CalibrationMonitor.load(path)


def _parts(content, path=()):
    for name, value in content.items():
        yield (*path, name)
        if isinstance(value, dict):
            yield from _parts(value, (*path, name))


def test_a_forged_state_is_refused_or_goes_on(tmp_path):
    """A checksum is no signature: whatever has a right one is refused in one line, or works."""
    path = tmp_path / "state.json"
    _filled(days=3).save(path)
    content = read_state(path, "calibration monitor")
    refused = 0
    for place in list(_parts({name: content[name] for name in ("settings", "state")})):
        for value in (None, -1, "x", [], {}, 1e308, True, "no such part"):
            forged = json.loads(json.dumps(content))
            inner = forged
            for name in place[:-1]:
                inner = inner[name]
            if value == "no such part":
                del inner[place[-1]]
            else:
                inner[place[-1]] = value
            write_state(path, "calibration monitor", forged)
            try:
                monitor = CalibrationMonitor.load(path)
                monitor.update([0, 1], [0.3, 0.6])
            except InputError:
                refused += 1
            else:
                str(monitor)
    assert refused > 100


def test_settings_are_kept(tmp_path):
    monitor = CalibrationMonitor(alpha=0.01, at_most=0.03, pos_label="b")
    monitor.update(["a", "b"], [0.2, 0.9])
    monitor.save(tmp_path / "s.json")
    again = CalibrationMonitor.load(tmp_path / "s.json")
    again.update(["b"], [0.5])
    assert (again.alpha, again.at_most, again.n) == (0.01, 0.03, 3)


def test_size_of_the_state_is_bounded(tmp_path):
    monitor, sizes = CalibrationMonitor(), []
    for window in range(1200):
        monitor.update([0, 1], [0.3, 0.8], time=window)
        if window in (599, 1199):
            monitor.save(tmp_path / "s.json")
            sizes.append((tmp_path / "s.json").stat().st_size)
    assert sizes[1] < 300_000
    assert sizes[1] < 1.3 * sizes[0]
    assert len(monitor.history) <= 258
    assert monitor.history[-1].time == 1199


def test_shards():
    rng = np.random.default_rng(6)
    first, second, third = (_batch(rng) for _ in range(3))
    whole, one, two = CalibrationMonitor(), CalibrationMonitor(), CalibrationMonitor()
    for batch in (first, second, third):
        whole.update(*batch)
    one.update(*first)
    two.update(*second)
    two.update(*third)
    assert one.merge(two, CalibrationMonitor()) is one
    assert one._processes.total == pytest.approx(whole._processes.total)
    assert one.n == 1500
    assert one.log_evalue == pytest.approx(whole.log_evalue, abs=1)
    with pytest.raises(InputError, match="same settings"):
        one.merge(CalibrationMonitor(alpha=0.1))


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        (3, 3.0),
        ("2026-03", "2026-03"),
        (datetime(2026, 3, 1, tzinfo=UTC), "2026-03-01T00:00:00+00:00"),
        (np.datetime64("2026-03-01"), "2026-03-01T00:00:00"),
        ([5, 2], 5.0),
        (np.array(["2026-03-02", "2026-03-01"], dtype="datetime64[D]"), "2026-03-02T00:00:00"),
        (None, None),
    ],
)
def test_times(time, shown):
    look = CalibrationMonitor().update([0, 1], [0.2, 0.7], time=time)
    assert look.time == shown
    assert isinstance(str(look), str)


def test_an_empty_batch_changes_nothing():
    monitor = CalibrationMonitor()
    assert monitor.update([], []) is None
    assert (monitor.n, monitor.evalue, monitor.pvalue, monitor.alarm) == (0, 1, 1, False)
    assert monitor.history == ()
    assert monitor.change is None
    assert monitor.diagnosis is None
    assert str(monitor).startswith("No rows yet")


def test_reset():
    monitor = _filled()
    monitor.reset()
    assert (monitor.n, monitor.alarm, monitor.history) == (0, False, ())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0}, "alpha must be"),
        ({"at_most": 0}, "at_most must be"),
        ({"average_run_length": 0.5}, "average_run_length must be"),
        ({"at_most": 0.1, "reference": ([0], [0.5])}, "cannot be combined"),
        ({"reference": 3}, "reference must be"),
        ({"multiclass": "classwise"}, "multiclass must be"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(InputError, match=message):
        CalibrationMonitor(**settings)


@pytest.mark.filterwarnings(
    "ignore:The columns of y_proba have no names:truecal.exceptions.CalibrationWarning"
)
def test_bad_batches_leave_the_monitor_as_it_was():
    monitor = _filled(2)
    state = monitor.to_state()
    for arguments in (
        {"y_true": [0, 2], "y_proba": [0.1, 0.2]},
        {"y_true": [0, 1], "y_proba": [0.1, 1.2]},
        {"y_true": [0, 1], "y_proba": [0.1, 0.2], "time": np.datetime64("NaT", "s")},
        {"y_true": ["x", "y", "z"], "y_proba": [[0.2, 0.3, 0.5]] * 3},
        {"y_true": Sample.from_predictions([0, 1], [0.1, 0.2], sample_weight=[0.5, 0.7])},
    ):
        with pytest.raises((InputError, ValueError)):
            monitor.update(**arguments)
    assert monitor.to_state() == state


def test_public_name():
    assert truecal.CalibrationMonitor is CalibrationMonitor
    assert repr(CalibrationMonitor()) == "CalibrationMonitor(n=0, evalue=1, alarm=False)"
