"""KDE: the calibration curve as a ratio of two kernel density estimates."""

from __future__ import annotations

import math
from functools import cache
from numbers import Real

import numpy as np
import scipy

from truecal._lib.numeric import IntArray, over_runs, run_sums
from truecal._lib.types import FloatArray
from truecal.data.sample import ScoreGroups
from truecal.estimators._registry import register_estimator
from truecal.exceptions import InputError
from truecal.results import Estimates

#: Groups per step; more would only take memory.
_ROWS = 1 << 20

#: Samples whose densities are computed at once; their arrays fit into the cache of a processor.
_AT_ONCE = 8

#: The points in (0, 1) of the grid of Zhang et al., which has 2^14 points on [-0.6, 1.6].
_STEP = 2.2 / (2**14 - 1)
_GRID = np.arange(math.ceil(0.6 / _STEP), math.floor(1.6 / _STEP) + 1) * _STEP - 0.6
_GRID.flags.writeable = False
_TINY = float(np.finfo(np.float64).tiny)

#: Lengths of Fourier transforms are multiples of this, so that most samples of a block have the same.
_LENGTHS = 128


@register_estimator(
    "kde",
    summary="Gap under kernel density estimates of all scores and of positives' scores.",
    reference="Zhang, Kailkhura, Han (2020), ICML (Mix-n-Match), section 4.2",
    takes_blocks=True,
)
def kde(sample: ScoreGroups, *, norm: float, bandwidth: float | None = None) -> Estimates:
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
    groups = sample.on_the_scale_of_rows()
    first, sizes = groups.bounds[:-1], groups.sizes
    width = (
        _default_bandwidth(groups) if bandwidth is None else np.full(len(sizes), _check_bandwidth(bandwidth))
    )
    reach = 3 * width  # a triweight kernel of half-width 3 has standard deviation 1
    value = np.abs(groups.score[first] - groups.label[first])  # of samples whose scores are all equal
    length = np.array([_transform_length(points) for points in np.ceil(reach / _STEP).tolist()])
    for common in np.unique(length[sizes > 1]):
        alike = np.flatnonzero((length == common) & (sizes > 1))
        for start in range(0, len(alike), _AT_ONCE):
            some = alike[start : start + _AT_ONCE]
            value[some] = _distance(*_densities(groups, some, reach[some], int(common)), norm)
    return Estimates(value)


def _default_bandwidth(groups: ScoreGroups) -> FloatArray:
    rule = float(max(2 * groups.n, 1.0) ** -0.2)
    width = rule * _deviation(groups, groups.positives)
    if (width <= _STEP).any():
        width = np.where(width > _STEP, width, rule * _deviation(groups, groups.count))
    return np.maximum(width, _STEP)  # a kernel narrower than the grid could fall between its points


def _deviation(groups: ScoreGroups, weight: FloatArray) -> FloatArray:
    """Return the weighted standard deviation of the scores of each sample; 0 where there is no weight."""
    total = run_sums(weight, groups.bounds)
    total[total == 0] = np.inf
    mean = run_sums(weight * groups.score, groups.bounds) / total
    square = groups.score - over_runs(mean, groups.bounds)
    square **= 2
    square *= weight
    return np.sqrt(run_sums(square, groups.bounds) / total)


def _check_bandwidth(bandwidth: float) -> float:
    if not isinstance(bandwidth, Real) or not _STEP <= bandwidth <= 0.2:
        raise InputError(
            f"must be a number between {_STEP:.2g}, the step of the grid, and 0.2. Got {bandwidth!r} instead",
            argument="bandwidth",
        )
    return float(bandwidth)


@cache
def _transform_length(reach: float) -> int:
    """Return the length of a Fourier transform with room for a kernel of this reach, in grid points, at either end."""
    needed = len(_GRID) + 2 * (reach + 3)
    return _LENGTHS * int(scipy.fft.next_fast_len(math.ceil(needed / _LENGTHS), real=True))


def _densities(
    groups: ScoreGroups, samples: IntArray, reach: FloatArray, length: int
) -> tuple[FloatArray, FloatArray]:
    """Return on the grid the mirrored triweight density of all rows, and that of positives times their share.

    Rows are assigned to the points of a grid that is longer by the reach of the kernel at either end. One Fourier
    transform of `length` points convolves both rows of weights; values that wrap around stay in the extra points.
    """
    before = (length - len(_GRID)) // 2
    tables = np.zeros((len(samples), 3, length))  # weights of all rows and of positives, and the kernel
    for table, sample, margin in zip(tables, samples, reach + 2 * _STEP, strict=True):
        first, end = groups.bounds[sample : sample + 2]
        for step in range(first, end, _ROWS):
            rows = slice(step, min(step + _ROWS, end))
            _assign(groups.score[rows], (groups.count[rows], groups.positives[rows]), margin, before, table)
    offset = np.arange(math.ceil(reach.max() / _STEP) + 1)
    kernel = np.maximum(1 - (offset * (_STEP / reach[:, np.newaxis])) ** 2, 0.0)
    kernel *= kernel * kernel * (35 / (32 * groups.n * reach[:, np.newaxis]))
    tables[:, 2, : len(offset)] = kernel
    tables[:, 2, 1 - len(offset) :] = kernel[:, :0:-1]
    transform = scipy.fft.rfft(tables)
    transform[:, :2] *= transform[:, 2:].real  # that of a symmetric kernel is real
    smooth = scipy.fft.irfft(transform[:, :2], length)[:, :, before : before + len(_GRID)]
    return np.maximum(smooth[:, 0], 0.0), np.maximum(smooth[:, 1], 0.0)


def _assign(
    score: FloatArray, weights: tuple[FloatArray, FloatArray], margin: float, before: int, table: FloatArray
) -> None:
    """Add weights to the grid points on both sides of a score, and of its mirror image if within `margin` of 0 or 1."""
    low, high = score.searchsorted([min(0.5, margin), max(0.5, 1 - margin)])
    index = np.concatenate([score, -score[:low], 2 - score[high:]])
    index -= _GRID[0]
    index /= _STEP
    index += before
    left = index.astype(np.intp)
    index -= left  # the share of the point on the right; the point on the left gets the rest
    for row, weight in zip(table[:2], weights, strict=True):
        images = np.concatenate([weight, weight[:low], weight[high:]])
        row += np.bincount(left, images, len(row))
        images *= index
        right = np.bincount(left, images, len(row))
        row -= right
        row[1:] += right[:-1]


def _distance(everything: FloatArray, hits: FloatArray, norm: float) -> FloatArray:
    """Return the l_p norm of the difference between score and curve, for each sample."""
    gap = np.minimum(hits, everything)
    gap /= np.maximum(everything, _TINY)
    np.subtract(_GRID, gap, out=gap)
    np.abs(gap, out=gap)
    gap *= everything > 0
    largest = gap.max(axis=1)
    gap /= np.where(largest > 0, largest, 1.0)[:, np.newaxis]  # the powers of a large norm would underflow
    gap **= norm
    gap *= everything
    power = np.minimum(_integral(gap) / _integral(everything), 1.0)
    return np.asarray(largest * power ** (1 / norm))


def _integral(values: FloatArray) -> FloatArray:
    """Return the integrals of rows of values on the grid, by the trapezoidal rule, in units of its step."""
    return np.asarray(values.sum(axis=1) - (values[:, 0] + values[:, -1]) / 2)
