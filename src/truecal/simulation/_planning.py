"""Sample sizes: for a test to detect an error, for a validation study to be precise, and of gold labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, logit, ndtri

from truecal._lib.checks import check_count, check_fraction, check_real
from truecal._lib.lazy import fill_docstring, with_arguments_of
from truecal._lib.numeric import find_root, keyed_generator, rejects
from truecal._lib.text import in_clusters
from truecal._lib.types import FloatArray, NormLike, RNGLike, ScoreFunction
from truecal.data import as_sample
from truecal.estimators._registry import MULTISCALE
from truecal.exceptions import InputError, warn_user
from truecal.inference.interval import confidence_interval
from truecal.multiscale import MIN_CLUSTERS, analyse
from truecal.results import Result
from truecal.simulation._curves import IdentityCurve
from truecal.simulation._population import ALTERNATIVES, Population, largest_error, population_with_error
from truecal.simulation._power import Detection, Simulator
from truecal.simulation._scores import AtomScores, MixtureScores, ScoreDistribution, UniformScores

#: The largest sample that is considered.
_LARGEST_SAMPLE = 10**12
#: The largest sample that is drawn to plan a gate, and the largest number of data sets for each power.
_LARGEST_GATE, _GATE_REPEATS = 3 * 10**6, 200
#: An answer below this part of the first guess is not searched for.
_NEAR_ZERO = 1e-3
#: How far from the target, in probits, the power is measured on either side.
_APART = 0.4
#: How many times the odds of the prevalence may differ from those that the scores of a validation study imply.
_MOST_ODDS = 5.0


#: Parameters that the functions here share.
_OPTIONS = """\
power : float
    Probability of detecting the error.
alpha : float
    Significance level of the test.
scores : ScoreDistribution, optional
    Distribution of the scores; by default uniform, which is Beta(1, 1).
alternative : {"power", "level", "slope", "steps", "waves"}
    Family of calibration curves, as for `population_with_error`.
method : str or mapping
    The test, as for `truecal.power`.
norm : float, "l1" or "l2"
    Order of the norm, of an estimator and of the true error.
repeats : int
    Number of data sets for each power, with and without the error. The standard error of n falls with
    the root of it: it is about 3% of n for 1,000.
cluster_size : float
    Rows of each cluster, if rows depend on each other, as answers to one question do.
icc : float
    Intraclass correlation of rows in a cluster; `truecal.describe_clusters` estimates it.
rng : seed or numpy.random.Generator, optional
    Random seed."""


@dataclass(frozen=True)
class SamplePlan(Result):
    """Number of rows that a test needs, with its uncertainty.

    Attributes
    ----------
    n : int
        Number of rows.
    standard_error : float
        Monte Carlo standard error of `n`.
    true_error : float
        Error that is to be detected.
    alternative : str
        Family of calibration curves that have this error.
    power : float
        Probability of detecting it.
    alpha : float
        Significance level of the test.
    method : str
        The test.
    norm : float
        Order of the norm of the error.
    cluster_size, icc : float
        Rows of each cluster, and their intraclass correlation.
    at_most : float or None
        For a gate: the limit below which the error is to be shown.
    """

    _derived: ClassVar[tuple[str, ...]] = ("description", "design_effect", "n_clusters")

    n: int
    standard_error: float
    true_error: float
    alternative: str
    power: float
    alpha: float
    method: str
    norm: float
    cluster_size: float = 1.0
    icc: float = 0.0
    at_most: float | None = None

    @property
    def design_effect(self) -> float:
        """How many times more rows are needed than if they were independent."""
        return design_effect(self.cluster_size, self.icc)

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters; None if rows are independent."""
        return None if self.cluster_size == 1 else math.ceil(self.n / self.cluster_size)

    @property
    def description(self) -> str:
        """The alternative in words."""
        return ALTERNATIVES[self.alternative].description

    def __str__(self) -> str:
        clusters = in_clusters(self.n_clusters)
        if self.at_most is not None:
            return (
                f"{self.n:,} rows{clusters} (± {self.standard_error:.0f}) show an error below {self.at_most:g} with "
                f"power {self.power:g} (level {self.alpha:g}), if the true error is {self.true_error:g}."
            )
        return (
            f"{self.n:,} rows{clusters} (± {self.standard_error:.0f}) detect a true error of {self.true_error:g} with "
            f"power {self.power:g} ({self.method} test, level {self.alpha:g}). Alternative: {self.description}."
        )


