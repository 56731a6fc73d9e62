"""Tests whose statistic is an estimator, compared with its values on labels drawn from the scores."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from truecal._lib.types import FloatArray, NormLike
from truecal.data.question import Question
from truecal.data.sample import Sample
from truecal.estimators._registry import get_estimator
from truecal.exceptions import CalibrationWarning, InputError
from truecal.inference._test_result import TestResult
from truecal.inference.multiplicity import corrected_by_holm
from truecal.inference.resample import (
    cluster_rows,
    impossible_labels,
    redraw_classes,
    redraws,
    require_whole_counts,
)
from truecal.inference.spiegelhalter import SpiegelhalterResult, z_of, z_of_classes, z_of_clusters
from truecal.multiscale import FlipScale, flip_scale, rank_pvalue
from truecal.results import Estimate


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
    if samples[0].clusters is None or spec.limit is None:
        for sample in samples:
            _require_counts(sample, spec.name)
    scales = [] if samples[0].clusters is None else [flip_scale(*cluster_rows(sample)) for sample in samples]
    draws, beside = _draws(question, scales, n_resamples, rng)

    def measure(each: tuple[Sample, ...]) -> list[Estimate]:
        return [spec(sample, norm=norm, **options) for sample in each]

    observed = measure(samples)
    # The axes are draws, classes, and (value, ranking value).
    null = np.array([[(one.value, one.rank_value) for one in measure(draw)] for draw in draws])
    tests = [
        _compare(one, one.rank_value, null[:, k], rng, z_of(sample), impossible_labels(sample))
        for k, (one, sample) in enumerate(zip(observed, samples, strict=True))
    ]
    reasons = [scale.reason(test.pvalue) for scale, test in zip(scales, tests, strict=False)]
    if scales:
        tests = [test.not_tested(reason) for test, reason in zip(tests, reasons, strict=True)]
    elif spec.limit is not None:
        tests = [
            replace(test, asymptotic_pvalue=_asymptotic(spec.limit, test.statistic, sample))
            for test, sample in zip(tests, samples, strict=True)
        ]
    outcome, notes = tests[0], observed[0].notes
    if not question.single:
        mean = question.combine(observed)
        whole = _compare(mean, *_mean_null(mean, observed, null), rng, beside, impossible_labels(*samples))
        whole = whole.not_tested(reasons[0] if reasons and all(reasons) else "")
        outcome, notes = replace(whole, classes=corrected_by_holm(tests)), mean.notes
    for note in notes:
        warnings.warn(f"{spec.name} of {outcome.target}: {note}", CalibrationWarning, stacklevel=3)
    return outcome


def _draws(
    question: Question, scales: Sequence[FlipScale], n_resamples: int, rng: np.random.Generator
) -> tuple[Iterable[tuple[Sample, ...]], SpiegelhalterResult]:
    """Return samples under the null hypothesis, and Spiegelhalter's test beside them."""
    samples = question.samples
    if scales:
        return _sign_flips(samples, scales, n_resamples, rng), z_of_clusters(samples)
    if question.rows is None or question.single:
        return ((draw,) for draw in redraws(samples[0], n_resamples, rng=rng)), z_of(samples[0])
    proba, weight = question.proba, question.weight
    if weight is not None:
        proba = np.repeat(proba, weight.astype(np.intp), axis=0)
    return _joint_redraws(samples, proba, n_resamples, rng), z_of_classes(samples, proba)


def _mean_null(mean: Estimate, observed: Sequence[Estimate], null: FloatArray) -> tuple[float, FloatArray]:
    """Return the ranking value of the mean over classes, and (value, ranking value) of it in each draw."""
    order, draws = mean.norm or 1, null.mean(axis=1)
    draws[:, 0] = np.mean(null[:, :, 0] ** order, axis=1) ** (1 / order)
    return float(np.mean([one.rank_value for one in observed])), draws


def _sign_flips(
    samples: tuple[Sample, ...], scales: Sequence[FlipScale], n_resamples: int, rng: np.random.Generator
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


def _asymptotic(limit: Callable[[float], float], statistic: float, sample: Sample) -> float:
    """Return the p-value of a statistic whose limit is a functional of a Brownian motion."""
    deviation = math.sqrt(float(np.sum(sample.count * sample.score * (1 - sample.score)))) / sample.n
    if deviation == 0:
        return 1.0 if statistic == 0 else 0.0
    return limit(statistic / deviation)


def _require_counts(sample: Sample, name: str) -> None:
    problem = "clusters" if sample.clusters is not None else "sampling weights" if not sample.counted else ""
    if problem:
        raise InputError(
            f"{name!r} cannot be tested by resampling labels with {problem}",
            argument="method",
            value=name,
            remedy="Use method='multiscale'" + (", 'ks' or 'kuiper'." if problem == "clusters" else "."),
        )
    require_whole_counts(sample, "the test")


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
        n_clusters=estimate.n_clusters,
        effective_size=estimate.effective_size,
    )


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
