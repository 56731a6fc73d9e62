"""The two directions of the error: scores that are too high, and scores that are too low."""

from __future__ import annotations

import numpy as np

from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.estimators._registry import register_estimator
from truecal.multiscale import analyse
from truecal.results import Estimate

_REFERENCE = "truecal (2026)"


def _true_part(gap: FloatArray, weight: FloatArray, norm: float) -> float:
    """Return the lp norm of the positive part of a known gap."""
    part = np.maximum(gap, 0.0)
    largest = float(part.max())
    if largest == 0:
        return 0.0
    return float(largest * (np.sum(weight * (part / largest) ** norm) / weight.sum()) ** (1 / norm))


def _true_over(sample: Sample, norm: float) -> float:
    return _true_part(sample.score - sample.label, sample.count, norm)


def _true_under(sample: Sample, norm: float) -> float:
    return _true_part(sample.label - sample.score, sample.count, norm)


def _part(sample: Sample, norm: float, sign: int) -> Estimate:
    """Return the flagship's error times the share of the curve's gap that has this sign."""
    core = analyse(sample)
    gap, weight = core.gap, core.weight
    size = np.abs(gap)
    largest = float(size.max())
    if largest == 0:
        return Estimate(0.0)
    power = weight * (size / largest) ** norm
    share = float(power[sign * gap > 0].sum() / power.sum())
    return Estimate(core.error(norm) * share ** (1 / norm))


@register_estimator(
    "overconfidence",
    summary="Part of the error from scores that are too high.",
    reference=_REFERENCE,
    estimand="lp norm of (score - conditional probability)+",
    truth=_true_over,
)
def overconfidence(sample: Sample, *, norm: float) -> Estimate:
    r"""Return the part of the calibration error that comes from scores that are too high.

    .. math:: \big(E[(f - \mu)_+^p]\big)^{1/p}, \qquad \mu = E[Y \mid f]

    This is the estimand. The error of the `multiscale` estimator is divided by the estimated curve:
    the p-th powers of `overconfidence` and `underconfidence` add up to the p-th power of the whole error. For the top
    label, scores that are too high are confidences that are too high; for P(y = 1), they are risks that are too high.

    References
    ----------
    Berta, Braun, Holzmüller, Bach, Jordan (2026), A variational estimator for Lp calibration errors.

    Examples
    --------
    >>> import truecal
    >>> y, p = truecal.paper.population("resnet152_imgnet").sample(5000, rng=0)
    >>> [round(truecal.calibration_error(y, p, estimator=name), 3) for name in ("overconfidence", "underconfidence")]
    [0.08, 0.0]
    """
    return _part(sample, norm, 1)


@register_estimator(
    "underconfidence",
    summary="Part of the error from scores that are too low.",
    reference=_REFERENCE,
    estimand="lp norm of (conditional probability - score)+",
    truth=_true_under,
)
def underconfidence(sample: Sample, *, norm: float) -> Estimate:
    r"""Return the part of the calibration error that comes from scores that are too low.

    .. math:: \big(E[(\mu - f)_+^p]\big)^{1/p}, \qquad \mu = E[Y \mid f]

    This is the estimand; see `overconfidence`.

    References
    ----------
    The documentation of truecal.

    Examples
    --------
    >>> import truecal
    >>> y, p = truecal.Population(
    ...     truecal.simulation.BetaScores(1, 1), truecal.simulation.PowerCurve(0.5)
    ... ).sample(5000, rng=0)
    >>> round(truecal.calibration_error(y, p, estimator="underconfidence"), 2)
    0.19
    """
    return _part(sample, norm, -1)
