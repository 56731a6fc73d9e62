"""A batch of rows, reduced to what a monitor needs of it, and the times of its rows."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from truecal._lib.checks import check_real
from truecal._lib.types import FloatArray
from truecal.data import as_sample, read_rows
from truecal.data.arrays import to_array, to_python
from truecal.data.clusters import Keys, cluster_keys
from truecal.data.question import refuse_imperfect
from truecal.data.sample import Sample
from truecal.exceptions import InputError
from truecal.inference.monitor._evidence import N_REGIONS, Evidence, tally, weigh, weigh_clusters
from truecal.inference.monitor._state import SeenClusters

#: Moments this close to the beginning of a step, in steps, belong to it.
_SAME_MOMENT = 1e-9


@dataclass(frozen=True, eq=False)
class Batch:
    """What a monitor needs of a batch.

    Attributes
    ----------
    evidence : Evidence or None
        What the rows say about each alternative; None if no row counts.
    sums : ndarray of shape (3, N_REGIONS)
        Number of units, and sums of their labels and scores, by region; each row of a cluster is a part of a unit.
    gap : float
        Observed frequency less mean score.
    failures : int
        Labels that contradict scores of exactly 0 or 1.
    target : str
        What the scores are probabilities of.
    clusters : ndarray of uint64
        Keys of the clusters that count; none if rows are independent.
    rows_left_out : float
        Rows of clusters that do not count, for example because they were counted before.
    """

    evidence: Evidence | None
    sums: FloatArray
    gap: float
    failures: int
    target: str
    clusters: Keys
    rows_left_out: float = 0.0

    @classmethod
    def read(
        cls,
        y_true: Any,
        y_proba: Any,
        clusters: Any,
        reading: dict[str, Any],
        seen: SeenClusters,
    ) -> Self:
        """Return the batch of labels and probabilities, or of a `Sample`, without the clusters that were `seen`."""
        score, count, positives, key, target = _entries(y_true, y_proba, clusters, reading)
        keys, cluster, left_out = np.empty(0, dtype=np.uint64), None, 0.0
        if key is not None:
            counts = seen.may_count(key)
            left_out = float(count[~counts].sum())
            score, count, positives = score[counts], count[counts], positives[counts]
            keys, cluster = np.unique(key[counts], return_inverse=True)
        if not len(score):
            return cls(None, np.zeros((3, N_REGIONS)), 0.0, 0, target, keys, left_out)
        cells = tally(score, count, positives)
        rows, labels, scores = cells.sum(axis=1).tolist()
        failures = int(positives[score == 0].sum() + (count - positives)[score == 1].sum())
        if cluster is None:
            evidence = weigh(cells)
        else:
            evidence = weigh_clusters(score, count, positives, cluster)
            size = np.bincount(cluster, count)[cluster]
            cells = tally(score, count / size, positives / size)
        sums = cells.reshape(3, N_REGIONS, -1).sum(axis=2)
        return cls(evidence, sums, (labels - scores) / rows, failures, target, keys, left_out)


def _entries(
    y_true: Any, y_proba: Any, clusters: Any, reading: dict[str, Any]
) -> tuple[FloatArray, FloatArray, FloatArray, Keys | None, str]:
    """Return scores, counts, positive labels and keys of clusters, and the target."""
    if not isinstance(y_true, Sample):
        (rows,) = read_rows(y_true, y_proba, clusters=clusters, **reading)
        refuse_imperfect(rows, "a monitor")
        score = rows.score.astype(np.float64)
        key = None if clusters is None else cluster_keys(clusters, len(score))
        return score, np.ones(len(score)), rows.label.astype(np.float64), key, rows.target
    sample = as_sample(y_true, y_proba, clusters=clusters)
    if not sample.counted:
        raise InputError("The monitor takes no sampling weights", remedy="Pass rows, or counts.")
    entries = sample.clusters
    if entries is None:
        return sample.score, sample.count, sample.positives, None, sample.target
    if entries.keys is None:
        raise InputError(
            "The clusters of this sample have no names, so that a cluster that comes back later cannot be recognised",
            remedy="Pass labels, probabilities and clusters, or cells that truecal.summarize made of up to 2^24 rows.",
        )
    key = entries.keys[entries.cluster]
    return sample.score[entries.group], entries.weight, entries.positives, key, sample.target


def read_moments(time: Any, *, argument: str = "time") -> NDArray[Any]:
    """Return the times of rows, given as numbers, dates or ISO 8601 text, as numbers or dates.

    Text with a time zone is converted to UTC; text without is taken as UTC.
    """
    given = to_array(time, argument)[0].ravel()
    if given.dtype.kind == "M":
        moments, wrong = given, np.isnat(given)
    elif given.dtype.kind in "iufb":
        moments = given.astype(np.float64)
        wrong = ~np.isfinite(moments)
    else:
        moments = _parse_all(given.astype(str))
        wrong = np.isnat(moments)
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(
            "has missing times, or times that are neither numbers nor ISO dates such as 2026-03-01",
            argument=argument,
            first_row=row,
            value=str(given[row]),
        )
    return moments


def _parse_all(text: NDArray[np.str_]) -> NDArray[np.datetime64]:
    """Return the dates of ISO 8601 text, or NaT; by NumPy, which is faster, if it can read all of them."""
    if all((np.strings.find(text, "-", place, place + 1) == place).all() for place in (4, 7)):
        # It is not a year, nor a word such as today.
        with contextlib.suppress(ValueError, DeprecationWarning, UserWarning), warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy warns where there is a time zone
            return text.astype("datetime64[us]")
    distinct, index = np.unique(text, return_inverse=True)
    return np.array([_parse(value) for value in distinct.tolist()], dtype="datetime64[us]")[index]


def _parse(text: str) -> np.datetime64:
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):  # the latter where UTC is before the year 1 or after 9999
        return np.datetime64("NaT", "us")
    return np.datetime64(moment, "us")


def number_steps(moments: FloatArray, step: float) -> FloatArray:
    """Return the number of the step that each moment is in, where the first begins at 0.

    A moment that rounding leaves just below the beginning of a step belongs to it.
    """
    exact = moments / step
    nearest = np.rint(exact)  # 0.3 / 0.1 is a little less than 3
    is_edge = np.isclose(exact, nearest, rtol=_SAME_MOMENT, atol=_SAME_MOMENT)
    return np.asarray(np.where(is_edge, nearest, np.floor(exact)))


def last_by_cluster(cluster: NDArray[np.intp], moments: NDArray[Any]) -> NDArray[Any]:
    """Return for each row the last moment of its cluster, as all rows of a cluster must be in one batch."""
    last = np.full(int(cluster.max(initial=-1)) + 1, moments.min())
    np.maximum.at(last, cluster, moments)
    return np.asarray(last[cluster])


def span(time: Any) -> tuple[Any, Any]:
    """Return the first and the last of times as JSON-compatible values."""
    if time is None:
        return None, None
    if isinstance(time, str | date | datetime | np.datetime64) or np.ndim(time) == 0:
        moment = _moment(time)
        return moment, moment
    moments = to_array(time, "time")[0].ravel()
    if not len(moments):
        raise InputError("is empty", argument="time")
    return _moment(min(moments)), _moment(max(moments))


def _moment(time: Any) -> str | float:
    """Return a time as a number or as text that sorts."""
    if isinstance(time, datetime | date):
        return time.isoformat()
    if isinstance(time, np.datetime64):
        if np.isnat(time):
            raise InputError("has a missing value", argument="time")
        return str(time.astype("datetime64[us]")).removesuffix(".000000")
    if isinstance(time, str):
        return time
    number = check_real("time", to_python(time))
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
