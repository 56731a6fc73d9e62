"""Scores rounded to decimals or to a narrower floating-point type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from truecal._lib.checks import check_choice, check_count
from truecal._lib.types import FloatArray, ScoreFunction
from truecal.exceptions import InputError
from truecal.simulation.scores._base import ScoreDistribution, merge_masses, step_cdf

# Spacing of the float32 numbers below 1, and of those above 0.
_STEP_AT_ONE: Final = 2.0**-24
_STEP_AT_ZERO: Final = 2.0**-149

# Number of float32 values at either end whose masses are computed exactly (see RoundedScores).
_EXACT_VALUES: Final = 4096


class _Intervals(NamedTuple):
    """Rounded scores, increasing, each with the interval of the scores that round to it."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class RoundedScores(ScoreDistribution):
    r"""Scores of `base`, rounded to a number of decimals or to a narrower float.

    The label depends on the rounded score r: E[Y | r] = curve(r).

    With decimals or float16 there are few scores, and expectations are sums over them. The mass of r is that of
    `base` on the interval of all scores that round to r,

    .. math:: P(R = r) = F(r + h/2) - F(r - h/2) .

    float32 has 10^9 scores in [0, 1]. Masses are computed exactly for the 4,096 scores next to 1 (including 1,
    which often has half of the mass), the 4,096 next to 0, and those whose interval contains one of the `points`
    given to `expect`. An atom at 1 alone would not be enough: near 1 rounding changes t = 1 - c by a large
    factor, and with it the t^0.3 of a calibration curve. Elsewhere rounding changes the mean of a smooth g only
    to second order,

    .. math:: E[g(R)] - E[g(C)] \approx \frac{h^2}{24} \int (g'' f + 2 g' f')\,dc ,

    with h / t < 1 / 4096 and h / c < 2^-23: below 1e-10 for the paper's populations. There, E[g(C)] is used.

    Parameters
    ----------
    base : ScoreDistribution
        The scores before rounding.
    decimals : int, optional
        Digits after the point, 0 to 6, rounded as `numpy.round` does.
    dtype : {"float32", "float16"}, optional
        Floating-point type. Exactly one of `decimals` and `dtype` must be given.

    Examples
    --------
    >>> from truecal.simulation.scores.beta import BetaScores
    >>> from truecal.simulation.scores.uniform import UniformScores
    >>> scores = RoundedScores(UniformScores(), decimals=1)
    >>> scores.point_masses[1].round(12).tolist()
    [0.05, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.05]
    >>> scores = RoundedScores(BetaScores(2.7752, 0.0478), dtype="float32")
    >>> values, masses = scores.point_masses
    >>> float(values[-1]), round(float(masses[-1]), 4)  # the share of scores that are exactly 1
    (1.0, 0.4665)
    """

    base: ScoreDistribution
    decimals: int | None = None
    dtype: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.base, ScoreDistribution):
            raise InputError(f"must be a score distribution. Got {self.base!r} instead", argument="base")
        if (self.decimals is None) == (self.dtype is None):
            raise InputError(
                "RoundedScores needs either decimals or dtype. "
                f"Got decimals={self.decimals!r} and dtype={self.dtype!r} instead"
            )
        if self.dtype is not None:
            check_choice("dtype", self.dtype, ("float32", "float16"))
        elif check_count("decimals", self.decimals, at_least=0) > 6:
            raise InputError(
                f"must be at most 6. Got {self.decimals!r} instead",
                argument="decimals",
                remedy="For more digits use dtype='float32'.",
            )

    # -- rounding ------------------------------------------------------------------------------------

    def _round(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rounded scores and their complements, both as float64."""
        if self.decimals is not None:
            grid = 10.0**self.decimals
            step = np.rint(score * grid)
            return step / grid, (grid - step) / grid
        with np.errstate(under="ignore"):
            rounded = score.astype(self.dtype).astype(np.float64)
        return rounded, 1 - rounded

    @property
    def _is_countable(self) -> bool:
        return self.dtype != "float32"

    @cached_property
    def _exact(self) -> _Intervals:
        """All rounded scores where they are countable, else those at the two ends."""
        if self.decimals is not None:
            value = np.arange(10**self.decimals + 1) / 10.0**self.decimals
        elif self.dtype == "float16":
            # Non-negative floats are ordered like their bit patterns.
            last = int(np.float16(1).view(np.uint16))
            value = np.arange(last + 1, dtype=np.uint16).view(np.float16).astype(np.float64)
        else:
            steps = np.arange(_EXACT_VALUES)

            def both_ends(shift: float) -> FloatArray:
                ends = [(steps + shift) * _STEP_AT_ZERO, 1 - (steps[::-1] - shift) * _STEP_AT_ONE]
                return np.clip(np.concatenate(ends), 0.0, 1.0)

            return _Intervals(both_ends(0), both_ends(-0.5), both_ends(0.5))
        middle = (value[1:] + value[:-1]) / 2
        return _Intervals(value, np.concatenate([[0.0], middle]), np.concatenate([middle, [1.0]]))

    def _continuous_cdf(self, score: FloatArray) -> FloatArray:
        """Return the mass of the continuous part of the base at or below each score."""
        return self.base.cdf(score) - step_cdf(self.base.point_masses, score)

    def _mass(self, intervals: _Intervals) -> FloatArray:
        """Return the mass of the continuous part of the base in each interval; the first includes 0."""
        below = np.where(intervals.low > 0, self._continuous_cdf(intervals.low), 0.0)
        return np.maximum(self._continuous_cdf(intervals.high) - below, 0.0)

    @cached_property
    def _counted(self) -> tuple[FloatArray, FloatArray]:
        """The rounded atoms of the base and the exactly computed rounded scores, with their masses."""
        atoms, atom_masses = self.base.point_masses
        values, masses = self._round(atoms)[0], atom_masses
        if 1 - masses.sum() > 1e-15:
            values = np.concatenate([values, self._exact.value])
            masses = np.concatenate([masses, self._mass(self._exact)])
        return merge_masses(values, masses)

    # -- the interface -------------------------------------------------------------------------------

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw `n` scores of the base, round them, and return (score, complement)."""
        score, _ = self.base.draw(n, rng)
        return self._round(score)

    def _expect(self, function: ScoreFunction, points: Sequence[float], atol: float, rtol: float) -> float:
        """Return E[function(score, complement)] at the rounded scores."""
        values, masses = self._counted
        total = float(np.sum(masses * np.asarray(function(values, 1 - values), dtype=np.float64)))
        if self._is_countable or masses.sum() > 1 - 1e-15:
            return total

        # The function jumps inside these intervals, but all of their scores are rounded to the same value.
        jumps = self._intervals_around(np.asarray(points, dtype=np.float64))
        total += float(np.sum(self._mass(jumps) * np.asarray(function(jumps.value, 1 - jumps.value))))
        low, far = (_EXACT_VALUES - 0.5) * _STEP_AT_ZERO, (_EXACT_VALUES - 0.5) * _STEP_AT_ONE

        def elsewhere(score: FloatArray, complement: FloatArray) -> FloatArray:
            outside = (score > low) & (complement > far)
            for first, last in zip(jumps.low, jumps.high, strict=True):
                outside &= (score < first) | (score > last)
            return np.where(outside, function(score, complement), 0.0)

        # The expectation over the base includes its atoms, which were added above.
        atoms, atom_masses = self.base.point_masses
        total -= float(np.sum(atom_masses * elsewhere(atoms, 1 - atoms)))
        return total + self.base.expect(
            elsewhere,
            points=[*points, *jumps.low, *jumps.high, low, 1 - far],
            atol=atol,
            rtol=rtol,
        )

    def _intervals_around(self, points: FloatArray) -> _Intervals:
        """Return the float32 intervals that contain these scores, without those computed exactly anyway."""
        value = np.unique(points.astype(np.float32))
        at_end = (value < _EXACT_VALUES * _STEP_AT_ZERO) | (value > 1 - _EXACT_VALUES * _STEP_AT_ONE)
        value = value[~at_end]
        below = np.nextafter(value, np.float32(-1)).astype(np.float64)
        above = np.nextafter(value, np.float32(2)).astype(np.float64)
        own = value.astype(np.float64)
        return _Intervals(own, (below + own) / 2, (own + above) / 2)

    def cdf(self, score: ArrayLike) -> FloatArray:
        """Return P(R <= score) of the rounded score R."""
        c = np.asarray(score, dtype=np.float64)
        if self._is_countable:
            return step_cdf(self._counted, c)
        with np.errstate(under="ignore"):
            nearest = np.clip(c, -1, 2).astype(np.float32)
        below = np.where(nearest > c, np.nextafter(nearest, np.float32(-1)), nearest)
        above = np.nextafter(below, np.float32(2)).astype(np.float64)
        edge = np.where(below < 0, -1.0, (below.astype(np.float64) + above) / 2)
        atoms, masses = self.base.point_masses
        rounded = merge_masses(self._round(atoms)[0], masses)
        return self._continuous_cdf(edge) + step_cdf(rounded, c)

    def pdf(self, score: ArrayLike) -> FloatArray:
        """Return zeros where the scores are countable; for float32 the density of the base.

        Scores that float32 rounds to 0 or to 1 have no density: they are in `point_masses`.
        """
        c = np.asarray(score, dtype=np.float64)
        if self._is_countable:
            return np.zeros(c.shape)
        with np.errstate(under="ignore"):
            rounded = c.astype(np.float32)
        inside = (rounded > 0) & (rounded < 1)
        return np.where(inside, self.base.pdf(np.where(inside, c, 0.5)), 0.0)

    @property
    def mean(self) -> float:
        """The mean of the rounded scores."""
        return self.expect(lambda score, _: score)

    @property
    def point_masses(self) -> tuple[FloatArray, FloatArray]:
        """All scores and their probabilities; for float32 only 0, 1 and the atoms of the base."""
        values, masses = self._counted
        if self._is_countable:
            return values, masses
        kept = np.isin(values, [0.0, 1.0, *self._round(self.base.point_masses[0])[0]])
        return values[kept], masses[kept]

    @property
    def output_dtype(self) -> np.dtype[Any]:
        """float64 for decimals, else the type that was rounded to."""
        return np.dtype(self.dtype or np.float64)

    def probe(self) -> tuple[FloatArray, FloatArray]:
        """Return the points of the base, rounded."""
        return self._round(self.base.probe()[0])
