"""Samples from counts at a few scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truecal import Sample


def sample_of(score: Sequence[float], count: Sequence[float], positives: Sequence[float]) -> Sample:
    """Return the sample with these scores, numbers of rows and of positive rows."""
    arrays = {"score": score, "count": count, "positives": positives}
    return Sample(**{name: np.array(values, dtype=float) for name, values in arrays.items()})
