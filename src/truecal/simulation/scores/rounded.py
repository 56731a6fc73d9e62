"""Scores as they are stored: rounded to some decimals, or to a narrower float."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from truecal._lib.checks import check_choice, check_count
from truecal._lib.types import FloatArray, ScoreFunction
from truecal.simulation.scores._base import ScoreDistribution, merge_masses, step_cdf

# Spacing of the float32 numbers below 1, and of those above 0.
_STEP_AT_ONE: Final = 2.0**-24
_STEP_AT_ZERO: Final = 2.0**-149

# So many float32 cells at either end are counted one by one (see RoundedScores).
_CELLS: Final = 4096


class _Cells(NamedTuple):
    """Rounded scores, increasing, each standing for all scores from `low` to `high`."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class RoundedScores(ScoreDistribution):
    r"""Scores of `base`, rounded to a number of decimals or to a narrower float.

    The label depends on the score that is seen: a curve over these scores is evaluated at the rounded
    score r, so that E[Y | r] = curve(r).

    With decimals, or float16, the scores are few enough to count, and everything is a sum over them. The
    mass of r is what `base` has in the cell of all scores that round to r,

    .. math:: P(R = r) = F(r + h/2) - F(r - h/2) .

    float32 has 10^9 scores in [0, 1]. Counted exactly there are the 4,096 cells next to 1 (1 included: in
    float32 it often holds half of all scores), the 4,096 next to 0, and those that hold one of the `points`
    given to `expect`. Near 1 a mere atom would not do: rounding changes t = 1 - c by a large factor, and
    with it the t^0.3 of a calibration curve. In the other cells rounding changes the mean of a smooth g
    only to the second order,

    .. math:: E[g(R)] - E[g(C)] \approx \frac{h^2}{24} \int (g'' f + 2 g' f')\,dc ,

    with h / t < 1 / 4096 and h / c < 2^-23: below 1e-10 for the paper's populations. There E[g(C)] is used.

    Parameters
    ----------
    base : ScoreDistribution
        The scores before rounding.
    decimals : int, optional
        Digits after the point, 0 to 6, rounded as `numpy.round` does.
    dtype : {"float32", "float16"}, optional
        Floating-point type instead. Exactly one of `decimals` and `dtype` is needed.

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
            raise ValueError(f"base must be a score distribution. Got {self.base!r} instead.")
        if (self.decimals is None) == (self.dtype is None):
            raise ValueError(
                "RoundedScores needs either decimals or dtype. "
                f"Got decimals={self.decimals!r} and dtype={self.dtype!r} instead."
            )
        if self.dtype is not None:
            check_choice("dtype", self.dtype, ("float32", "float16"))
        elif check_count("decimals", self.decimals, least=0) > 6:
            raise ValueError(
                f"decimals must be at most 6. Got {self.decimals!r} instead; try dtype='float32'."
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
    def _cells(self) -> _Cells:
        """All cells where they are countable, else those at the two ends."""
        if self.decimals is not None:
            value = np.arange(10**self.decimals + 1) / 10.0**self.decimals
        elif self.dtype == "float16":
            # The patterns of the bits of non-negative floats are in the order of the floats.
            last = int(np.float16(1).view(np.uint16))
            value = np.arange(last + 1, dtype=np.uint16).view(np.float16).astype(np.float64)
        else:
            steps = np.arange(_CELLS)

            def both_ends(shift: float) -> FloatArray:
                ends = [(steps + shift) * _STEP_AT_ZERO, 1 - (steps[::-1] - shift) * _STEP_AT_ONE]
                return np.clip(np.concatenate(ends), 0.0, 1.0)

            return _Cells(both_ends(0), both_ends(-0.5), both_ends(0.5))
        middle = (value[1:] + value[:-1]) / 2
        return _Cells(value, np.concatenate([[0.0], middle]), np.concatenate([middle, [1.0]]))

    def _continuous_cdf(self, score: FloatArray) -> FloatArray:
        """Return what the continuous part of the base has at or below each score."""
        return self.base.cdf(score) - step_cdf(self.base.point_masses, score)

    def _mass(self, cells: _Cells) -> FloatArray:
        """Return what the continuous part of the base has in each cell; the first takes in 0 itself."""
        below = np.where(cells.low > 0, self._continuous_cdf(cells.low), 0.0)
        return np.maximum(self._continuous_cdf(cells.high) - below, 0.0)

    @cached_property
    def _counted(self) -> tuple[FloatArray, FloatArray]:
        """The rounded atoms of the base together with the counted cells, and their masses."""
        atoms, atom_masses = self.base.point_masses
        values, masses = self._round(atoms)[0], atom_masses
        if 1 - masses.sum() > 1e-15:
            values = np.concatenate([values, self._cells.value])
            masses = np.concatenate([masses, self._mass(self._cells)])
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

        # The function jumps somewhere in these cells, but the rounded score does not see where.
        jumps = self._cells_of(np.asarray(points, dtype=np.float64))
        total += float(np.sum(self._mass(jumps) * np.asarray(function(jumps.value, 1 - jumps.value))))
        low, far = (_CELLS - 0.5) * _STEP_AT_ZERO, (_CELLS - 0.5) * _STEP_AT_ONE

        def elsewhere(score: FloatArray, complement: FloatArray) -> FloatArray:
            outside = (score > low) & (complement > far)
            for first, last in zip(jumps.low, jumps.high, strict=True):
                outside &= (score < first) | (score > last)
            return np.where(outside, function(score, complement), 0.0)

        # `expect` of the base has its atoms too, which were counted above.
        atoms, atom_masses = self.base.point_masses
        total -= float(np.sum(atom_masses * elsewhere(atoms, 1 - atoms)))
        return total + self.base.expect(
            elsewhere,
            points=[*points, *jumps.low, *jumps.high, low, 1 - far],
            atol=atol,
            rtol=rtol,
        )

    def _cells_of(self, points: FloatArray) -> _Cells:
        """Return the float32 cells that hold these scores, without those counted anyway."""
        value = np.unique(points.astype(np.float32))
        at_end = (value < _CELLS * _STEP_AT_ZERO) | (value > 1 - _CELLS * _STEP_AT_ONE)
        value = value[~at_end]
        below = np.nextafter(value, np.float32(-1)).astype(np.float64)
        above = np.nextafter(value, np.float32(2)).astype(np.float64)
        own = value.astype(np.float64)
        return _Cells(own, (below + own) / 2, (own + above) / 2)

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
        """Return what the base returns, rounded."""
        return self._round(self.base.probe()[0])
