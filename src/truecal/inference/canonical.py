r"""Calibration of the whole probability vector, by a kernel.

A model is canonically calibrated if :math:`P(Y = k \mid p) = p_k` for all classes at once, given the whole vector p.
With residual vectors :math:`r = e_Y - p` the *squared kernel calibration error* is

.. math:: \mathrm{SKCE} = E\big[k(p, p')\, r^\top r'\big], \qquad k(p, p') = e^{-\|p - p'\|_1 / (2 \gamma)}

over two independent rows (Widmann, Lindsten, Zachariah 2019). It is 0 exactly for a canonically calibrated model. The
mean over all pairs of rows is unbiased, and negative about as often as positive if the model is calibrated.
"""

from __future__ import annotations

import itertools
import math
from numbers import Real
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist, pdist

from truecal._lib.checks import unknown_option
from truecal._lib.numeric import IntArray
from truecal._lib.types import FloatArray
from truecal.data.question import Rows, read_rows
from truecal.data.sample import Sample
from truecal.estimators._registry import DEFAULT_ESTIMATOR
from truecal.exceptions import InputError
from truecal.inference._test_result import TestResult
from truecal.inference.resample import rank_among, redraw_classes
from truecal.results import Estimate

#: The only estimator that it has.
KERNEL = "skce"
#: Rows up to which all pairs are averaged; beyond, those within blocks of `BLOCK` rows, which takes linear time.
ALL_PAIRS, BLOCK = 4096, 1024
#: Landmarks of the kernel of the test. Up to so many rows the kernel is exact.
LANDMARKS = 512
#: Rows whose distances give the default bandwidth.
_MEDIAN_ROWS = 500
#: What cannot be combined with several classes at once, and why.
_REFUSED = {
    "pos_label": "cannot be combined with multiclass='canonical', which has no positive class",
    "clusters": "are not supported with multiclass='canonical', which takes rows to be independent",
}
#: Numbers that a batch of resamples may hold.
_BATCH = 2**23


def read_vectors(y_true: Any, y_proba: Any, reading: dict[str, Any]) -> tuple[FloatArray, IntArray]:
    """Check predictions of several classes; return the probabilities, of shape (n, K), and the true class of rows."""
    if isinstance(y_true, Sample):
        raise InputError(
            "'canonical' needs the probabilities of all classes, and a Sample has one column",
            argument="multiclass",
        )
    for argument, problem in _REFUSED.items():
        if reading.get(argument) is not None:
            raise InputError(problem, argument=argument)
    classes = [rows.kept() for rows in read_rows(y_true, y_proba, **{**reading, "multiclass": "classwise"})]
    proba = np.column_stack([rows.score for rows in classes]).astype(np.float64)
    column = np.column_stack([rows.label for rows in classes]).argmax(axis=1)
    each = _repetitions(classes[0])
    if each is not None:
        proba, column = np.repeat(proba, each, axis=0), np.repeat(column, each)
    if len(proba) < 2:
        raise InputError(
            f"must have at least two rows for the canonical error. Got {len(proba)} instead",
            argument="y_proba",
        )
    # The order of rows must not matter. Labels play no part in it, so that draws of them are ordered alike.
    order = np.lexsort(proba.T)
    return proba[order] / proba[order].sum(axis=1, keepdims=True), column[order]


def _repetitions(rows: Rows) -> IntArray | None:
    if rows.weight is None:
        return None
    if not rows.counts or (rows.weight != np.floor(rows.weight)).any():
        raise InputError(
            "must be whole-number counts with multiclass='canonical'",
            argument="sample_weight",
            remedy="Pass weighting='counts', or leave it out.",
        )
    return rows.weight.astype(np.intp)


def check_arguments(name: str, options: dict[str, Any], **unsupported: Any) -> float | None:
    """Refuse what the canonical error does not have, and return its bandwidth if one is given."""
    if name not in (KERNEL, DEFAULT_ESTIMATOR):
        raise InputError(
            f"{name!r} is not defined for multiclass='canonical', which has only {KERNEL!r}",
            argument="estimator",
            value=name,
        )
    for argument, value in unsupported.items():
        if value is not None:
            raise InputError("is not supported with multiclass='canonical'", argument=argument)
    bandwidth = options.get("bandwidth")
    for option in options:
        if option != "bandwidth":
            raise unknown_option(option, "the canonical error", ["bandwidth"])
    if bandwidth is not None and not (isinstance(bandwidth, Real) and 0.001 <= float(bandwidth) <= 1000):
        raise InputError(
            f"must be a number between 0.001 and 1000. Got {bandwidth!r} instead", argument="bandwidth"
        )
    return None if bandwidth is None else float(bandwidth)


