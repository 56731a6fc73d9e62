r"""The l1 error: lower bounds in expectation, so that noise is never taken for error.

For a unit with observed residual sum R, weight m and estimated error d with standard deviation s, let
:math:`h = 2\Phi(a d/s) - 1`, a smooth sign. By Stein's identity

.. math:: E\big[R\,h - 2 a s m\,\phi(a d/s)\big] = m\,E[d]\,E[h] \le m\,|E d| ,

exactly 0 where there is no error. Summed over units this estimates the l1 error from below, closely where errors exceed
their noise. For bins Hölder's inequality gives another bound, :math:`E|d| \ge (E d^2)^{3/2} / (E d^4)^{1/2}`; the
larger of the two counts. For the smooth curve the root of its squared error, times the ratio of the two norms of
its gap, counts if it is larger.
The bounds of the levels are averaged with the probability that each is the finest that holds error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from truecal._lib.types import FloatArray
from truecal.multiscale.levels import Level
from truecal.multiscale.units import IntArray, Units, over

#: Sharpness a of the smooth sign: 2 standard deviations count as nearly certain.
_SHARPNESS = 2.0


@dataclass(frozen=True, eq=False)
class AbsoluteError:
    """The l1 error before the gate.

    Attributes
    ----------
    value : float
        The estimate; it may be slightly negative.
    below : float
        A smaller one, by the smooth sign alone: lower limits start from it.
    sign : ndarray
        Smooth sign of the error of each unit, averaged over the levels; r times it is the influence of a row.
    """

    value: float
    below: float
    sign: FloatArray


class Scale(NamedTuple):
    """A level that may be the finest that holds error.

    Attributes
    ----------
    probability : float
        That it is.
    level : Level
        Its bins.
    place : ndarray of int or slice
        Bin of each unit.
    square : float
        Squared error of its bins.
    """

    probability: float
    level: Level
    place: IntArray | slice
    square: float


def absolute_error(
    units: Units,
    scales: list[Scale],
    gap: FloatArray,
    sd: FloatArray,
    smooth: tuple[float, float],
) -> AbsoluteError:
    """Average the bounds of the smooth curve and of the levels.

    Parameters
    ----------
    units : Units
        The sample.
    scales : list of Scale
        The levels.
    gap, sd : ndarray
        Score less beta curve at the units, and its standard deviation.
    smooth : tuple of float
        Probability that no level holds error, and the squared error of the beta curve.
    """
    share, square = smooth
    bound = _bound(units, gap, sd)
    value, below = share * max(bound.value, _of_shape(units, gap, square)), share * bound.value
    sign = share * bound.sign
    for share, level, place, square in scales:
        noise = np.sqrt(over(level.noise, level.weight**2))
        bound = _bound(units, gap - level.mean_error[place], noise[place])
        value += share * max(bound.value, _hoelder(level, noise, square, units.size))
        below += share * bound.value
        sign = sign + share * bound.sign
    return AbsoluteError(value, below, sign)


def _bound(units: Units, error: FloatArray, sd: FloatArray) -> AbsoluteError:
    """Return the bound by the smooth sign at one level."""
    sd = np.maximum(sd, 1e-12)
    scaled = _SHARPNESS * error / sd
    sign = 2 * scipy.special.ndtr(scaled) - 1
    # sd times the derivative of the sign
    density = 2 * _SHARPNESS * np.exp(-0.5 * scaled**2) / math.sqrt(2 * math.pi)
    value = float(units.residual @ sign - units.weight @ (sd * density)) / units.size
    return AbsoluteError(value, value, sign)


def _of_shape(units: Units, gap: FloatArray, square: float) -> float:
    """Return the l1 error of a smooth curve from its squared error, if that is positive, and its shape."""
    energy = float(units.weight @ gap**2) * units.size
    if square <= 0 or energy <= 0:
        return -math.inf
    return math.sqrt(square / energy) * float(units.weight @ np.abs(gap))


def _hoelder(level: Level, sd: FloatArray, square: float, size: float) -> float:
    mean = level.mean_residual
    fourth = float(level.weight @ (mean**4 - 6 * sd**2 * mean**2 + 3 * sd**4)) / size
    if square <= 0 or fourth <= square**2:
        return 0.0
    return math.sqrt(square**3 / fourth)
