from __future__ import annotations

import numpy as np
import pytest

from truecal.recalibration import (
    BetaCalibration,
    DirichletCalibration,
    HistogramBinning,
    IdentityCalibration,
    IsotonicCalibration,
    PlattScaling,
    TemperatureScaling,
    VectorScaling,
    VennAbersCalibration,
)

KINDS = {
    "histogram": HistogramBinning,
    "histogram-width": lambda **given: HistogramBinning(strategy="width", **given),
    "isotonic": IsotonicCalibration,
    "temperature": TemperatureScaling,
    "platt": PlattScaling,
    "platt-labels": lambda **given: PlattScaling(targets="labels", **given),
    "beta": BetaCalibration,
    "vector": VectorScaling,
    "dirichlet": DirichletCalibration,
    "venn-abers": VennAbersCalibration,
    "identity": IdentityCalibration,
}


@pytest.fixture(params=KINDS)
def make(request):
    """A function that makes one of the recalibrators, for probabilities unless it is told otherwise."""

    def build(**given):
        return KINDS[request.param](**{"input": "probabilities", **given})

    build.name = request.param
    return build


@pytest.fixture(scope="session")
def three_classes():
    """Labels and over-confident logits of three classes."""
    rng = np.random.default_rng(7)
    logits = rng.normal(size=(600, 3)) * 2
    chance = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    label = (rng.random((600, 1)) > chance.cumsum(axis=1)).sum(axis=1)
    return label, 2 * logits
