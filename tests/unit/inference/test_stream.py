"""Streams: batches give the same as all rows at once."""

import pickle

import numpy as np
import pandas as pd
import pytest

import truecal
from truecal.data import as_sample
from truecal.data.cells import Cells
from truecal.inference.stream import CalibrationStream


def assert_same(one, two):
    assert np.array_equal(one.cell, two.cell)
    assert np.array_equal(one.count, two.count)
    assert np.array_equal(one.positives, two.positives)
    assert one.score == pytest.approx(two.score, rel=1e-13)
    assert one.target == two.target


@pytest.fixture(scope="module")
def data():
    return truecal.paper.population("resnet110_c100").sample(30_000, rng=0)


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
    assert stream.merge(CalibrationStream()).n == 0


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


def test_clusters_are_known_in_all_batches():
    rng = np.random.default_rng(0)
    score = rng.random(600).round(2)
    label, cluster = (rng.random(600) < score).astype(int), rng.integers(0, 50, 600)
    stream = truecal.CalibrationStream()
    for k in range(6):
        rows = slice(k, None, 6)
        stream.update(label[rows], score[rows], clusters=cluster[rows])
    expected = truecal.estimate(label, score, clusters=cluster, confidence_level=0.95)
    found = stream.compute(estimator="multiscale", confidence_level=0.95)
    assert found.n_clusters == 50
    assert found.value == pytest.approx(expected.value, abs=1e-12)
    assert found.interval.high == pytest.approx(expected.interval.high, abs=1e-12)


def test_clusters_come_with_every_batch_or_with_none():
    stream = truecal.CalibrationStream()
    stream.update([0, 1], [0.2, 0.7], clusters=[1, 1])
    with pytest.raises(truecal.InputError, match="clusters must come with every batch or with none"):
        stream.update([0, 1], [0.2, 0.7])
