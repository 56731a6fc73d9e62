"""Scores with finitely many values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truecal._lib.checks import check_probabilities, check_shares
from truecal._lib.types import FloatArray
from truecal.simulation.scores._base import DiscreteScores, draw_index, merge_masses


@dataclass(frozen=True)
class AtomScores(DiscreteScores):
    """Scores with finitely many values, each with its own probability.

    Parameters
    ----------
    values : sequence of float
        Scores in [0, 1].
    weights : sequence of float, optional
        Their probabilities, which sum to 1. By default all are equal.

    Examples
    --------
    >>> scores = AtomScores([0.0, 0.5, 1.0], weights=[0.1, 0.2, 0.7])
    >>> round(scores.mean, 12)
    0.8
    >>> scores.cdf([0.0, 0.5, 0.99]).round(12).tolist()
    [0.1, 0.3, 0.3]
    """

    values: Sequence[float]
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        values = check_probabilities("values", self.values)
        weights = np.full(values.size, 1 / values.size) if self.weights is None else self.weights
        shares = check_shares("weights", weights, count=values.size)
        object.__setattr__(self, "values", tuple(values.tolist()))
        object.__setattr__(self, "weights", tuple(shares.tolist()))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw `n` scores and return (score, complement)."""
        score = np.asarray(self.values)[draw_index(np.asarray(self.weights), n, rng)]
        return score, 1 - score

    @property
    def point_masses(self) -> tuple[FloatArray, FloatArray]:
        """The distinct values, increasing, and their probabilities."""
        return merge_masses(np.asarray(self.values), np.asarray(self.weights))
