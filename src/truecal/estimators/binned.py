"""Errors of bins: the gap between mean score and mean label, the largest gap, and the gap of each score."""

from __future__ import annotations

import numpy as np

from truecal._lib.lazy import fill_docstring
from truecal._lib.numeric import lp_norm, run_maxima
from truecal.data.sample import Sample, ScoreGroups
from truecal.estimators._binning import BinningRule, EqualMass, EqualWidth, cut
from truecal.estimators._registry import register_estimator
from truecal.results import Estimates

_LABEL_FORMULA = r""".. math:: \Big(\frac 1n \sum_{k=1}^{b} \sum_{i \in B_k} |f_i - \bar y_k|^p\Big)^{1/p}"""
_LABEL_REFERENCES = """\
References
----------
R. Roelofs, N. Cain, J. Shlens, M. C. Mozer (2022), Mitigating bias in calibration error estimation, AISTATS,
equation 3."""
_LARGEST_ESTIMAND = "largest gap between score and conditional probability"
_LARGEST_REFERENCES = """\
References
----------
M. P. Naeini, G. F. Cooper, M. Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian binning,
AAAI."""


def _mean_gap(rule: BinningRule, norm: float, n_bins: int) -> Estimates:
    division, bins = cut(rule, n_bins)
    return Estimates(
        lp_norm(bins.gap, bins.count, norm, division.bounds), bins, division.bounds, division.n_bins
    )


def _label_gap(rule: BinningRule, norm: float, n_bins: int) -> Estimates:
    division, bins = cut(rule, n_bins)
    value = rule.groups.distance(bins.mean_label, division.start, norm)
    return Estimates(value, bins, division.bounds, division.n_bins)


def _largest_gap(rule: BinningRule, n_bins: int) -> Estimates:
    division, bins = cut(rule, n_bins)
    return Estimates(run_maxima(np.abs(bins.gap), division.bounds), bins, division.bounds, division.n_bins)


def _true_largest_gap(census: Sample, *, n_bins: int) -> float:
    return float(np.abs(census.score - census.label).max())


@register_estimator(
    "ew_bin",
    summary="Gap between mean score and mean label over bins of equal width.",
    reference="Naeini, Cooper, Hauskrecht (2015), AAAI; Guo et al. (2017), ICML",
    aliases=("ece",),
    alias_norms={"ece": 1.0},
    largest="ew_mce",
    takes_blocks=True,
    counting=True,
)
def ew_bin(sample: ScoreGroups, *, norm: float, n_bins: int = 15) -> Estimates:
    r"""Return the binned calibration error over equal-width bins.

    .. math:: \Big(\sum_{k=1}^{b} \frac{|B_k|}{n} |\bar f_k - \bar y_k|^p\Big)^{1/p}

    Estimand: the true calibration error. The estimate is biased upwards if there are too many bins for the number
    of rows, and downwards if there are too few for the curve. With norm 1 it is the usual ECE.

    References
    ----------
    M. P. Naeini, G. F. Cooper, M. Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian binning,
    AAAI.

    C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017), On calibration of modern neural networks, ICML.

    Examples
    --------
    >>> import truecal
    >>> truecal.calibration_error([0, 1, 1, 1], [0.1, 0.4, 0.8, 0.9], estimator="ew_bin", norm=1, n_bins=2)
    0.2
    """
    return _mean_gap(EqualWidth(sample), norm, n_bins)


