"""Times of rows and of batches."""

from __future__ import annotations

import contextlib
import warnings
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.checks import check_real
from truecal._lib.types import FloatArray
from truecal.data.arrays import to_array, to_python
from truecal.exceptions import InputError

#: Moments this close to the beginning of a step, in steps, belong to it.
_SAME_MOMENT = 1e-9


def read_moments(time: Any, *, argument: str = "time") -> NDArray[Any]:
    """Return the times of rows as numbers or as dates in UTC, or say which cannot be read.

    Parameters
    ----------
    time : array-like of shape (n,)
        Numbers, dates, or ISO 8601 text. Text with a time zone is converted to UTC; text without is taken as UTC.
    argument : str
        What to call it in an error.

    Examples
    --------
    >>> read_moments(["2026-03-01T00:30:00+01:00", "2026-03-01"])
    array(['2026-02-28T23:30:00.000000', '2026-03-01T00:00:00.000000'],
          dtype='datetime64[us]')
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
    """Return the moments that ISO 8601 text gives, or NaT; by NumPy, which is faster, where it reads all of it."""
    width = text.dtype.itemsize // 4
    if len(text) and width >= 10:
        letters = np.ascontiguousarray(text).view("U1").reshape(len(text), width)
        if (letters[:, [4, 7]] == "-").all():  # not a year, nor a word such as today
            with contextlib.suppress(ValueError, DeprecationWarning, UserWarning), warnings.catch_warnings():
                warnings.simplefilter("error")  # NumPy warns where there is a time zone
                return text.astype("datetime64[us]")
    distinct, place = np.unique(text, return_inverse=True)
    return np.array([_parse(one) for one in distinct.tolist()], dtype="datetime64[us]")[place]


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

    Examples
    --------
    >>> number_steps(np.array([0.29, 0.3, 0.7]), 0.1)
    array([2., 3., 7.])
    """
    exact = moments / step
    nearest = np.rint(exact)  # 0.3 / 0.1 is a little less than 3
    is_edge = np.isclose(exact, nearest, rtol=_SAME_MOMENT, atol=_SAME_MOMENT)
    return np.asarray(np.where(is_edge, nearest, np.floor(exact)))


def last_by_cluster(cluster: NDArray[np.intp], moments: NDArray[Any]) -> NDArray[Any]:
    """Return for each row the last moment of its cluster, as all rows of a cluster must be in one batch.

    Examples
    --------
    >>> last_by_cluster(np.array([0, 1, 0]), np.array([1, 2, 5]))
    array([5, 2, 5])
    """
    last = np.full(int(cluster.max(initial=-1)) + 1, moments.min())
    np.maximum.at(last, cluster, moments)
    return np.asarray(last[cluster])


def span(time: Any) -> tuple[Any, Any]:
    """Return the first and the last of times, as JSON can hold them."""
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
