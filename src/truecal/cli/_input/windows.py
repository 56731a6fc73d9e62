"""Rows in windows of time, or of a number of rows, from a table or from a stream of JSON lines."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecal.cli._input.columns import label_as_group
from truecal.cli._input.table import unique_keys
from truecal.exceptions import InputError
from truecal.inference.monitor._batch import last_by_cluster, number_steps, read_moments

if TYPE_CHECKING:
    from truecal.data.sample import Sample

#: Rows of a window where there is no time.
_ROWS = 1000
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DIGITS = re.compile(r"\s*[+-]?\d+(\.\d+)?\s*")
#: A Monday, from which weeks are counted, in seconds.
_MONDAY = 4 * 86400


class Batch(NamedTuple):
    """A window: its time, the rows of each group by the names of their columns, and how many came from earlier ones."""

    time: Any
    parts: dict[str, dict[str, Any]]
    n_moved: int = 0


def split_windows(columns: dict[str, Any], first: int, end: int, every: str | None) -> Iterator[Batch]:
    """Yield the windows of the rows from `first` to `end`, in the order of time.

    All rows of a cluster belong to the window of its last row.

    Parameters
    ----------
    columns : dict
        Arrays under label, score, cluster, time and group, and the names of the groups.
    first, end : int
        The rows.
    every : str, optional
        Length of a window.
    """
    n = end - first
    if columns["time"] is None:
        code, labels = np.arange(n) // _row_count(every), None
    else:
        code, labels = _windows_of(np.asarray(columns["time"])[first:end], every)
    own = code
    if columns.get("cluster") is not None:
        code = last_by_cluster(np.unique(columns["cluster"][first:end], return_inverse=True)[1], code)
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        time = None if labels is None else labels[code[rows[0]]]
        yield Batch(time, _parts(columns, first + rows), int((own[rows] < code[rows]).sum()))


def digest_rows(columns: dict[str, Any], end: int) -> str:
    """Return a digest of the rows before `end`, to check later whether a file still begins with them.

    It does not depend on the rows that follow.

    Parameters
    ----------
    columns : dict
        As for `split_windows`, with times as `read_moments` returns them.
    end : int
        The number of rows.
    """
    numbers = [np.asarray(columns[name][:end], dtype=np.float64) for name in ("label", "score")]
    if columns["time"] is not None:
        numbers.append(columns["time"][:end].astype(np.float64))
    if columns["cluster"] is not None:
        # Codes may change as a file grows; the first row of each cluster does not.
        _, first, code = np.unique(columns["cluster"][:end], return_index=True, return_inverse=True)
        numbers.append(first[code].astype(np.float64))
    names = (
        []
        if columns.get("group") is None
        else ["\0".join(columns["names"][k] for k in columns["group"][:end])]
    )
    return _digest([*numbers, *names])


def digest_samples(samples: dict[str, Sample]) -> str:
    """Return a digest of the samples of groups, to check later whether a file of earlier predictions is the same.

    Parameters
    ----------
    samples : dict of str to Sample
        The sample of each group.
    """
    parts: list[Any] = []
    for name, sample in sorted(samples.items()):
        # The means of cells are rounded, and the smallest score of each is not.
        parts += [name, getattr(sample, "lower", sample.score), sample.count, sample.positives]
    return _digest(parts)


def _digest(parts: Iterable[Any]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        content = part.encode() if isinstance(part, str) else np.asarray(part, dtype="<f8").tobytes()
        digest.update(f"{len(content)}\0".encode() + content)
    return digest.hexdigest()


def _parts(columns: dict[str, Any], rows: NDArray[np.intp]) -> dict[str, dict[str, Any]]:
    names = [name for name in ("label", "score", "cluster") if columns.get(name) is not None]

    def take(chosen: NDArray[np.intp]) -> dict[str, Any]:
        return {name: columns[name][chosen] for name in names}

    if columns.get("group") is None:
        return {"": take(rows)}
    group = columns["group"][rows]
    return {str(columns["names"][k]): take(rows[group == k]) for k in np.unique(group)}


def _row_count(every: str | None) -> int:
    if every is None:
        return _ROWS
    if not every.isdecimal() or int(every) == 0:
        raise _bad_length("a number of rows where there is no --time", every)
    return int(every)


def _windows_of(time: NDArray[Any], every: str | None) -> tuple[NDArray[np.intp], list[Any]]:
    """Return the number of each row's window, and the time at which each window begins."""
    moments = read_moments(time, argument="--time")
    if moments.dtype.kind == "M":
        length = _length(every or "1d")
        offset = _MONDAY if length % _SECONDS["w"] == 0 else 0
        seconds = moments.astype("datetime64[s]").astype(np.int64)
        start = np.floor_divide(seconds - offset, length) * length + offset
        values, code = np.unique(start, return_inverse=True)
        unit = "D" if length % _SECONDS["d"] == 0 else "s"
        return code, [str(np.datetime64(int(value), "s").astype(f"datetime64[{unit}]")) for value in values]
    step = 1.0 if every is None else _number(every)
    values, code = np.unique(number_steps(moments, step), return_inverse=True)
    return code, [float(f"{value * step:.12g}") for value in values]


