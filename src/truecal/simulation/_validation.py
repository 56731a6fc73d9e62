r"""How many rows a validation study needs for precise O:E, slope and C statistic.

With the prevalence :math:`\phi`, the linear predictor L = logit f and :math:`v = f (1 - f)`, the standard errors are

.. math::

   \mathrm{se}(\ln O{:}E)^2 = \frac{1 - \phi}{n \phi}, \qquad
   \mathrm{se}(b)^2 = \frac{I_{aa}}{n\,(I_{aa} I_{bb} - I_{ab}^2)}, \quad
   I_{aa} = E v,\ I_{ab} = E L v,\ I_{bb} = E L^2 v,

and that of the C statistic is Newcombe's. Each is solved for the n that makes the interval as narrow as asked.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, ndtri

from truecal._lib.checks import check_fraction, check_real
from truecal._lib.roots import find_root
from truecal._lib.types import FloatArray, ScoreFunction
from truecal.exceptions import CalibrationWarning, InputError
from truecal.results import Result
from truecal.simulation._scores import ScoreDistribution

#: How many times the odds of the prevalence may differ from those that the scores imply.
_MOST_ODDS = 5.0


@dataclass(frozen=True)
class ValidationSize(Result):
    """Rows that a validation study needs.

    Attributes
    ----------
    observed_expected, slope, c_statistic : int or None
        Rows for each criterion; None if it was not asked for.
    n : int
        The largest of them.
    events : float
        Expected number of events in `n` rows.
    prevalence : float
        The prevalence that was assumed.
    """

    observed_expected: int | None
    slope: int | None
    c_statistic: int | None
    n: int
    events: float
    prevalence: float

    def __int__(self) -> int:
        return self.n

    def __str__(self) -> str:
        parts = {"O:E": self.observed_expected, "slope": self.slope, "C statistic": self.c_statistic}
        each = ", ".join(f"{name} {rows:,}" for name, rows in parts.items() if rows is not None)
        return f"{self.n:,} rows ({self.events:,.0f} events): {each}"


def validation_sample_size(
    *,
    prevalence: float,
    c_statistic: float | None = None,
    scores: ScoreDistribution | None = None,
    linear_predictor: tuple[float, float] | float | None = None,
    width_observed_expected: float = 1.0,
    width_slope: float = 0.2,
    width_c_statistic: float = 0.1,
    confidence_level: float = 0.95,
) -> ValidationSize:
    """Return the rows that estimate O:E, calibration slope and C statistic with given precision.

    Parameters
    ----------
    prevalence : float
        Expected share of events.
    c_statistic : float, optional
        Expected C statistic, between 0.5 and 1; without it that criterion is left out.
    scores : ScoreDistribution, optional
        Expected distribution of the scores, which are taken to be calibrated. Without it and without
        `linear_predictor`, the slope is left out.
    linear_predictor : tuple of float, or float, optional
        Instead of `scores`: mean and standard deviation of a normal distribution of the logit of the scores. One number
        is its mean among rows without the event; then the standard deviation, and the shift of the rows with the event,
        follow from `c_statistic`.
    width_observed_expected, width_slope, width_c_statistic : float
        Widths of the confidence intervals to aim for.
    confidence_level : float
        Confidence level of these intervals.

    Returns
    -------
    ValidationSize

    References
    ----------
    Riley et al. (2021), Minimum sample size for external validation of a clinical prediction model with a binary
    outcome, Statistics in Medicine 40.
    Newcombe (2006), Confidence intervals for an effect size measure based on the Mann-Whitney statistic, Statistics in
    Medicine 25.

    Examples
    --------
    >>> import truecal
    >>> size = truecal.validation_sample_size(prevalence=0.018, c_statistic=0.8, linear_predictor=(-5, 2.5))
    >>> size.observed_expected, size.c_statistic
    (905, 4252)
    """
    check_fraction("prevalence", prevalence)
    z = float(ndtri((1 + check_fraction("confidence_level", confidence_level)) / 2))
    for name, width in (
        ("width_observed_expected", width_observed_expected),
        ("width_slope", width_slope),
        ("width_c_statistic", width_c_statistic),
    ):
        check_real(name, width, above=0)
    if c_statistic is not None and not check_fraction("c_statistic", c_statistic) > 0.5:
        raise InputError("must be above 0.5", argument="c_statistic", value=c_statistic)
    if scores is not None and linear_predictor is not None:
        raise InputError("cannot be given together with scores", argument="linear_predictor")
    # The interval of O:E around 1 runs from exp(-z se) to exp(z se).
    error = math.asinh(width_observed_expected / 2) / z
    ratio = round((1 - prevalence) / (prevalence * error**2))
    slope = None
    if scores is not None or linear_predictor is not None:
        moments = _moments(scores, linear_predictor, prevalence, c_statistic)
        slope = round(_slope_variance(moments) / (width_slope / (2 * z)) ** 2)
    concordance = None
    if c_statistic is not None:
        concordance = _rows_for_c(c_statistic, prevalence, width_c_statistic / (2 * z))
    n = max(rows for rows in (ratio, slope, concordance) if rows is not None)
    return ValidationSize(ratio, slope, concordance, n, n * prevalence, prevalence)


def _moments(
    scores: ScoreDistribution | None,
    linear_predictor: tuple[float, float] | float | None,
    prevalence: float,
    c_statistic: float | None,
) -> tuple[float, float, float]:
    """Return the means of v, L v and L^2 v."""
    if scores is not None:
        _compare_prevalence("scores", scores.mean, prevalence)
        first, second, third = (scores.expect(_weighted_power(power)) for power in range(3))
        return first, second, third
    if isinstance(linear_predictor, tuple | list):
        mean = check_real("linear_predictor", linear_predictor[0])
        deviation = check_real("linear_predictor", linear_predictor[1], above=0)
        predictor, weight = _normal_nodes(mean, deviation)
        _compare_prevalence("linear_predictor", float(weight @ expit(predictor)), prevalence)
        return _normal_moments(mean, deviation)
    mean = check_real("linear_predictor", linear_predictor)
    if c_statistic is None:
        raise InputError("is needed if linear_predictor is a mean only", argument="c_statistic")
    # Two normal distributions with the same variance have C = Phi(shift / (deviation sqrt 2)); a calibrated model has
    # shift = variance, and log odds of the prevalence in the middle.
    deviation = math.sqrt(2) * float(ndtri(c_statistic))
    _compare_prevalence("linear_predictor", float(expit(mean + deviation**2 / 2)), prevalence)
    others, events = _normal_moments(mean, deviation), _normal_moments(mean + deviation**2, deviation)
    first, second, third = (
        prevalence * a + (1 - prevalence) * b for a, b in zip(events, others, strict=True)
    )
    return first, second, third


def _compare_prevalence(argument: str, implied: float, prevalence: float) -> None:
    """Warn of scores that cannot be calibrated at this prevalence; by a wide margin, for they are only expected."""
    if abs(logit(implied) - logit(prevalence)) > math.log(_MOST_ODDS):
        warnings.warn(
            f"{argument} implies a prevalence of {implied:.2g} if the model is calibrated, and prevalence is "
            f"{prevalence:g}. Give both for the same patients.",
            CalibrationWarning,
            stacklevel=4,  # the line that calls validation_sample_size
        )


def _weighted_power(power: int) -> ScoreFunction:
    def function(score: FloatArray, complement: FloatArray) -> FloatArray:
        inside = (score > 0) & (complement > 0)
        predictor = np.log(np.where(inside, score, 0.5)) - np.log(np.where(inside, complement, 0.5))
        return np.where(inside, score * complement * predictor**power, 0.0)

    return function


def _normal_nodes(mean: float, deviation: float) -> tuple[FloatArray, FloatArray]:
    """Return where a normal distribution of logits is evaluated, and the weights, which sum to 1."""
    node, weight = np.polynomial.hermite_e.hermegauss(200)
    return mean + deviation * node, weight / weight.sum()


def _normal_moments(mean: float, deviation: float) -> tuple[float, float, float]:
    predictor, weight = _normal_nodes(mean, deviation)
    weight = weight * expit(predictor) * expit(-predictor)
    return float(weight.sum()), float(weight @ predictor), float(weight @ predictor**2)


def _slope_variance(moments: tuple[float, float, float]) -> float:
    """Return n times the variance of the slope."""
    aa, ab, bb = moments
    determinant = aa * bb - ab**2
    if determinant <= 0:
        raise InputError("do not vary, so no slope can be estimated", argument="scores")
    return aa / determinant


def _rows_for_c(c: float, prevalence: float, error: float) -> int:
    """Return the smallest n whose standard error of the C statistic (Newcombe's method 4) is at most `error`."""

    def excess(n: float) -> float:
        pairs = (n / 2 - 1) * ((1 - c) / (2 - c) + c / (1 + c))
        return math.sqrt(c * (1 - c) * (1 + pairs) / (n**2 * prevalence * (1 - prevalence))) - error

    return math.ceil(find_root(excess, 2, 1e15))
