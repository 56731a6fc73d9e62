"""SKCE: unbiased estimates of the squared kernel calibration error, without bins."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from truecal._lib.checks import as_generator, check_choice
from truecal._lib.types import FloatArray, RNGLike
from truecal.data.sample import Sample
from truecal.estimators._registry import register_estimator
from truecal.exceptions import InputError, Remedy
from truecal.results import Estimate


def _true_skce(census: Sample, *, bandwidth: float, **_: Any) -> float:
    """Return the expectation over two independent scores with known gaps; a score may meet itself."""
    residual = census.score_sum - census.positives
    return (_between(census, residual, bandwidth) + float(np.sum(residual**2))) / census.n**2


@register_estimator(
    "skce",
    summary="Unbiased estimate of the squared kernel calibration error; may be negative.",
    reference="Widmann, Lindsten, Zachariah (2019), NeurIPS",
    estimand="squared kernel calibration error",
    norms="none",
    range=(-1.0, 1.0),
    truth=_true_skce,
)
def skce(sample: Sample, *, method: str = "full", bandwidth: float = 0.2, rng: RNGLike = 0) -> Estimate:
    r"""Return an unbiased estimate of the squared kernel calibration error; it may be negative.

    .. math:: E\big[(f - y)(f' - y')\,e^{-|f - f'| / \gamma}\big]

    over two independent rows, with a Laplacian kernel of bandwidth :math:`\gamma`; this is also the estimand.

    Parameters
    ----------
    method : {"full", "block"}
        ``"full"`` averages over all n (n - 1) / 2 pairs and has the smallest variance of all unbiased
        estimates. In one dimension the Laplacian kernel factors, so that prefix sums compute it in linear time.
        ``"block"`` pairs the rows at random and averages over the independent pairs.
    bandwidth : float
        The kernel's :math:`\gamma`, from 0.01 to 100.
    rng : int or numpy.random.Generator
        Random seed of the pairs of ``"block"``. The value does not depend on the order of the rows.

    References
    ----------
    D. Widmann, F. Lindsten, D. Zachariah (2019), Calibration tests in multi-class classification: a unifying
    framework, NeurIPS.

    Examples
    --------
    >>> import truecal
    >>> y, p = [0, 1, 1, 1], [0.1, 0.4, 0.8, 0.9]
    >>> truecal.calibration_error(y, p, estimator="skce")
    0.003187
    """
    check_choice("method", method, ("full", "block"))
    if not isinstance(bandwidth, Real) or not 0.01 <= bandwidth <= 100:
        raise InputError(
            f"must be a number between 0.01 and 100. Got {bandwidth!r} instead", argument="bandwidth"
        )
    sample = sample.on_the_scale_of_rows()
    if sample.n < 2:
        raise InputError(
            f"must have at least two rows for skce. Got {sample.n:g} instead", argument="y_proba"
        )
    if method == "block" and not sample.whole:
        raise InputError(
            "must be whole numbers for skce with method='block', which pairs rows",
            argument="sample_weight",
            remedy=Remedy.COUNTS,
        )
    value = _full(sample, bandwidth) if method == "full" else _block(sample, bandwidth, rng)
    return Estimate(min(max(value, -1.0), 1.0))  # rounding can exceed the bounds


def _full(sample: Sample, bandwidth: float) -> float:
    """Average over all pairs: within groups by their sums, between groups by prefix sums."""
    residual = sample.score_sum - sample.positives
    between = _between(sample, residual, bandwidth)
    within = 0.0
    if not sample.one_row_each:
        negatives = sample.count - sample.positives
        squares = negatives * sample.score**2 + sample.positives * (1 - sample.score) ** 2
        within = float(np.sum(residual**2 - squares))
    return (between + within) / (sample.n * (sample.n - 1))


def _between(sample: Sample, residual: FloatArray, bandwidth: float) -> float:
    """Return the sum over all pairs of groups."""
    # exp(-(s_j - s_i) / g) = exp(s_i / g) / exp(s_j / g): the sum over all i < j is a prefix sum.
    growth = np.exp((sample.score - sample.score[-1]) / bandwidth)
    term = residual * growth
    return 2 * float(np.sum(residual * (np.cumsum(term) - term) / growth))


def _block(sample: Sample, bandwidth: float, rng: RNGLike) -> float:
    """Average over random pairs of rows."""
    score, residual = _rows(sample)
    order = as_generator(rng).permutation(len(score))
    pairs = len(score) // 2
    first, second = order[:pairs], order[pairs : 2 * pairs]
    kernel = np.exp(-np.abs(score[first] - score[second]) / bandwidth)
    return float(np.mean(residual[first] * residual[second] * kernel))


def _rows(sample: Sample) -> tuple[FloatArray, FloatArray]:
    """Return score and residual of every row; within a tie the zeros come first."""
    count, positives = sample.count.astype(np.intp), sample.positives.astype(np.intp)
    score = np.repeat(sample.score, count)
    runs = np.column_stack([count - positives, positives]).ravel()
    label = np.repeat(np.tile([0.0, 1.0], len(sample)), runs)
    return score, score - label
