"""ECE_sweep: the largest number of bins up to which the mean labels never fall."""

from __future__ import annotations

from truecal._lib.lazy import fill_docstring
from truecal._lib.numeric import lp_norm
from truecal.data.sample import ScoreGroups
from truecal.estimators._binning import BinningRule, EqualMass, EqualWidth, cut, monotone_sweep
from truecal.estimators._registry import register_estimator
from truecal.results import Estimates

_REFERENCE = "Roelofs et al. (2022), AISTATS, eq. 8 and Algorithm 1"
_NOT_MONOTONE = (
    "the mean labels are not monotone: even with two bins they decrease as the scores increase. The estimate uses "
    "one bin and may be far below the true error; compare estimator='em_debias'."
)

_FORMULA = r""".. math:: \Big(\sum_{k=1}^{b^*} \frac{|B_k|}{n} |\bar f_k - \bar y_k|^p\Big)^{1/p},\quad
          b^* = \max\{b : \forall b' \le b,\ \bar y_1 \le \dots \le \bar y_{b'}\}"""

_REFERENCES = """\
References
----------
R. Roelofs, N. Cain, J. Shlens, M. C. Mozer (2022), Mitigating bias in calibration error estimation, AISTATS,
equation 8 and Algorithm 1."""


@register_estimator(
    "ew_sweep",
    summary="Binned error with as many equal-width bins as keep the mean labels from falling.",
    reference=_REFERENCE,
    takes_blocks=True,
)
@fill_docstring(formula=_FORMULA, references=_REFERENCES)
def ew_sweep(sample: ScoreGroups, *, norm: float) -> Estimates:
    r"""Return the monotonic sweep calibration error over equal-width bins.

    {formula}

    Estimand: the true calibration error of a model whose calibration curve increases; see `em_sweep`.

    {references}

    Examples
    --------
    >>> import truecal
    >>> truecal.estimate([0, 1, 0, 1, 1], [0.1, 0.3, 0.4, 0.8, 0.9], estimator="ew_sweep").n_bins
    2
    """
    return _swept(EqualWidth(sample), norm)


@register_estimator(
    "em_sweep",
    summary="Binned error with as many equal-mass bins as keep the mean labels from falling.",
    reference=_REFERENCE,
    takes_blocks=True,
)
@fill_docstring(formula=_FORMULA, references=_REFERENCES)
def em_sweep(sample: ScoreGroups, *, norm: float) -> Estimates:
    r"""Return the monotonic sweep calibration error over equal-mass bins.

    {formula}

    Estimand: the true calibration error of a model whose calibration curve increases. If the mean label decreases
    already from the lower to the upper of two bins, one bin remains, the value is the difference of mean score and
    mean label, and the result has a note.

    {references}

    Examples
    --------
    >>> import truecal
    >>> truecal.estimate([0, 1, 0, 1, 1], [0.1, 0.3, 0.4, 0.8, 0.9], estimator="em_sweep").n_bins
    3
    """
    return _swept(EqualMass(sample), norm)


def _swept(rule: BinningRule, norm: float) -> Estimates:
    n_bins = monotone_sweep(rule)
    division, bins = cut(rule, n_bins)
    failed = (n_bins == 1) & (rule.groups.sizes > 1)
    value = lp_norm(bins.gap, bins.count, norm, division.bounds)
    return Estimates(value, bins, division.bounds, n_bins, notes={_NOT_MONOTONE: failed})
