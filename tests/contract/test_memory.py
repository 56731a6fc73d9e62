"""Every estimator needs little memory beyond its input."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import truecal

#: Nested bins in addition to the sorted rows, or tables whose size does not depend on the rows.
LARGER = {"multiscale", "overconfidence", "underconfidence", "kde", "skce"}


@pytest.mark.parametrize("name", sorted({spec.name for spec in truecal.list_estimators()} - LARGER))
def test_peak_memory_is_at_most_five_times_the_scores(name: str) -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(500_000)
    labels = (rng.random(len(scores)) < scores).astype(np.int64)
    truecal.calibration_error(labels[:100], scores[:100], estimator=name)  # imports
    tracemalloc.start()
    truecal.calibration_error(labels, scores, estimator=name)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * scores.nbytes + 5e6  # the arrays of one step do not grow with the rows