@register_estimator(
    "em_bin",
    summary="Gap between mean score and mean label over bins of equal mass.",
    reference="Zadrozny, Elkan (2001), ICML; Nguyen, O'Connor (2015), EMNLP; Nixon et al. (2019), CVPR Workshops",
    aliases=("ace",),
    alias_norms={"ace": 1.0},
    largest="em_mce",
    takes_blocks=True,
)
def em_bin(sample: ScoreGroups, *, norm: float, n_bins: int = 15) -> Estimates:
    r"""Return the binned calibration error over equal-mass bins.

    .. math:: \Big(\sum_{k=1}^{b} \frac{|B_k|}{n} |\bar f_k - \bar y_k|^p\Big)^{1/p}

    Estimand: the true calibration error, with the biases of `ew_bin`. With norm 1 it is the adaptive calibration error
    (ACE); for several classes Nixon et al. average over all of them, which is ``multiclass="classwise"``.

    References
    ----------
    B. Zadrozny, C. Elkan (2001), Obtaining calibrated probability estimates from decision trees and naive Bayesian
    classifiers, ICML.

    K. Nguyen, B. O'Connor (2015), Posterior calibration and exploratory analysis for natural language processing
    models, EMNLP.

    J. Nixon, M. W. Dusenberry, L. Zhang, G. Jerfel, D. Tran (2019), Measuring calibration in deep learning, CVPR
    Workshops.

    Examples
    --------
    >>> import truecal
    >>> truecal.calibration_error([0, 1, 1, 1], [0.1, 0.4, 0.8, 0.9], estimator="em_bin", norm=1, n_bins=4)
    0.25
    """
    return _mean_gap(EqualMass(sample), norm, n_bins)


@register_estimator(
    "ew_label",
    summary="Gap between each score and the mean label of its equal-width bin.",
    reference="Roelofs et al. (2022), AISTATS, eq. 3",
    takes_blocks=True,
    counting=True,
)
@fill_docstring(formula=_LABEL_FORMULA, references=_LABEL_REFERENCES)
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
    return _label_gap(EqualWidth(sample), norm, n_bins)


@register_estimator(
    "em_label",
    summary="Gap between each score and the mean label of its equal-mass bin.",
    reference="Roelofs et al. (2022), AISTATS, eq. 3",
    takes_blocks=True,
)
@fill_docstring(formula=_LABEL_FORMULA, references=_LABEL_REFERENCES)
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
    return _label_gap(EqualMass(sample), norm, n_bins)


@register_estimator(
    "ew_mce",
    summary="Largest gap of any equal-width bin.",
    reference="Naeini, Cooper, Hauskrecht (2015), AAAI",
    estimand=_LARGEST_ESTIMAND,
    norms="none",
    aliases=("mce",),
    counting=True,
    takes_blocks=True,
    truth=_true_largest_gap,
)
@fill_docstring(references=_LARGEST_REFERENCES)
def ew_mce(sample: ScoreGroups, *, n_bins: int = 15) -> Estimates:
    r"""Return the maximum calibration error over equal-width bins.

    .. math:: \max_k |\bar f_k - \bar y_k|

    Estimand: the largest gap between a score and the conditional probability of the event. A single bin with few
    rows can determine the estimate; the result has the counts in `bins`.

    {references}

    Examples
    --------
    >>> import truecal
    >>> truecal.calibration_error([0, 1, 1, 1], [0.1, 0.4, 0.8, 0.9], estimator="ew_mce", n_bins=2)
    0.25
    """
    return _largest_gap(EqualWidth(sample), n_bins)


@register_estimator(
    "em_mce",
    summary="Largest gap of any equal-mass bin.",
    reference="Naeini, Cooper, Hauskrecht (2015), AAAI",
    estimand=_LARGEST_ESTIMAND,
    norms="none",
    takes_blocks=True,
    truth=_true_largest_gap,
)
@fill_docstring(references=_LARGEST_REFERENCES)
def em_mce(sample: ScoreGroups, *, n_bins: int = 15) -> Estimates:
    r"""Return the maximum calibration error over equal-mass bins.

    .. math:: \max_k |\bar f_k - \bar y_k|

    Estimand: the largest gap between a score and the conditional probability of the event.

    {references}

    Examples
    --------
    >>> import truecal
    >>> truecal.calibration_error([0, 1, 1, 1], [0.1, 0.4, 0.8, 0.9], estimator="em_mce", n_bins=4)
    0.6
    """
    return _largest_gap(EqualMass(sample), n_bins)