@fill_docstring(options=_OPTIONS)
def plan_sample_size(
    true_error: float,
    *,
    at_most: float | None = None,
    power: float = 0.95,
    alpha: float = 0.05,
    scores: ScoreDistribution | None = None,
    alternative: str = "power",
    method: str | Mapping[str, Any] = MULTISCALE,
    norm: NormLike = 2,
    repeats: int = 1000,
    cluster_size: float = 1,
    icc: float = 0,
    rng: RNGLike = None,
) -> SamplePlan:
    r"""Return the number of rows that a test needs to detect an error with a given power, with its uncertainty.

    The probit of the power is nearly a straight line in the root of n. The power is simulated on either side
    of the target, and the line through the two points gives n. The population is that of `population_with_error`:
    another curve with the same error can need many times more rows, or fewer. For rows in clusters of m the number is
    multiplied by the design effect :math:`1 + (m - 1)\,\mathrm{ICC}`; then :math:`z_{1 - \alpha/2}^2 / 2` clusters are
    added (two at a level of 5%), because a variance that is estimated from few clusters costs power (Guenther 1981).
    There are at least 15 clusters, as an interval needs.

    With `at_most` it is the number of rows with which ``calibration_test(..., at_most=at_most)`` shows that the error
    is below this limit, if it is `true_error`, which may be 0.

    Parameters
    ----------
    true_error : float
        Error to detect, a fraction; with `at_most`, the true error, which is smaller.
    at_most : float, optional
        The limit of a gate. At most 200 data sets are drawn for each power.
    {options}

    Returns
    -------
    SamplePlan

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), AISTATS, section 7.2: to detect an error of 2% over 10,000 samples
    are needed, and with under 500 it must be greater than 10%.

    Guenther (1981), Sample size formulas for normal theory t tests, The American Statistician 35, 243-244.

    Examples
    --------
    >>> print(plan_sample_size(0.1, rng=0))
    299 rows (± 9) detect a true error of 0.1 with power 0.95 (multiscale test, level 0.05). Alternative: the
    curve c^d, d > 1: scores too high.
    """
    effect = design_effect(cluster_size, icc)
    simulator = Simulator.checked([method], alpha=alpha, norm=norm, repeats=repeats, rng=rng)
    target = _check_power(power, simulator.alpha)
    population = population_with_error(true_error, scores, norm, alternative=alternative)
    if at_most is not None:
        _check_gate(at_most, true_error, method)
        simulator = replace(simulator, repeats=min(simulator.repeats, _GATE_REPEATS))
    elif true_error == 0:
        raise InputError(
            "must be above 0: a calibrated model has no error to detect", argument="true_error", value=0
        )

    def measure(root_n: float, repeats: int) -> _Point:
        n = max(2, round(root_n**2))  # some estimators compare pairs of rows
        if at_most is not None:
            return _Point.of(math.sqrt(n), _passes(population, n, at_most, repeats, simulator))
        null = simulator.null(population, n, repeats)
        return _Point.of(math.sqrt(n), simulator.detections(population, n, null)[0])

    start, most = (2 / true_error, _LARGEST_SAMPLE) if at_most is None else (2 / at_most, _LARGEST_GATE)
    solution = _solve(measure, simulator, target, start=start, most=math.sqrt(most))
    if solution is None:
        what = "detects" if at_most is None else f"shows an error below {at_most!r} with"
        raise InputError(
            f"No sample of up to {most:.0e} rows {what} a true error of {true_error!r} with power {power!r}"
        )
    root_n, error = solution
    rows = math.ceil(effect * root_n**2)
    if cluster_size > 1:
        n_clusters = math.ceil(rows / cluster_size + _added_clusters(simulator.alpha))
        rows = math.ceil(max(n_clusters, MIN_CLUSTERS) * cluster_size)
    return SamplePlan(
        n=rows,
        standard_error=effect * 2 * root_n * error,
        true_error=float(true_error),
        alternative=alternative,
        power=target,
        alpha=simulator.alpha,
        method=simulator.labels[0],
        norm=simulator.norm,
        cluster_size=float(cluster_size),
        icc=float(icc),
        at_most=None if at_most is None else float(at_most),
    )


