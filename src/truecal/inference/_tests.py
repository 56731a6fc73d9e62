"""Tests that draw labels again: the multiscale test, and tests whose statistic is an estimator."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from truecal import multiscale
from truecal._lib.types import FloatArray, NormLike
from truecal.data.cells import Cells
from truecal.data.pseudo_labels import PseudoLabels
from truecal.data.question import Question, Rows
from truecal.data.sample import Sample
from truecal.estimators._registry import MULTISCALE, EstimatorSpec, get_estimator
from truecal.exceptions import InputError, warn_user
from truecal.inference import resample
from truecal.inference._test_result import TestResult, adjusted_together, corrected_by_holm
from truecal.inference.c_statistic import reversed_scores
from truecal.inference.spiegelhalter import z_of
from truecal.results import Estimate

#: From so many rows on, random signs of rows are drawn by cells, whose sums are nearly normal.
_MANY_ROWS = 8192


def multiscale_test(question: Question, n_resamples: int, rng: np.random.Generator) -> TestResult:
    """Return the multiscale test of one sample, of all classes at once, or of all predicted classes."""
    samples = question.samples
    if question.apart:
        return _test_of_parts(question, n_resamples, rng)
    if question.rows is None or question.single:
        null = _null_of(samples[0], None if question.rows is None else question.rows[0])
        return _as_result(multiscale.omnibus_test(null, n_resamples, rng), samples[0])
    whole, parts, adjusted = multiscale.joint_test(_joint_null(question, question.rows), n_resamples, rng)
    results = tuple(
        replace(_as_result(part, sample), adjusted_pvalue=1.0 if part.too_little else pvalue)
        for part, sample, pvalue in zip(parts, samples, adjusted, strict=True)
    )
    worst = max(results, key=lambda result: result.statistic)
    result = replace(
        _as_result(replace(whole, too_little=""), samples[0]),
        target=question.target,
        component=f"{worst.component} ({worst.target})",
        notes=(*whole.notes, *resample.impossible_labels(*samples)),
        spiegelhalter=z_of(question),
        classes=results,
    )
    return result.not_tested(whole.too_little)


def each_alone(question: Question, test: Callable[[Question], TestResult]) -> TestResult:
    """Return the test of a question; labels of multilabel rows are tested one by one, and the worst is returned."""
    if not question.multilabel or question.single:
        return test(question)
    tests = corrected_by_holm([test(part) for part in question.of_each()])
    worst, who = _worst_of(tests, question)
    reason = f"The p-value is the smallest of the labels', by Holm's method; the statistic is that of {who}."
    return replace(worst, notes=(reason, *(note for note in worst.notes if note != reason)))


def _worst_of(tests: tuple[TestResult, ...], question: Question) -> tuple[TestResult, str]:
    """Return the test with the smallest adjusted p-value as that of the whole question, and what it is a test of."""
    worst = min(tests, key=lambda one: (one.adjusted_pvalue or 0.0, one.pvalue, -one.statistic))
    pvalue = worst.adjusted_pvalue
    assert pvalue is not None
    whole = replace(
        worst,
        pvalue=pvalue,
        pvalue_range=(pvalue, pvalue),
        target=question.target,
        adjusted_pvalue=None,
        spiegelhalter=None,
        classes=tests,
    )
    return whole, worst.target


def _joint_null(question: Question, rows: Sequence[Rows]) -> multiscale.JointNull:
    """Return how to resample all classes at once."""
    samples = question.samples
    if samples[0].clusters:
        return multiscale.joint_clusters(
            [multiscale.ClusterNull(*resample.cluster_rows(sample)) for sample in samples]
        )
    proba, weight = question.proba, question.weight
    truth = np.column_stack([one.label for one in rows]).astype(bool)
    if weight is not None and samples[0].counted:
        each = weight.astype(np.intp)
        proba, truth, weight = np.repeat(proba, each, axis=0), np.repeat(truth, each, axis=0), None
    return multiscale.joint_labels(proba, truth, weight)


def _test_of_parts(question: Question, n_resamples: int, rng: np.random.Generator) -> TestResult:
    """Test the calibration of the top label in all predicted classes at once, and in each.

    Predicted classes have different rows, so their labels are drawn one class after the other. The statistic is the
    mean of the classes' statistics; with clusters, which can have rows in several classes, the p-value is the smallest
    of the adjusted ones instead.
    """
    dependent = question.cluster is not None
    tests = adjusted_together(
        [multiscale_test(part, n_resamples, rng) for part in question.of_each()], dependent=dependent
    )
    worst, who = _worst_of(tests, question)
    whole = replace(
        worst,
        **question.size_fields,
        component=f"{worst.component} ({who})",
        components=(),
        notes=resample.impossible_labels(*question.samples),
    )
    if dependent:
        reason = "The p-value is the smallest of the classes', by Holm's method: clusters may join them."
        return replace(whole, notes=(*whole.notes, reason))
    statistic = float(np.mean([test.statistic for test in tests]))
    null = np.mean([test.null for test in tests], axis=0)
    pvalue, bounds = resample.rank_among(statistic, null, rng)
    return replace(
        whole,
        statistic=statistic,
        null=null,
        pvalue=pvalue,
        pvalue_range=bounds,
        tail_pvalue=pvalue,
    )


def _as_result(outcome: multiscale.Outcome, sample: Sample) -> TestResult:
    reversal = reversed_scores(sample)
    few = "" if sample.pseudo is None else sample.pseudo.too_few
    result = TestResult(
        statistic=outcome.statistic,
        pvalue=outcome.pvalue,
        pvalue_range=outcome.pvalue_range,
        null=outcome.null,
        n_resamples=len(outcome.null),
        method=MULTISCALE,
        target=sample.target,
        component=outcome.component,
        components=outcome.components,
        spiegelhalter=z_of(Question((sample,))),
        tail_pvalue=multiscale.far_tail(
            multiscale.tail_pvalue(outcome.statistic, outcome.null, outcome.pvalue), outcome.doubt
        ),
        notes=(*outcome.notes, *_notes_on_labels(sample), *([] if reversal is None else [reversal])),
        **sample.size_fields,
    )
    return result.not_tested(few or outcome.too_little)


def _notes_on_labels(sample: Sample) -> tuple[str, ...]:
    """Return notes on labels that a score rules out, or that are not the truth."""
    if sample.pseudo is None:
        return resample.impossible_labels(sample)
    return (*sample.label_notes, "With these labels the p-value is approximate.")


def _null_of(sample: Sample, rows: Rows | None = None) -> multiscale.Null:
    """Return how to resample a sample; `rows` are needed where weights differ within a score."""
    pseudo = sample.pseudo
    if sample.clusters:
        return _random_signs(pseudo, *resample.cluster_rows(sample))
    if pseudo is not None:
        return _null_of_pseudo_labels(pseudo, sample.n / float(sample.weight2.sum()))
    if sample.counted:
        resample.require_whole_counts(sample, "the test")
        return multiscale.LabelNull(sample.score, sample.count, sample.positives, excess=_excess_of(sample))
    if rows is not None and rows.weight is not None:
        # Sorted by all three, so that any order of the rows gives the same draws.
        order = np.lexsort((rows.label, rows.weight, rows.score))
        label, weight = rows.label[order].astype(np.float64), rows.weight[order]
        return multiscale.LabelNull(rows.score[order].astype(np.float64), np.ones(len(order)), label, weight)
    # Weights within a group are not known one by one: as many rows of equal weight have the same variance.
    size = np.maximum(np.round(sample.count**2 / sample.weight2), 1.0)
    weight = sample.count / size
    return multiscale.LabelNull(sample.score, size, sample.positives / weight, weight)


def _null_of_pseudo_labels(pseudo: PseudoLabels, scale: float) -> multiscale.Null:
    """Return how to resample labels that are not the truth: gold labels are drawn again, others get random signs."""
    if pseudo.gold is not None:
        return multiscale.GoldNull(pseudo.score, pseudo.weight, pseudo.gold)
    weight = pseudo.weight if scale == 1 else pseudo.weight * scale
    rows = pseudo.score, weight * (pseudo.score - pseudo.value), weight
    if len(weight) > _MANY_ROWS:
        return multiscale.RowNull(*rows, scaled=pseudo.votes <= 1)
    return _random_signs(pseudo, *rows, np.arange(len(weight)))


def _random_signs(pseudo: PseudoLabels | None, *rows: Any) -> multiscale.ClusterNull:
    """Return random signs of clusters, or of rows; labels that are not the truth are not 0 and 1."""
    if pseudo is None:
        return multiscale.ClusterNull(*rows)
    return multiscale.ClusterNull(*rows, binary=False, scaled=pseudo.votes <= 1)


def _excess_of(sample: Sample) -> float:
    """Return by how much the variance of a binomial draw can exceed that of rows within cells, as a fraction."""
    if not isinstance(sample, Cells):
        return 0.0
    binomial = sample.count * sample.score * (1 - sample.score)
    return multiscale.variance_excess(
        binomial, np.maximum(binomial - sample.count * sample.largest_variance, 0.0)
    )


def estimator_test(
    question: Question,
    method: str,
    norm: NormLike,
    options: dict[str, Any],
    n_resamples: int,
    rng: np.random.Generator,
) -> TestResult:
    """Return the test whose statistic is an estimator, of one sample or of all classes at once."""
    spec, samples = get_estimator(method), question.samples
    spec.check_options(options)
    if spec.random:
        options = {"rng": rng, **options}
    scales, draws = _resampled(question, spec, n_resamples, rng)

    def measure(each: tuple[Sample, ...]) -> list[Estimate]:
        return [spec(sample, norm=norm, **options) for sample in each]

    observed = measure(samples)
    # The axes are draws, classes, and (value, ranking value).
    null = np.array([[(one.value, one.rank_value) for one in measure(draw)] for draw in draws])
    tests = [
        _compare(part, one, one.rank_value, null[:, k], rng)
        for k, (part, one) in enumerate(zip(question.of_each(), observed, strict=True))
    ]
    reasons = [scale.reason(test.pvalue) for scale, test in zip(scales, tests, strict=True)]
    tests = [
        replace(test, asymptotic_pvalue=_asymptotic(spec, test.statistic, sample)).not_tested(reason)
        for test, sample, reason in zip(tests, samples, reasons, strict=True)
    ]
    outcome, notes = tests[0], observed[0].notes
    if not question.single:
        mean = question.combine(observed)
        whole = _compare(question, mean, *_mean_null(mean, observed, null), rng)
        whole = whole.not_tested(reasons[0] if all(reasons) else "")
        outcome, notes = replace(whole, classes=corrected_by_holm(tests)), mean.notes
    for note in notes:
        warn_user(f"{spec.name} of {outcome.target}: {note}")
    return outcome


def _resampled(
    question: Question, spec: EstimatorSpec, n_resamples: int, rng: np.random.Generator
) -> tuple[list[multiscale.FlipScale], Iterable[tuple[Sample, ...]]]:
    """Return how each class is scaled under the null hypothesis, and samples drawn under it."""
    samples = question.samples
    if samples[0].clusters and spec.limit:
        scales = [multiscale.flip_scale(*resample.cluster_rows(sample)) for sample in samples]
        return scales, _sign_flips(samples, scales, n_resamples, rng)
    for sample in samples:
        _require_counts(sample, spec.name)
    scales = [multiscale.FlipScale(1.0, 1.0)] * len(samples)
    if question.rows is None or question.single:
        return scales, ((draw,) for draw in resample.redraws(samples[0], n_resamples, rng=rng))
    proba, weight = question.proba, question.weight
    if weight is not None:
        proba = np.repeat(proba, weight.astype(np.intp), axis=0)
    return scales, _joint_redraws(samples, proba, n_resamples, rng)


def _mean_null(mean: Estimate, observed: Sequence[Estimate], null: FloatArray) -> tuple[float, FloatArray]:
    """Return the ranking value of the mean over classes, and (value, ranking value) of it in each draw."""
    order, draws = mean.norm or 1, null.mean(axis=1)
    draws[:, 0] = np.mean(null[:, :, 0] ** order, axis=1) ** (1 / order)
    return float(np.mean([one.rank_value for one in observed])), draws


def _sign_flips(
    samples: tuple[Sample, ...],
    scales: Sequence[multiscale.FlipScale],
    n_resamples: int,
    rng: np.random.Generator,
) -> Iterator[tuple[Sample, ...]]:
    """Yield samples whose residuals have random signs, one for each cluster: for statistics of sums of residuals."""
    sums = []
    for sample, scale in zip(samples, scales, strict=True):
        table = sample.clusters
        assert table is not None
        shape, residual = (table.n_clusters, len(sample)), scale.factor * table.residual(sample.score)
        sums.append(scipy.sparse.csr_array((residual, (table.cluster, table.group)), shape))
    for _ in range(n_resamples):
        signs = rng.integers(0, 2, sums[0].shape[0]) * 2.0 - 1.0
        yield tuple(
            sample.with_positives(sample.score * sample.count - signs @ part)
            for sample, part in zip(samples, sums, strict=True)
        )


def _asymptotic(spec: EstimatorSpec, statistic: float, sample: Sample) -> float | None:
    """Return the p-value of a statistic whose limit is a functional of a Brownian motion; None without a limit."""
    if not spec.limit or sample.clusters:
        return None
    deviation = math.sqrt(float(np.sum(sample.count * sample.score * (1 - sample.score)))) / sample.n
    if deviation == 0:
        return 1.0 if statistic == 0 else 0.0
    return spec.limit(statistic / deviation)


def _require_counts(sample: Sample, name: str) -> None:
    problem = "clusters" if sample.clusters else "" if sample.counted else "sampling weights"
    if problem:
        raise InputError(
            f"{name!r} cannot be tested by resampling labels with {problem}",
            argument="method",
            value=name,
            remedy="Use method='multiscale'" + (", 'ks' or 'kuiper'." if problem == "clusters" else "."),
        )
    resample.require_whole_counts(sample, "the test")


def _compare(
    question: Question, estimate: Estimate, rank: float, null: FloatArray, rng: np.random.Generator
) -> TestResult:
    """Return the test of the estimate of a question from the (value, ranking value) of each draw."""
    values, ranks = null.T
    pvalue, bounds = resample.rank_among(rank, ranks, rng)
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
        spiegelhalter=z_of(question),
        tail_pvalue=pvalue,
        notes=(*estimate.notes, *resample.impossible_labels(*question.samples)),
        n_clusters=estimate.n_clusters,
        effective_size=estimate.effective_size,
    )


def _joint_redraws(
    samples: tuple[Sample, ...], proba: FloatArray, n_resamples: int, rng: np.random.Generator
) -> Iterator[tuple[Sample, ...]]:
    """Yield the samples of all classes, one class being drawn for each row."""
    group = [sample.score.searchsorted(proba[:, k]) for k, sample in enumerate(samples)]
    for drawn in resample.redraw_classes(proba, n_resamples, rng=rng):
        yield tuple(
            sample.with_positives(_count(group[k][drawn == k], len(sample)))
            for k, sample in enumerate(samples)
        )


def _count(group: NDArray[np.intp], n_groups: int) -> FloatArray:
    return np.bincount(group, minlength=n_groups).astype(np.float64)
