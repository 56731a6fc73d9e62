"""Streams: batches give the whole, and a window forgets."""

import pickle
from datetime import datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pytest

import truecal
from truecal.data import as_sample
from truecal.data.cells import Cells
from truecal.exceptions import InputError
from truecal.inference.stream import CalibrationStream, WindowedStream


def assert_same(one, two):
    assert np.array_equal(one.cell, two.cell)
    assert np.array_equal(one.count, two.count)
    assert np.array_equal(one.positives, two.positives)
    assert one.score == pytest.approx(two.score, rel=1e-13)
    assert one.target == two.target


@pytest.fixture(scope="module")
def data():
    return truecal.paper.population("resnet110_c100").sample(30_000, rng=0)


# --- CalibrationStream -----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [7, 1000, 30_000])
def test_batches_give_the_cells_of_the_whole(data, size):
    y, p = data
    stream = CalibrationStream()
    rows = range(0, len(y) if size > 7 else 700, size)
    for first in rows:
        stream.update(y[first : first + size], p[first : first + size])
    seen = slice(rows[-1] + size)
    assert_same(stream.cells, Cells.from_sample(as_sample(y[seen], p[seen])))
    assert stream.n == len(y[seen])


def test_more_than_is_kept_waiting(data):
    y, p = data
    stream = CalibrationStream()
    for _ in range(8):
        stream.update(y, p)
    assert stream.n == 8 * len(y)
    assert_same(stream.cells, stream.cells)
    assert stream.cells.count.sum() == 8 * len(y)


def test_an_estimate_along_the_way_changes_nothing(data):
    y, p = data
    stream = CalibrationStream()
    stream.update(y[:100], p[:100])
    first = stream.compute(estimator="em_bin", n_bins=5, norm=1)
    assert (first.n, first.n_bins, first.norm) == (100, 5, 1)
    stream.update(y[100:], p[100:])
    exact = truecal.calibration_error(y, p, estimator="em_bin")
    assert stream.compute("em_bin").value == pytest.approx(exact, abs=1e-4)


def test_merged_streams_are_one_stream(data):
    y, p = data
    streams = [CalibrationStream() for _ in range(3)]
    for k, stream in enumerate(streams):
        stream.update(y[k::3], p[k::3])
    merged = pickle.loads(pickle.dumps(streams[0])).merge(*streams[1:], CalibrationStream())
    assert_same(merged.cells, Cells.from_sample(as_sample(y, p)))
    assert streams[0].n == len(y[::3])


def test_empty_batches_and_reset():
    stream = CalibrationStream()
    stream.update([], [])
    with pytest.raises(ValueError, match="Nothing has come in yet"):
        stream.compute()
    stream.update([0, 1], [0.2, 0.9])
    stream.update(pd.Series([], dtype=float), pd.Series([], dtype=float))
    assert repr(stream) == "CalibrationStream(n=2)"
    stream.reset()
    assert stream.n == 0


def test_text_labels_several_classes_and_weights():
    stream = CalibrationStream(labels=["cat", "dog", "eel"])
    stream.update(["cat", "cat"], [[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]])
    stream.update(["eel"], [[0.1, 0.1, 0.8]], sample_weight=[2])
    assert stream.cells.target == "top label of 3 classes"
    assert stream.cells.positives.tolist() == [0, 1, 2]

    stream = CalibrationStream(pos_label="yes")
    stream.update(["yes"], [0.9])
    stream.update(["no", "no"], [0.1, 0.2])
    assert stream.cells.positives.tolist() == [0, 0, 1]


def test_a_bad_batch_is_refused_and_leaves_no_trace():
    stream = CalibrationStream()
    stream.update([0, 1], [0.2, 0.9])
    with pytest.raises(ValueError, match="outside"):
        stream.update([0, 1], [0.2, 1.9])
    with pytest.raises(ValueError, match="cannot be merged"):
        stream.update([0, 1], [[0.1, 0.2, 0.7], [0.1, 0.2, 0.7]])
    with pytest.raises(ValueError, match="multiclass must be one of 'top'"):
        CalibrationStream(multiclass="classwise")
    assert stream.n == 2
    assert stream.cells.n == 2


# --- WindowedStream --------------------------------------------------------------------------------


