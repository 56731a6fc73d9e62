"""The test of "at least this error": a small p-value shows that the error is smaller."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truecal._lib.checks import check_fraction
from truecal.data.predictions import Rows
from truecal.data.sample import Sample
from truecal.estimators._registry import MULTISCALE
from truecal.exceptions import InputError
from truecal.inference._test_result import TestResult
from truecal.inference.interval import assumption_of, check_resolution, limits_of
from truecal.inference.top_by_class import parts_target, sizes_of
from truecal.multiscale.analysis import analyse
from truecal.results import classes_target


def equivalence_test(
    samples: Sequence[Sample],
    rows: Sequence[Rows] | None,
    at_most: float,
    norm: float,
    *,
    separate: bool = False,
    resolution: int | None = None,
) -> TestResult:
    """Return the test of the hypothesis that the error is at least `at_most`.

    Parameters
    ----------
    samples, rows
        One sample and its rows, or those of each class; None for rows that are not known.
    at_most : float
        The error.
    norm : {1, 2}
        Order of the norm.
    separate : bool
        Whether the samples have different rows, those of each predicted class.
    resolution : int, optional
        Number of intervals of scores, as in `truecal.confidence_interval`.
    """
    at_most = check_fraction("at_most", at_most)
    if norm not in (1, 2):
        raise InputError(f"must be 1 or 2 with at_most. Got {norm!r} instead", argument="norm", value=norm)
    cores = [analyse(sample) for sample in samples]
    limits = limits_of(cores, norm, rows, separate=separate, resolution=check_resolution(resolution))
    several = parts_target(len(samples)) if separate else classes_target(len(samples))
    pvalue = limits.at_most(at_most)
    sizes = sizes_of(samples, rows or ()) if separate else samples[0].size_fields
    return TestResult(
        statistic=limits.error,
        pvalue=pvalue,
        pvalue_range=(pvalue, pvalue),
        null=np.empty(0),
        n_resamples=0,
        method=MULTISCALE,
        target=samples[0].target if len(samples) == 1 and not separate else several,
        norm=float(norm),
        at_most=at_most,
        tail_pvalue=pvalue,
        notes=(
            f"The limit allows {assumption_of(cores, limits)}.",
            *(_constant_passes(samples[0], at_most) if len(samples) == 1 and not separate else ()),
        ),
        limits=limits,
        resolution=limits.above.resolution if limits.reliable else None,
        **sizes,
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
