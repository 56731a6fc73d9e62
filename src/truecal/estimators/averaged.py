"""The evidence-averaged estimator: candidate curves, weighed by how well they explain the labels."""

from __future__ import annotations

from truecal.data.sample import Sample
from truecal.estimators._curves import average_curves
from truecal.estimators._registry import estimator
from truecal.results import Estimate


@estimator(
    "averaged",
    summary="Debiased error of several calibration curves, averaged by the evidence for each.",
    reference="truecal (2026); beta calibration: Kull, Silva Filho, Flach (2017), AISTATS",
)
def averaged(sample: Sample, *, norm: float) -> Estimate:
    r"""Return the evidence-averaged calibration error.

    .. math:: \hat\theta = \sum_m w_m \hat\theta_m, \qquad w_m \propto e^{(S_m - 1.5 D_m)/2}

    where :math:`\hat\theta_m` is the squared error under candidate curve m less its own noise, S_m twice the
    log-likelihood ratio against perfect calibration and D_m the degrees of freedom (see
    `truecal.estimators._curves`). The estimate is

    .. math:: \sqrt{\hat\theta_+\Big(1 + \frac{V}{4(\hat\theta^2 + V/2)}\Big)}\;
              \big(1 + e^{3 - E}\big)^{-1}

    The first factor takes back the root's own bias, V being the variance of :math:`\hat\theta`. The second is
    near 0 where the total evidence E against calibration is weak, and near 1 where it is strong: an estimate
    that cannot be negative is otherwise biased upwards when the truth is 0.

    For p other than 2 the l2 estimate is multiplied by the ratio of the two norms under the averaged curves.

    Estimand: the true calibration error, which it finds with less bias than `em_sweep` and `em_debias`,
    whether the model is calibrated or not. It does not need bins, and does not assume that labels rise.

    References
    ----------
    M. Kull, T. Silva Filho, P. Flach (2017), Beta calibration, AISTATS.

    Examples
    --------
    >>> import truecal
    >>> population = truecal.paper.population("resnet152_imgnet")
    >>> y, p = population.sample(5000, rng=0)
    >>> round(population.true_error(), 3), round(truecal.calibration_error(y, p, estimator="averaged"), 3)
    (0.086, 0.079)
    """
    curves = average_curves(sample)
    return Estimate(
        curves.error(norm),
        signed_square=curves.mean(curves.square) if norm == 2 else None,
    )
