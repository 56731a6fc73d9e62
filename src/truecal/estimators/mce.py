"""MCE: the largest gap between mean score and mean label of a bin."""

from __future__ import annotations

import numpy as np

from truecal._lib.checks import check_count
from truecal._lib.lazy import fill_docstring
from truecal._lib.numeric import run_maxima
from truecal.data.sample import Sample, ScoreGroups
from truecal.data.width_bins import WidthCounting
from truecal.estimators._binning import BinningRule, EqualMass, EqualWidth, partition, summarize_bins
from truecal.estimators._registry import register_estimator
from truecal.results import Estimates

_REFERENCE = "Naeini, Cooper, Hauskrecht (2015), AAAI"
_REFERENCES = """\
References
----------
M. P. Naeini, G. F. Cooper, M. Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian binning,
AAAI."""
_ESTIMAND = "largest gap between score and conditional probability"


def _largest_gap(census: Sample, *, n_bins: int) -> float:
    return float(np.abs(census.score - census.label).max())


@register_estimator(
    "ew_mce",
    summary="Largest gap of any equal-width bin.",
    reference=_REFERENCE,
    estimand=_ESTIMAND,
    norms="none",
    aliases=("mce",),
    counting=WidthCounting,
    takes_blocks=True,
    truth=_largest_gap,
)
@fill_docstring(references=_REFERENCES)
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
    return _largest(EqualWidth(sample), n_bins)


@register_estimator(
    "em_mce",
    summary="Largest gap of any equal-mass bin.",
    reference=_REFERENCE,
    estimand=_ESTIMAND,
    norms="none",
    takes_blocks=True,
    truth=_largest_gap,
)
@fill_docstring(references=_REFERENCES)
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
    return _largest(EqualMass(sample), n_bins)


def _largest(rule: BinningRule, n_bins: int) -> Estimates:
    n_bins = check_count("n_bins", n_bins)
    division = partition(rule, n_bins)
    bins = summarize_bins(rule.groups, division)
    value = run_maxima(np.abs(bins.gap), division.bounds)
    return Estimates(value, bins, division.bounds, n_bins)
