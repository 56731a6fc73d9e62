"""Windows of rows and of time."""

import io
import json

import numpy as np
import pytest

from truecal.cli.input.windows import read_lines, split_windows
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


def test_groups_and_clusters_are_split():
    columns = _columns(None, group=np.array([0, 1, 0, 1, 0]), names=("a", "b"), cluster=np.arange(5))
    (window,) = split_windows(columns, 0, 5, None)
    assert window.parts["b"]["label"].tolist() == [1, 3]
    assert window.parts["a"]["cluster"].tolist() == [0, 2, 4]


def test_a_late_line_belongs_to_the_open_window():
    lines = [json.dumps({"label": 0, "score": 0.1, "t": t, "who": "x"}) for t in (1, 1, 2, 1, 3)]
    windows = list(read_lines(io.StringIO("\n".join(lines)), label=(), score=(), moment="t", cluster="who"))
    assert [(window.time, len(window.parts[""]["label"])) for window in windows] == [(1, 2), (2, 2), (3, 1)]
    assert windows[0].parts[""]["cluster"] == ["x", "x"]


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
