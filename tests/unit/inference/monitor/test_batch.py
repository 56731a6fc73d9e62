"""What a monitor needs of a batch, and the times of rows."""

from datetime import date, datetime

import numpy as np
import pytest

from truecal import InputError, Sample
from truecal.data.cells import Cells
from truecal.data.clusters import cluster_keys
from truecal.inference.monitor._batch import (
    N_REGIONS,
    Batch,
    last_by_cluster,
    number_steps,
    read_moments,
    span,
)
from truecal.inference.monitor._state import SeenClusters

SCORE = np.array([0.0, 0.01, 0.5, 0.99, 1.0])
LABEL = np.array([1, 1, 1, 1, 0])


def test_sums_gap_and_failures():
    batch = Batch.read(LABEL, SCORE, None, {}, SeenClusters())
    assert batch.sums.shape == (3, N_REGIONS)
    assert batch.sums.sum(axis=1) == pytest.approx([5, 4, 2.5])
    assert batch.sums[0, 0] == 2
    assert batch.gap == pytest.approx(0.3)
    assert batch.failures == 2
    assert batch.evidence.rows == 5


def test_rows_of_clusters_are_parts_of_units():
    batch = Batch.read(LABEL, SCORE, ["a", "a", "b", "b", "b"], {}, SeenClusters())
    assert batch.sums[0].sum() == pytest.approx(2)
    assert batch.sums[1].sum() == pytest.approx(1 + 2 / 3)
    assert batch.gap == pytest.approx(0.3)
    assert (batch.evidence.rows, batch.evidence.units) == (5, 2)


@pytest.mark.parametrize("clusters", [None, [1, 1, 2, 2, 3]])
def test_samples_equal_rows(clusters):
    rows = Batch.read(LABEL, SCORE, clusters, {}, SeenClusters())
    keys = None if clusters is None else cluster_keys(np.unique(clusters), 3)
    sample = Sample.from_predictions(LABEL, SCORE, clusters=clusters)
    sample = Batch.read(Cells.from_sample(sample, keys), None, None, {}, SeenClusters())
    assert sample.sums == pytest.approx(rows.sums)
    assert sample.evidence.log_ratio == pytest.approx(rows.evidence.log_ratio)
    assert (sample.failures, sample.target) == (2, rows.target)


def test_weights_are_refused():
    weighted = Sample.from_predictions(LABEL, SCORE, sample_weight=[0.5, 0.7, 1, 1, 1])
    with pytest.raises(InputError, match="no sampling weights"):
        Batch.read(weighted, None, None, {}, SeenClusters())


def test_clusters_that_were_seen_are_left_out():
    names, seen = ["a", "a", "b", "b", "c"], SeenClusters()
    seen.add(cluster_keys(["b"], 1))
    batch = Batch.read(LABEL, SCORE, names, {}, seen)
    chosen = [0, 1, 4]
    alone = Batch.read(LABEL[chosen], SCORE[chosen], ["a", "a", "c"], {}, SeenClusters())
    assert batch.sums.tolist() == alone.sums.tolist()
    assert (batch.rows_left_out, batch.evidence.units, batch.gap) == (2, 2, alone.gap)
    seen.add(batch.clusters)
    again = Batch.read(LABEL, SCORE, names, {}, seen)
    assert (again.evidence, again.rows_left_out, again.failures) == (None, 5, 0)


def test_clusters_without_names_are_refused():
    with pytest.raises(InputError, match="have no names"):
        Batch.read(
            Sample.from_predictions(LABEL, SCORE, clusters=[1, 1, 2, 2, 3]), None, None, {}, SeenClusters()
        )


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (None, (None, None)),
        (3, (3, 3)),
        ("2026-W46", ("2026-W46", "2026-W46")),
        (date(2026, 11, 16), ("2026-11-16", "2026-11-16")),
        (
            [datetime(2026, 11, 16, 9), datetime(2026, 11, 15, 8)],
            ("2026-11-15T08:00:00", "2026-11-16T09:00:00"),
        ),
        (np.array([2.5, 1.0]), (1, 2.5)),
    ],
)
def test_the_first_and_the_last_time(time, expected):
    assert span(time) == expected


@pytest.mark.parametrize("time", [[], np.datetime64("NaT", "s")])
def test_times_that_say_nothing_are_refused(time):
    with pytest.raises(InputError, match="time"):
        span(time)


def test_moments_are_numbers_or_dates_in_utc():
    assert read_moments([3, 1]).tolist() == [3, 1]
    zones = ["2026-03-01T12:00:00+02:00", "2026-03-01 10:00", "2026-03-01T10:00:00Z"]
    assert len(set(read_moments(zones))) == 1
    days = np.array(["2026-03-01"], dtype="datetime64[D]")
    assert read_moments(days) is days or (read_moments(days) == days).all()


@pytest.mark.parametrize(
    "time", [[1.0, np.nan], ["2026-03-01", "soon"], np.array(["NaT"], dtype="datetime64[s]")]
)
def test_moments_that_cannot_be_read(time):
    with pytest.raises(InputError, match="--when has missing times"):
        read_moments(time, argument="--when")


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-01",
        "2026-03-01 10:00",
        "2026-03-01T10:00:00",
        "2026-03-01T10:00:00.123456",
        "2026-03-01T10:00:00.5",
    ],
)
def test_many_texts_are_read_like_one(text):
    """A text with a zone besides takes the slower way, which must agree."""
    quick = read_moments([text, "2026-03-02"])
    slow = read_moments([text, "2026-03-02", "2026-03-02T00:00:00Z"])
    assert quick.tolist() == slow[:2].tolist()


@pytest.mark.parametrize(
    "text",
    [
        "today",
        "now",
        "20260301x",
        "2026-13-01",
        "2026-03",
        "2026-03-01T",
        "0001-01-01T00:00:00+23:00",
    ],
)
def test_only_dates_are_read(text):
    with pytest.raises(InputError, match="missing times"):
        read_moments(["2026-03-01", text])


@pytest.mark.parametrize("step", [0.1, 0.25, 1 / 3, 0.7, 1.0, 1e-3, 86400.0])
def test_a_step_begins_with_its_multiple(step):
    number = np.arange(-1000, 1001)
    assert number_steps(number * step, step).tolist() == number.tolist()
    assert number_steps((number + 0.5) * step, step).tolist() == number.tolist()
    decimal = np.round(number * step, 12)  # as in a file
    assert number_steps(decimal, step).tolist() == number.tolist()


def test_rows_of_a_cluster_belong_to_the_last_of_them():
    moments = np.array(["2026-03-01", "2026-03-02", "2026-03-04"], dtype="datetime64[D]")
    assert last_by_cluster(np.array([1, 0, 1]), moments).tolist() == moments[[2, 1, 2]].tolist()


def test_rounding_does_not_move_a_moment_to_the_step_before():
    assert number_steps(np.array([0.29, 0.3, 0.7]), 0.1).tolist() == [2, 3, 7]


def test_last_moment_of_each_cluster():
    assert last_by_cluster(np.array([0, 1, 0]), np.array([1, 2, 5])).tolist() == [5, 2, 5]
