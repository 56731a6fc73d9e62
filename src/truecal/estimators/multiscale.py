"""The default estimator: the error on all scales that the data can resolve, and its two directions."""

from __future__ import annotations

import numpy as np

from truecal._lib.numeric import lp_norm
from truecal._lib.types import FloatArray
from truecal.data.sample import Block, Sample
from truecal.estimators._registry import register_estimator
from truecal.multiscale import analyse, errors_in_block
from truecal.results import Estimate, Estimates


@register_estimator(
    "multiscale",
    summary="Debiased error on all scales, from smooth curves to fine bins, weighted by evidence.",
    reference="truecal (2026); beta calibration: Kull, Silva Filho, Flach (2017), AISTATS",
    takes_blocks=True,
)
def multiscale(samples: Sample | Block, *, norm: float) -> Estimates:
    r"""Return the multiscale calibration error.

    The squared error is a sum of increments from coarse to fine: a logistic curve, a beta curve, and nested bins of
    equal mass whose number grows with the data, down to one bin per distinct score where scores repeat. Each increment
    :math:`\delta_j` is unbiased, and counts with the posterior probability :math:`q_j` that its scale holds error:

    .. math:: \hat\theta = \sum_j q_j \delta_j, \qquad
        \widehat{\mathrm{TCE}} = \frac{o^2}{1 + o^2}\, \operatorname{Re} \sqrt{\hat\theta + i \sqrt{V}}

    with V the variance of :math:`\hat\theta`, which removes the bias of the root, and o the posterior odds of
    miscalibration: without evidence of error the estimate is close to 0. For the l1 error, and for the derivation,
    see the theory pages of the documentation.

    Estimand: the true calibration error. It needs no choice of bins, does not assume a rising curve, and is consistent
    for curves of any shape; how fine a structure it can see depends on the number of rows.

    References
    ----------
    Kull, Silva Filho, Flach (2017), Beta calibration, AISTATS; the rest is derived in the documentation of truecal.

    Examples
    --------
    >>> import truecal
    >>> population = truecal.paper.population("resnet152_imgnet")
    >>> y, p = population.sample(5000, rng=0)
    >>> round(population.true_error(), 3), round(truecal.calibration_error(y, p), 3)
    (0.086, 0.08)
    """
    if norm == 2 and isinstance(samples, Block):
        value, square = errors_in_block(samples)
        return Estimates(value, signed_square=square)
    cores = [analyse(sample) for sample in (samples if isinstance(samples, Block) else [samples])]
    return Estimates.gather(
        [Estimate(core.error(norm), signed_square=core.square if norm == 2 else None) for core in cores]
    )


def _part(gap: FloatArray, weight: FloatArray, norm: float) -> float:
    """Return the lp norm of the positive part of a gap."""
    return float(lp_norm(np.maximum(gap, 0.0), weight, norm, np.array([0, len(gap)]))[0])


def _share(sample: Sample, norm: float, sign: int) -> Estimate:
    """Return the multiscale error times the share of the curve's gap that has this sign."""
    core = analyse(sample)
    whole = _part(np.abs(core.gap), core.weight, norm)
    return Estimate(core.error(norm) * _part(sign * core.gap, core.weight, norm) / whole if whole else 0.0)


@register_estimator(
    "overconfidence",
    summary="Part of the error from scores that are too high.",
    reference="truecal (2026)",
    estimand="lp norm of (score - conditional probability)+",
    truth=lambda census, norm: _part(census.score - census.label, census.count, norm),
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
    return _share(sample, norm, 1)


@register_estimator(
    "underconfidence",
    summary="Part of the error from scores that are too low.",
    reference="truecal (2026)",
    estimand="lp norm of (conditional probability - score)+",
    truth=lambda census, norm: _part(census.label - census.score, census.count, norm),
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
    return _share(sample, norm, -1)
