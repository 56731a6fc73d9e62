from datetime import date, datetime

import numpy as np
import pytest

from truecal.exceptions import InputError
from truecal.inference.monitor.times import span


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


@pytest.mark.parametrize("time", [[], np.datetime64("NaT")])
def test_times_that_say_nothing_are_refused(time):
    with pytest.raises(InputError, match="time"):
        span(time)
