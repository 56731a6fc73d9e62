r"""Adaptive quadrature against the weight c^(a-1) (1-c)^(b-1) on [0, 1], singular at both ends.

The interval is cut at one half. On each side the small quantity (the score c below, the complement
t = 1 - c above) is replaced by a power of itself, v = t^beta with beta = min(b, 1) / 2, so that

.. math:: t^{b-1}\,dt = \frac{1}{\beta}\, v^{b/\beta - 1}\,dv ,

which has no singularity for any b > 0. The extra factor 1/2 also smooths what curves do there: t^0.3 or
log t. All panels of one level are evaluated in one call of the integrand, so that the price of Python
does not grow with their number.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import xlog1py, xlogy

from truecal.models._parameters import FloatArray, ScoreFunction

_GAUSS: Final = np.polynomial.legendre.leggauss(20)
_NODES: Final[FloatArray] = (_GAUSS[0] + 1) / 2
_WEIGHTS: Final[FloatArray] = _GAUSS[1] / 2

# Bisecting 60 times exhausts the float; the number of panels bounds the work on pure noise.
_MAX_LEVELS: Final = 60
_MAX_PANELS: Final = 2**14

_EPSILON: Final = float(np.finfo(np.float64).eps)

# Sign changes of a function that is this small are rounding noise, not kinks.
_NOISE: Final = 1e-14


@dataclass(frozen=True)
class _Panels:
    """Intervals [left, right] of v; `upper` is 0 where v stands for the score, 1 for the complement."""

    left: FloatArray
    right: FloatArray
    upper: NDArray[np.intp]

    def bisected(self) -> _Panels:
        """Return the left halves, then the right halves."""
        middle = (self.left + self.right) / 2
        return _Panels(
            np.concatenate([self.left, middle]),
            np.concatenate([middle, self.right]),
            np.concatenate([self.upper, self.upper]),
        )

    def where(self, chosen: NDArray[np.bool_]) -> _Panels:
        """Return the chosen panels."""
        return _Panels(self.left[chosen], self.right[chosen], self.upper[chosen])


@dataclass(frozen=True)
class PowerWeight:
    """The density exp(-log_norm) c^(a-1) (1-c)^(b-1) on [low, high] within [0, 1].

    Parameters
    ----------
    a, b : float
        Exponents, positive.
    log_norm : float
        Logarithm of the integral of c^(a-1) (1-c)^(b-1) over [low, high].
    low, high : float
        Ends of the support.
    cuts : (array of scores, array of complements)
        Where the mass lies (quantiles, say), as scores and as complements: the first panels end there.
        Values above one half are ignored.
    """

    a: float
    b: float
    log_norm: float
    low: float = 0.0
    high: float = 1.0
    cuts: tuple[FloatArray, FloatArray] = (np.empty(0), np.empty(0))

    def mean(
        self,
        function: ScoreFunction,
        *,
        points: Sequence[float] = (),
        crossings: Sequence[ScoreFunction] = (),
        atol: float = 1e-12,
        rtol: float = 1e-12,
    ) -> float:
        """Return the integral of function(score, complement) times the density.

        Parameters
        ----------
        function : callable
            Vectorised; may have kinks and jumps.
        points : sequence of float
            Scores where it has them. A jump that is not named is found by bisection unless it falls
            within the outer 0.3 % of a panel, where no node sees it.
        crossings : sequence of callable
            Functions of (score, complement) at whose sign changes `function` has a kink. The places are
            found in the variable of integration, so that one at 1 - 1e-30 is found as well.
        atol, rtol : float
            The result is meant to be within max(atol, rtol * |result|).
        """
        # The density is the exponential of terms of size a and b, and no better than their rounding.
        rtol = max(rtol, 4 * _EPSILON * (self.a + self.b))
        panels = self._first_panels(points, crossings)
        value = self._gauss(function, panels)
        allowed = max(atol, rtol * float(np.abs(value).sum())) / len(value)
        total = 0.0
        for _ in range(_MAX_LEVELS):
            if not np.isfinite(value).all():
                raise ValueError(
                    "The function to average must be finite. Got NaN or infinite values instead."
                )
            halves = panels.bisected()
            parts = self._gauss(function, halves).reshape(2, -1)
            refined = parts.sum(axis=0)
            # The halves are what counts, so for a smooth function this difference is far too careful.
            difference = np.abs(refined - value)
            open_ = ~(difference <= allowed)
            total += float(refined[~open_].sum())
            if not open_.any():
                return total
            panels, value = halves.where(np.tile(open_, 2)), parts[:, open_].ravel()
            if len(value) > _MAX_PANELS:
                break
        doubt = float(difference[open_].sum())
        if doubt > 100 * allowed:
            warnings.warn(
                f"The average over the scores did not settle: it is uncertain by about {doubt:.1g}. "
                "Is the function noisy, or unbounded?",
                RuntimeWarning,
                stacklevel=3,
            )
        return total + float(value.sum())

    # -- the variable of integration -----------------------------------------------------------------

    @property
    def _exponents(self) -> FloatArray:
        return np.minimum([self.a, self.b], 1.0) / 2

    def _place(self, v: FloatArray, upper: NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the small quantity, the score and the complement at v."""
        with np.errstate(under="ignore"):
            small = v ** (1 / self._exponents[upper])
        large = 1 - small
        is_upper = upper.astype(bool)
        return small, np.where(is_upper, large, small), np.where(is_upper, small, large)

    def _gauss(self, function: ScoreFunction, panels: _Panels) -> FloatArray:
        """Return the integral over each panel by the Gauss-Legendre rule."""
        width = panels.right - panels.left
        upper = panels.upper[:, None]
        v = panels.left[:, None] + width[:, None] * _NODES
        small, score, complement = self._place(v, upper)
        beta = self._exponents[upper]
        own, other = np.array([self.a, self.b])[upper], np.array([self.b, self.a])[upper]
        with np.errstate(under="ignore"):
            density = np.exp(xlogy(own / beta - 1, v) + xlog1py(other - 1, -small) - self.log_norm) / beta
            height = np.asarray(function(score, complement), dtype=np.float64) * density
        return np.asarray((height @ _WEIGHTS) * width, dtype=np.float64)

    def _first_panels(self, points: Sequence[float], crossings: Sequence[ScoreFunction]) -> _Panels:
        inner = np.asarray(points, dtype=np.float64).ravel()
        ends = []
        # Each side as the range and the inner points of its own small quantity.
        for side, (low, high) in enumerate([(self.low, self.high), (1 - self.high, 1 - self.low)]):
            if low >= 0.5:
                continue
            high = min(high, 0.5)
            inside = np.concatenate([self.cuts[side], inner if side == 0 else 1 - inner])
            small = np.concatenate([[low, high], inside[(inside > low) & (inside < high)]])
            edges = np.unique(small ** self._exponents[side])
            roots = [root for f in crossings for root in self._roots(f, edges, side)]
            ends.append((np.unique(np.concatenate([edges, roots])), side))
        return _Panels(
            np.concatenate([edges[:-1] for edges, _ in ends]),
            np.concatenate([edges[1:] for edges, _ in ends]),
            np.concatenate([np.full(len(edges) - 1, side) for edges, side in ends]),
        )

    def _roots(self, crossing: ScoreFunction, edges: FloatArray, side: int) -> list[float]:
        """Return the places between the edges where the crossing function changes its sign."""
        upper = np.array(side)

        def at(v: FloatArray) -> FloatArray:
            _, score, complement = self._place(v, upper)
            # Only the sign counts, and an infinite value would stall the search.
            return np.clip(np.asarray(crossing(score, complement), dtype=np.float64), -1, 1)

        def scalar(v: float) -> float:
            return float(at(np.asarray(v)))

        v = np.unique(np.concatenate([edges, (edges[:-1, None] + np.diff(edges)[:, None] * _NODES).ravel()]))
        height = np.broadcast_to(at(v), v.shape)
        clear = np.flatnonzero(np.abs(height) > _NOISE)
        changes = np.flatnonzero(np.diff(np.sign(height[clear])))
        brackets = [(v[clear[i]], v[clear[i + 1]]) for i in changes]
        return [float(brentq(scalar, *bracket, xtol=1e-17, rtol=1e-15, disp=False)) for bracket in brackets]
