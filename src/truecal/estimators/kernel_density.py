"""KDE: the calibration curve as a ratio of two smoothed densities."""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import trapezoid
from scipy.signal import fftconvolve

from truecal._registry import estimator
from truecal.results import Estimate
from truecal.sample import FloatArray, Sample

#: The grid of Zhang et al.: wide enough for the mirrored data on either side of [0, 1].
_GRID = np.linspace(-0.6, 1.6, 2**14)
_STEP = float(_GRID[1] - _GRID[0])
_INSIDE = (_GRID >= 0) & (_GRID <= 1)
_GRID.flags.writeable = False

#: Below this density neither curve says anything, and the integrand keeps its last value.
_EMPTY = 1e-6


@estimator(
    "kde",
    summary="Gap under smoothed densities of all scores and of the hits' scores.",
    reference="Zhang, Kailkhura, Han (2020), ICML (Mix-n-Match), section 4.2",
)
def kde(sample: Sample, *, norm: float, bandwidth: float | None = None) -> Estimate:
    r"""Return the error between the score and a kernel estimate of the calibration curve.

    .. math:: \Big(\int |c - \hat\pi(c)|^p\, \hat h(c)\, dc\Big)^{1/p},\quad
              \hat\pi(c) = \min\Big(\bar y\,\frac{\hat h_1(c)}{\hat h(c)}, 1\Big)

    with densities of all scores (h) and of the scores of positives (h1), by a triweight kernel mirrored
    at 0 and 1. The bandwidth, the standard deviation of the kernel, is that of the positives' scores times
    (2n)^(-1/5) unless given. The authors' code returns the integral without its root; here the root is
    taken, as the true calibration error has it.

    Where the positives' scores do not vary (or there are none) the deviation of all scores stands in, and
    where all scores are equal the error is that of the one score.

    Examples
    --------
    >>> import numpy as np, truecal
    >>> p = (np.arange(500) + 0.5) / 500
    >>> y = np.arange(500) * 7 % 500 < 500 * p**2
    >>> round(truecal.calibration_error(y, p, estimator="kde"), 2)
    0.18
    """
    if len(sample) == 1:
        return Estimate(abs(float(sample.score[0] - sample.label[0])))
    width = _check_bandwidth(bandwidth) if bandwidth is not None else _default_bandwidth(sample)
    positives = float(sample.positives.sum())
    everything = _density(sample.score, sample.count, width)
    hits = _density(sample.score, sample.positives, width) if positives else np.zeros_like(everything)

    grid = _GRID[_INSIDE]
    seen = np.maximum(everything, hits) > _EMPTY
    curve = np.divide(positives / sample.n * hits, everything, out=np.ones_like(grid), where=everything > 0)
    integrand = np.abs(grid - np.minimum(curve, 1.0)) ** norm * everything
    # Positions of the last grid point that was seen: an empty stretch keeps the value before it.
    last_seen = np.maximum.accumulate(np.where(seen, np.arange(len(grid)), 0))
    integrand = integrand[last_seen]
    mass = float(trapezoid(everything, dx=_STEP))
    power = min(float(trapezoid(integrand, dx=_STEP)) / mass, 1.0)
    return Estimate(power ** (1 / norm))


def _default_bandwidth(sample: Sample) -> float:
    rule = float((2 * sample.n) ** -0.2)
    for weight in (sample.positives, sample.count):
        if weight.any():
            mean = np.average(sample.score, weights=weight)
            bandwidth = rule * float(np.sqrt(np.average((sample.score - mean) ** 2, weights=weight)))
            if bandwidth > _STEP:
                return bandwidth
    return _STEP  # narrower than the grid, a kernel could fall between its points


def _check_bandwidth(bandwidth: float) -> float:
    if not _STEP <= bandwidth <= 0.2:
        raise ValueError(
            f"bandwidth must lie between {_STEP:.2g}, the step of the grid, and 0.2. Got {bandwidth!r}."
        )
    return float(bandwidth)


def _density(score: FloatArray, weight: FloatArray, bandwidth: float) -> FloatArray:
    """Return the mirrored triweight density of weighted scores on the grid points in [0, 1]."""
    mirrored = np.where(score < 0.5, -score, 2 - score)
    cells = _share_out(score, weight) + _share_out(mirrored, weight)
    reach = 3 * bandwidth  # a triweight of half-width 3 has a standard deviation of 1
    half = math.ceil(reach / _STEP)
    offsets = np.arange(-half, half + 1) * _STEP / reach
    kernel = np.maximum(1 - offsets**2, 0.0) ** 3 * 35 / (32 * reach)
    density = np.maximum(fftconvolve(cells / cells.sum(), kernel, mode="same"), 0.0)
    # Doubled, because the mirror images took half; the authors' code zeroes the two end points.
    inside = 2 * density[_INSIDE]
    inside[(_GRID[_INSIDE] <= 0) | (_GRID[_INSIDE] >= 1)] = 0.0
    return inside


def _share_out(score: FloatArray, weight: FloatArray) -> FloatArray:
    """Give each weight to the two grid points beside its score, in proportion to their nearness."""
    place = (score - _GRID[0]) / _STEP
    left = np.clip(place.astype(np.intp), 0, len(_GRID) - 2)
    right_share = (place - left) * weight
    size = len(_GRID)
    shared = np.bincount(left, weight - right_share, size) + np.bincount(left + 1, right_share, size)
    return shared.astype(np.float64, copy=False)
