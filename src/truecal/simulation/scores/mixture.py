"""Mixtures of score distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from truecal._lib.checks import check_real, check_shares
from truecal._lib.types import FloatArray, ScoreFunction
from truecal.exceptions import InputError
from truecal.simulation.scores._base import ScoreDistribution, draw_index, merge_masses
from truecal.simulation.scores.atoms import AtomScores


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
    >>> from truecal.simulation import BetaScores, UniformScores
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
                raise InputError(
                    f"must be score distributions. Got {component!r} instead", argument="components"
                )
        shares = check_shares("weights", self.weights, count=len(components))
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "weights", tuple(shares.tolist()))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw `n` scores and return (score, complement): first the components, then a score from each."""
        chosen = draw_index(np.asarray(self.weights), n, rng)
        score, complement = np.empty(n), np.empty(n)
        for k, component in enumerate(self.components):
            rows = np.flatnonzero(chosen == k)
            score[rows], complement[rows] = component.draw(rows.size, rng)
        return score, complement

    def _expect(self, function: ScoreFunction, points: Sequence[float], atol: float, rtol: float) -> float:
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
        """float32 if all components are float32, ignoring exact zeros and ones; else float64."""
        parts = [part.output_dtype for part in self.components if not _only_ends(part)]
        return np.result_type(*parts) if parts else np.dtype(np.float64)

    def probe(self) -> tuple[FloatArray, FloatArray]:
        """Return the points of all components."""
        parts = [part.probe() for part in self.components]
        return np.concatenate([c for c, _ in parts]), np.concatenate([t for _, t in parts])


def with_atoms(scores: ScoreDistribution, *, at_zero: float = 0.0, at_one: float = 0.0) -> MixtureScores:
    """Return a mixture of `scores` with exact zeros and exact ones.

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
    >>> from truecal.simulation import UniformScores
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
