"""Times of batches, as a state file can hold them."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np

from truecal._lib.checks import check_real
from truecal.data.arrays import to_array, to_python
from truecal.exceptions import InputError


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
    return int(number) if number.is_integer() else number
