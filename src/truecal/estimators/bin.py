"""ECE_bin: the gap between mean score and mean label in each bin."""

from __future__ import annotations

from truecal._lib.checks import check_count
from truecal._lib.numeric import lp_norm
from truecal.data.sample import ScoreGroups
from truecal.data.width_bins import WidthCounting
from truecal.estimators._binning import BinningRule, EqualMass, EqualWidth, partition, summarize_bins
from truecal.estimators._registry import register_estimator
from truecal.results import Estimates


@register_estimator(
    "ew_bin",
    summary="Gap between mean score and mean label over bins of equal width.",
    reference="Naeini, Cooper, Hauskrecht (2015), AAAI; Guo et al. (2017), ICML",
    aliases=("ece",),
    alias_norms={"ece": 1.0},
    largest="ew_mce",
    takes_blocks=True,
    counting=WidthCounting,
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
    return _binned(EqualWidth(sample), norm, n_bins)


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
    return _binned(EqualMass(sample), norm, n_bins)


def _binned(rule: BinningRule, norm: float, n_bins: int) -> Estimates:
    n_bins = check_count("n_bins", n_bins)
    division = partition(rule, n_bins)
    bins = summarize_bins(rule.groups, division)
    value = lp_norm(bins.gap, bins.count, norm, division.bounds)
    return Estimates(value, bins, division.bounds, n_bins)
