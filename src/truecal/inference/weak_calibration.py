r"""Weak calibration: observed against expected, calibration intercept and slope, as clinical validation reports them.

With :math:`L = \operatorname{logit} f`, two logistic models are fitted to the labels:

.. math:: \operatorname{logit} P(y = 1) = a + L \qquad\text{and}\qquad \operatorname{logit} P(y = 1) = a' + b L .

The *calibration intercept* is a (the offset model, "calibration in the large"), the *calibration slope* is b, and a' is
the intercept of the joint fit. A calibrated model has a = 0, b = 1 and a ratio O:E of observed to expected events of 1.

With the calibration curve :math:`\mu(f) = P(y = 1 \mid f)`, four more numbers describe the distribution of
:math:`|f - \mu(f)|` over the rows: its mean is the *integrated calibration index* (ICI, also called Eavg), its median
E50, its 90th percentile E90 and its largest value Emax (Austin and Steyerberg 2019).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, chdtri, expit, fdtrc

from truecal._lib.checks import check_fraction
from truecal._lib.numeric import FAR, find_root, fit_logistic, logistic_objective
from truecal._lib.text import counted, level, p_equals, percent
from truecal._lib.types import FloatArray
from truecal.data.arrays import Reading, takes_predictions
from truecal.data.question import Question, as_sample
from truecal.data.sample import Sample
from truecal.inference.dependence import warn_of_dependence
from truecal.inference.interval import interval_of
from truecal.inference.resample import count_impossible
from truecal.multiscale import MIN_CLUSTERS, analyse
from truecal.results import Interval, Result

#: With more distinct scores than this, Wald intervals replace those of the profile: the two agree, and cost less.
_MANY_SCORES = 20_000


@dataclass(frozen=True)
class Parameter(Result):
    """An estimated parameter with its interval.

    Attributes
    ----------
    value : float
        The estimate; infinite where the likelihood has no maximum.
    standard_error : float
        Its standard error; NaN where it has none.
    interval : Interval
        Confidence interval.
    """

    value: float
    standard_error: float
    interval: Interval

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.interval.low:.4g} to {self.interval.high:.4g})"


@dataclass(frozen=True)
class WeakTest(Result):
    """A test of one part of weak calibration.

    Attributes
    ----------
    statistic : float
        Likelihood-ratio statistic; a Wald statistic with clusters or sampling weights.
    degrees_of_freedom : int
        Its degrees of freedom.
    pvalue : float
        p-value.
    """

    statistic: float
    degrees_of_freedom: int
    pvalue: float


@dataclass(frozen=True)
class WeakCalibration(Result):
    """Observed against expected events, calibration intercept and slope.

    Attributes
    ----------
    observed_expected : Parameter
        Observed events divided by the sum of the scores; 1 if calibrated.
    intercept : Parameter
        Calibration intercept, with the logit of the score as an offset; 0 if calibrated.
    slope : Parameter
        Calibration slope; 1 if calibrated, below 1 if scores are too extreme.
    joint_intercept : Parameter
        Intercept of the fit that has the slope.
    joint_test, intercept_test, slope_test : WeakTest
        Tests of a' = 0 and b = 1 together, of a = 0 given b = 1, and of b = 1.
    n : int or float
        Number of rows, or total weight.
    target : str
        What the scores are probabilities of.
    method : str
        How the intervals were made.
    notes : tuple of str
        What the reader should know.
    label_kind : str or None
        The kind of labels, if they are not the truth; see `truecal.labels`.
    """

    observed_expected: Parameter
    intercept: Parameter
    slope: Parameter
    joint_intercept: Parameter
    joint_test: WeakTest
    intercept_test: WeakTest
    slope_test: WeakTest
    n: float
    target: str
    method: str
    notes: tuple[str, ...] = ()
    label_kind: str | None = None

    def __str__(self) -> str:
        confidence = level(self.slope.interval.confidence_level)
        lines = [
            f"{'':24} estimate ({confidence} interval)",
            f"{'observed / expected':24} {self.observed_expected}",
            f"{'calibration intercept':24} {self.intercept}, {p_equals(self.intercept_test.pvalue)}",
            f"{'calibration slope':24} {self.slope}, {p_equals(self.slope_test.pvalue)}",
            f"weak calibration (both): {p_equals(self.joint_test.pvalue)}; {self.method}",
            *self.notes,
        ]
        return "\n".join(lines)


@takes_predictions
def weak_calibration(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    **reading: Unpack[Reading],
) -> WeakCalibration:
    r"""Estimate the O:E ratio, the calibration intercept and the calibration slope, and test them.

    Intervals are profile-likelihood intervals and tests are likelihood-ratio tests if rows are independent. With
    `clusters` or sampling weights, the variance is the sandwich :math:`H^{-1} (\sum_c u_c u_c') H^{-1}` with the
    usual small-sample factor, intervals use Student's t with one degree of freedom fewer than there are clusters,
    and tests are Wald tests. The interval of O:E is made on the log scale, with the variance of the ratio estimator
    :math:`\sum_c (\sum_i (y_i - \rho f_i))^2 / O^2`.

    Scores of exactly 0 or 1 have no logit. Their rows count for O:E and are left out of the two fits; a label that
    contradicts such a score makes the p-value of the joint test 0.

    Parameters
    ----------
    {predictions}
    confidence_level : float
        Confidence level of the intervals.
    {reading}

    Returns
    -------
    WeakCalibration

    References
    ----------
    Cox (1958), Two further applications of a model for binary regression, Biometrika 45.
    Van Calster, McLernon, van Smeden, Wynants, Steyerberg (2019), Calibration: the Achilles heel of predictive
    analytics, BMC Medicine 17.

    Examples
    --------
    >>> import truecal
    >>> population = truecal.Population(
    ...     truecal.simulation.UniformScores(), truecal.simulation.GLMCurve("logit", "logit", 0.0, 0.7)
    ... )
    >>> weak = truecal.weak_calibration(*population.sample(2000, rng=0))
    >>> round(float(weak.slope), 2), weak.slope.interval.low < 0.7 < weak.slope.interval.high
    (0.7, True)
    """
    check_fraction("confidence_level", confidence_level)
    sample = as_sample(y_true, y_proba, **reading)
    return _Fit(sample, confidence_level).result()


class _Fit:
    """The two logistic fits of one sample, and what is inferred from them."""

    def __init__(self, sample: Sample, confidence_level: float) -> None:
        self.n = sample.n
        if not sample.counted:  # the scale of sampling weights means nothing, but tolerances have one
            sample = sample.scaled(len(sample) / float(sample.count.sum()))
        self.sample = sample
        self.confidence_level = confidence_level
        self.inside = (sample.score > 0) & (sample.score < 1)
        score = sample.score[self.inside]
        self.logit = np.log(score) - np.log1p(-score)
        self.count = sample.count[self.inside]
        self.positives = sample.positives[self.inside]
        self.negatives = self.count - self.positives
        design = np.column_stack([np.ones_like(self.logit), self.logit])
        self.objective = logistic_objective(design, np.zeros_like(self.logit), self.count, self.positives)
        self.design = design
        self.robust = sample.dependence.unit == "clusters" or not sample.counted
        self.profiled = not self.robust and len(sample) <= _MANY_SCORES

    def log_likelihood(self, intercept: float, slope: float) -> float:
        return self.objective(np.array([intercept, slope]))[0]

    def best_intercept(self, slope: float) -> float:
        """Return the intercept of the largest likelihood for a given slope; infinite if labels do not vary."""
        if not self.positives.any() or not self.negatives.any():
            return math.inf if self.positives.any() else -math.inf
        ones = np.ones((len(self.logit), 1))
        return float(fit_logistic(ones, slope * self.logit, self.count, self.positives).x[0])

    @property
    def separated(self) -> float:
        """Return the sign of an infinite slope, or 0 if labels overlap in the scores or the scores are all equal."""
        hit, miss = self.logit[self.positives > 0], self.logit[self.negatives > 0]
        if len(hit) == 0 or len(miss) == 0 or len(self.logit) == 1:
            return 0.0
        if hit.min() >= miss.max():
            return 1.0
        return -1.0 if hit.max() <= miss.min() else 0.0

    def covariance(self, x: FloatArray, *, with_slope: bool) -> FloatArray:
        """Return the covariance of finite parameters: inverse information, or the sandwich."""
        free = [0, 1] if with_slope else [0]
        # The fit makes the sums over clusters add up to 0: so few say nothing about the variance.
        if self.sample.dependence.n_clusters <= len(free) or not np.isfinite(x).all():
            return np.full((len(free), len(free)), math.nan)
        try:
            inverse = np.linalg.inv(-self.objective(x)[2][np.ix_(free, free)])
        except np.linalg.LinAlgError:  # the sum of corrected labels is not positive: rates are 0
            return np.full((len(free), len(free)), math.nan)
        if not self.robust:
            return np.asarray(inverse)
        mean = expit(x[0] + x[1] * self.logit)
        basis = np.stack([np.ones_like(self.logit), self.logit])[free]
        return np.asarray(inverse @ self.score_variance(mean, basis) @ inverse)

    def score_variance(self, mean: FloatArray, basis: FloatArray) -> FloatArray:
        """Return the robust variance of the sums of (y - mean) times each row of `basis`."""
        if_0, if_1 = np.zeros((2, len(basis), len(self.sample)))
        if_0[:, self.inside], if_1[:, self.inside] = -mean * basis, (1 - mean) * basis
        variance, k = self.sample.sum_covariance(if_0, if_1), len(basis)
        if math.isinf(self.sample.degrees_of_freedom):
            return variance
        n = max(self.sample.n, k + 1)
        return np.asarray(variance * ((n - 1) / (n - k)))

    @property
    def quantile(self) -> float:
        return self.sample.quantile((1 - self.confidence_level) / 2)

    def interval(self, low: float, high: float) -> Interval:
        return Interval(low, high, self.confidence_level, self.method)

    @property
    def method(self) -> str:
        if n_clusters := self.sample.size_fields["n_clusters"]:
            return f"cluster-robust variance, {counted(n_clusters, 'cluster')}"
        if self.robust:
            return "sandwich variance" + ("" if self.sample.pseudo else " for sampling weights")
        return "profile likelihood" if self.profiled else "Wald"

    def profile(self, parameter: int, value: float) -> float:
        """Return the log-likelihood at a value of one parameter, maximised over the other one."""
        other, offset = self.design[:, [1 - parameter]], value * self.design[:, parameter]
        return fit_logistic(other, offset, self.count, self.positives).value

    def parameter(self, value: float, variance: float, profile: Callable[[float], float]) -> Parameter:
        """Return a parameter with a profile-likelihood interval, or a Wald interval.

        `profile` gives the log-likelihood at a value of the parameter, maximised over the other one.
        """
        error = math.sqrt(variance) if variance >= 0 else math.nan
        low, high = -math.inf, math.inf
        if self.profiled and not math.isnan(value):
            drop = float(chdtri(1, 1 - self.confidence_level)) / 2
            top = profile(min(max(value, -FAR), FAR))

            def excess(x: float) -> float:
                return profile(x) - top + drop

            low, high = _end(excess, value, error, -1), _end(excess, value, error, 1)
        elif math.isfinite(value) and math.isfinite(error):
            low, high = value - self.quantile * error, value + self.quantile * error
        return Parameter(value, error, self.interval(low, high))

    @property
    def impossible(self) -> bool:
        """Whether labels that are not the truth add up to no event or less, or to one in every row or more."""
        observed = float(self.sample.positives.sum())
        return self.sample.pseudo is not None and not 0 < observed < float(self.sample.count.sum())

    def observed_expected(self) -> Parameter:
        sample = self.sample
        rows = float(sample.count.sum())
        observed, expected = float(sample.positives.sum()), float(sample.count @ sample.score)
        ratio = observed / expected if expected else math.nan
        if self.impossible and expected:  # no variance can be estimated: any rate from 0 to 1 is possible
            most = rows / expected
            return Parameter(min(max(ratio, 0.0), most), math.nan, self.interval(0.0, most))
        if math.isfinite(ratio) and (not sample.positives.any() or (sample.positives == sample.count).all()):
            # the exact end of a rate of 0 or 1, divided by the mean score
            effective = sample.dependence.effective_number if sample.clusters else sample.effective_size
            end = math.log((1 - self.confidence_level) / 2) / effective
            low, high = (math.exp(end), 1.0) if ratio else (0.0, -math.expm1(end))
            return Parameter(ratio, math.nan, self.interval(low * rows / expected, high * rows / expected))
        # Scores below the smallest normal number make the ratio infinite.
        if not math.isfinite(ratio) or sample.dependence.n_clusters < 2:
            return Parameter(ratio, math.nan, self.interval(0.0, math.inf))
        miss = ratio * sample.score[np.newaxis]
        log_error = math.sqrt(float(sample.sum_covariance(-miss, 1 - miss)[0, 0])) / observed
        spread = math.exp(min(self.quantile * log_error, 700.0))
        return Parameter(ratio, ratio * log_error, self.interval(ratio / spread, ratio * spread))

    def result(self) -> WeakCalibration:
        sample, notes = self.sample, list(self.notes())
        offset = math.nan if len(self.logit) == 0 else self.best_intercept(1.0)
        sign = self.separated
        fitted = np.array([math.nan, math.nan])
        if sign:
            fitted[1] = math.copysign(math.inf, sign)
            notes.append(
                "The scores separate the labels perfectly, so the likelihood has no maximum: the slope is infinite."
            )
        elif math.isinf(offset):
            notes.append(
                "All labels are equal, so the slope cannot be estimated and the intercept is infinite."
            )
        elif len(self.logit) <= 1:
            notes.append("There are fewer than two distinct scores, so the slope cannot be estimated.")
        else:
            fitted = fit_logistic(self.design, np.zeros_like(self.logit), self.count, self.positives).x
        joint = self.covariance(fitted, with_slope=True)
        own = self.covariance(np.array([offset, 1.0]), with_slope=False)[0, 0]
        intercept_test, slope_test, joint_test = self._tests(fitted, offset, joint, own)
        return WeakCalibration(
            observed_expected=self.observed_expected(),
            intercept=self.parameter(offset, own, lambda a: self.log_likelihood(a, 1.0)),
            slope=self.parameter(float(fitted[1]), joint[1, 1], partial(self.profile, 1)),
            joint_intercept=self.parameter(float(fitted[0]), joint[0, 0], partial(self.profile, 0)),
            joint_test=joint_test,
            intercept_test=intercept_test,
            slope_test=slope_test,
            n=self.n,
            target=sample.target,
            method=self.method,
            notes=(*notes, *sample.label_notes),
            label_kind=sample.label_kind,
        )

    def _tests(
        self, fitted: FloatArray, offset: float, joint: FloatArray, own: float
    ) -> tuple[WeakTest, WeakTest, WeakTest]:
        """Return the tests of the intercept, of the slope and of both."""
        if self.robust:
            deviation = fitted - np.array([0.0, 1.0])
            values = (
                _wald(np.array([offset]), np.array([[own]])),
                _wald(deviation[1:], joint[1:, 1:]),
                _wald(deviation, joint),
            )
        else:
            null = self.log_likelihood(0.0, 1.0) if len(self.logit) else math.nan
            large = self._limit(offset, 1.0)
            full = self._limit(float(fitted[0]), float(fitted[1])) if len(self.logit) > 1 else math.nan
            values = (2 * (large - null), 2 * (full - large), 2 * (full - null))
        joint_test = self._test(values[2], 2)
        if count_impossible(self.sample) > 0:
            joint_test = WeakTest(math.inf, 2, 0.0)
        return self._test(values[0], 1), self._test(values[1], 1), joint_test

    def _limit(self, intercept: float, slope: float) -> float:
        """Return the log-likelihood at parameters that may be infinite."""
        if math.isfinite(intercept) and math.isfinite(slope):
            return self.log_likelihood(intercept, slope)
        if math.isinf(slope):  # separated: only a score that both labels share has likelihood below 1
            shared = (self.positives > 0) & (self.negatives > 0)
            hits, misses = self.positives[shared], self.negatives[shared]
            rate = hits / (hits + misses)
            return float(hits @ np.log(rate) + misses @ np.log1p(-rate))
        return 0.0  # all labels are equal

    def _test(self, statistic: float, degrees: int) -> WeakTest:
        if math.isnan(statistic):
            return WeakTest(statistic, degrees, math.nan)
        statistic = max(statistic, 0.0)
        n_clusters = self.sample.dependence.n_clusters
        if math.isinf(n_clusters):
            return WeakTest(statistic, degrees, float(chdtrc(degrees, statistic)))
        # Hotelling's T squared: with few clusters the variance is as uncertain as the estimate.
        rest = max(n_clusters - degrees, 1)
        scaled = statistic * rest / (degrees * max(n_clusters - 1, 1))
        return WeakTest(statistic, degrees, float(fdtrc(degrees, rest, scaled)))

    def notes(self) -> Sequence[str]:
        """Return what the reader should know about the data."""
        notes = []
        if self.impossible:
            notes.append(
                "The labels are not the truth, and what they add up to is not between no event and an event in every "
                "row: O:E is the nearest possible ratio, and its interval has all of them."
            )
        ends = float(self.sample.count[~self.inside].sum())
        if ends:
            wrong = count_impossible(self.sample)
            rows, labels = counted(ends, "row"), counted(wrong, "label")
            if not (self.sample.counted and self.sample.whole):  # weights do not tell how many rows there are
                total = float(self.sample.count.sum())
                rows = f"{percent(ends / total)} of the weight, rows"
                labels = f"labels of {percent(wrong / total)} of the weight"
            notes.append(
                f"{rows} with a score of exactly 0 or 1 left out of intercept and slope"
                + (f"; {labels} contradicted such a score." if wrong else ".")
            )
        n_clusters = self.sample.dependence.n_clusters
        if n_clusters < MIN_CLUSTERS:
            few = f"There {'is' if n_clusters == 1 else 'are'} only {counted(n_clusters, 'cluster')}"
            missing = {1: "no interval or test", 2: "none for the slope"}.get(int(n_clusters))
            notes.append(
                f"{few}; robust intervals are unreliable with fewer than {MIN_CLUSTERS}"
                + (f", and there is {missing}." if missing else ".")
            )
        return notes


def _wald(deviation: FloatArray, covariance: FloatArray) -> float:
    """Return the Wald statistic; NaN if the covariance is not known, or is singular."""
    if not (np.isfinite(covariance).all() and np.isfinite(deviation).all()):
        return math.nan
    if np.linalg.matrix_rank(covariance, hermitian=True) < len(deviation):
        return math.nan
    try:
        return float(deviation @ np.linalg.solve(covariance, deviation))
    except np.linalg.LinAlgError:  # singular within rounding
        return math.nan


def _end(excess: Callable[[float], float], value: float, error: float, direction: int) -> float:
    """Return where the profile has dropped to the limit, going up or down from the estimate."""
    if math.isinf(value) and value * direction > 0:
        return value
    inner = outer = min(max(value, -FAR), FAR)
    step = error if 0 < error < math.inf else 1.0
    for _ in range(60):
        outer = outer + direction * step
        if excess(outer) < 0:
            return find_root(excess, min(inner, outer), max(inner, outer), xtol=1e-10)
        inner, step = outer, 2 * step
    return direction * math.inf


# --- Distances -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CalibrationIndex(Result):
    """Distances between predicted and observed risk.

    Attributes
    ----------
    ici : float
        Integrated calibration index: the l1 calibration error.
    interval : Interval
        Confidence interval of `ici`.
    e50, e90, emax : float
        Median, 90th percentile and largest value of the distance between score and estimated curve, over the rows.
        They have no interval: a quantile of an estimated curve depends on how smooth the curve is taken to be.
    n : int or float
        Number of rows, or total weight.
    target : str
        What the scores are probabilities of.
    """

    ici: float
    interval: Interval
    e50: float
    e90: float
    emax: float
    n: float
    target: str

    def __float__(self) -> float:
        return self.ici

    def __str__(self) -> str:
        return (
            f"ICI {self.ici:.4f}, {self.interval}\n"
            f"E50 {self.e50:.4f}, E90 {self.e90:.4f}, Emax {self.emax:.4f}"
        )


@takes_predictions
def calibration_index(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    **reading: Unpack[Reading],
) -> CalibrationIndex:
    r"""Estimate ICI, E50, E90 and Emax of predicted risks.

    R packages compute these numbers from a loess curve, and so report the noise of the curve as distance: a
    calibrated model has an ICI above 0. Here the ICI is the debiased l1 error of the `multiscale` estimator, with its
    confidence interval. The quantiles are those of the estimated curve, scaled so that its mean distance is the ICI; if
    there is no evidence against calibration, all four are close to 0.

    Parameters
    ----------
    {predictions}
    confidence_level : float
        Confidence level of the interval.
    {reading}

    Returns
    -------
    CalibrationIndex

    References
    ----------
    Austin, Steyerberg (2019), The integrated calibration index (ICI) and related metrics for quantifying the
    calibration of logistic regression models, Statistics in Medicine 38.

    Examples
    --------
    >>> import truecal
    >>> population = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
    >>> index = truecal.calibration_index(*population.sample(5000, rng=0))
    >>> population.true_error(norm=1) in index.interval
    True
    >>> [round(value, 2) for value in (index.ici, index.e50, index.emax)]
    [0.16, 0.18, 0.24]
    """
    check_fraction("confidence_level", confidence_level)
    sample = as_sample(y_true, y_proba, **reading)
    warn_of_dependence(sample)
    core = analyse(sample)
    ici = core.error(1)
    distance, weight = np.abs(core.gap), core.weight
    mean = float(weight @ distance) / float(weight.sum())
    if mean > 0:
        distance = distance * (ici / mean)
    most = np.maximum(core.score, 1 - core.score)  # no curve is farther from the score
    e50, e90, emax = _quantiles(np.minimum(distance, most), weight, (0.5, 0.9, 1.0))
    return CalibrationIndex(
        ici, interval_of(Question((sample,)), 1, confidence_level), e50, e90, emax, sample.n, sample.target
    )


def _quantiles(values: FloatArray, weight: FloatArray, levels: Sequence[float]) -> list[float]:
    """Return weighted quantiles: the smallest value with at least that share of the weight at or below it."""
    order = np.argsort(values)
    share = np.cumsum(weight[order])
    place = np.searchsorted(share, np.asarray(levels) * share[-1] * (1 - 1e-12))
    return [float(value) for value in values[order][np.minimum(place, len(values) - 1)]]
