"""Scores with a uniform distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from truecal._lib.checks import check_real
from truecal._lib.types import FloatArray, ScoreFunction
from truecal.exceptions import InputError
from truecal.simulation.scores._base import ScoreDistribution
from truecal.simulation.scores._quadrature import PowerWeight


@dataclass(frozen=True)
class UniformScores(ScoreDistribution):
    """Scores with a uniform distribution on [low, high].

    Parameters
    ----------
    low, high : float
        Ends of the interval, 0 <= low < high <= 1.

    Examples
    --------
    >>> scores = UniformScores(0.5, 1)
    >>> scores.mean
    0.75
    >>> round(scores.expect(lambda score, complement: complement**2), 12)
    0.083333333333
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "high", check_real("high", self.high, above=0, at_most=1))
        object.__setattr__(self, "low", check_real("low", self.low, at_least=0))
        if not self.low < self.high:
            raise InputError(
                f"must be smaller than high ({self.high:g}). Got {self.low!r} instead", argument="low"
            )

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw `n` scores and return (score, complement)."""
        share = rng.random(n)
        width = self.high - self.low
        return self.low + width * share, (1 - self.high) + width * (1 - share)

    def _expect(self, function: ScoreFunction, points: Sequence[float], atol: float, rtol: float) -> float:
        """Return E[function(score, complement)] by adaptive quadrature."""
        eighths = np.array([1e-3, 0.125, 0.25, 0.375])
        weight = PowerWeight(
            1.0, 1.0, float(np.log(self.high - self.low)), self.low, self.high, cuts=(eighths, eighths)
        )
        return weight.mean(function, points, atol, rtol)

    def cdf(self, score: ArrayLike) -> FloatArray:
        """Return P(C <= score)."""
        c = np.asarray(score, dtype=np.float64)
        return np.asarray(np.clip((c - self.low) / (self.high - self.low), 0, 1))

    def pdf(self, score: ArrayLike) -> FloatArray:
        """Return the density, 1 / (high - low) on the interval."""
        c = np.asarray(score, dtype=np.float64)
        return np.where((c >= self.low) & (c <= self.high), 1 / (self.high - self.low), 0.0)

    @property
    def mean(self) -> float:
        """The mean score, (low + high) / 2."""
        return (self.low + self.high) / 2

    def moment(self, power: float) -> float:
        """Return E[C^power].

        Parameters
        ----------
        power : float
            The exponent, greater than -1.
        """
        top = power + 1
        return float((self.high**top - self.low**top) / (top * (self.high - self.low)))

    def probe(self) -> tuple[FloatArray, FloatArray]:
        """Return the part of the fixed grid that lies in the interval, and its ends."""
        score, complement = super().probe()
        inside = (score > self.low) & (score < self.high)
        return (
            np.concatenate([[self.low], score[inside], [self.high]]),
            np.concatenate([[1 - self.low], complement[inside], [1 - self.high]]),
        )
