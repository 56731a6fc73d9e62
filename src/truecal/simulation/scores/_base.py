"""The interface of score distributions, and what they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal._lib.types import FloatArray, ScoreFunction

# (score, complement) on a fixed grid that is dense at both ends, where curves vary most.
_TAIL = np.logspace(-300, -3, 34)
_BODY = np.linspace(0, 1, 101)[1:-1]
GRID: tuple[FloatArray, FloatArray] = (
    np.concatenate([[0.0], _TAIL, _BODY, 1 - _TAIL, [1.0]]),
    np.concatenate([[1.0], 1 - _TAIL, 1 - _BODY, _TAIL, [0.0]]),
)


class ScoreDistribution(ABC):
    """A distribution of predicted probabilities on [0, 1].

    A score c is always accompanied by its complement t = 1 - c. Skewed models put a large share of their scores
    closer to 1 than floating-point numbers can represent (18% of Beta(2.78, 0.048) lies within 2^-54 of 1), and
    a curve that needs log(1 - c) must compute it from t.
    """

    @abstractmethod
    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw `n` scores and return (score, complement), two float64 arrays.

        Parameters
        ----------
        n : int
            Number of scores.
        rng : numpy.random.Generator
            Random generator.

        Returns
        -------
        score, complement : ndarray of shape (n,)
            The scores, and 1 - score without loss of precision near 1; float64.
        """

    def expect(
        self,
        function: ScoreFunction,
        *,
        points: Sequence[float] = (),
        atol: float = 1e-12,
        rtol: float = 1e-12,
    ) -> float:
        """Return E[function(score, complement)].

        Parameters
        ----------
        function : callable
            Vectorised function of (score, complement), bounded.
        points : sequence of float
            Scores where it has a jump or a kink. Others are found by bisection, which is slower and may miss a
            narrow spike.
        atol, rtol : float
            Target accuracy: max(atol, rtol * abs(result)).
        """
        return self._expect(function, points, atol, rtol)

    @abstractmethod
    def _expect(self, function: ScoreFunction, points: Sequence[float], atol: float, rtol: float) -> float:
        """Return E[function(score, complement)]; the parameters are those of `expect`."""

    @abstractmethod
    def cdf(self, score: ArrayLike) -> FloatArray:
        """Return P(C <= score).

        Parameters
        ----------
        score : array-like
            Scores, of any shape.
        """

    @abstractmethod
    def pdf(self, score: ArrayLike) -> FloatArray:
        """Return the density of the continuous part; `point_masses` has the rest.

        Parameters
        ----------
        score : array-like
            Scores, of any shape.
        """

    @property
    @abstractmethod
    def mean(self) -> float:
        """The mean score."""

    @property
    def point_masses(self) -> tuple[FloatArray, FloatArray]:
        """Scores with positive probability, increasing, and these probabilities."""
        return np.empty(0), np.empty(0)

    @property
    def output_dtype(self) -> np.dtype[Any]:
        """Type of the scores that a population returns: float64 or float32."""
        return np.dtype(np.float64)

    def probe(self) -> tuple[FloatArray, FloatArray]:
        """Return fixed (score, complement) pairs that cover the support, for quick checks of a curve."""
        return GRID


class DiscreteScores(ScoreDistribution):
    """Base of distributions that consist of point masses: expectations are sums."""

    def _expect(self, function: ScoreFunction, points: Sequence[float], atol: float, rtol: float) -> float:
        """Return the sum over the point masses, which is exact."""
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


def step_cdf(point_masses: tuple[FloatArray, FloatArray], score: ArrayLike) -> FloatArray:
    """Return the total of the point masses at or below each score."""
    values, masses = point_masses
    total = np.concatenate([[0.0], np.cumsum(masses)])
    return np.asarray(total[np.searchsorted(values, score, side="right")])


def merge_masses(values: FloatArray, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return distinct values, increasing, with their total masses; values without mass are dropped."""
    distinct, position = np.unique(values, return_inverse=True)
    total = np.bincount(position, weights=masses, minlength=distinct.size).astype(np.float64)
    return distinct[total > 0], total[total > 0]


def draw_index(weights: FloatArray, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw `n` indices with these probabilities, from one uniform number each."""
    # Without the last boundary, which may be below 1 by rounding.
    return np.searchsorted(np.cumsum(weights)[:-1], rng.random(n), side="right")
