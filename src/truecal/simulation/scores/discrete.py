"""Score distributions made of point masses only: named atoms, and real scores drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from truecal._lib.checks import check_probabilities, check_shares
from truecal._lib.types import FloatArray, ScoreFunction
from truecal.simulation.scores._base import ScoreDistribution, draw_index, merge_masses, step_cdf


class DiscreteScores(ScoreDistribution):
    """What all distributions made only of point masses share: sums in place of integrals."""

    def expect(
        self,
        function: ScoreFunction,
        *,
        points: Sequence[float] = (),
        atol: float = 1e-12,
        rtol: float = 1e-12,
    ) -> float:
        """Return E[function(score, complement)], a sum over the point masses; exact, so hints are unused."""
        values, masses = self.point_masses
        return float(np.sum(masses * np.asarray(function(values, 1 - values), dtype=np.float64)))

    def cdf(self, score: ArrayLike) -> FloatArray:
        """Return P(C <= score), a step function."""
        return step_cdf(self.point_masses, score)

    def pdf(self, score: ArrayLike) -> FloatArray:
        """Return zeros: there is no continuous part."""
        return np.zeros(np.shape(score))

    @property
    def mean(self) -> float:
        """The mean score."""
        values, masses = self.point_masses
        return float(values @ masses)

    def probe(self) -> tuple[FloatArray, FloatArray]:
        """Return the point masses themselves."""
        values, _ = self.point_masses
        return values, 1 - values


@dataclass(frozen=True)
class AtomScores(DiscreteScores):
    """Scores that take a few values only, each with a probability of its own.

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


@dataclass(frozen=True, eq=False)
class EmpiricalScores(DiscreteScores):
    """Real scores, drawn again with replacement; each distinct score is a point mass.

    Parameters
    ----------
    values : array-like
        Observed scores in [0, 1]. A float32 array stays float32 in what a population returns.

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
