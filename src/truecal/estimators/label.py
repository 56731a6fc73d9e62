"""ECE_label-binned: the gap between every score and the mean label of its bin."""

from __future__ import annotations

import numpy as np

from truecal._lib.checks import check_count
from truecal._lib.docs import fill_docstring
from truecal.data.sample import Sample
from truecal.estimators._binning import BinningRule, EqualMass, EqualWidth, lp_norm, partition, summarize_bins
from truecal.estimators._registry import estimator
from truecal.results import Estimate

_REFERENCE = "Roelofs et al. (2022), AISTATS, eq. 3"

_FORMULA = r""".. math:: \Big(\frac 1n \sum_{k=1}^{b} \sum_{i \in B_k} |f_i - \bar y_k|^p\Big)^{1/p}"""

_REFERENCES = """\
References
----------
R. Roelofs, N. Cain, J. Shlens, M. C. Mozer (2022), Mitigating bias in calibration error estimation, AISTATS,
equation 3."""


@estimator(
    "ew_label",
    summary="Gap between each score and the mean label of its equal-width bin.",
    reference=_REFERENCE,
)
@fill_docstring(formula=_FORMULA, references=_REFERENCES)
def ew_label(sample: Sample, *, norm: float, n_bins: int = 15) -> Estimate:
    r"""Return the label-binned calibration error over equal-width bins.

    {formula}

    Estimand: the true calibration error. The estimate is never below that of `ew_bin` (Jensen's inequality),
    because it includes the spread of the scores within a bin.

    {references}

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
@fill_docstring(formula=_FORMULA, references=_REFERENCES)
def em_label(sample: Sample, *, norm: float, n_bins: int = 15) -> Estimate:
    r"""Return the label-binned calibration error over equal-mass bins.

    {formula}

    Estimand: the true calibration error. The estimate is never below that of `em_bin`.

    {references}

    Examples
    --------
    >>> import truecal
    >>> truecal.calibration_error([0, 1, 1, 1], [0.1, 0.4, 0.8, 0.9], estimator="em_label", norm=1, n_bins=1)
    0.3
    """
    return _label_binned(EqualMass(sample), norm, n_bins)


def _label_binned(rule: BinningRule, norm: float, n_bins: int) -> Estimate:
    n_bins = check_count("n_bins", n_bins)
    division = partition(rule, n_bins)
    bins = summarize_bins(rule.sample, division)
    sizes = np.diff(division.start, append=len(rule.sample))
    gap = rule.sample.score - np.repeat(bins.mean_label, sizes)
    return Estimate(lp_norm(gap, rule.sample.count, norm), bins=bins, n_bins=n_bins)
