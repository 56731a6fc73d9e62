"""ECE_debias: the binned error minus the contribution of the noise of the labels in each bin."""

from __future__ import annotations

import math

import numpy as np
import scipy

from truecal._lib.lazy import fill_docstring
from truecal._lib.numeric import run_maxima, run_sums
from truecal._lib.types import FloatArray
from truecal.data.sample import ScoreGroups
from truecal.estimators._binning import BinningRule, EqualMass, EqualWidth, cut
from truecal.estimators._registry import register_estimator
from truecal.exceptions import InputError
from truecal.results import BinTable, Estimates

_REFERENCE = "Ferro, Fricker (2012), QJRMS; Bröcker (2012), Clim. Dyn.; Kumar, Liang, Ma (2019), NeurIPS"
#: Above this order, powers of gaps and of their noise leave the range of floating-point numbers.
_LARGEST_NORM = 50
_SINGLE_ROWS = (
    "most rows are in bins of their own, where the noise cannot be estimated and is not subtracted. Use fewer "
    "bins or more rows; weights are frequencies, so that weights that sum to 1 count as one row."
)

#: Above this order the noise of a gap is mostly that of rare large ones, and often exceeds the gap itself.
_USUAL_NORM = 4
_CLIPPED = (
    "the noise of the bins, to the power of the norm, exceeds their gaps: the value is 0 whatever the error is. "
    "Use a norm of at most 4."
)

_FORMULA = r""".. math:: \Big(\sum_k \frac{m_k}{n} \Big[(\bar f_k - \bar y_k)^2
          - \frac{\bar y_k (1 - \bar y_k)}{m_k - 1}\Big]\Big)_+^{1/2}"""

_REFERENCES = """\
References
----------
C. A. T. Ferro, T. E. Fricker (2012), A bias-corrected decomposition of the Brier score, Quarterly Journal of the
Royal Meteorological Society 138.

J. Bröcker (2012), Estimating reliability and resolution of probability forecasts through decomposition of the
empirical score, Climate Dynamics 39.

A. Kumar, P. Liang, T. Ma (2019), Verified uncertainty calibration, NeurIPS."""


@register_estimator(
    "ew_debias",
    summary="Binned error minus its noise, equal-width bins.",
    reference=_REFERENCE,
    counting=True,
    takes_blocks=True,
)
@fill_docstring(formula=_FORMULA, references=_REFERENCES)
def ew_debias(sample: ScoreGroups, *, norm: float, n_bins: int = 15) -> Estimates:
    r"""Return the debiased binned calibration error over equal-width bins.

    For p = 2, an unbiased estimate of the variance of the mean label is subtracted from each squared gap:

    {formula}

    The variance in a bin of one row cannot be estimated, and nothing is subtracted there. The sum before
    clipping and taking the root is the `signed_square` of the result.

    For other p the noise of a bin is :math:`E|Z|^p - |\bar f_k - \bar y_k|^p`, where Z is normal with the gap as
    its mean and the variance of the mean label, :math:`\bar y_k (1 - \bar y_k) / m_k`. For p = 1 this is the
    resampling estimate of Kumar et al. (2019, section 5) with infinitely many draws, in closed form.

    Estimand: the binned error of the population, which approaches the true calibration error as bins get narrower.

    {references}

    Examples
    --------
    >>> import truecal
    >>> y, p = [0, 0, 1, 0, 0, 1, 1, 1], [0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.9]
    >>> estimate = truecal.estimate(y, p, estimator="ew_debias", n_bins=2)
    >>> round(estimate.value, 12), round(estimate.signed_square, 12)
    (0.0, -0.04)
    """
    return _debiased(EqualWidth(sample), norm, n_bins)


@register_estimator(
    "em_debias",
    summary="Binned error minus its noise, equal-mass bins.",
    reference=_REFERENCE,
    takes_blocks=True,
)
@fill_docstring(formula=_FORMULA, references=_REFERENCES)
def em_debias(sample: ScoreGroups, *, norm: float, n_bins: int = 15) -> Estimates:
    r"""Return the debiased binned calibration error over equal-mass bins.

    {formula}

    for p = 2; see `ew_debias` for other p, for bins of one row and for the estimand.

    {references}

    Examples
    --------
    >>> import truecal
    >>> y, p = [0, 0, 0, 0, 0, 1, 1, 1], [0.4, 0.4, 0.4, 0.4, 0.9, 0.9, 0.9, 0.9]
    >>> round(truecal.calibration_error(y, p, estimator="em_debias", n_bins=2), 6)
    0.244949
    """
    return _debiased(EqualMass(sample), norm, n_bins)


def _debiased(rule: BinningRule, norm: float, n_bins: int) -> Estimates:
    if norm > _LARGEST_NORM:
        raise InputError(
            f"must be at most {_LARGEST_NORM} for debiased estimators. Got {norm:g} instead", argument="norm"
        )
    division, bins = cut(rule, n_bins)
    size, n, bounds = np.abs(bins.gap), rule.groups.n, division.bounds
    signed = run_sums(bins.count * (size**norm - _noise(bins, norm)), bounds) / n
    notes = {_SINGLE_ROWS: run_sums(bins.count * (bins.count <= 1), bounds) > n / 2}
    if norm > _USUAL_NORM:
        notes[_CLIPPED] = (signed <= 0) & (run_maxima(size, bounds) > 0)
    return Estimates(
        np.maximum(signed, 0.0) ** (1 / norm),
        bins,
        bounds,
        division.n_bins,
        signed_square=signed if norm == 2 else None,
        notes=notes,
    )


def _noise(bins: BinTable, norm: float) -> FloatArray:
    """Return the expected contribution of label noise to each bin's gap to the power of `norm`."""
    # One row has no variance estimate. For weights between one and two the correction increases linearly.
    spare = bins.count - 1
    variance = bins.mean_label * (1 - bins.mean_label) * spare.clip(0.0, 1.0)
    if norm == 2:
        return np.asarray(variance / np.maximum(spare, 1.0))
    variance /= bins.count
    ratio = np.divide(bins.gap**2, 2 * variance, out=np.full_like(variance, np.inf), where=variance > 0)
    noisy = ratio < 1000 * norm**2
    power = np.abs(bins.gap) ** norm
    # Elsewhere the first term of the series of the expression below is accurate to a thousandth.
    noise = power * norm * (norm - 1) / (4 * np.where(noisy, np.inf, ratio))
    # E|N(gap, variance)|^p by Kummer's function, in logarithms because its factors may overflow.
    log_moment = np.log(scipy.special.hyp1f1(-norm / 2, 0.5, -ratio[noisy])) + norm / 2 * np.log(
        2 * variance[noisy]
    )
    noise[noisy] = (
        np.exp(log_moment + scipy.special.gammaln((norm + 1) / 2)) / math.sqrt(math.pi) - power[noisy]
    )
    return np.asarray(noise)