def _length(every: str) -> int:
    match = re.fullmatch(r"(\d+)([smhdw])", every)
    if match is None or int(match[1]) == 0:
        raise _bad_length("a length of time such as 1h, 1d or 1w", every)
    return int(match[1]) * _SECONDS[match[2]]


def _number(every: str) -> float:
    try:
        step = float(every)
    except ValueError:
        step = 0.0
    if not 0 < step < float("inf"):
        raise _bad_length("a positive number, as the times are", every)
    return step


def _bad_length(needed: str, every: str) -> InputError:
    return InputError(f"must be {needed}. Got {every!r} instead", argument="--every")


def read_lines(
    stream: IO[str],
    *,
    label: Sequence[str],
    score: Sequence[str],
    group: Sequence[str] = (),
    cluster: str | None = None,
    moment: str | None = None,
    every: str | None = None,
    **reading: Any,
) -> Iterator[Batch]:
    """Yield the windows of a stream of JSON objects, one for each line, as soon as each is complete.

    A window is complete with the first row of a later one, or with its number of rows; at the end of the stream with
    what it has. Rows that come late belong to the window that is open. Options that need the whole table are refused.
    """
    _refuse_table_options(label, score, reading)
    keys = {
        "label": label[0] if label else "label",
        "score": score[0] if score else "score",
        **({"cluster": cluster} if cluster else {}),
        **({"time": moment} if moment else {}),
    }
    if keys["label"] in group:
        raise label_as_group(keys["label"])
    rows = (
        (number, _row(line, number, keys, group)) for number, line in enumerate(stream, 1) if line.strip()
    )
    yield from _by_count(rows, _row_count(every)) if moment is None else _by_time(rows, every)


def _refuse_table_options(label: Sequence[str], score: Sequence[str], reading: dict[str, Any]) -> None:
    refused = [name for name, value in reading.items() if value and name not in ("quiet", "input_format")]
    if refused or max(len(label), len(score)) > 1:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in refused) or "several columns of classes"
        raise InputError(f"standard input takes one label and one score for each line, without {names}")


#: Rows with the numbers of their lines.
_Rows = Iterator[tuple[int, dict[str, Any]]]


def _by_count(stream: _Rows, size: int) -> Iterator[Batch]:
    """Yield windows with a fixed number of rows."""
    while rows := [row for _, row in islice(stream, size)]:
        yield _gather(rows, None)


def _by_time(stream: _Rows, every: str | None) -> Iterator[Batch]:
    """Yield windows of time."""
    rows: list[dict[str, Any]] = []
    open_window: Any = None
    for number, row in stream:
        (start,) = _windows_of(np.array([row["time"]]), every)[1]
        if rows and isinstance(start, str) != isinstance(open_window, str):
            raise InputError(
                f"line {number} of standard input has the time {row['time']!r}: some times are numbers and others dates"
            )
        if rows and start > open_window:
            yield _gather(rows, open_window)
            rows = []
        open_window = max(start, open_window) if rows else start
        rows.append(row)
    if rows:
        yield _gather(rows, open_window)


def _row(line: str, number: int, keys: dict[str, str], group: Sequence[str]) -> dict[str, Any]:
    try:
        content = json.loads(line, object_pairs_hook=unique_keys)
        row = {name: content[key] for name, key in keys.items()}
        row["group"] = ", ".join(str(content[key]) for key in group)
    except InputError as error:
        raise InputError(f"line {number} of standard input: {error.problem}") from None
    except (ValueError, TypeError, RecursionError):
        raise InputError(f"line {number} of standard input is not a JSON object") from None
    except KeyError as error:
        raise InputError(f"line {number} of standard input has no {error.args[0]!r}") from None
    if isinstance(row.get("time"), str) and _DIGITS.fullmatch(row["time"]):
        row["time"] = float(row["time"])  # a number, as in a file
    score = row["score"]
    valid = row["label"] in (0, 1) and isinstance(score, int | float) and 0 <= score <= 1
    valid = valid and not isinstance(score, bool)
    if not valid:
        raise InputError(
            f"line {number} of standard input must have a label of 0 or 1 and a score in [0, 1]. "
            f"Got {row['label']!r} and {row['score']!r} instead"
        )
    return row


def _gather(rows: list[dict[str, Any]], time: Any) -> Batch:
    columns: dict[str, Any] = {
        "label": np.array([row["label"] for row in rows], dtype=np.int64),
        "score": np.array([row["score"] for row in rows], dtype=np.float64),
    }
    if "cluster" in rows[0]:
        columns["cluster"] = np.array([str(row["cluster"]) for row in rows], dtype=object)
    number = {name: k for k, name in enumerate(dict.fromkeys(row["group"] for row in rows))}
    columns["names"], columns["group"] = list(number), np.array([number[row["group"]] for row in rows])
    return Batch(time, _parts(columns, np.arange(len(rows))))
