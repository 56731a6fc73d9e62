"""The flagship estimator: the squared error on all scales that the data can resolve."""

from __future__ import annotations

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