def test_the_window_holds_the_last_steps_only(data):
    y, p = data
    time = np.arange(len(y)) / 1000  # thirty units of time, a thousand rows each
    stream = WindowedStream(window=10, step=2.5)
    for first in range(0, len(y), 500):
        rows = slice(first, first + 500)
        stream.update(y[rows], p[rows], time=time[rows])
    inside = time >= 20
    assert_same(stream.cells, Cells.from_sample(as_sample(y[inside], p[inside])))
    assert list(stream.steps) == [20.0, 22.5, 25.0, 27.5]
    assert sum(cells.n for cells in stream.steps.values()) == 10_000
    assert stream.n_late == 0
    assert stream.compute("em_bin").n == 10_000


def test_rows_come_in_any_order_and_late_ones_are_counted(data):
    y, p = data
    y, p = y[:3000], p[:3000]
    time = np.arange(3000) / 100
    order = np.random.default_rng(0).permutation(3000)
    stream = WindowedStream(window=10, step=1)
    stream.update(y[order], p[order], time=time[order])
    inside = time >= 20
    assert stream.n_late == 2000
    assert_same(stream.cells, Cells.from_sample(as_sample(y[inside], p[inside])))
    stream.update(y[:5], p[:5], time=3)
    assert stream.n_late == 2005
    assert stream.cells.n == 1000


@pytest.mark.parametrize("kind", ["datetime", "aware", "numpy", "pandas", "polars"])
def test_dates_of_every_kind(kind):
    noon = [datetime(2026, 3, day, 12) for day in (1, 2, 3)]
    if kind == "aware":  # 23 h in New York is the next day in UTC
        zone = timezone(timedelta(hours=-5))
        noon = [
            datetime(2026, 2, 28, 23, tzinfo=zone),
            *(datetime(2026, 3, d, 23, tzinfo=zone) for d in (1, 2)),
        ]
    times = {
        "numpy": np.array(noon, dtype="datetime64[s]") if kind == "numpy" else None,
        "pandas": pd.Series(pd.to_datetime(noon)) if kind == "pandas" else None,
        "polars": pl.Series(noon) if kind == "polars" else None,
    }.get(kind, noon)
    stream = WindowedStream(window=timedelta(days=2), step=np.timedelta64(1, "D"))
    stream.update([1, 0, 1], [0.9, 0.2, 0.8], time=times)
    assert list(map(str, stream.steps)) == ["2026-03-02T00:00:00.000000", "2026-03-03T00:00:00.000000"]
    assert stream.n_late == 1


def test_weights_and_reading_options_reach_each_step():
    stream = WindowedStream(window=2, step=1, pos_label="yes")
    stream.update(["yes", "no", "yes"], [0.9, 0.2, 0.8], time=[0.5, 1.5, 1.5], sample_weight=[1, 2, 3])
    assert [cells.count.tolist() for cells in stream.steps.values()] == [[1], [2, 3]]
    assert stream.cells.target == "P(y = 'yes')"


def test_windows_of_several_servers_are_merged(data):
    y, p = data
    time = np.arange(len(y)) / 1000
    whole = WindowedStream(window=10, step=2)
    whole.update(y, p, time=time)
    parts = [WindowedStream(window=10, step=2) for _ in range(2)]
    for k, part in enumerate(parts):
        part.update(y[k::2], p[k::2], time=time[k::2])
    parts[0].merge(parts[1])
    assert_same(parts[0].cells, whole.cells)
    assert parts[0].n_late == whole.n_late == 20_000
    with pytest.raises(ValueError, match="same window and steps"):
        whole.merge(WindowedStream(window=10, step=1))


def test_a_window_is_pickled_reset_and_shown():
    stream = WindowedStream(window=10, step=1)
    with pytest.raises(ValueError, match="Nothing has come in yet"):
        stream.compute()
    stream.update([], [], time=[])
    stream.update([1, 0], [0.9, 0.1], time=[4, 5])
    again = pickle.loads(pickle.dumps(stream))
    assert repr(again) == "WindowedStream(n=2, steps=2)"
    again.reset()
    assert again.steps == {}
    assert stream.cells.n == 2


def test_a_bad_batch_leaves_the_window_as_it_was():
    stream = WindowedStream(window=10, step=1)
    stream.update([1, 0], [0.9, 0.1], time=[4, 5])
    with pytest.raises(ValueError, match="outside"):
        stream.update([1, 0], [0.9, 1.1], time=[50, 51])
    assert list(stream.steps) == [4.0, 5.0]


