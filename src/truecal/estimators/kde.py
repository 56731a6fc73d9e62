"""KDE: the calibration curve as a ratio of two kernel density estimates."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
import scipy

from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.estimators._registry import register_estimator
from truecal.exceptions import InputError
from truecal.results import Estimate

#: The points in (0, 1) of the grid of Zhang et al., which has 2^14 points on [-0.6, 1.6].
_STEP = 2.2 / (2**14 - 1)
_GRID = np.arange(math.ceil(0.6 / _STEP), math.floor(1.6 / _STEP) + 1) * _STEP - 0.6
_GRID.flags.writeable = False
_TINY = float(np.finfo(np.float64).tiny)


@register_estimator(
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
    width = _default_bandwidth(sample) if bandwidth is None else _check_bandwidth(bandwidth)
    if len(sample) == 1:
        return Estimate(float(abs(sample.score[0] - sample.label[0])))
    # A triweight kernel of half-width 3 has standard deviation 1.
    return Estimate(_distance(*_densities(sample, 3 * width), norm))


def _default_bandwidth(sample: Sample) -> float:
    rule = float(max(2 * sample.n, 1.0) ** -0.2)
    width = rule * _deviation(sample.score, sample.positives)
    if width <= _STEP:
        width = rule * _deviation(sample.score, sample.count)
    return max(width, _STEP)  # a kernel narrower than the grid could fall between its points


def _deviation(score: FloatArray, weight: FloatArray) -> float:
    """Return the weighted standard deviation of the scores; 0 if there is no weight."""
    total = float(weight.sum())
    if total == 0:
        return 0.0
    mean = float(np.sum(weight * score)) / total
    return math.sqrt(float(np.sum(weight * (score - mean) ** 2)) / total)


def _check_bandwidth(bandwidth: float) -> float:
    if not isinstance(bandwidth, Real) or not _STEP <= bandwidth <= 0.2:
        raise InputError(
            f"must be a number between {_STEP:.2g}, the step of the grid, and 0.2. Got {bandwidth!r} instead",
            argument="bandwidth",
        )
    return float(bandwidth)


def _densities(sample: Sample, reach: float) -> tuple[FloatArray, FloatArray]:
    """Return on the grid the mirrored triweight density of all rows, and that of positives times their share.

    Rows are assigned to the points of a grid that is longer by the reach of the kernel at either end. Fourier
    transforms convolve both rows of weights; values that wrap around stay in the extra points.
    """
    offset = np.arange(math.ceil(reach / _STEP) + 1)
    length = int(scipy.fft.next_fast_len(len(_GRID) + 2 * (len(offset) + 2), real=True))
    before = (length - len(_GRID)) // 2
    tables = np.zeros((3, length))  # weights of all rows and of positives, and the kernel
    _assign(sample.score, (sample.count, sample.positives), reach + 2 * _STEP, before, tables)
    half = np.maximum(1 - (offset * (_STEP / reach)) ** 2, 0.0) ** 3 * (35 / (32 * sample.n * reach))
    tables[2, : len(offset)], tables[2, 1 - len(offset) :] = half, half[:0:-1]
    transform = scipy.fft.rfft(tables)
    product = transform[:2] * transform[2].real  # that of a symmetric kernel is real
    everything, hits = np.maximum(scipy.fft.irfft(product, length)[:, before : before + len(_GRID)], 0.0)
    return everything, hits


def _assign(
    score: FloatArray, weights: tuple[FloatArray, FloatArray], margin: float, before: int, table: FloatArray
) -> None:
    """Add weights to the grid points on both sides of a score, and of its mirror image if within `margin` of 0 or 1."""
    low, high = score.searchsorted([min(0.5, margin), max(0.5, 1 - margin)])
    place = (np.concatenate([score, -score[:low], 2 - score[high:]]) - _GRID[0]) / _STEP + before
    left = place.astype(np.intp)
    share = place - left  # that of the point on the right
    for row, weight in zip(table[:2], weights, strict=True):
        images = np.concatenate([weight, weight[:low], weight[high:]])
        row += np.bincount(left, images * (1 - share), len(row))
        row[1:] += np.bincount(left, images * share, len(row))[:-1]


def _distance(everything: FloatArray, hits: FloatArray, norm: float) -> float:
    """Return the l_p norm of the difference between score and curve."""
    gap = np.abs(_GRID - np.minimum(hits, everything) / np.maximum(everything, _TINY)) * (everything > 0)
    largest = float(gap.max())
    scaled = (gap / (largest or 1.0)) ** norm * everything  # the powers of a large norm would underflow
    power = min(_integral(scaled) / _integral(everything), 1.0)
    return float(largest * power ** (1 / norm))


def _integral(values: FloatArray) -> float:
    """Return the integral of values on the grid, by the trapezoidal rule, in units of its step."""
    return float(values.sum() - (values[0] + values[-1]) / 2)
