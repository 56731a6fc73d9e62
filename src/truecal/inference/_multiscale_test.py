"""The multiscale test of one sample or of several classes: how its labels are drawn again, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from truecal.data.cells import Cells
from truecal.data.predictions import Rows
from truecal.data.sample import Sample
from truecal.estimators._registry import MULTISCALE
from truecal.inference._test_result import TestResult
from truecal.inference.resample import cluster_rows, impossible_labels, require_whole_counts
from truecal.inference.reversal import reversed_scores
from truecal.inference.spiegelhalter import SpiegelhalterResult, z_of, z_of_classes, z_of_clusters
from truecal.multiscale.flips import far_tail
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
from truecal.multiscale.omnibus import Outcome, joint_test, omnibus_test, tail_pvalue
from truecal.results import classes_target


def multiscale_test(
    samples: Sequence[Sample], rows: Sequence[Rows] | None, n_resamples: int, rng: np.random.Generator
) -> TestResult:
    """Return the multiscale test of one sample, or of all classes at once.

    Parameters
    ----------
    samples, rows
        One sample and its rows, or those of each class; None for rows that are not known.
    n_resamples : int
        Number of Monte Carlo resamples.
    rng : numpy.random.Generator
        Source of randomness.
    """
    if rows is None or len(samples) == 1:
        null = _null_of(samples[0], None if rows is None else rows[0])
        return _as_result(omnibus_test(null, n_resamples, rng), samples[0])
    beside: SpiegelhalterResult | None = None
    if samples[0].clusters is not None:
        joint: JointNull = JointClusterNull([ClusterNull(*cluster_rows(sample)) for sample in samples])
        beside = z_of_clusters(samples)
    else:
        proba = np.column_stack([one.score for one in rows]).astype(np.float64)
        truth, weight = np.column_stack([one.label for one in rows]).astype(bool), rows[0].weight
        if weight is not None and samples[0].squares is None:
            each = weight.astype(np.intp)
            proba, truth, weight = np.repeat(proba, each, axis=0), np.repeat(truth, each, axis=0), None
        joint = JointLabelNull(proba, truth, weight)
        beside = z_of_classes(samples, proba, weight)
    whole, parts, adjusted = joint_test(joint, n_resamples, rng)
    results = tuple(
        replace(_as_result(part, sample), adjusted_pvalue=1.0 if part.too_little else pvalue)
        for part, sample, pvalue in zip(parts, samples, adjusted, strict=True)
    )
    worst = max(results, key=lambda result: result.statistic)
    result = replace(
        _as_result(replace(whole, too_little=""), samples[0]),
        target=classes_target(len(samples)),
        component=f"{worst.component} ({worst.target})",
        notes=(*whole.notes, *impossible_labels(*samples)),
        spiegelhalter=beside,
        classes=results,
    )
    return result.not_tested(whole.too_little) if whole.too_little else result


def _as_result(outcome: Outcome, sample: Sample) -> TestResult:
    reversal = reversed_scores(sample)
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
        notes=(*outcome.notes, *impossible_labels(sample), *([] if reversal is None else [reversal])),
        **sample.size_fields,
    )
    return result.not_tested(outcome.too_little) if outcome.too_little else result


def _null_of(sample: Sample, rows: Rows | None = None) -> Null:
    """Return how to resample a sample; `rows` tell apart weights that differ within a score."""
    if sample.clusters is not None:
        return ClusterNull(*cluster_rows(sample))
    if sample.squares is None:
        require_whole_counts(sample, "the test")
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
