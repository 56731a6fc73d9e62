"""The multiscale test of one sample or of several classes: how its labels are drawn again, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from truecal.data.cells import Cells
from truecal.data.pseudo_labels import PseudoLabels
from truecal.data.question import Question, Rows
from truecal.data.sample import Sample
from truecal.estimators._registry import MULTISCALE
from truecal.inference._test_result import TestResult
from truecal.inference.multiplicity import adjusted_together
from truecal.inference.resample import cluster_rows, impossible_labels, require_whole_counts
from truecal.inference.reversal import reversed_scores
from truecal.inference.spiegelhalter import SpiegelhalterResult, z_of, z_of_classes, z_of_clusters
from truecal.multiscale import (
    ClusterNull,
    GoldNull,
    JointClusterNull,
    JointLabelNull,
    JointNull,
    LabelNull,
    Null,
    Outcome,
    Trials,
    far_tail,
    joint_test,
    omnibus_test,
    rank_pvalue,
    tail_pvalue,
    variance_excess,
)


def multiscale_test(question: Question, n_resamples: int, rng: np.random.Generator) -> TestResult:
    """Return the multiscale test of one sample, of all classes at once, or of all predicted classes."""
    samples = question.samples
    if question.apart:
        return _test_of_parts(question, n_resamples, rng)
    if question.rows is None or question.single:
        null = _null_of(samples[0], None if question.rows is None else question.rows[0])
        return _as_result(omnibus_test(null, n_resamples, rng), samples[0])
    joint, beside = _joint_null(question, question.rows)
    whole, parts, adjusted = joint_test(joint, n_resamples, rng)
    results = tuple(
        replace(_as_result(part, sample), adjusted_pvalue=1.0 if part.too_little else pvalue)
        for part, sample, pvalue in zip(parts, samples, adjusted, strict=True)
    )
    worst = max(results, key=lambda result: result.statistic)
    result = replace(
        _as_result(replace(whole, too_little=""), samples[0]),
        target=question.target,
        component=f"{worst.component} ({worst.target})",
        notes=(*whole.notes, *impossible_labels(*samples)),
        spiegelhalter=beside,
        classes=results,
    )
    return result.not_tested(whole.too_little)


def _joint_null(question: Question, rows: Sequence[Rows]) -> tuple[JointNull, SpiegelhalterResult]:
    """Return how to resample all classes at once, and Spiegelhalter's test of them."""
    samples = question.samples
    if samples[0].clusters is not None:
        nulls = [ClusterNull(*cluster_rows(sample)) for sample in samples]
        return JointClusterNull(nulls), z_of_clusters(samples)
    proba, weight = question.proba, question.weight
    truth = np.column_stack([one.label for one in rows]).astype(bool)
    if weight is not None and samples[0].counted:
        each = weight.astype(np.intp)
        proba, truth, weight = np.repeat(proba, each, axis=0), np.repeat(truth, each, axis=0), None
    return JointLabelNull(proba, truth, weight), z_of_classes(samples, proba, weight)


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
    worst = min(tests, key=lambda test: (test.adjusted_pvalue or 0.0, -test.statistic))
    notes = impossible_labels(*question.samples)
    whole: dict[str, Any] = {
        "n": sum(test.n for test in tests),
        "n_clusters": question.size_fields["n_clusters"],
        "target": question.target,
        "component": f"{worst.component} ({worst.target})",
        "components": (),
        "spiegelhalter": None,
        "adjusted_pvalue": None,
        "classes": tests,
    }
    if dependent:
        pvalue = worst.adjusted_pvalue
        assert pvalue is not None
        reason = "The p-value is the smallest of the classes', by Holm's method: clusters may join them."
        return replace(worst, pvalue=pvalue, pvalue_range=(pvalue, pvalue), notes=(*notes, reason), **whole)
    statistic = float(np.mean([test.statistic for test in tests]))
    null = np.mean([test.null for test in tests], axis=0)
    pvalue, bounds = rank_pvalue(statistic, null, rng)
    return replace(
        tests[0],
        statistic=statistic,
        null=null,
        pvalue=pvalue,
        pvalue_range=bounds,
        tail_pvalue=pvalue,
        notes=notes,
        **whole,
    )


def _as_result(outcome: Outcome, sample: Sample) -> TestResult:
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
        spiegelhalter=z_of(sample),
        tail_pvalue=far_tail(tail_pvalue(outcome.statistic, outcome.null, outcome.pvalue), outcome.doubt),
        notes=(*outcome.notes, *_notes_on_labels(sample), *([] if reversal is None else [reversal])),
        **sample.size_fields,
    )
    return result.not_tested(outcome.too_little or few)


def _notes_on_labels(sample: Sample) -> tuple[str, ...]:
    """Return notes on labels that a score rules out, or that are not the truth."""
    if sample.pseudo is None:
        return impossible_labels(sample)
    return (*sample.label_notes, "With these labels the p-value is approximate.")


def _null_of(sample: Sample, rows: Rows | None = None) -> Null:
    """Return how to resample a sample; `rows` tell apart weights that differ within a score."""
    if sample.pseudo is not None:
        return _null_of_pseudo_labels(sample, sample.pseudo)
    if sample.clusters is not None:
        return ClusterNull(*cluster_rows(sample))
    if sample.counted:
        require_whole_counts(sample, "the test")
        return LabelNull(Trials(sample.score, sample.count, sample.positives, None, _excess_of(sample)))
    if rows is not None and rows.weight is not None:
        # Sorted by all three, so that any order of the rows gives the same draws.
        order = np.lexsort((rows.label, rows.weight, rows.score))
        label, weight = rows.label[order].astype(np.float64), rows.weight[order]
        return LabelNull(Trials(rows.score[order].astype(np.float64), np.ones(len(order)), label, weight))
    # Weights within a group are not known one by one: as many rows of equal weight have the same variance.
    size = np.maximum(np.round(sample.count**2 / sample.weight2), 1.0)
    weight = sample.count / size
    return LabelNull(Trials(sample.score, size, sample.positives / weight, weight))


def _null_of_pseudo_labels(sample: Sample, pseudo: PseudoLabels) -> Null:
    """Return how to resample labels that are not the truth: gold labels are drawn again, others get random signs."""
    score, weight = pseudo.score, pseudo.weight
    assert score is not None
    assert weight is not None
    if sample.clusters is not None:
        rows = cluster_rows(sample)
    elif pseudo.gold is not None:
        return GoldNull(score, weight, pseudo.gold)
    else:
        weight = weight * (sample.n / float(sample.weight2.sum()))
        rows = score, weight * (score - pseudo.value), weight, np.arange(len(score))
    return ClusterNull(*rows, binary=False, scaled=not pseudo.may_vary_less)


def _excess_of(sample: Sample) -> float:
    """Return by how much the variance of a binomial draw can exceed that of rows within cells, as a fraction."""
    if not isinstance(sample, Cells):
        return 0.0
    binomial = sample.count * sample.score * (1 - sample.score)
    return variance_excess(binomial, np.maximum(binomial - sample.count * sample.largest_variance, 0.0))
