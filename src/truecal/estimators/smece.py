"""smECE: the mean absolute residual after smoothing with a kernel as wide as the result."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np
import scipy

from truecal._lib.checks import check_choice
from truecal._lib.types import FloatArray
from truecal.data.sample import STEP, Sample
from truecal.estimators._registry import register_estimator
from truecal.results import Estimate

#: Cells of the grid of the exact variant.
_CELLS = 2**13
#: Bandwidths tried by relplot are multiples of 2^-10 and at least 0.001.
_HALVINGS, _NARROWEST = 10, 0.001


@register_estimator(
    "smece",
    summary="Mean absolute residual after smoothing; the bandwidth equals the error.",
    reference="Błasiok, Nakkiran (2024), ICLR",
    estimand="smooth calibration error (smECE)",
    norms="none",
    truth="plug-in",
)
def smece(sample: Sample, *, variant: str = "relplot") -> Estimate:
    r"""Return the smooth calibration error, a distance to calibration that does not need bins.

    .. math:: \mathrm{smECE}_\sigma = \int_0^1 \Big|\frac 1n \sum_i K_\sigma(t, f_i)\,(f_i - y_i)\Big|\,dt,
              \qquad \mathrm{smECE} = \mathrm{smECE}_{\sigma^*} \text{ with } \sigma^* = \mathrm{smECE}_{\sigma^*}

    with a Gaussian kernel reflected at 0 and 1.

    Estimand: the same number for the population. It is not the true calibration error. It is polynomially related
    to the distance to the nearest calibrated predictor (between the order of that distance and of its square root), and
    gaps that alternate within a bandwidth cancel. On a
    calibrated model it is above 0 by about as much as its noise.

    Parameters
    ----------
    variant : {"relplot", "exact"}
        ``"relplot"`` follows the authors' program and agrees with it to 1e-4. That program tries bandwidths that are
        multiples of 1/1024, cuts the kernel at a distance of 1/2, integrates by a sum over 200 or more points, and
        gives half of its weight to a row at an end point of its grid of about 1000 points. ``"exact"`` evaluates the
        formula. The two differ by 0.001 at most for errors up to 0.2, except where many scores are within 0.001 of
        0 or 1: then by a few percent of the value.

    References
    ----------
    J. Błasiok, P. Nakkiran (2024), Smooth ECE: principled reliability diagrams via kernel smoothing, ICLR.

    Examples
    --------
    >>> import truecal
    >>> y, p = truecal.paper.population("resnet152_imgnet").sample(5000, rng=0)
    >>> round(truecal.calibration_error(y, p, estimator="smece"), 3)
    0.06
    """
    check_choice("variant", variant, ("relplot", "exact"))
    smooth = _relplot(sample) if variant == "relplot" else _exact(sample)
    halvings, narrowest = (_HALVINGS, _NARROWEST) if variant == "relplot" else (30, 0.0)
    high, low = 1.0, 0.0
    for _ in range(halvings):
        middle = (low + high) / 2
        if middle < narrowest or middle < smooth(middle):
            low = middle
        else:
            high = middle
    return Estimate(min(smooth(high), 1.0))


def _on_grid(sample: Sample, size: int, place: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Divide residuals and counts between the two grid points next to each score, and return their sums.

    `place` returns the positions of scores; the points are 0, 1, ..., size - 1.
    """
    left_sums, right_sums = np.zeros((2, 2, size))
    for first in range(0, len(sample), STEP):
        step = slice(first, first + STEP)
        position = place(sample.score[step])
        left = np.minimum(position.astype(np.intp), size - 2)
        share = position - left
        for k, weight in enumerate((sample.score_sum[step] - sample.positives[step], sample.count[step])):
            np.add.at(left_sums[k], left, weight * (1 - share))
            np.add.at(right_sums[k], left + 1, weight * share)
    return np.asarray(left_sums + right_sums)


def _exact(sample: Sample) -> Callable[[float], float]:
    """Return the error as a function of the bandwidth."""
    # Grid points are the midpoints of cells; half a cell at either end is reflected onto the first and the last.
    residual, _ = _on_grid(sample, _CELLS, lambda score: np.clip(score * _CELLS - 0.5, 0.0, _CELLS - 1.0))
    spectrum = scipy.fft.dct(residual / sample.n, type=2)
    frequency = np.pi * np.arange(_CELLS)

    def smooth(sigma: float) -> float:
        # Cosines are the eigenfunctions of the reflected Gaussian kernel.
        damped = spectrum * np.exp(-0.5 * np.minimum(frequency * sigma, 40.0) ** 2)
        return float(np.abs(scipy.fft.idct(damped, type=2)).sum())

    return smooth


def _relplot(sample: Sample) -> Callable[[float], float]:
    """Return the error as a function of the bandwidth, on the grids of relplot."""

    @cache  # most bandwidths have the same grid
    def spectra(size: int) -> FloatArray:
        return np.asarray(scipy.fft.dct(_on_grid(sample, size, lambda score: score * (size - 1)), type=1))

    def smooth(sigma: float) -> float:
        grid, kernel, mesh = _relplot_kernel(sigma)
        # The cosine transform continues a function evenly at both ends: that is the reflection.
        difference, density = scipy.fft.idct(spectra(len(grid)) * kernel, type=1)
        return float(np.abs(np.interp(mesh, grid, difference)).sum() / np.interp(mesh, grid, density).sum())

    return smooth


@lru_cache(maxsize=128)  # a study tries the same few bandwidths on every sample
def _relplot_kernel(sigma: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the grid for a bandwidth, the cosine transform of the kernel, and the points of the integral."""
    grid = np.linspace(0, 1, max(2000, round(20 / sigma)) // 2 + 1)
    kernel = np.where(grid <= 0.5, np.exp(-0.5 * (grid / sigma) ** 2), 0.0)
    return grid, scipy.fft.dct(kernel, type=1), np.linspace(0, 1, max(round(10 / sigma), 200))
