"""Windows of rows and of time."""

import io
import json

import numpy as np
import pytest

from truecal import Sample
from truecal.cli._input.windows import digest_samples, read_lines, split_windows
from truecal.exceptions import InputError


def _columns(time, **others):
    n = len(time) if time is not None else 5
    return {"label": np.arange(n), "score": np.arange(n) / 10, "time": time, **others}


def _labels(windows):
    return {window.time: window.parts[""]["label"].tolist() for window in windows}


def test_rows_out_of_order_are_sorted_into_windows():
    time = np.array(
        ["2026-03-02", "2026-03-01T23:00:00+00:00", "2026-03-01", "2026-03-02T01:00"], dtype=object
    )
    assert _labels(split_windows(_columns(time), 0, 4, None)) == {"2026-03-01": [1, 2], "2026-03-02": [0, 3]}
    assert _labels(split_windows(_columns(time), 2, 4, "1w")) == {"2026-02-23": [2], "2026-03-02": [3]}


@pytest.mark.parametrize(
    ("every", "start"),
    [
        ("1h", "2026-03-05T13:00:00"),
        ("30m", "2026-03-05T13:30:00"),
        ("1d", "2026-03-05"),
        ("1w", "2026-03-02"),
    ],
)
def test_lengths(every, start):
    time = np.array(["2026-03-05T13:45"], dtype="datetime64[us]")
    assert list(_labels(split_windows(_columns(time), 0, 1, every))) == [start]


def test_windows_of_a_tenth_begin_at_tenths():
    time = np.arange(12) / 10
    windows = _labels(split_windows(_columns(time), 0, 12, "0.1"))
    assert windows == {k / 10: [k] for k in range(12)}


def test_a_cluster_is_in_the_window_of_its_last_row():
    cluster = np.array(["a", "b", "a", "c", "b"])
    windows = list(split_windows(_columns(np.array([1, 1, 2, 3, 4]), cluster=cluster), 0, 5, "1"))
    assert _labels(windows) == {2.0: [0, 2], 3.0: [3], 4.0: [1, 4]}
    assert [window.n_moved for window in windows] == [1, 0, 1]


def test_samples_have_the_same_digest_in_any_order_of_rows():
    rng = np.random.default_rng(0)
    y, p, order = rng.integers(0, 2, 50), rng.random(50).round(1), rng.permutation(50)
    one, other = (Sample.from_predictions(y[rows], p[rows]) for rows in (slice(None), order))
    assert digest_samples({"a": one}) == digest_samples({"a": other})
    changed = Sample.from_predictions(1 - y, p)
    assert len({digest_samples(parts) for parts in ({"a": one}, {"b": one}, {"a": changed})}) == 3


def test_groups_and_clusters_are_split():
    columns = _columns(None, group=np.array([0, 1, 0, 1, 0]), names=("a", "b"), cluster=np.arange(5))
    (window,) = split_windows(columns, 0, 5, None)
    assert window.parts["b"]["label"].tolist() == [1, 3]
    assert window.parts["a"]["cluster"].tolist() == [0, 2, 4]


def test_a_late_line_belongs_to_the_open_window():
    lines = [json.dumps({"label": 0, "score": 0.1, "t": t, "who": "x"}) for t in (1, 1, 2, 1, 3)]
    windows = list(read_lines(io.StringIO("\n".join(lines)), label=(), score=(), moment="t", cluster="who"))
    assert [(window.time, len(window.parts[""]["label"])) for window in windows] == [(1, 2), (2, 2), (3, 1)]
    assert windows[0].parts[""]["cluster"].tolist() == ["x", "x"]


def test_windows_are_yielded_before_the_stream_ends():
    def lines():
        yield '{"label": 0, "score": 0.1}\n'
        yield '{"label": 1, "score": 0.9}\n'
        raise AssertionError("read too far")

    windows = read_lines(lines(), label=(), score=(), every="2")
    assert len(next(windows).parts[""]["label"]) == 2


@pytest.mark.parametrize("time", [np.array([1.0, np.nan]), np.array(["2026-03-01", "soon"], dtype=object)])
def test_bad_times(time):
    with pytest.raises(InputError, match="ISO dates") as caught:
        list(split_windows(_columns(time), 0, 2, None))
    assert caught.value.first_row == 1


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("[" * 100_000, "line 1 of standard input is not a JSON object"),
        (
            '{"label": 0, "score": 0.1, "score": 0.9}',
            "line 1 of standard input: the key 'score' is given more",
        ),
    ],
)
def test_lines_that_a_file_could_not_have(line, problem):
    with pytest.raises(InputError, match=problem):
        list(read_lines(io.StringIO(line), label=(), score=()))


@pytest.mark.parametrize("times", [(1, "2026-01-01"), ("2026-01-01", 5)])
def test_numbers_and_dates_in_one_stream(times):
    lines = [json.dumps({"label": 0, "score": 0.1, "t": t}) for t in times]
    with pytest.raises(
        InputError, match=r"line 2 of standard input .* some times are numbers and others dates"
    ):
        list(read_lines(io.StringIO("\n".join(lines)), label=(), score=(), moment="t"))


def test_digits_are_numbers_as_in_a_file():
    lines = [json.dumps({"label": 0, "score": 0.1, "t": t}) for t in ("20260101", "20260102")]
    windows = read_lines(io.StringIO("\n".join(lines)), label=(), score=(), moment="t")
    assert [window.time for window in windows] == [20260101, 20260102]