def _check_gate(at_most: float, true_error: float, method: str | Mapping[str, Any]) -> None:
    """Refuse a gate that cannot be passed, or that is not the multiscale one."""
    if method != MULTISCALE:
        raise InputError(f"must be {MULTISCALE!r} with at_most", argument="method", value=method)
    if check_fraction("at_most", at_most) <= true_error:
        raise InputError(
            f"must be greater than the true error, {true_error:g}. Got {at_most!r} instead",
            argument="at_most",
            value=at_most,
        )


def _passes(population: Population, n: int, at_most: float, repeats: int, simulator: Simulator) -> Detection:
    """Return how often samples of n rows show that the error is below a limit."""
    passed = 0
    for k in range(repeats):
        y, p = population.sample(n, rng=keyed_generator(simulator.seed, n, k))
        pvalue = analyse(as_sample(y, p)).limits_for(simulator.norm).at_most(at_most)
        passed += rejects(pvalue, simulator.alpha)
    share = passed / repeats
    spread = max(share * (1 - share), 1 / repeats)
    return Detection(share, math.sqrt(spread / repeats), at_most)


def _added_clusters(alpha: float) -> float:
    """Return how many more clusters Student's t needs than a normal distribution (Guenther 1981)."""
    return float(ndtri(1 - alpha / 2)) ** 2 / 2


def design_effect(cluster_size: float, icc: float) -> float:
    """Return how many times more rows are needed in clusters of m than if they were independent: 1 + (m - 1) ICC.

    Kish (1965), Survey sampling, Wiley.
    """
    size = check_real("cluster_size", cluster_size, at_least=1)
    icc = check_real("icc", icc, at_least=0, at_most=1)
    if icc > 0 and size == 1:
        raise InputError("must be above 1 if icc is given", argument="cluster_size", value=cluster_size)
    return 1 + (size - 1) * icc


@with_arguments_of(plan_sample_size)
@fill_docstring(options=_OPTIONS)
def required_sample_size(true_error: float, **options: Any) -> int:
    """Return the number of rows of `plan_sample_size` without its uncertainty.

    Parameters
    ----------
    true_error : float
        Error to detect, a fraction; with `at_most`, the true error, which is smaller.
    at_most : float, optional
        The limit of a gate.
    {options}

    Returns
    -------
    int

    Examples
    --------
    >>> required_sample_size(0.1, rng=0)
    299
    """
    return plan_sample_size(true_error, **options).n


@fill_docstring(options=_OPTIONS)
def detectable_error(
    n: int,
    *,
    power: float = 0.95,
    alpha: float = 0.05,
    scores: ScoreDistribution | None = None,
    alternative: str = "power",
    method: str | Mapping[str, Any] = MULTISCALE,
    norm: NormLike = 2,
    repeats: int = 1000,
    cluster_size: float = 1,
    icc: float = 0,
    rng: RNGLike = None,
) -> float:
    """Return the smallest error of a family that a test on `n` rows detects with this power.

    The inverse of `required_sample_size`. Smaller errors, and errors of other shapes, are missed more often.

    Parameters
    ----------
    n : int
        Number of rows.
    {options}

    Returns
    -------
    float
        A fraction; infinite if no error of the family is detected with this power by so few rows.

    Examples
    --------
    >>> round(detectable_error(312, rng=0), 3)
    0.1
    """
    effect = design_effect(cluster_size, icc)
    simulator = Simulator.checked([method], alpha=alpha, norm=norm, repeats=repeats, rng=rng)
    target = _check_power(power, simulator.alpha)
    lost = _added_clusters(simulator.alpha) * cluster_size if cluster_size > 1 else 0.0
    n = max(round((check_count("n", n) - lost) / effect), 2)
    scores = UniformScores() if scores is None else scores
    largest = largest_error(scores, simulator.norm, alternative=alternative)
    nulls: dict[int, FloatArray] = {}

    def measure(error: float, repeats: int) -> _Point:
        population = population_with_error(error, scores, simulator.norm, alternative=alternative)
        if repeats not in nulls:
            nulls[repeats] = simulator.null(population, n, repeats)
        return _Point.of(error, simulator.detections(population, n, nulls[repeats])[0])

    start = min(2 / math.sqrt(n), largest / 2)
    solution = _solve(measure, simulator, target, start=start, most=largest)
    return math.inf if solution is None else solution[0]


