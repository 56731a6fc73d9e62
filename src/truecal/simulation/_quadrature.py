r"""Adaptive quadrature against the weight c^(a-1) (1-c)^(b-1) on [0, 1], singular at both ends.

The interval is cut at one half. On each side the small quantity (the score c below, the complement
t = 1 - c above) is replaced by a power of itself, v = t^beta with beta = min(b, 1) / 2, so that

.. math:: t^{b-1}\,dt = \frac{1}{\beta}\, v^{b/\beta - 1}\,dv ,

which has no singularity for any b > 0. The extra factor 1/2 also smooths curves such as t^0.3 or log t.
All panels of one level are evaluated in one call of the integrand, which keeps Python's overhead constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from truecal._lib.types import FloatArray, ScoreFunction
from truecal.exceptions import InputError, warn_user

_GAUSS: Final = np.polynomial.legendre.leggauss(20)
_NODES: Final[FloatArray] = (_GAUSS[0] + 1) / 2
_WEIGHTS: Final[FloatArray] = _GAUSS[1] / 2

# There is no node between an end of a panel and the outermost node. The integrand is therefore also evaluated
# next to each end, and compared there with the polynomial through the nodes.
_ENDS: Final = np.array([1e-9, 1 - 1e-9])
_LEGENDRE: Final = np.polynomial.legendre.legvander
_TO_ENDS: Final = np.linalg.solve(_LEGENDRE(2 * _NODES - 1, 19).T, _LEGENDRE(2 * _ENDS - 1, 19).T)
_POINTS: Final[FloatArray] = np.concatenate([_NODES, _ENDS])
_BLIND: Final = float(_NODES[0])

# 60 bisections reach the resolution of floats; the number of panels bounds the work on noisy functions.
_MAX_LEVELS: Final = 60
_MAX_PANELS: Final = 2**14

_EPSILON: Final = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class _Panels:
    """Intervals [left, right] of v; `upper` is 0 where v is a power of the score, 1 of the complement."""

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

    The first panels end at `cuts`, for example quantiles, given as scores and as complements; those above one half are
    ignored.
    """

    a: float
    b: float
    log_norm: float
    low: float = 0.0
    high: float = 1.0
    cuts: tuple[FloatArray, FloatArray] = (np.empty(0), np.empty(0))

    def mean(self, function: ScoreFunction, points: Sequence[float], atol: float, rtol: float) -> float:
        """Return the integral of function(score, complement) times the density; see `ScoreDistribution.expect`."""
        # The density is the exponential of terms of size a and b, which limits its accuracy.
        rtol = max(rtol, 4 * _EPSILON * (self.a + self.b))
        panels = self._first_panels(points)
        value, _ = self._gauss(function, panels)
        allowed = max(atol, rtol * float(np.abs(value).sum())) / len(value)
        total = 0.0
        for _ in range(_MAX_LEVELS):
            if not np.isfinite(value).all():
                raise InputError("must be finite. Got NaN or infinite values instead", argument="function")
            halves = panels.bisected()
            pieces, hidden = (of_halves.reshape(2, -1) for of_halves in self._gauss(function, halves))
            refined = pieces.sum(axis=0)
            # The halves are more accurate than this difference, which is conservative for smooth functions.
            difference = np.abs(refined - value) + hidden.sum(axis=0)
            open_ = ~(difference <= allowed)
            total += float(refined[~open_].sum())
            if not open_.any():
                return total
            panels, value = halves.where(np.tile(open_, 2)), pieces[:, open_].ravel()
            if len(value) > _MAX_PANELS:
                break
        doubt = float(difference[open_].sum())
        if doubt > 100 * allowed:
            warn_user(
                f"The expectation over the scores did not converge: its error is about {doubt:.1g}. "
                "The function may be noisy or unbounded."
            )
        return total + float(value.sum())

    # -- the variable of integration -----------------------------------------------------------------

    @property
    def _exponents(self) -> FloatArray:
        return np.minimum([self.a, self.b], 1.0) / 2

    def _locate(self, v: FloatArray, upper: NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the small quantity, the score and the complement at v."""
        with np.errstate(under="ignore"):
            small = v ** (1 / self._exponents[upper])
        large = 1 - small
        is_upper = upper.astype(bool)
        return small, np.where(is_upper, large, small), np.where(is_upper, small, large)

    def _gauss(self, function: ScoreFunction, panels: _Panels) -> tuple[FloatArray, FloatArray]:
        """Return the integral over each panel by the Gauss-Legendre rule, and a bound for its error at the ends."""
        width = panels.right - panels.left
        upper = panels.upper[:, None]
        v = panels.left[:, None] + width[:, None] * _POINTS
        small, score, complement = self._locate(v, upper)
        beta = self._exponents[upper]
        near, far = np.array([self.a, self.b])[upper], np.array([self.b, self.a])[upper]
        with np.errstate(under="ignore"):
            density = np.exp(xlogy(near / beta - 1, v) + xlog1py(far - 1, -small) - self.log_norm) / beta
            height = np.asarray(function(score, complement), dtype=np.float64) * density
        inner, ends = height[:, :-2], height[:, -2:]
        hidden = np.abs(inner @ _TO_ENDS - ends).sum(axis=1)
        return (inner @ _WEIGHTS) * width, hidden * (_BLIND * width)

    def _first_panels(self, points: Sequence[float]) -> _Panels:
        inner = np.asarray(points, dtype=np.float64).ravel()
        ends = []
        # For each side: the range and the inner points of its small quantity.
        for side, (low, high) in enumerate([(self.low, self.high), (1 - self.high, 1 - self.low)]):
            if low >= 0.5:
                continue
            high = min(high, 0.5)
            inside = np.concatenate([self.cuts[side], inner if side == 0 else 1 - inner])
            small = np.concatenate([[low, high], inside[(inside > low) & (inside < high)]])
            ends.append((np.unique(small ** self._exponents[side]), side))
        return _Panels(
            np.concatenate([edges[:-1] for edges, _ in ends]),
            np.concatenate([edges[1:] for edges, _ in ends]),
            np.concatenate([np.full(len(edges) - 1, side) for edges, side in ends]),
        )