def median_distance(proba: FloatArray) -> float:
    """Return the median total variation distance between rows, the default bandwidth; labels play no part in it."""
    some = proba[np.linspace(0, len(proba) - 1, min(len(proba), _MEDIAN_ROWS)).astype(np.intp)]
    distance = pdist(some, "cityblock") / 2
    distance = distance[distance > 1e-9]
    return max(float(np.median(distance)), 0.001) if len(distance) else 1.0


def canonical_error(proba: FloatArray, column: IntArray, bandwidth: float | None = None) -> Estimate:
    """Return the unbiased estimate of the squared kernel calibration error."""
    gamma = median_distance(proba) if bandwidth is None else bandwidth
    residual = -proba
    residual[np.arange(len(residual)), column] += 1
    n = len(residual)
    parts = 1 if n <= ALL_PAIRS else math.ceil(n / BLOCK)
    total = pairs = 0.0
    for k in range(parts):  # every parts-th row, so that each block covers all scores
        some, rest = proba[k::parts], residual[k::parts]
        kernel = _kernel(some, some, gamma)
        total += float(np.sum((kernel @ rest) * rest) - np.sum(rest**2))
        pairs += len(rest) * (len(rest) - 1)
    how = f", pairs within {parts} blocks" if parts > 1 else ""
    return Estimate(total / pairs, estimator=KERNEL, n=n, target=_target(proba, gamma, how))


def _target(proba: FloatArray, gamma: float, how: str = "") -> str:
    return f"all {proba.shape[1]} probabilities at once (kernel bandwidth {gamma:.3g}{how})"


def _kernel(one: FloatArray, other: FloatArray, gamma: float) -> FloatArray:
    return np.asarray(np.exp(cdist(one, other, "cityblock") / (-2 * gamma)))


def _features(proba: FloatArray, gamma: float) -> FloatArray:
    """Return features whose inner products are the kernel; beyond `LANDMARKS` rows, its projection on as many rows."""
    landmarks = np.unique(np.linspace(0, len(proba) - 1, min(len(proba), LANDMARKS)).astype(np.intp))
    chosen = np.unique(proba[landmarks], axis=0)
    inner = _kernel(chosen, chosen, gamma)
    factor = cholesky(inner + 1e-9 * len(chosen) * np.eye(len(chosen)), lower=True)
    return np.asarray(solve_triangular(factor, _kernel(chosen, proba, gamma), lower=True).T)


def canonical_test(
    proba: FloatArray,
    column: IntArray,
    n_resamples: int,
    rng: np.random.Generator,
    bandwidth: float | None = None,
) -> TestResult:
    """Test canonical calibration with classes drawn from the predicted vectors; exact for any n."""
    gamma, n = median_distance(proba) if bandwidth is None else bandwidth, len(proba)
    features = _features(proba, gamma)
    own, square = np.sum(features**2, axis=1), np.sum(proba**2, axis=1)
    expected = features.T @ proba
    rows = np.arange(n)

    def statistics(columns: IntArray) -> FloatArray:
        """Return the statistic of each row of classes."""
        draws, classes = len(columns), proba.shape[1]
        place = columns + classes * np.arange(draws)[:, np.newaxis]
        shape = (n, draws * classes)
        hits = csr_array((np.ones(n * draws), place.T.ravel(), np.arange(n + 1) * draws), shape=shape)
        sums = (hits.T @ features).reshape(draws, classes, -1) - expected.T
        residual = 1 - 2 * proba[rows, columns] + square
        return np.asarray((np.einsum("dkm,dkm->d", sums, sums) - residual @ own) / (n * (n - 1)))

    observed = float(statistics(column[np.newaxis])[0])
    batch = max(_BATCH // (features.shape[1] * proba.shape[1] + n), 1)
    draws, drawn = redraw_classes(proba, n_resamples, rng=rng), []
    while some := list(itertools.islice(draws, batch)):
        drawn.append(statistics(np.stack(some)))
    null = np.concatenate(drawn)
    pvalue, bounds = rank_among(observed, null, rng)
    impossible = int(np.sum(proba[rows, column] == 0))
    if impossible:  # no draw can have it, whatever the statistic
        pvalue = 1 / (n_resamples + 1)
        bounds = (pvalue, pvalue)
    many = "1 row has" if impossible == 1 else f"{impossible:,} rows have"
    notes = [f"{many} a class that a probability of exactly 0 rules out."] if impossible else []
    if n > LANDMARKS:
        notes.append(f"The kernel is projected on {features.shape[1]} rows; the level is exact.")
    return TestResult(
        statistic=observed,
        pvalue=pvalue,
        pvalue_range=bounds,
        null=null,
        n_resamples=n_resamples,
        method=KERNEL,
        n=n,
        target=_target(proba, gamma),
        tail_pvalue=pvalue,
        notes=tuple(notes),
    )
