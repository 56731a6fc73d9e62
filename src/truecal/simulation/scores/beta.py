"""Scores with a Beta distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv, betaln, xlog1py, xlogy

from truecal._lib.checks import check_real
from truecal._lib.types import FloatArray, ScoreFunction
from truecal.simulation.scores._base import ScoreDistribution
from truecal.simulation.scores._quadrature import PowerWeight

# The first panels of the quadrature end at these quantiles, so that a narrow peak is not missed.
_PROBABILITIES = np.array([1e-12, 1e-6, 1e-3, 0.03, 0.15, 0.4, 0.7, 0.9, 0.99])


@dataclass(frozen=True)
class BetaScores(ScoreDistribution):
    r"""Scores with a Beta(a, b) distribution.

    .. math:: f(c) = \frac{c^{a-1} (1-c)^{b-1}}{B(a, b)}

    The singular end is drawn directly, so that no precision is lost there: for b < 1 the complement
    t ~ Beta(b, a) with score = 1 - t; for a < 1 the score; if both are below 1, each with its probability in
    the mixture Beta(a, b) = a/(a+b) Beta(a+1, b) + b/(a+b) Beta(a, b+1).

    Parameters
    ----------
    a, b : float
        Shape parameters, positive.

    Examples
    --------
    >>> scores = BetaScores(2.7752, 0.0478)
    >>> round(scores.mean, 4)
    0.9831
    >>> score, complement = scores.draw(1000, np.random.default_rng(0))
    >>> bool((score == 1).any()), bool((complement == 0).any())
    (True, False)
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", check_real("a", self.a, above=0))
        object.__setattr__(self, "b", check_real("b", self.b, above=0))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw `n` scores and return (score, complement)."""
        a, b = self.a, self.b
        if a < 1 and b < 1:
            at_one = rng.random(n) < a / (a + b)
            small = rng.beta(np.where(at_one, b, a), np.where(at_one, a + 1, b + 1))
            return np.where(at_one, 1 - small, small), np.where(at_one, small, 1 - small)
        if a < 1:
            score = rng.beta(a, b, n)
            return score, 1 - score
        complement = rng.beta(b, a, n)
        return 1 - complement, complement

    def _expect(self, function: ScoreFunction, points: Sequence[float], atol: float, rtol: float) -> float:
        """Return E[function(score, complement)] by quadrature that removes both singularities.

        Rounding in the density adds a relative error of about 1e-15 (a + b).
        """
        return self._weight.mean(function, points, atol, rtol)

    @cached_property
    def _weight(self) -> PowerWeight:
        cuts = (betaincinv(self.a, self.b, _PROBABILITIES), betaincinv(self.b, self.a, _PROBABILITIES))
        return PowerWeight(self.a, self.b, float(betaln(self.a, self.b)), cuts=cuts)

    def cdf(self, score: ArrayLike) -> FloatArray:
        """Return P(C <= score), the regularised incomplete beta function."""
        return np.asarray(betainc(self.a, self.b, np.clip(np.asarray(score, dtype=np.float64), 0, 1)))

    def pdf(self, score: ArrayLike) -> FloatArray:
        """Return the density; it is infinite at 1 when b < 1 and at 0 when a < 1."""
        c = np.asarray(score, dtype=np.float64)
        inside = (c >= 0) & (c <= 1)
        c = np.where(inside, c, 0.5)
        height = np.exp(xlogy(self.a - 1, c) + xlog1py(self.b - 1, -c) - betaln(self.a, self.b))
        return np.where(inside, height, 0.0)

    @property
    def mean(self) -> float:
        """The mean score, a / (a + b)."""
        return self.a / (self.a + self.b)

    def moment(self, power: float) -> float:
        """Return E[C^power] = B(a + power, b) / B(a, b).

        Parameters
        ----------
        power : float
            The exponent, greater than -a.
        """
        return float(np.exp(betaln(self.a + power, self.b) - betaln(self.a, self.b)))
