"""Input that must be refused with an exact message."""

import re

import pytest

from truecal.data import as_samples
from truecal.exceptions import InputError, Remedy

FOUR_LABELS, FOUR_SCORES = [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]


THREE = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]]


NAN = float("nan")


def refused(message, *arguments, function=as_samples, **options):
    """Expect the whole message, in which `...` stands for anything."""
    pattern = re.escape(message).replace(r"\.\.\.", ".*")
    with pytest.raises(InputError, match=f"^{pattern}$"):
        function(*arguments, **options)


OUTSIDE, ROUNDING, FIX = Remedy.LOGITS.value, Remedy.CLIP.value, Remedy.DROP_ROWS.value
