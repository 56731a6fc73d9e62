"""The test of "at least this error": a small p-value shows that the error is smaller."""

from __future__ import annotations

import numpy as np

from truecal._lib.checks import check_fraction
from truecal._lib.types import NormLike
from truecal.data.question import Question
from truecal.data.sample import Sample
from truecal.estimators._registry import MULTISCALE
from truecal.inference._test_result import TestResult
from truecal.inference.interval import assumption_of, check_interval_norm, check_resolution, limits_of


def equivalence_test(
    question: Question, at_most: float, norm: NormLike, resolution: int | None = None
) -> TestResult:
    """Return the test of the hypothesis that the error is at least `at_most`."""
    at_most = check_fraction("at_most", at_most)
    order = check_interval_norm(norm, "with at_most")
    limits = limits_of(question, order, check_resolution(resolution))
    pvalue = limits.at_most(at_most)
    return TestResult(
        statistic=limits.error,
        pvalue=pvalue,
        pvalue_range=(pvalue, pvalue),
        null=np.empty(0),
        n_resamples=0,
        method=MULTISCALE,
        target=question.target,
        norm=order,
        at_most=at_most,
        tail_pvalue=pvalue,
        notes=(
            f"The limit allows {assumption_of(question.samples, limits)}.",
            *(_constant_passes(question.samples[0], at_most) if question.single else ()),
            *question.samples[0].label_notes,
        ),
        limits=limits,
        resolution=limits.above.resolution if limits.reliable else None,
        **question.size_fields,
    )


def _constant_passes(sample: Sample, at_most: float) -> tuple[str, ...]:
    """Return a note if a score of 0 for all rows, or of 1, would have an error below the limit too."""
    rate = float(sample.positives.sum()) / sample.n
    error = min(rate, 1 - rate)
    if error >= at_most:
        return ()
    score, name = (0, "the observed rate") if rate <= 0.5 else (1, "1 minus the observed rate")
    return (
        f"A score of {score} for all rows would be below this limit too: its error is {name}, {error:.4f}.",
    )
