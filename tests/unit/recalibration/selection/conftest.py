"""Predictions that need recalibrating."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax


@pytest.fixture(scope="module")
def bad(golden):
    """Labels that are positive with probability p squared."""
    return golden(1000)


@pytest.fixture(scope="module")
def classes():
    """Labels and logits of four classes, twice as sure as they should be."""
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(800, 4)) * 2
    label = (rng.random((800, 1)) > softmax(logits, axis=1).cumsum(axis=1)).sum(axis=1)
    return label, 2 * logits
