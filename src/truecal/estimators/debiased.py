"""ECE_debias: subtract from each bin the error that its own labels' noise would cause."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gamma, hyp1f1

from truecal._checks import check_count
from truecal._registry import estimator
from truecal.binning import BinningRule, EqualMass, EqualWidth, partition, summarize_bins
from truecal.results import BinTable, Estimate
from truecal.sample import FloatArray, Sample

_REFERENCE = "Ferro, Fricker (2012), QJRMS; Bröcker (2012), Clim. Dyn.; Kumar, Liang, Ma (2019), NeurIPS"
_SINGLE_ROWS = (
    "most rows are alone in their bins, where noise cannot be told from error and is not subtracted. Use "
    "fewer bins or more rows; weights are frequencies, so that weights which sum to 1 count as one row."
)


@estimator("ew_debias", summary="Binned error less its noise, equal-width bins.", reference=_REFERENCE)
def ew_debias(sample: Sample, *, norm: float, n_bins: int = 15) -> Estimate:
    r"""Return the debiased error over equal-width bins.

    For p = 2 each bin's squared gap, less an unbiased estimate of the variance of its mean label:

    .. math:: \Big(\sum_k \frac{m_k}{n} \Big[(\bar f_k - \bar y_k)^2
              - \frac{\bar y_k (1 - \bar y_k)}{m_k - 1}\Big]\Big)_+^{1/2}

    A bin of one row says nothing of its own variance: nothing is subtracted, and its noise stays in. The
    sum before clipping and rooting is on the result as `signed_square`.

    For other p the noise of a bin is the mean of :math:`|Z|^p` less :math:`|\bar f_k - \bar y_k|^p`, with
    Z normal around the gap with the variance of the mean label. This is the limit of the resampling of
    Kumar et al. (2019, section 5) for infinitely many draws, in closed form, so nothing is random.

    Examples
    --------
    >>> import truecal
    >>> y, p = [0, 0, 1, 0, 0, 1, 1, 1], [0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.9]
    >>> estimate = truecal.estimate(y, p, estimator="ew_debias", n_bins=2)
    >>> round(estimate.value, 12), round(estimate.signed_square, 12)
    (0.0, -0.04)
    """
    return _debiased(EqualWidth(sample), norm, n_bins)


@estimator("em_debias", summary="Binned error less its noise, equal-mass bins.", reference=_REFERENCE)
def em_debias(sample: Sample, *, norm: float, n_bins: int = 15) -> Estimate:
    r"""Return the debiased error over equal-mass bins; the formula is that of `ew_debias`.

    Examples
    --------
    >>> import truecal
    >>> y, p = [0, 0, 0, 0, 0, 1, 1, 1], [0.4, 0.4, 0.4, 0.4, 0.9, 0.9, 0.9, 0.9]
    >>> round(truecal.calibration_error(y, p, estimator="em_debias", n_bins=2), 6)
    0.244949
    """
    return _debiased(EqualMass(sample), norm, n_bins)


def _debiased(rule: BinningRule, norm: float, n_bins: int) -> Estimate:
    n_bins = check_count("n_bins", n_bins)
    bins = summarize_bins(rule.sample, partition(rule, n_bins))
    signed = float(np.average(np.abs(bins.gap) ** norm - _noise(bins, norm), weights=bins.count))
    lone = float(bins.count[bins.count <= 1].sum()) > rule.sample.n / 2
    return Estimate(
        max(signed, 0.0) ** (1 / norm),
        bins=bins,
        n_bins=n_bins,
        signed_square=signed if norm == 2 else None,
        notes=(_SINGLE_ROWS,) if lone else (),
    )


def _noise(bins: BinTable, norm: float) -> FloatArray:
    """Return by how much the noise of the labels raises each bin's gap to the power of `norm`."""
    variance = bins.mean_label * (1 - bins.mean_label)
    if norm == 2:
        return np.divide(variance, bins.count - 1, out=np.zeros_like(variance), where=bins.count > 1)
    variance = variance / bins.count
    gap = np.abs(bins.gap)
    ratio = np.divide(gap**2, 2 * variance, out=np.full_like(gap, np.inf), where=variance > 0)
    # E|N(gap, variance)|^p by Kummer's function. Where it overflows, noise no longer adds to the gap.
    noisy = ratio < 500
    scale = (2 * variance) ** (norm / 2) * gamma((norm + 1) / 2) / math.sqrt(math.pi)
    mean = scale * hyp1f1(-norm / 2, 0.5, -np.where(noisy, ratio, 0.0))
    return np.asarray(np.where(noisy, mean - gap**norm, 0.0))
