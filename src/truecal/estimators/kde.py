"""KDE: the calibration curve as a ratio of two smoothed densities."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.estimators._registry import estimator
from truecal.results import Estimate

#: The points in (0, 1) of the grid of Zhang et al., which has 2^14 points on [-0.6, 1.6].
_STEP = 2.2 / (2**14 - 1)
_GRID = np.arange(math.ceil(0.6 / _STEP), math.floor(1.6 / _STEP) + 1) * _STEP - 0.6
_GRID.flags.writeable = False


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

    The authors' code also lets the integrand keep its value where there are no scores at all; here such a
    stretch adds nothing, which on real data shows in the eighth digit.

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
    width = _default_bandwidth(sample) if bandwidth is None else _check_bandwidth(bandwidth)
    everything, hits = _densities(sample, 3 * width)  # a triweight of half-width 3 has a deviation of 1

    curve = np.divide(hits, everything, out=np.ones_like(hits), where=everything > 0)
    integrand = np.abs(_GRID - np.minimum(curve, 1.0)) ** norm * everything
    power = float(np.trapezoid(integrand) / np.trapezoid(everything))
    return Estimate(min(power, 1.0) ** (1 / norm))


def _default_bandwidth(sample: Sample) -> float:
    rule = float(max(2 * sample.n, 1.0) ** -0.2)
    for weight in (sample.positives, sample.count):
        total = float(weight.sum())
        if total:
            mean = float(np.sum(weight * sample.score)) / total  # a long dot product would wake BLAS threads
            bandwidth = rule * math.sqrt(float(np.sum(weight * (sample.score - mean) ** 2)) / total)
            if bandwidth > _STEP:
                return bandwidth
    return _STEP  # narrower than the grid, a kernel could fall between its points


def _check_bandwidth(bandwidth: float) -> float:
    if not isinstance(bandwidth, Real) or not _STEP <= bandwidth <= 0.2:
        raise ValueError(
            f"bandwidth must be a number between {_STEP:.2g}, the step of the grid, and 0.2. "
            f"Got {bandwidth!r} instead."
        )
    return float(bandwidth)


def _densities(sample: Sample, reach: float) -> FloatArray:
    """Return on the grid the mirrored triweight density of all rows, and that of positives times their share.

    Rows go to the cells of a grid that is longer by the reach of the kernel at either end. One Fourier
    transform convolves both rows of cells; what wraps around stays in the extra cells.
    """
    half = math.ceil(reach / _STEP)
    size = next_fast_len(len(_GRID) + 2 * half, real=True)
    cells = np.zeros((2, size))
    for position in (sample.score, np.where(sample.score < 0.5, -sample.score, 2 - sample.score)):
        place = (position - _GRID[0]) / _STEP + half
        near = (place >= 0) & (place < size - 1)
        left = place[near].astype(np.intp)
        nearness = place[near] - left  # to the cell on the right; the cell on the left gets the rest
        for row, weight in zip(cells, (sample.count[near], sample.positives[near]), strict=True):
            row += np.bincount(left, weight * (1 - nearness), size)
            row += np.bincount(left + 1, weight * nearness, size)
    parabola = np.maximum(1 - (np.arange(-half, half + 1) * (_STEP / reach)) ** 2, 0.0)
    transform = rfft(cells)
    transform *= rfft(parabola * parabola * parabola * (35 / (32 * reach * sample.n)), size)
    smooth = irfft(transform, size, overwrite_x=True)[:, 2 * half : 2 * half + len(_GRID)]
    return np.maximum(smooth, 0.0)
