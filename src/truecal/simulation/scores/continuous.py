"""Distributions of predicted probabilities: Beta, uniform, mixtures, atoms, real scores, rounding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv, betaln, xlog1py, xlogy

from truecal._lib.checks import check_real, check_shares
from truecal._lib.types import FloatArray, ScoreFunction
from truecal.simulation.scores._base import ScoreDistribution, draw_index, merge_masses
from truecal.simulation.scores._quadrature import PowerWeight
from truecal.simulation.scores.discrete import AtomScores, EmpiricalScores
from truecal.simulation.scores.rounded import RoundedScores

__all__ = [
    "AtomScores",
    "BetaScores",
    "EmpiricalScores",
    "MixtureScores",
    "RoundedScores",
    "ScoreDistribution",
    "UniformScores",
    "with_atoms",
]

# The first panels of the quadrature end at these quantiles, so that a narrow peak is not missed.
_PROBABILITIES = np.array([1e-12, 1e-6, 1e-3, 0.03, 0.15, 0.4, 0.7, 0.9, 0.99])


@dataclass(frozen=True)
class BetaScores(ScoreDistribution):
    r"""Scores with a Beta(a, b) distribution.

    .. math:: f(c) = \frac{c^{a-1} (1-c)^{b-1}}{B(a, b)}

    The end that is singular is drawn directly, so that nothing is lost there: for b < 1 the complement
    t ~ Beta(b, a), score = 1 - t; for a < 1 the score; when both are, each with its share, by
    Beta(a, b) = a/(a+b) Beta(a+1, b) + b/(a+b) Beta(a, b+1).

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

    def expect(
        self,
        function: ScoreFunction,
        *,
        points: Sequence[float] = (),
        atol: float = 1e-12,
        rtol: float = 1e-12,
    ) -> float:
        """Return E[function(score, complement)] by quadrature that removes both singular ends.

        Rounding in the density adds a relative error of some 1e-15 (a + b): nothing for fitted scores.
        """
        return self._weight.mean(function, points=points, atol=atol, rtol=rtol)

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


@dataclass(frozen=True)
class UniformScores(ScoreDistribution):
    """Scores with equal density everywhere on [low, high].

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
            raise ValueError(f"low must be smaller than high ({self.high:g}). Got {self.low!r} instead.")

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw `n` scores and return (score, complement)."""
        share = rng.random(n)
        width = self.high - self.low
        return self.low + width * share, (1 - self.high) + width * (1 - share)

    def expect(
        self,
        function: ScoreFunction,
        *,
        points: Sequence[float] = (),
        atol: float = 1e-12,
        rtol: float = 1e-12,
    ) -> float:
        """Return E[function(score, complement)] by adaptive quadrature."""
        eighths = np.array([1e-3, 0.125, 0.25, 0.375])
        weight = PowerWeight(
            1.0, 1.0, float(np.log(self.high - self.low)), self.low, self.high, cuts=(eighths, eighths)
        )
        return weight.mean(function, points=points, atol=atol, rtol=rtol)

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
        """Return the fixed grid, as far as it lies on the interval, and the ends."""
        score, complement = super().probe()
        inside = (score > self.low) & (score < self.high)
        return (
            np.concatenate([[self.low], score[inside], [self.high]]),
            np.concatenate([[1 - self.low], complement[inside], [1 - self.high]]),
        )


@dataclass(frozen=True)
class MixtureScores(ScoreDistribution):
    r"""A mixture: each score comes from component k with probability w_k.

    .. math:: F(c) = \sum_k w_k F_k(c)

    Parameters
    ----------
    components : sequence of ScoreDistribution
    weights : sequence of float
        Their probabilities, which sum to 1.

    Examples
    --------
    >>> scores = MixtureScores([UniformScores(), BetaScores(5, 1)], weights=[0.25, 0.75])
    >>> round(scores.mean, 12)
    0.75
    """

    components: Sequence[ScoreDistribution]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        components = tuple(self.components)
        for component in components:
            if not isinstance(component, ScoreDistribution):
                raise ValueError(f"components must be score distributions. Got {component!r} instead.")
        shares = check_shares("weights", self.weights, count=len(components))
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "weights", tuple(shares.tolist()))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw `n` scores and return (score, complement): which component first, then from each."""
        chosen = draw_index(np.asarray(self.weights), n, rng)
        score, complement = np.empty(n), np.empty(n)
        for k, component in enumerate(self.components):
            rows = np.flatnonzero(chosen == k)
            score[rows], complement[rows] = component.draw(rows.size, rng)
        return score, complement

    def expect(
        self,
        function: ScoreFunction,
        *,
        points: Sequence[float] = (),
        atol: float = 1e-12,
        rtol: float = 1e-12,
    ) -> float:
        """Return E[function(score, complement)], the weighted mean over the components."""
        return fsum(
            weight * component.expect(function, points=points, atol=atol, rtol=rtol)
            for component, weight in zip(self.components, self.weights, strict=True)
        )

    def cdf(self, score: ArrayLike) -> FloatArray:
        """Return P(C <= score)."""
        parts = [w * part.cdf(score) for part, w in zip(self.components, self.weights, strict=True)]
        return np.asarray(sum(parts))

    def pdf(self, score: ArrayLike) -> FloatArray:
        """Return the density of the continuous part; it integrates to less than 1 if there are atoms."""
        parts = [w * part.pdf(score) for part, w in zip(self.components, self.weights, strict=True) if w]
        return np.asarray(sum(parts))

    @property
    def mean(self) -> float:
        """The mean score."""
        return fsum(w * part.mean for part, w in zip(self.components, self.weights, strict=True))

    @property
    def point_masses(self) -> tuple[FloatArray, FloatArray]:
        """The point masses of all components, increasing, and their probabilities."""
        masses = [part.point_masses for part in self.components]
        return merge_masses(
            np.concatenate([values for values, _ in masses]),
            np.concatenate([w * mass for w, (_, mass) in zip(self.weights, masses, strict=True)]),
        )

    @property
    def output_dtype(self) -> np.dtype[Any]:
        """float32 if all components are, else float64; exact zeros and ones fit into either."""
        parts = [part.output_dtype for part in self.components if not _only_ends(part)]
        return np.result_type(*parts) if parts else np.dtype(np.float64)

    def probe(self) -> tuple[FloatArray, FloatArray]:
        """Return what the components return, one after the other."""
        parts = [part.probe() for part in self.components]
        return np.concatenate([c for c, _ in parts]), np.concatenate([t for _, t in parts])


def with_atoms(scores: ScoreDistribution, *, at_zero: float = 0.0, at_one: float = 0.0) -> MixtureScores:
    """Return `scores` with a share of exact zeros and of exact ones added.

    Parameters
    ----------
    scores : ScoreDistribution
        The distribution of the other scores.
    at_zero, at_one : float
        Shares of all scores that are exactly 0 and exactly 1; together at most 1.

    Returns
    -------
    MixtureScores

    Examples
    --------
    >>> scores = with_atoms(UniformScores(), at_one=0.3)
    >>> scores.point_masses[1].tolist()
    [0.3]
    >>> scores.cdf([0.5, 1.0]).tolist()
    [0.35, 1.0]
    """
    zero = check_real("at_zero", at_zero, at_least=0, at_most=1)
    one = check_real("at_one", at_one, at_least=0, at_most=1 - zero)
    return MixtureScores((AtomScores([0.0]), AtomScores([1.0]), scores), (zero, one, 1 - zero - one))


def _only_ends(scores: ScoreDistribution) -> bool:
    return isinstance(scores, AtomScores) and set(scores.values) <= {0.0, 1.0}