@pytest.mark.parametrize(
    ("window", "step", "says"),
    [
        (10, 3, "whole number of steps"),
        (1, 2, "whole number of steps"),
        (10, 0, "whole number of steps"),
        (10, -1, "whole number of steps"),
        (timedelta(days=1), 3600, "both be numbers, or both be timedeltas"),
        (3600, timedelta(minutes=1), "both be numbers, or both be timedeltas"),
    ],
)
def test_bad_windows(window, step, says):
    with pytest.raises(ValueError, match=says):
        WindowedStream(window=window, step=step)


@pytest.mark.parametrize(
    ("time", "says"),
    [
        (datetime(2026, 1, 1), "time must be numbers"),
        ("now", "time must be numbers"),
        ([1.0, np.nan], "time has 1 missing value"),
    ],
)
def test_bad_times(time, says):
    with pytest.raises(ValueError, match=says):
        WindowedStream(window=2, step=1).update([0, 1], [0.1, 0.2], time=time)


def test_missing_dates():
    stream = WindowedStream(window=timedelta(days=2), step=timedelta(days=1))
    with pytest.raises(ValueError, match="time has 2 missing values"):
        stream.update([0, 1], [0.1, 0.2], time=np.array(["NaT", "NaT"], dtype="datetime64[s]"))
    with pytest.raises(ValueError, match="time must be dates"):
        stream.update([0, 1], [0.1, 0.2], time=3)


def test_steps_that_are_not_exact_in_binary_hold_the_right_rows():
    stream = WindowedStream(window=0.3, step=0.1)
    for k in range(6):
        stream.update([0, 1], [0.2, 0.7], time=k / 10)
    assert {round(float(start), 9): cells.n for start, cells in stream.steps.items()} == {
        0.3: 2,
        0.4: 2,
        0.5: 2,
    }


@pytest.mark.parametrize("time", [np.inf, 1e300, -1e300])
def test_times_beyond_all_steps_are_refused(time):
    stream = WindowedStream(window=3, step=1)
    stream.update([0, 1], [0.2, 0.7], time=1)
    with pytest.raises(InputError, match="too far"):
        stream.update([0, 1], [0.2, 0.7], time=time)
    assert stream.cells.n == 2


def test_dates_beyond_microseconds_are_refused():
    stream = WindowedStream(window=timedelta(days=7), step=timedelta(days=1))
    with pytest.raises(InputError, match="too far"):
        stream.update([0, 1], [0.2, 0.7], time=np.datetime64("300000000", "Y"))


def test_labels_of_another_length_are_refused():
    with pytest.raises(InputError, match="same length"):
        WindowedStream(window=3, step=1).update([0, 1, 1], [0.2, 0.7], time=1)


def test_clusters_are_known_in_all_batches():
    rng = np.random.default_rng(0)
    score = rng.random(600).round(2)
    label, cluster = (rng.random(600) < score).astype(int), rng.integers(0, 50, 600)
    stream, window = truecal.CalibrationStream(), truecal.WindowedStream(window=2, step=1)
    for k in range(6):
        rows = slice(k, None, 6)
        stream.update(label[rows], score[rows], clusters=cluster[rows])
        window.update(label[rows], score[rows], clusters=cluster[rows], time=k)
    expected = truecal.estimate(label, score, clusters=cluster, confidence_level=0.95)
    found = stream.compute(estimator="multiscale", confidence_level=0.95)
    assert found.n_clusters == 50
    assert found.value == pytest.approx(expected.value, abs=1e-12)
    assert found.interval.high == pytest.approx(expected.interval.high, abs=1e-12)
    late = np.flatnonzero(np.arange(600) % 6 >= 4)
    expected = truecal.confidence_interval(label[late], score[late], clusters=cluster[late])
    assert truecal.confidence_interval(window.cells).high == pytest.approx(expected.high, abs=1e-12)


def test_clusters_come_with_every_batch_or_with_none():
    stream = truecal.CalibrationStream()
    stream.update([0, 1], [0.2, 0.7], clusters=[1, 1])
    with pytest.raises(truecal.InputError, match="clusters must come with every batch or with none"):
        stream.update([0, 1], [0.2, 0.7])
