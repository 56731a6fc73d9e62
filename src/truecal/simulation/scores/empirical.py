"""Observed scores, resampled with replacement."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from truecal._lib.checks import check_probabilities
from truecal._lib.types import FloatArray
from truecal.simulation.scores._base import DiscreteScores


@dataclass(frozen=True, eq=False)
class EmpiricalScores(DiscreteScores):
    """Observed scores, resampled with replacement; each distinct score is a point mass.

    Parameters
    ----------
    values : array-like
        Observed scores in [0, 1]. A population returns float32 scores if these are float32.

    Examples
    --------
    >>> scores = EmpiricalScores([0.2, 0.9, 0.9, 1.0])
    >>> scores
    EmpiricalScores(4 scores, mean 0.75)
    >>> scores.point_masses[1].tolist()
    [0.25, 0.5, 0.25]
    """

    values: FloatArray
    _dtype: np.dtype[Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = getattr(self.values, "dtype", None)
        values = check_probabilities("values", self.values)
        values.flags.writeable = False
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "_dtype", np.dtype(np.float32 if given == np.float32 else np.float64))

    def __repr__(self) -> str:
        return f"EmpiricalScores({self.values.size} scores, mean {self.mean:.6g})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EmpiricalScores):
            return NotImplemented
        return self._dtype == other._dtype and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash((self._dtype.str, self.values.tobytes()))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw `n` scores with replacement and return (score, complement)."""
        score = self.values[rng.integers(0, self.values.size, size=n)]
        return score, 1 - score

    @cached_property
    def _masses(self) -> tuple[FloatArray, FloatArray]:
        distinct, count = np.unique(self.values, return_counts=True)
        return distinct, count / self.values.size

    @property
    def point_masses(self) -> tuple[FloatArray, FloatArray]:
        """The distinct scores, increasing, and their shares."""
        return self._masses

    @property
    def output_dtype(self) -> np.dtype[Any]:
        """The type of the observed scores: float32 or float64."""
        return self._dtype