def _check_power(power: object, alpha: float) -> float:
    target = check_fraction("power", power)
    if target <= alpha:
        raise InputError(
            f"must be greater than alpha = {alpha:g}. Got {power!r} instead", argument="power", value=power
        )
    return target


# --- The search ------------------------------------------------------------------------------------


def _solve(
    measure: Callable[[float, int], _Point],
    simulator: Simulator,
    target: float,
    *,
    start: float,
    most: float,
) -> tuple[float, float] | None:
    """Return where the power reaches the target, with its standard error; None if it does not up to `most`.

    `measure(x, repeats)` simulates the power at or near x. The probit of the power is taken as a
    straight line in x that starts from the probit of alpha at 0.
    """
    wanted, floor = float(ndtri(target)), float(ndtri(simulator.alpha))
    few = min(simulator.repeats, max(simulator.repeats // 5, math.ceil(2 / simulator.alpha)))

    # First a bracket, with few repetitions: `low` misses the target, `high` meets it.
    low = high = measure(min(start, most), few)
    while low.share >= target and low.x > _NEAR_ZERO * start:
        low, high = measure(low.x / 2, few), low
    while high.share < target:
        if high.x >= most:
            return None
        low, high = high, measure(min(2 * high.x, most), few)
    for _ in range(2):
        middle = measure(_crossing(low, high, wanted), few)
        low, high = (low, middle) if middle.share >= target else (middle, high)
    x = _crossing(low, high, wanted)

    # Then the power on either side of the target, with all repetitions, and the line through the two.
    for _ in range(3):
        step = x * _APART / (wanted - floor)
        left, right = (measure(at, simulator.repeats) for at in (x - step, min(x + step, most)))
        # Noise must not flatten or reverse the line: it rises at least a third as fast as one from alpha at 0 would.
        slope = max((right.z - left.z) / (right.x - left.x), (wanted - floor) / x / 3)
        before, x = x, (left.x + right.x) / 2 + (wanted - (left.z + right.z) / 2) / slope
        x = min(max(x, before / 2), 2 * before, most)
        if abs(x - before) < 2 * step:
            break
    share = (x - left.x) / (right.x - left.x)
    return x, math.hypot((1 - share) * left.error, share * right.error) / slope


@dataclass(frozen=True)
class _Point:
    """A power that was measured at x, and its probit with a standard error."""

    x: float
    share: float
    z: float
    error: float

    @classmethod
    def of(cls, x: float, detected: Detection) -> _Point:
        """Return the point, no closer to a power of 0 or 1 than the simulation can tell."""
        share = min(max(detected.share, detected.standard_error / 2), 1 - detected.standard_error / 2)
        z = float(ndtri(share))
        return cls(
            x, detected.share, z, detected.standard_error * math.sqrt(2 * math.pi) * math.exp(z**2 / 2)
        )


def _crossing(low: _Point, high: _Point, wanted: float) -> float:
    """Return where the line between two points reaches the target, but not too near to either of them."""
    share = (wanted - low.z) / (high.z - low.z) if high.z > low.z else 0.5
    return low.x + min(max(share, 0.1), 0.9) * (high.x - low.x)


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
        criteria = {"O:E": self.observed_expected, "slope": self.slope, "C statistic": self.c_statistic}
        each = ", ".join(f"{name} {rows:,}" for name, rows in criteria.items() if rows is not None)
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
    r"""Return the rows that estimate O:E, calibration slope and C statistic with given precision.

    With the prevalence :math:`\phi`, the linear predictor L = logit f and :math:`v = f (1 - f)`, the standard errors
    are

    .. math::

       \mathrm{se}(\ln O{:}E)^2 = \frac{1 - \phi}{n \phi}, \qquad
       \mathrm{se}(b)^2 = \frac{I_{aa}}{n\,(I_{aa} I_{bb} - I_{ab}^2)}, \quad
       I_{aa} = E v,\ I_{ab} = E L v,\ I_{bb} = E L^2 v,

    and that of the C statistic is Newcombe's. Each is solved for the n that makes the interval as narrow as asked.

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
        expected = _expected_scores(scores, linear_predictor, prevalence, c_statistic)
        slope = round(_slope_variance(expected) / (width_slope / (2 * z)) ** 2)
    concordance = None
    if c_statistic is not None:
        concordance = _rows_for_c(c_statistic, prevalence, width_c_statistic / (2 * z))
    n = max(rows for rows in (ratio, slope, concordance) if rows is not None)
    return ValidationSize(ratio, slope, concordance, n, n * prevalence, prevalence)


def _expected_scores(
    scores: ScoreDistribution | None,
    linear_predictor: tuple[float, float] | float | None,
    prevalence: float,
    c_statistic: float | None,
) -> ScoreDistribution:
    """Return the distribution of the scores, after a comparison of the prevalence that it implies."""
    if scores is not None:
        _compare_prevalence("scores", scores.mean, prevalence)
        return scores
    if isinstance(linear_predictor, tuple | list):
        mean = check_real("linear_predictor", linear_predictor[0])
        scores = _logit_normal(mean, check_real("linear_predictor", linear_predictor[1], above=0))
        _compare_prevalence("linear_predictor", scores.mean, prevalence)
        return scores
    mean = check_real("linear_predictor", linear_predictor)
    if c_statistic is None:
        raise InputError("is needed if linear_predictor is a mean only", argument="c_statistic")
    # Two normal distributions with the same variance have C = Phi(shift / (deviation sqrt 2)); a calibrated model has
    # shift = variance, and log odds of the prevalence in the middle.
    deviation = math.sqrt(2) * float(ndtri(c_statistic))
    _compare_prevalence("linear_predictor", float(expit(mean + deviation**2 / 2)), prevalence)
    groups = _logit_normal(mean, deviation), _logit_normal(mean + deviation**2, deviation)
    return MixtureScores(groups, [1 - prevalence, prevalence])


def _logit_normal(mean: float, deviation: float) -> AtomScores:
    """Return scores whose logits have a normal distribution, as the nodes of a quadrature."""
    node, weight = np.polynomial.hermite_e.hermegauss(200)
    return AtomScores(expit(mean + deviation * node).tolist(), (weight / weight.sum()).tolist())


def _compare_prevalence(argument: str, implied: float, prevalence: float) -> None:
    """Warn of scores that cannot be calibrated at this prevalence; with a wide margin, since both are expectations."""
    if abs(logit(implied) - logit(prevalence)) > math.log(_MOST_ODDS):
        warn_user(
            f"{argument} implies a prevalence of {implied:.2g} if the model is calibrated, and prevalence is "
            f"{prevalence:g}. Give both for the same patients."
        )


def _weighted_power(power: int) -> ScoreFunction:
    def function(score: FloatArray, complement: FloatArray) -> FloatArray:
        inside = (score > 0) & (complement > 0)
        predictor = np.log(np.where(inside, score, 0.5)) - np.log(np.where(inside, complement, 0.5))
        return np.where(inside, score * complement * predictor**power, 0.0)

    return function


def _slope_variance(scores: ScoreDistribution) -> float:
    """Return n times the variance of the slope."""
    aa, ab, bb = (scores.expect(_weighted_power(power)) for power in range(3))
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


# --- How many gold labels an interval of a given length needs, beside the labels of a judge ----------------------
#
# A judge that explains the share R^2 of the noise of labels given the score makes g gold labels among n rows worth
# N = g / (1 - (1 - g / n) R^2) true labels. So g = N (1 - R^2) / (1 - N R^2 / n) gold labels are needed for N.

#: Fewer gold labels describe a judge too roughly for the formula.
_FEWEST_GOLD = 100
#: Numbers of true labels between which the one with the wanted length is looked for, and its relative precision.
_FEWEST_LABELS, _MOST_LABELS, _PRECISION = 20, 1_000_000, 0.02


@dataclass(frozen=True)
class GoldPlan(Result):
    """Number of gold labels, and what they are worth.

    Attributes
    ----------
    gold : int
        Gold labels, of a random sample of the rows.
    n : int
        Rows that the judge labels.
    worth : float
        True labels that would give the same interval.
    r_squared : float
        Share of the noise of labels given the score that the judge explains.
    length : float
        Mean length of the interval of a calibrated model.
    confidence_level : float
        Its level.
    """

    gold: int
    n: int
    worth: float
    r_squared: float
    length: float
    confidence_level: float

    def __int__(self) -> int:
        return self.gold

    def __str__(self) -> str:
        return (
            f"{self.gold:,} gold labels in {self.n:,} judged rows are worth {self.worth:,.0f} true labels "
            f"(R^2 {self.r_squared:.2f}): the {self.confidence_level:.0%} interval of a calibrated model is "
            f"{self.length:g} long on average."
        )


def plan_gold_labels(
    length: float,
    n: int,
    *,
    sensitivity: float,
    specificity: float,
    scores: ScoreDistribution | None = None,
    confidence_level: float = 0.95,
    repeats: int = 60,
) -> GoldPlan:
    r"""Return the number of gold labels with which the interval of `truecal.labels.judged` has a given mean length.

    The length is that of a calibrated model, found by simulation with true labels; :math:`R^2` follows from the
    sensitivity and specificity of the judge and the scores.

    Parameters
    ----------
    length : float
        Wanted mean length of the interval of the l2 error.
    n : int
        Number of rows that the judge labels.
    sensitivity, specificity : float
        Expected probability that the judge is right about positives and about negatives.
    scores : ScoreDistribution, optional
        Expected distribution of the scores; uniform by default.
    confidence_level : float
        Level of the interval.
    repeats : int
        Simulated data sets for each number of labels.

    Returns
    -------
    GoldPlan

    Examples
    --------
    >>> from truecal.simulation import plan_gold_labels
    >>> plan = plan_gold_labels(0.08, 3000, sensitivity=0.95, specificity=0.9, repeats=10)
    >>> plan.gold < plan.worth
    True
    """
    check_real("length", length, above=0, at_most=1)
    n = check_count("n", n, at_least=_FEWEST_GOLD)
    check_fraction("confidence_level", confidence_level)
    check_count("repeats", repeats)
    scores = UniformScores() if scores is None else scores
    explained = explained_by_judge(
        scores,
        check_real("sensitivity", sensitivity, at_least=0, at_most=1),
        check_real("specificity", specificity, at_least=0, at_most=1),
    )
    needed = labels_for_length(length, scores, confidence_level, repeats)
    if needed > n:
        raise InputError(
            f"is too short for {n:,} rows: about {needed:,.0f} would need true labels",
            argument="length",
            value=length,
            remedy="Judge more rows, or accept a longer interval.",
        )
    gold = max(_FEWEST_GOLD, math.ceil(needed * (1 - explained) / (1 - needed * explained / n)))
    gold = min(gold, n)
    return GoldPlan(gold, n, gold / (1 - (1 - gold / n) * explained), explained, length, confidence_level)


def explained_by_judge(scores: ScoreDistribution, sensitivity: float, specificity: float) -> float:
    r"""Return :math:`R^2 = 1 - E[\mathrm{Var}(y \mid j, f)] / E[f (1 - f)]` for calibrated scores f."""
    a, b = sensitivity, specificity

    def left(score: FloatArray, complement: FloatArray) -> FloatArray:
        yes, no = a * score + (1 - b) * complement, (1 - a) * score + b * complement
        noise = np.zeros_like(score)
        for said, right, wrong in (
            (yes, a * score, (1 - b) * complement),
            (no, (1 - a) * score, b * complement),
        ):
            noise += np.divide(right * wrong, said, out=np.zeros_like(score), where=said > 0)
        return noise

    return 1 - scores.expect(left) / scores.expect(lambda score, complement: score * complement)


@lru_cache(maxsize=64)
def labels_for_length(
    length: float, scores: ScoreDistribution, confidence_level: float, repeats: int
) -> float:
    """Return the number of true labels with which the interval of a calibrated model has this mean length."""
    population = Population(scores, IdentityCurve())

    def mean_length(n: int) -> float:
        draws = (population.sample(n, rng=seed) for seed in range(repeats))
        intervals = (confidence_interval(y, p, confidence_level=confidence_level) for y, p in draws)
        return float(np.mean([interval.high - interval.low for interval in intervals]))

    low, high = float(_FEWEST_LABELS), 4.0 * _FEWEST_LABELS
    while mean_length(round(high)) > length:
        low, high = high, 4 * high
        if high > _MOST_LABELS:
            raise InputError(
                f"would need more than {_MOST_LABELS:,} true labels", argument="length", value=length
            )
    while high / low > 1 + _PRECISION:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if mean_length(round(middle)) > length else (low, middle)
    return math.sqrt(low * high)
