"""KDE: the calibration curve as a ratio of two kernel density estimates."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
import scipy

from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.estimators._registry import estimator
from truecal.exceptions import InputError
from truecal.results import Estimate

#: Groups of one step of a pass over all; more would only take memory.
_ROWS = 1 << 20

#: The points in (0, 1) of the grid of Zhang et al., which has 2^14 points on [-0.6, 1.6].
_STEP = 2.2 / (2**14 - 1)
_GRID = np.arange(math.ceil(0.6 / _STEP), math.floor(1.6 / _STEP) + 1) * _STEP - 0.6
_GRID.flags.writeable = False


@estimator(
    "kde",
    summary="Gap under kernel density estimates of all scores and of positives' scores.",
    reference="Zhang, Kailkhura, Han (2020), ICML (Mix-n-Match), section 4.2",
)
def kde(sample: Sample, *, norm: float, bandwidth: float | None = None) -> Estimate:
    r"""Return the distance between the score and a kernel estimate of the calibration curve.

    .. math:: \Big(\int |c - \hat\pi(c)|^p\, \hat h(c)\, dc\Big)^{1/p},\quad
              \hat\pi(c) = \min\Big(\bar y\,\frac{\hat h_1(c)}{\hat h(c)}, 1\Big)

    with densities of all scores (h) and of the scores of positives (h1), estimated with a triweight kernel
    mirrored at 0 and 1. The default bandwidth, the standard deviation of the kernel, is the standard deviation of
    the positives' scores times (2n)^(-1/5), or of all scores if the former is zero. If all scores are equal, the
    result is the gap at that score.

    Estimand: the true calibration error. The authors' code returns the integral without its root. It also extends
    the integrand into intervals without scores, which contribute nothing here; on real data this changes the eighth
    digit.

    References
    ----------
    J. Zhang, B. Kailkhura, T. Y.-J. Han (2020), Mix-n-Match: ensemble and compositional methods for uncertainty
    calibration in deep learning, ICML, section 4.2.

    Examples
    --------
    >>> import numpy as np, truecal
    >>> p = (np.arange(500) + 0.5) / 500
    >>> y = (7 * np.arange(500)) % 500 < 500 * p**2
    >>> round(truecal.calibration_error(y, p, estimator="kde"), 2)
    0.18
    """
    sample = sample.on_the_scale_of_rows()
    if len(sample) == 1:
        return Estimate(abs(float(sample.score[0] - sample.label[0])))
    width = _default_bandwidth(sample) if bandwidth is None else _check_bandwidth(bandwidth)
    everything, hits = _densities(
        sample, 3 * width
    )  # a triweight kernel of half-width 3 has standard deviation 1

    curve = np.divide(hits, everything, out=np.ones_like(hits), where=everything > 0)
    gap = np.where(everything > 0, np.abs(_GRID - np.minimum(curve, 1.0)), 0.0)
    largest = float(gap.max()) or 1.0  # the powers of a large norm would underflow
    power = float(np.trapezoid((gap / largest) ** norm * everything) / np.trapezoid(everything))
    return Estimate(largest * min(power, 1.0) ** (1 / norm))


def _default_bandwidth(sample: Sample) -> float:
    rule = float(max(2 * sample.n, 1.0) ** -0.2)
    for weight in (sample.positives, sample.count):
        total = float(weight.sum())
        if total:
            mean = (
                float(np.sum(weight * sample.score)) / total
            )  # not a dot product, which would start BLAS threads
            bandwidth = rule * math.sqrt(float(np.sum(weight * (sample.score - mean) ** 2)) / total)
            if bandwidth > _STEP:
                return bandwidth
    return _STEP  # a kernel narrower than the grid could fall between its points


def _check_bandwidth(bandwidth: float) -> float:
    if not isinstance(bandwidth, Real) or not _STEP <= bandwidth <= 0.2:
        raise InputError(
            f"must be a number between {_STEP:.2g}, the step of the grid, and 0.2. Got {bandwidth!r} instead",
            argument="bandwidth",
        )
    return float(bandwidth)


def _densities(sample: Sample, reach: float) -> FloatArray:
    """Return on the grid the mirrored triweight density of all rows, and that of positives times their share.

    Rows are assigned to the points of a grid that is longer by the reach of the kernel at either end. One Fourier
    transform convolves both rows of weights; values that wrap around stay in the extra points.
    """
    half = math.ceil(reach / _STEP)
    size = scipy.fft.next_fast_len(len(_GRID) + 2 * half, real=True)
    weights = np.zeros((2, size))
    for first in range(0, len(sample), _ROWS):
        rows = slice(first, first + _ROWS)
        score, counts = sample.score[rows], (sample.count[rows], sample.positives[rows])
        for position in (score, np.where(score < 0.5, -score, 2 - score)):
            index = (position - _GRID[0]) / _STEP + half
            near = (index >= 0) & (index < size - 1)
            left = index[near].astype(np.intp)
            share = index[near] - left  # of the point on the right; the point on the left gets the rest
            for row, weight in zip(weights, counts, strict=True):
                row += np.bincount(left, weight[near] * (1 - share), size)
                row += np.bincount(left + 1, weight[near] * share, size)
    parabola = np.maximum(1 - (np.arange(-half, half + 1) * (_STEP / reach)) ** 2, 0.0)
    transform = scipy.fft.rfft(weights)
    transform *= scipy.fft.rfft(parabola * parabola * parabola * (35 / (32 * reach * sample.n)), size)
    smooth = scipy.fft.irfft(transform, size, overwrite_x=True)[:, 2 * half : 2 * half + len(_GRID)]
    return np.maximum(smooth, 0.0)
