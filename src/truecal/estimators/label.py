"""ECE_label-binned: compare every score with the mean label of its bin."""

from __future__ import annotations

import numpy as np

from truecal._lib.checks import check_count
from truecal.data.sample import Sample
from truecal.estimators._binning import BinningRule, EqualMass, EqualWidth, lp_norm, partition, summarize_bins
from truecal.estimators._registry import estimator
from truecal.results import Estimate

_REFERENCE = "Roelofs et al. (2022), AISTATS, eq. 3"


@estimator(
    "ew_label",
    summary="Gap between each score and the mean label of its equal-width bin.",
    reference=_REFERENCE,
)
def ew_label(sample: Sample, *, norm: float, n_bins: int = 15) -> Estimate:
    r"""Return the label-binned error over equal-width bins.

    .. math:: \Big(\frac 1n \sum_{k=1}^{b} \sum_{i \in B_k} |f_i - \bar y_k|^p\Big)^{1/p}

    Never below `ew_bin` (Jensen's inequality), as it counts the spread of the scores within a bin too.

    Examples
    --------
    >>> import truecal
    >>> truecal.calibration_error([0, 1, 1, 1], [0.1, 0.4, 0.8, 0.9], estimator="ew_label", norm=1, n_bins=2)
    0.2
    """
    return _label_binned(EqualWidth(sample), norm, n_bins)


@estimator(
    "em_label",
    summary="Gap between each score and the mean label of its equal-mass bin.",
    reference=_REFERENCE,
)
def em_label(sample: Sample, *, norm: float, n_bins: int = 15) -> Estimate:
    r"""Return the label-binned error over equal-mass bins; the formula is that of `ew_label`.

    Examples
    --------
    >>> import truecal
    >>> truecal.calibration_error([0, 1, 1, 1], [0.1, 0.4, 0.8, 0.9], estimator="em_label", norm=1, n_bins=1)
    0.3
    """
    return _label_binned(EqualMass(sample), norm, n_bins)


def _label_binned(rule: BinningRule, norm: float, n_bins: int) -> Estimate:
    n_bins = check_count("n_bins", n_bins)
    cut = partition(rule, n_bins)
    bins = summarize_bins(rule.sample, cut)
    sizes = np.diff(cut.start, append=len(rule.sample))
    gap = rule.sample.score - np.repeat(bins.mean_label, sizes)
    return Estimate(lp_norm(gap, rule.sample.count, norm), bins=bins, n_bins=n_bins)
