"""Is the model calibrated? One omnibus test, or any estimator as a statistic; and tests of "at most this error"."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal._lib.checks import as_generator, check_choice, check_count, check_fraction, check_real
from truecal._lib.text import format_pvalue, p_equals
from truecal._lib.types import FloatArray, RNGLike
from truecal.data.cells import Cells
from truecal.data.predictions import Rows, as_samples, read_rows
from truecal.data.sample import Sample
from truecal.estimators._registry import DEFAULT_TEST, get_estimator, list_estimators
from truecal.exceptions import CalibrationWarning, InputError
from truecal.inference.decision import Decision, decide
from truecal.inference.interval import assumption_of, limits_of
from truecal.inference.resample import redraw_classes, redraws, require_whole_counts
from truecal.inference.spiegelhalter import SpiegelhalterResult, rows_of_classes, z_of, z_of_classes
from truecal.multiscale.analysis import analyse
from truecal.multiscale.intervals import Limits
from truecal.multiscale.null import (
    ClusterNull,
    JointClusterNull,
    JointLabelNull,
    JointNull,
    LabelNull,
    Null,
    Trials,
    variance_excess,
)
from truecal.multiscale.omnibus import (
    Component,
    Outcome,
    joint_test,
    omnibus_test,
    rank_pvalue,
    tail_pvalue,
)
from truecal.results import Estimate, Result, mean_over_classes

#: The omnibus test; every other method is the name of an estimator.
MULTISCALE = "multiscale"
#: Quantiles of the null distribution in `to_dict`.
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True, eq=False)
class TestResult(Result):
    """Result of a test of calibration.

    Attributes
    ----------
    statistic : float
        Value of the test statistic on the data; with `at_most`, the estimated error.
    pvalue : float
        p-value.
    pvalue_range : tuple of float
        The p-value if all draws that tie with the data were below it, and if all were above. The two are equal unless
        the data are few and discrete.
    null : ndarray of shape (n_resamples,)
        Statistic on the resamples, read-only.
    n_resamples : int
        Number of Monte Carlo resamples.
    method : str
        The test: ``"multiscale"``, or the name of the estimator that is the statistic.
    n : float
        Number of rows, or the total weight.
    target : str
        What the scores are probabilities of.
    norm : float or None
        Order of the norm, where the method has one.
    component : str or None
        Part of the calibration curve that contributes most to the multiscale statistic, such as "the slope".
    components : tuple of Component
        All components of the multiscale statistic, each with a p-value of its own.
    at_most : float or None
        If given, the null hypothesis is that the error is at least this large; else that it is 0.
    spiegelhalter : SpiegelhalterResult or None
        Spiegelhalter's test of the same hypothesis, which needs no resampling; None for rows in clusters.
    tail_pvalue : float
        The p-value, extrapolated beyond the draws if fewer than ten of them reach the statistic. It is used to correct
        for many groups, where 1 / (n_resamples + 1) would be too large a smallest p-value.
    adjusted_pvalue : float or None
        For one of several classes or groups: the p-value corrected for their number.
    notes : tuple of str
        Restrictions that a reader of the numbers must know.
    classes : tuple of TestResult
        For a classwise test, that of each class.
    limits : Limits or None
        With `at_most`: the confidence limits behind `decide`.
    """

    __test__: ClassVar[bool] = False  # not a test class for pytest
    _omitted: ClassVar[tuple[str, ...]] = ("null", "limits")
    _derived: ClassVar[tuple[str, ...]] = ("null_quantiles",)

    statistic: float
    pvalue: float
    pvalue_range: tuple[float, float]
    null: FloatArray
    n_resamples: int
    method: str
    n: float
    target: str
    norm: float | None = None
    component: str | None = None
    components: tuple[Component, ...] = ()
    at_most: float | None = None
    spiegelhalter: SpiegelhalterResult | None = None
    tail_pvalue: float = math.nan
    adjusted_pvalue: float | None = None
    notes: tuple[str, ...] = ()
    classes: tuple[TestResult, ...] = field(default=())
    limits: Limits | None = None

    def decide(self, alpha: float = 0.05) -> Decision:
        """Return what a test with `at_most` shows, and how many rows would settle it.

        Parameters
        ----------
        alpha : float
            Significance level.

        Returns
        -------
        Decision

        Examples
        --------
        >>> import truecal
        >>> data = truecal.datasets.load("flights")
        >>> test = calibration_test(data.y_true, data.y_proba, at_most=0.05)
        >>> test.decide().verdict
        'The data show that the calibration error is below 0.05 (upper one-sided 95% limit 0.0371, p < 0.001).'
        """
        if self.limits is None or self.at_most is None:
            raise InputError("was not given to this test, so there is nothing to decide", argument="at_most")
        return decide(self.limits, self.at_most, check_fraction("alpha", alpha), self.n)

    def __post_init__(self) -> None:
        null = self.null.view()
        null.flags.writeable = False
        object.__setattr__(self, "null", null)

    @property
    def null_quantiles(self) -> dict[str, float]:
        """Quantiles of the statistic on the resamples."""
        if not len(self.null):
            return {}
        values = np.quantile(self.null, _LEVELS).tolist()
        return {f"{level:g}": value for level, value in zip(_LEVELS, values, strict=True)}

    def __str__(self) -> str:
        lines = [*self._headline(), *([] if self.spiegelhalter is None else [str(self.spiegelhalter)])]
        if self.classes:
            low = sum((part.adjusted_pvalue or 0.0) <= 0.05 for part in self.classes)
            lines.append(f"{low} of {len(self.classes)} classes have an adjusted p-value of at most 0.05")
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])

    def _headline(self) -> list[str]:
        norm = "" if self.norm is None else f" (l{self.norm:g})"
        if self.at_most is not None:
            return [
                f"error{norm} of {self.target}: {self.statistic:.4f}, n = {self.n:,.10g}",
                f"H0: the error is at least {self.at_most:g}; {p_equals(self.pvalue)}",
            ]
        low, high = self.pvalue_range
        ties = (
            "" if high - low < 0.01 else f", between {format_pvalue(low)} and {format_pvalue(high)} with ties"
        )
        middle, critical = np.quantile(self.null, [0.5, 0.95])
        digits = 2 if self.method == MULTISCALE else 4
        lines = [
            f"{self.method}{norm} test of {self.target}: statistic {self.statistic:.{digits}f}, n = {self.n:,.10g}",
            f"Null distribution: median {middle:.{digits}f}, 95th percentile {critical:.{digits}f}",
            f"{p_equals(self.pvalue)} ({self.n_resamples} resamples{ties})",
        ]
        if self.component is not None:
            lines.append(f"Largest contribution: {self.component}")
        return lines

    def __repr__(self) -> str:
        return f"<TestResult {self.method} {self.statistic:.4f}, n = {self.n:.10g}, {p_equals(self.pvalue)}>"


def calibration_test(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    method: str = DEFAULT_TEST,
    at_most: float | None = None,
    norm: float = 2,
    n_resamples: int = 999,
    sample_weight: ArrayLike | None = None,
    weights: str | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    multiclass: str | None = None,
    clusters: Any = None,
    rng: RNGLike = None,
    **options: Any,
) -> TestResult:
    r"""Test the hypothesis that every score is the probability of a positive label.

    **The multiscale test**, the default, looks for level shifts, wrong slopes, smooth deviations and local
    deviations at every scale that the data resolve, and names the part that contributes most. Its statistic T is
    compared with its values on labels drawn from the scores (consistency resampling). With R such draws,

    .. math:: p = \frac{1 + \#\{r : T^*_r \ge T\}}{1 + R} .

    If the model is calibrated and rows are independent, the data are one more draw of the same kind, and every rank
    of T is equally likely: the level is exact for any n and any scores. A large p-value does not show that the model
    is calibrated, only that these rows do not contradict it. `truecal.simulation.detectable_error` gives the size of
    error that would be detected.

    **An estimator as the statistic** (``method="em_sweep"`` and so on) is tested in the same way. Debiased
    estimators are compared before they are clipped at 0.

    **Ties.** With few rows, or scores near 0 and 1, draws can have the same labels as the data. T takes a random
    place among such ties, which keeps the level exact; `pvalue_range` shows the smallest and the largest p-value that
    this can give. If more than half of the draws tie, all ties are counted. A label that a score of exactly 0 or 1
    rules out gives the smallest p-value, 1 / (R + 1).

    **Clusters.** If rows depend on each other, labels cannot be drawn again one by one. The residuals of each cluster
    are multiplied by random signs instead, which is approximate: it needs about 15 clusters or more. With G clusters
    the smallest p-value is :math:`2^{1-G}`.

    **Classwise.** One class is drawn for each row, which gives the joint distribution of all classes. The statistic
    is the mean over the classes. The p-value of each class is also adjusted for their number: by the distribution of
    the largest statistic for the multiscale test, by Holm's method for an estimator.

    **Equivalence.** With ``at_most=eps`` the null hypothesis is that the error is `eps` or more, and a small p-value
    shows that it is below. The p-value is at most alpha exactly when the one-sided upper confidence limit of the error
    is at most `eps`, under the same assumption: no structure finer than `truecal.confidence_interval` states.

    **Large samples.** Beyond 131,072 rows one binomial is drawn for each of a few thousand narrow cells of scores.
    Their variance is then too large by a fraction that the notes give, which makes the test slightly conservative.

    Parameters
    ----------
    y_true : array-like of shape (n,), (n, 1) or one-hot (n, K), or Sample
        Labels; a `Sample` stands for both labels and scores.
    y_proba : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities.
    method : str
        ``"multiscale"``, or one of `truecal.list_estimators`.
    at_most : float, optional
        Test the hypothesis that the error is at least this large, instead of 0.
    norm : float
        Order of the norm of an estimator, or of the error with `at_most`. The multiscale test of calibration has none.
    n_resamples : int
        Number of Monte Carlo resamples. The smallest p-value is 1 / (n_resamples + 1).
    sample_weight : array-like of shape (n,), optional
        Sampling weights. Estimators as statistics need counts.
    weights : {"sampling", "counts"}, optional
        Whether a weight of 2 stands for two rows (``"counts"``) or not (``"sampling"``, the default).
    pos_label : label, optional
        The positive class.
    labels : sequence of K labels, optional
        The class of each column.
    multiclass : {"top", "classwise"}, optional
        What to test for several classes; the top label by default.
    clusters : array-like of shape (n,), optional
        Rows that depend on each other have the same value.
    rng : seed or numpy.random.Generator, optional
        Random seed.
    **options
        Options of an estimator, such as ``n_bins``.

    Returns
    -------
    TestResult

    Warns
    -----
    CalibrationWarning
        If an estimator that is used as the statistic warns.

    References
    ----------
    Bröcker, Smith (2007), Increasing the reliability of reliability diagrams, Weather and Forecasting 22, 651-661.
    Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS.
    Davison, Hinkley (1997), Bootstrap methods and their application, section 4.2.
    Westfall, Young (1993), Resampling-based multiple testing.
    Holm (1979), Scandinavian Journal of Statistics 6, 65-70.

    Examples
    --------
    >>> import truecal
    >>> from truecal.simulation import BetaScores, PowerCurve
    >>> population = truecal.Population(BetaScores(1, 1), PowerCurve(1.2))
    >>> y, p = population.sample(1000, rng=0)
    >>> print(calibration_test(y, p, rng=0))
    multiscale test of P(y = 1): statistic 11.70, n = 1,000
    Null distribution: median 1.56, 95th percentile 4.06
    p = 0.003 (999 resamples)
    Largest contribution: a level shift
    Spiegelhalter's Z = -0.48, p = 0.63
    """
    n_resamples = check_count("n_resamples", n_resamples)
    generator = as_generator(rng)
    reading = {
        "sample_weight": sample_weight,
        "weights": weights,
        "pos_label": pos_label,
        "labels": labels,
        "multiclass": multiclass,
        "clusters": clusters,
    }
    reading = {name: value for name, value in reading.items() if value is not None}
    if method == MULTISCALE:
        if options:
            raise InputError(f"The multiscale test has no option {next(iter(options))!r}")
        if at_most is not None:
            return _equivalence_test(y_true, y_proba, reading, at_most, norm)
        return _multiscale_test(y_true, y_proba, reading, n_resamples, generator)
    check_choice("method", method, method_names())
    if at_most is not None:
        raise InputError("needs method='multiscale'", argument="at_most")
    return _estimator_test(y_true, y_proba, reading, method, norm, options, n_resamples, generator)


def method_names() -> list[str]:
    """Return all tests: the multiscale test, and every estimator by name and alias."""
    names = (name for spec in list_estimators() for name in (spec.name, *spec.aliases))
    return list(dict.fromkeys([MULTISCALE, *names]))


# --- The multiscale test ---------------------------------------------------------------------------


def _multiscale_test(
    y_true: Any, y_proba: Any, reading: dict[str, Any], n_resamples: int, rng: np.random.Generator
) -> TestResult:
    if isinstance(y_true, Sample):
        (sample,) = as_samples(y_true, y_proba, **reading)
        return _as_result(omnibus_test(_null_of(sample), n_resamples, rng), sample)
    classes = [_kept(rows) for rows in read_rows(y_true, y_proba, **reading)]
    samples = [rows.group() for rows in classes]
    if len(classes) == 1:
        return _as_result(omnibus_test(_null_of(samples[0], classes[0]), n_resamples, rng), samples[0])
    first = classes[0]
    proba = np.column_stack([rows.score for rows in classes]).astype(np.float64)
    if samples[0].clusters is not None:
        joint: JointNull = JointClusterNull([_cluster_null(sample) for sample in samples])
        beside: SpiegelhalterResult | None = None
    else:
        truth, weight = np.column_stack([rows.label for rows in classes]).astype(bool), first.weight
        if weight is not None and samples[0].squares is None:
            each = weight.astype(np.intp)
            proba, truth, weight = np.repeat(proba, each, axis=0), np.repeat(truth, each, axis=0), None
        joint = JointLabelNull(proba, truth, weight)
        beside = z_of_classes(tuple(samples), proba, weight)
    whole, parts, adjusted = joint_test(joint, n_resamples, rng)
    results = tuple(
        replace(_as_result(part, sample), adjusted_pvalue=pvalue)
        for part, sample, pvalue in zip(parts, samples, adjusted, strict=True)
    )
    worst = max(results, key=lambda result: result.statistic)
    return replace(
        _as_result(whole, samples[0]),
        target=f"mean over {len(samples)} classes, each against the rest",
        component=f"{worst.component} ({worst.target})",
        notes=(*whole.notes, *_impossible(*samples)),
        spiegelhalter=beside,
        classes=results,
    )


def _kept(rows: Rows) -> Rows:
    """Return the rows without those of weight 0."""
    if rows.weight is None or rows.weight.all():
        return rows
    kept = rows.weight > 0
    columns: dict[str, Any] = {
        name: value[kept] for name, value in vars(rows).items() if isinstance(value, np.ndarray)
    }
    return replace(rows, **columns)


def _as_result(outcome: Outcome, sample: Sample) -> TestResult:
    return TestResult(
        statistic=outcome.statistic,
        pvalue=outcome.pvalue,
        pvalue_range=outcome.pvalue_range,
        null=outcome.null,
        n_resamples=len(outcome.null),
        method=MULTISCALE,
        n=sample.n,
        target=sample.target,
        component=outcome.component,
        components=outcome.components,
        spiegelhalter=None if sample.clusters is not None else z_of(sample),
        tail_pvalue=tail_pvalue(outcome.statistic, outcome.null, outcome.pvalue),
        notes=(*outcome.notes, *_impossible(sample)),
    )


def _null_of(sample: Sample, rows: Rows | None = None) -> Null:
    """Return how to resample a sample; `rows` tell apart weights that differ within a score."""
    if sample.clusters is not None:
        return _cluster_null(sample)
    if sample.squares is None:
        require_whole_counts(sample, "The test")
        return LabelNull(Trials(sample.score, sample.count, sample.positives, None, _excess_of(sample)))
    if rows is not None and rows.weight is not None:
        # Sorted by all three, so that any order of the rows gives the same draws.
        order = np.lexsort((rows.label, rows.weight, rows.score))
        label, weight = rows.label[order].astype(np.float64), rows.weight[order]
        return LabelNull(Trials(rows.score[order].astype(np.float64), np.ones(len(order)), label, weight))
    # Weights within a group are not known one by one: as many rows of equal weight have the same variance.
    size = np.maximum(np.round(sample.count**2 / sample.squares), 1.0)
    weight = sample.count / size
    return LabelNull(Trials(sample.score, size, sample.positives / weight, weight))


def _excess_of(sample: Sample) -> float:
    """Return by how much the variance of a binomial draw can exceed that of rows within cells, as a fraction."""
    if not isinstance(sample, Cells):
        return 0.0
    binomial = sample.count * sample.score * (1 - sample.score)
    return variance_excess(binomial, np.maximum(binomial - sample.count * sample.largest_variance, 0.0))


def _cluster_null(sample: Sample) -> ClusterNull:
    table = sample.clusters
    assert table is not None
    scale = 1.0 if sample.squares is None else sample.n / float(sample.squares.sum())
    score, weight, positives = sample.score[table.group], table.weight * scale, table.positives * scale
    return ClusterNull(score, weight * score - positives, weight, table.cluster)


# --- At most this error ----------------------------------------------------------------------------


def _equivalence_test(
    y_true: Any, y_proba: Any, reading: dict[str, Any], at_most: float, norm: float
) -> TestResult:
    at_most = check_real("at_most", at_most, above=0)
    if norm not in (1, 2):
        raise InputError(f"must be 1 or 2 with at_most. Got {norm!r} instead", argument="norm", value=norm)
    samples = as_samples(y_true, y_proba, **reading)
    cores = [analyse(sample) for sample in samples]
    target, rows = samples[0].target, None
    if len(samples) > 1:
        target = f"mean over {len(samples)} classes, each against the rest"
        rows = [_kept(rows) for rows in read_rows(y_true, y_proba, **reading)]
    limits = limits_of(cores, norm, rows)
    pvalue = limits.at_most(at_most)
    return TestResult(
        statistic=limits.error,
        pvalue=pvalue,
        pvalue_range=(pvalue, pvalue),
        null=np.empty(0),
        n_resamples=0,
        method=MULTISCALE,
        n=samples[0].n,
        target=target,
        norm=float(norm),
        at_most=at_most,
        tail_pvalue=pvalue,
        notes=(f"Assumption: {assumption_of(cores)}.",),
        limits=limits,
    )


# --- An estimator as the statistic -----------------------------------------------------------------


def _estimator_test(
    y_true: Any,
    y_proba: Any,
    reading: dict[str, Any],
    method: str,
    norm: float,
    options: dict[str, Any],
    n_resamples: int,
    rng: np.random.Generator,
) -> TestResult:
    spec = get_estimator(method)
    spec.check_options(options)
    if spec.random:
        options = {"rng": rng, **options}
    samples = as_samples(y_true, y_proba, **reading)
    for sample in samples:
        _require_counts(sample, spec.name)
    draws: Iterable[tuple[Sample, ...]]
    if len(samples) == 1:
        draws = ((draw,) for draw in redraws(samples[0], n_resamples, rng=rng))
        beside = z_of(samples[0])
    else:
        rows = rows_of_classes(y_true, y_proba, reading)
        draws = _joint_redraws(samples, rows, n_resamples, rng)
        beside = z_of_classes(samples, rows)

    def measure(each: tuple[Sample, ...]) -> list[Estimate]:
        return [spec(sample, norm=norm, **options) for sample in each]

    observed = measure(samples)
    # The axes are draws, classes, and (value, ranking value).
    null = np.array([[(one.value, rank_value(one)) for one in measure(draw)] for draw in draws])
    tests = [
        _compare(one, rank_value(one), null[:, k], rng, z_of(sample), _impossible(sample))
        for k, (one, sample) in enumerate(zip(observed, samples, strict=True))
    ]
    if len(tests) == 1:
        outcome, notes = tests[0], observed[0].notes
    else:
        mean = mean_over_classes(observed)
        rank, mean_null = float(np.mean([rank_value(one) for one in observed])), null.mean(axis=1)
        mean_null[:, 0] = np.mean(null[:, :, 0] ** (mean.norm or 1), axis=1) ** (1 / (mean.norm or 1))
        whole = _compare(mean, rank, mean_null, rng, beside, _impossible(*samples))
        outcome, notes = replace(whole, classes=corrected_by_holm(tests)), mean.notes
    for note in notes:
        warnings.warn(f"{spec.name} of {outcome.target}: {note}", CalibrationWarning, stacklevel=3)
    return outcome


def _require_counts(sample: Sample, name: str) -> None:
    problem = (
        "clusters"
        if sample.clusters is not None
        else "sampling weights"
        if sample.squares is not None
        else ""
    )
    if problem:
        raise InputError(
            f"{name} cannot be tested by resampling labels with {problem}", remedy="Use method='multiscale'."
        )
    require_whole_counts(sample, "The test")


def rank_value(estimate: Estimate) -> float:
    """Return the number by which a test compares estimates: the value, or its square before it was clipped at 0."""
    return estimate.value if estimate.signed_square is None else estimate.signed_square


def _compare(
    estimate: Estimate,
    rank: float,
    null: FloatArray,
    rng: np.random.Generator,
    beside: SpiegelhalterResult,
    notes: tuple[str, ...],
) -> TestResult:
    """Return the test of one estimate from the (value, ranking value) of each draw."""
    values, ranks = null.T
    # Sums in another order differ in their last digits, which is a tie.
    rounding = 1e-9 * float(np.ptp(ranks)) + 1e-12 * abs(rank)
    pvalue, bounds = rank_pvalue(rank, ranks, rng, rounding)
    return TestResult(
        statistic=estimate.value,
        pvalue=pvalue,
        pvalue_range=bounds,
        null=values,
        n_resamples=len(ranks),
        method=estimate.estimator,
        norm=estimate.norm,
        n=estimate.n,
        target=estimate.target,
        spiegelhalter=beside,
        tail_pvalue=pvalue,
        notes=(*estimate.notes, *notes),
    )


def _impossible(*samples: Sample) -> tuple[str, ...]:
    """Return a note on labels that scores of exactly 0 and 1 rule out."""
    if len(samples) == 1:
        wrong = _count_impossible(samples[0])
    else:  # a true class of probability 0; another of probability 1 is the same row
        wrong = sum(float(sample.positives[sample.score == 0].sum()) for sample in samples)
    if not wrong:
        return ()
    rows = "1 row has" if wrong == 1 else f"{wrong:,.6g} rows have"
    if samples[0].squares is not None:
        rows = f"Rows with a total weight of {wrong:,.4g} have"
    return (f"{rows} a label that a score of exactly 0 or 1 rules out.",)


def _count_impossible(sample: Sample) -> float:
    sure = sample.score == 1
    wrong = sample.positives[sample.score == 0].sum() + (sample.count[sure] - sample.positives[sure]).sum()
    return float(wrong)


def _joint_redraws(
    samples: tuple[Sample, ...], proba: FloatArray, n_resamples: int, rng: np.random.Generator
) -> Iterator[tuple[Sample, ...]]:
    """Yield the samples of all classes, one class being drawn for each row."""
    group = [sample.score.searchsorted(proba[:, k]) for k, sample in enumerate(samples)]
    for drawn in redraw_classes(proba, n_resamples, rng=rng):
        yield tuple(
            sample.with_positives(_count(group[k][drawn == k], len(sample)))
            for k, sample in enumerate(samples)
        )


def _count(group: NDArray[np.intp], n_groups: int) -> FloatArray:
    return np.bincount(group, minlength=n_groups).astype(np.float64)


def corrected_by_holm(tests: Sequence[TestResult]) -> tuple[TestResult, ...]:
    """Return the tests with p-values that hold for all of them at once (Holm 1979).

    For the multiscale test the p-values are extrapolated beyond the draws before they are multiplied, so that many
    tests do not need many draws.
    For estimators the smallest adjusted p-value is the number of tests divided by ``n_resamples + 1``; a note says so
    where this is above 0.05.
    """
    pvalue = np.array([test.tail_pvalue for test in tests])
    order = np.argsort(pvalue)
    adjusted = np.empty_like(pvalue)
    adjusted[order] = np.maximum.accumulate(pvalue[order] * np.arange(len(pvalue), 0, -1)).clip(max=1.0)
    return tuple(
        replace(
            test,
            adjusted_pvalue=max(float(value), test.pvalue),
            notes=(*test.notes, *_floor(test, len(tests))),
        )
        for test, value in zip(tests, adjusted, strict=True)
    )


def _floor(test: TestResult, n_tests: int) -> tuple[str, ...]:
    smallest = n_tests / (test.n_resamples + 1)
    if test.method == MULTISCALE or smallest <= 0.05:
        return ()
    few = f"With {n_tests} tests and {test.n_resamples} resamples no adjusted p-value is below {smallest:.2g}"
    return (f"{few}; use more resamples or method='multiscale'.",)
