"""Confidence intervals for the true calibration error, which hold it also where it is zero."""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.special import chndtr, ndtr

from truecal._lib.checks import check_fraction, check_norm
from truecal.data.sample import Sample
from truecal.estimators._curves import CurveAverage, average_curves
from truecal.exceptions import InputError
from truecal.results import Interval

#: First-order variances are a little too small when the curve itself is estimated.
_INFLATION = 1.1
#: Evidence against calibration without which the lower end is 0.
_LEAST_EVIDENCE = 4.0
#: How much of the relative uncertainty of the l2 error passes on to the ratio of l1 to l2.
_SHAPE_SHARE = 0.25

METHOD = "averaged curves, noncentral chi-square"


def confidence_interval(sample: Sample, *, norm: float = 2, confidence_level: float = 0.95) -> Interval:
    r"""Return a confidence interval for the true calibration error.

    The estimate :math:`\hat\theta` of the squared error (see `truecal.estimators._curves`) behaves like

    .. math:: v\,\big(\chi^2_d(\theta / v) - d\big)

    a centred noncentral chi-square. Its scale v comes from the first-order variance :math:`4 v \theta`, that
    of the influence function :math:`2(f - y)(f - g) - (f - g)^2`, which vanishes with the error; its degrees
    of freedom d from the variance :math:`2 d v^2` that is left when the model is calibrated, to which the
    disagreement between candidate curves is added. Inverting its distribution gives both ends, and works
    down to :math:`\theta = 0`, where normal and bootstrap intervals fail. The lower end is 0 unless there is
    evidence against calibration.

    For the l1 error both ends are multiplied by the ratio of the norms under the averaged curves, widened.

    Parameters
    ----------
    sample : Sample
        The predictions.
    norm : {1, 2}
        The p of the norm.
    confidence_level : float
        How often such intervals are to hold the truth.

    Returns
    -------
    Interval

    Examples
    --------
    >>> import truecal
    >>> from truecal.data import read
    >>> population = truecal.paper.population("resnet152_imgnet")
    >>> (sample,) = read(*population.sample(5000, rng=0))
    >>> interval = confidence_interval(sample)
    >>> population.true_error() in interval
    True
    """
    if check_norm(norm) not in (1, 2):
        raise InputError(f"intervals are known for norm 1 and 2. Got {norm!r} instead.")
    level = check_fraction("confidence_level", confidence_level)
    return interval_of(average_curves(sample), norm, level)


def interval_of(curves: CurveAverage, norm: float, level: float) -> Interval:
    """Return the interval from curves that were averaged before."""
    square = curves.mean(curves.square)
    slope = _INFLATION * curves.mean(curves.own_variance) / max(curves.moment(2), 1e-30)
    disagreement = curves.mean((curves.square - square) ** 2)
    null_variance = _INFLATION**2 * curves.mean(curves.null_variance) + disagreement
    scale = max(slope, 1e-12) / 4
    freedom = max(null_variance / (2 * scale**2), 1e-3)
    statistic = max((square + freedom * scale) / scale, 0.0)
    # Where the lower end is 0, all that may be missed is missed above.
    two_sided = curves.evidence > _LEAST_EVIDENCE
    tail = (1 - level) / 2 if two_sided else 1 - level
    low = math.sqrt(scale * _noncentrality(statistic, freedom, 1 - tail)) if two_sided else 0.0
    # Never narrower than for an estimate of 0: a square far below 0 is luck and not knowledge.
    at_least = _noncentrality(freedom, freedom, tail)
    high = math.sqrt(scale * max(_noncentrality(statistic, freedom, tail), at_least))
    if norm == 1:
        ratio = curves.shape(1)
        doubt = _SHAPE_SHARE * (high - low) / max(high + low, 1e-30)
        low, high = low * ratio * (1 - doubt), high * min(1.0, ratio * (1 + doubt))
    return Interval(min(low, 1.0), min(high, 1.0), level, METHOD)


def _noncentrality(statistic: float, freedom: float, chance: float) -> float:
    """Return the noncentrality at which a chi-square is below `statistic` with that chance; 0 if none is."""
    if _chi_square_below(statistic, freedom, 0.0) <= chance:
        return 0.0
    most = 2 * max(statistic, 1) + 40 * math.sqrt(max(statistic, 1)) + 80
    root: float = brentq(
        lambda away: _chi_square_below(statistic, freedom, away) - chance, 0.0, most, xtol=1e-9
    )
    return root


def _chi_square_below(statistic: float, freedom: float, away: float) -> float:
    """Return the distribution function of the noncentral chi-square."""
    if statistic <= 2000 and away <= 2000:
        return float(chndtr(statistic, freedom, away))
    # Sankaran's approximation (1963), where the series is slow.
    total = freedom + away
    h = 1 - 2 * total * (freedom + 3 * away) / (3 * (freedom + 2 * away) ** 2)
    p = (freedom + 2 * away) / total**2
    m = (h - 1) * (1 - 3 * h)
    centre = 1 + h * p * (h - 1 - 0.5 * (2 - h) * m * p)
    return float(ndtr(((statistic / total) ** h - centre) / (h * math.sqrt(2 * p) * (1 + 0.5 * m * p))))
