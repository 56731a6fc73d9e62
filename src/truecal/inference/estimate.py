"""The first thing that people call: predictions in, calibration error out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from truecal._lib.types import RNGLike
from truecal.data import as_samples
from truecal.data.cells import Cells, cell_error
from truecal.data.sample import Sample
from truecal.estimators._registry import TRUE_ERROR, get_estimator
from truecal.exceptions import CalibrationWarning, InputError
from truecal.inference.interval import confidence_interval
from truecal.results import Estimate, mean_over_classes


def estimate(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    estimator: str = "em_sweep",
    norm: float = 2,
    n_bins: int | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    multiclass: str | None = None,
    confidence_level: float | None = None,
    rng: RNGLike = None,
    **options: Any,
) -> Estimate:
    r"""Estimate the calibration error of predicted probabilities.

    The estimand of most estimators is the true calibration error, the distance between the score and the
    frequency with which it comes true:

    .. math:: \mathrm{TCE} = \big(E\,|f(X) - E[Y \mid f(X)]|^p\big)^{1/p}

    Parameters
    ----------
    y_true : array-like of shape (n,), (n, 1) or one-hot (n, K), or Sample
        Labels; see `truecal.data.read`. A `Sample` stands for both labels and scores.
    y_proba : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities. (n,) and (n, 1) are those of the positive class, (n, 2) gives the same answer as its
        second column, (n, K > 2) is measured on its top label.
    estimator : str
        One of `truecal.list_estimators`.
    norm : float
        The p >= 1 of the norm. Estimators that have none ignore it.
    n_bins : int, optional
        Number of bins, for estimators that take one (15 by default).
    sample_weight : array-like of shape (n,), optional
        Frequencies: weight 2 equals the row twice.
    pos_label : label, optional
        The positive class; with K > 2 columns, that class against the rest.
    labels : sequence, optional
        The class of each column of `y_proba`.
    multiclass : {"top", "classwise"}, optional
        ``"classwise"`` is the mean over the classes of the error of each against the rest.
    confidence_level : float, optional
        Level of a confidence interval for the true calibration error, norm 1 or 2, such as 0.95. It is the
        same whatever the estimator (see `truecal.confidence_interval`). For a classwise estimate its ends are
        the means of the classes' ends, which is wider than needed.
    rng : int, Generator or None
        Seed for the estimators that draw random numbers; the others ignore it.
    **options
        Options of the estimator itself, such as `bandwidth` of ``"kde"``.

    Returns
    -------
    Estimate
        The value, its bins, and what it is an estimate of.

    Warns
    -----
    CalibrationWarning
        If the value cannot be taken at face value, as for a sweep that is not monotone at two bins.

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), Mitigating bias in calibration error estimation, AISTATS.

    Examples
    --------
    >>> import numpy as np, truecal
    >>> p = (np.arange(1000) + 0.5) / 1000
    >>> y = np.arange(1000) * 7 % 1000 < 1000 * p**2
    >>> print(truecal.estimate(y, p))
    em_sweep (l2) of P(y = 1): 0.2016, n = 1000, 7 bins
    """
    reading = {
        "sample_weight": sample_weight,
        "pos_label": pos_label,
        "labels": labels,
        "multiclass": multiclass,
    }
    outcome = _measure(y_true, y_proba, reading, estimator, norm, n_bins, confidence_level, rng, options)
    if isinstance(y_true, Cells):
        spec, given = get_estimator(estimator), options if n_bins is None else {"n_bins": n_bins, **options}
        error = cell_error(y_true, lambda sample: spec(sample, norm=norm, **given).value)
        outcome = replace(outcome, cell_error=error)
    return outcome


def calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    estimator: str = "em_sweep",
    norm: float = 2,
    n_bins: int | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    multiclass: str | None = None,
    rng: RNGLike = None,
    **options: Any,
) -> float:
    """Return the value of `estimate` alone, without the rest of the result.

    Parameters
    ----------
    y_true, y_proba, estimator, norm, n_bins, sample_weight, pos_label, labels, multiclass, rng, **options
        As in `estimate`.

    Returns
    -------
    float
        A fraction, not percent.

    Examples
    --------
    >>> import truecal
    >>> truecal.calibration_error([0, 1, 0, 1], [0.2, 0.6, 0.4, 0.8], estimator="ew_bin", norm=1, n_bins=2)
    0.3
    """
    reading = {
        "sample_weight": sample_weight,
        "pos_label": pos_label,
        "labels": labels,
        "multiclass": multiclass,
    }
    return _measure(y_true, y_proba, reading, estimator, norm, n_bins, None, rng, options).value


def _measure(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None,
    reading: dict[str, Any],
    estimator: str,
    norm: float,
    n_bins: int | None,
    confidence_level: float | None,
    rng: RNGLike,
    options: dict[str, Any],
) -> Estimate:
    spec = get_estimator(estimator)
    if confidence_level is not None and spec.estimand != TRUE_ERROR:
        raise InputError(
            f"{spec.name} estimates the {spec.estimand}. Intervals are for the {TRUE_ERROR}: leave out "
            f"confidence_level, or choose another estimator."
        )
    if rng is not None and "rng" in spec.options:
        options = {"rng": rng, **options}
    if n_bins is not None:
        if "n_bins" not in spec.options:
            raise InputError(
                f"{spec.name} does not take n_bins: it has no bins, or it chooses their number itself."
            )
        options = {"n_bins": n_bins, **options}
    samples = as_samples(y_true, y_proba, **reading)
    outcomes = [spec(sample, norm=norm, **options) for sample in samples]
    if confidence_level is not None:
        outcomes = [
            replace(
                outcome,
                interval=confidence_interval(
                    sample, norm=outcome.norm or norm, confidence_level=confidence_level
                ),
            )
            for outcome, sample in zip(outcomes, samples, strict=True)
        ]
    outcome = outcomes[0] if len(outcomes) == 1 else mean_over_classes(outcomes)
    for note in outcome.notes:
        # The third level is the line of the caller's own program.
        warnings.warn(f"{spec.name} of {outcome.target}: {note}", CalibrationWarning, stacklevel=3)
    return outcome
