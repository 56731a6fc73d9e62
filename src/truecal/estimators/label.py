"""ECE_label-binned: the gap between every score and the mean label of its bin."""

from __future__ import annotations

from truecal._lib.checks import check_count
from truecal._lib.lazy import fill_docstring
from truecal.data.sample import ScoreGroups
from truecal.data.width_bins import WidthCounting
from truecal.estimators._binning import BinningRule, EqualMass, EqualWidth, partition, summarize_bins
from truecal.estimators._registry import register_estimator
from truecal.results import Estimates

_REFERENCE = "Roelofs et al. (2022), AISTATS, eq. 3"

_FORMULA = r""".. math:: \Big(\frac 1n \sum_{k=1}^{b} \sum_{i \in B_k} |f_i - \bar y_k|^p\Big)^{1/p}"""

_REFERENCES = """\
References
----------
R. Roelofs, N. Cain, J. Shlens, M. C. Mozer (2022), Mitigating bias in calibration error estimation, AISTATS,
equation 3."""


@register_estimator(
    "ew_label",
    summary="Gap between each score and the mean label of its equal-width bin.",
    reference=_REFERENCE,
    takes_blocks=True,
    counting=WidthCounting,
)
@fill_docstring(formula=_FORMULA, references=_REFERENCES)
def ew_label(sample: ScoreGroups, *, norm: float, n_bins: int = 15) -> Estimates:
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


@register_estimator(
    "em_label",
    summary="Gap between each score and the mean label of its equal-mass bin.",
    reference=_REFERENCE,
    takes_blocks=True,
)
@fill_docstring(formula=_FORMULA, references=_REFERENCES)
def em_label(sample: ScoreGroups, *, norm: float, n_bins: int = 15) -> Estimates:
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


def _label_binned(rule: BinningRule, norm: float, n_bins: int) -> Estimates:
    n_bins = check_count("n_bins", n_bins)
    division = partition(rule, n_bins)
    bins = summarize_bins(rule.groups, division)
    value = rule.groups.distance(bins.mean_label, division.start, norm)
    return Estimates(value, bins, division.bounds, n_bins)
