r"""The top label, class by class: confidence against accuracy among the rows with the same predicted class.

With the predicted class c and its probability h, confidence calibration (``multiclass="top"``) asks for
:math:`P(Y = c \mid h) = h`, and so lets an error in one predicted class cancel that in another. Top-label calibration
asks for :math:`P(Y = c \mid h, c) = h` (Gupta and Ramdas 2022). Its error is

.. math:: \Big(E\,\big|h - P(Y = c \mid h, c)\big|^p\Big)^{1/p} = \Big(\sum_k P(c = k)\, e_k^p\Big)^{1/p}

with :math:`e_k` the error among rows with the predicted class k. It is at least the error of the top label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from truecal.data.predictions import TOP_BY_CLASS, Rows, read_rows
from truecal.data.sample import Sample
from truecal.exceptions import InputError
from truecal.inference._multiscale_test import multiscale_test
from truecal.inference._test_result import TestResult
from truecal.inference.multiplicity import adjusted_together
from truecal.inference.resample import impossible_labels
from truecal.multiscale.omnibus import rank_pvalue


def read_parts(y_true: Any, y_proba: Any, reading: dict[str, Any]) -> tuple[Rows, ...]:
    """Check predictions, and return the rows of each class that is predicted, without those of weight 0.

    Parameters
    ----------
    y_true, y_proba
        Labels and probabilities of shape (n, K).
    reading : dict
        Other arguments of `truecal.estimate`.
    """
    if isinstance(y_true, Sample):
        raise InputError(
            f"{TOP_BY_CLASS!r} needs the probabilities of all classes, and a Sample has one column",
            argument="multiclass",
        )
    if reading.get("pos_label") is not None:
        raise InputError(
            f"cannot be combined with multiclass={TOP_BY_CLASS!r}: the top class differs from row to row",
            argument="pos_label",
        )
    classes = [rows.kept() for rows in read_rows(y_true, y_proba, **{**reading, "multiclass": "classwise"})]
    top = np.column_stack([rows.score for rows in classes]).argmax(axis=1)
    parts = []
    for k, rows in enumerate(classes):
        chosen = np.flatnonzero(top == k)
        if len(chosen):
            columns: dict[str, Any] = {
                name: value[chosen] for name, value in vars(rows).items() if isinstance(value, np.ndarray)
            }
            parts.append(replace(rows, **columns, target=_target(rows.target)))
    return tuple(parts)


def _target(of_class: str) -> str:
    name, _, rest = of_class.partition(" against the rest")
    return f"{name} where it is the top label{rest}"


def parts_target(n_parts: int) -> str:
    """Return what is measured, in words."""
    return f"top label, class by class ({n_parts} predicted classes)"


def sizes_of(samples: Sequence[Sample], rows: Sequence[Rows]) -> dict[str, Any]:
    """Return the number of rows, the effective number and the number of clusters of all parts together."""
    n = sum(sample.n for sample in samples)
    squares = [sample.squares.sum() for sample in samples if sample.squares is not None]
    cluster = [one.cluster for one in rows if one.cluster is not None]
    return {
        "n": n,
        "effective_size": n**2 / float(sum(squares)) if squares else None,
        "n_clusters": len(np.unique(np.concatenate(cluster))) if cluster else None,
    }


def parts_test(rows: Sequence[Rows], n_resamples: int, rng: np.random.Generator) -> TestResult:
    """Test the calibration of the top label in all predicted classes at once, and in each.

    Predicted classes have different rows, so their labels are drawn one class after the other. The statistic is the
    mean of the classes' statistics; with clusters, which can have rows in several classes, the p-value is the smallest
    of the adjusted ones instead.

    Parameters
    ----------
    rows : sequence of Rows
        Of each predicted class.
    n_resamples : int
        Number of Monte Carlo resamples.
    rng : numpy.random.Generator
        Source of randomness.
    """
    dependent = rows[0].cluster is not None
    samples = [one.group() for one in rows]
    parts = [
        multiscale_test([sample], [one], n_resamples, rng) for sample, one in zip(samples, rows, strict=True)
    ]
    tests = adjusted_together(parts, dependent=dependent)
    worst = min(tests, key=lambda one: (one.adjusted_pvalue or 0.0, -one.statistic))
    notes = impossible_labels(*samples)
    whole: dict[str, Any] = {
        "notes": notes,
        "n": sum(one.n for one in tests),
        "n_clusters": sizes_of(samples, rows)["n_clusters"],
        "target": parts_target(len(tests)),
        "component": f"{worst.component} ({worst.target})",
        "components": (),
        "spiegelhalter": None,
        "adjusted_pvalue": None,
        "classes": tests,
    }
    if dependent:
        assert worst.adjusted_pvalue is not None
        notes = (
            *notes,
            "The p-value is the smallest of the classes', by Holm's method: clusters may join them.",
        )
        bounds = (worst.adjusted_pvalue, worst.adjusted_pvalue)
        return replace(worst, pvalue=bounds[0], pvalue_range=bounds, **whole | {"notes": notes})
    statistic = float(np.mean([one.statistic for one in tests]))
    null = np.mean([one.null for one in tests], axis=0)
    pvalue, bounds = rank_pvalue(statistic, null, rng)
    return replace(
        tests[0],
        statistic=statistic,
        null=null,
        pvalue=pvalue,
        pvalue_range=bounds,
        tail_pvalue=pvalue,
        **whole,
    )
