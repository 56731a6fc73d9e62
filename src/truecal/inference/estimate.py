"""Estimates of the calibration error from predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from truecal._lib.checks import check_count, check_fraction
from truecal._lib.types import NormLike, RNGLike
from truecal.data.arrays import keywords_among
from truecal.data.cells import Cells, cell_error
from truecal.data.question import Question, ask
from truecal.data.sample import Sample, group_sorted
from truecal.estimators._registry import DEFAULT_ESTIMATOR, EstimatorSpec, get_estimator
from truecal.exceptions import InputError, warn_user
from truecal.inference.dependence import warn_of_dependence
from truecal.inference.interval import check_interval_norm, check_resolution, interval_of
from truecal.multiscale import analyse
from truecal.results import Estimate


def estimate(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    estimator: str = DEFAULT_ESTIMATOR,
    norm: NormLike = 2,
    n_bins: int | None = None,
    confidence_level: float | None = None,
    resolution: int | None = None,
    sample_weight: ArrayLike | None = None,
    weighting: str | None = None,
    clusters: Any = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    multiclass: str | None = None,
    rng: RNGLike = None,
    **options: Any,
) -> Estimate:
    r"""Estimate the calibration error of predicted probabilities.

    The estimand of most estimators is the true calibration error, the distance between the score and the
    frequency of the event at that score:

    .. math:: \mathrm{TCE} = \big(E\,|f(X) - E[Y \mid f(X)]|^p\big)^{1/p}

    Parameters
    ----------
    y_true : array-like of shape (n,), (n, 1) or one-hot (n, K), or Sample
        Labels; see `truecal.Sample.from_predictions`. A `Sample` (or `Cells`) stands for both labels and scores.
    y_proba : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities. (n,) and (n, 1) are those of the positive class, (n, 2) gives the same answer as its
        second column, (n, K > 2) is measured on its top label.
    estimator : str
        One of `truecal.list_estimators`.
    norm : float, "l1", "l2" or "max"
        Order of the norm, at least 1. Estimators that have none ignore it. ``"max"``, the largest gap of a bin, is for
        ``ew_bin`` and ``em_bin``, and gives ``ew_mce`` and ``em_mce``.
    n_bins : int, optional
        Number of bins, for estimators that take one (15 by default).
    confidence_level : float, optional
        Level of a confidence interval, such as 0.95, for the default estimator and norm 1 or 2; see
        `truecal.confidence_interval`.
    resolution : int, optional
        With `confidence_level`: largest number of intervals of scores in each of which the upper end allows any error.
    sample_weight : array-like of shape (n,), optional
        Weights. The classical estimators take a weight of 2 as the row twice.
    weighting : {"sampling", "counts", "clusters"}, optional
        What weights mean where uncertainty is reported. By default they are sampling weights (survey or
        inverse-probability weights, on any scale), which lower the effective number of rows. ``"counts"`` if a weight
        of 2 stands for two independent rows. ``"clusters"`` divides the weight of each row by that of its cluster:
        the estimand is then a mean over clusters, which differs if the error depends on their size.
    clusters : array-like of shape (n,) or (n, k), or data frame, optional
        Rows with the same value depend on each other, as the answers to one question do; several columns are crossed.
        The default estimator and its interval allow for that. Every row counts the same, so that large clusters count
        more, unless ``weighting="clusters"``.
    pos_label : label, optional
        The positive class; with K > 2 columns, that class against the rest.
    labels : sequence, optional
        The class of each column of `y_proba`.
    multiclass : {"top", "classwise", "top_k", "top_by_class", "multilabel", "canonical"}, optional
        ``"classwise"`` is the lp mean over the classes of the error of each against the rest. ``"top_5"`` (any number)
        is the sum of the five largest probabilities, and whether the true class is among them; ``"top_k"`` is
        ``"top_5"``, or one less than the number of classes if that is smaller. ``"canonical"`` is the squared kernel
        calibration error of the whole vector, an unbiased estimate that may be negative, with the option `bandwidth`.
        ``"top_by_class"`` is the error of the top label among rows with the same predicted class, combined by their
        shares (Gupta and Ramdas 2022). ``"multilabel"`` takes columns that are labels, of which a row can have any
        number: `y_true` has 0 or 1 in each, and probabilities need not sum to 1.
    rng : seed or numpy.random.Generator, optional
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
    Gupta, Ramdas (2022), Top-label calibration and multiclass-to-binary reductions, ICLR.

    Examples
    --------
    >>> import numpy as np, truecal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2
    >>> print(truecal.estimate(y, p, confidence_level=0.95))
    multiscale (l2) of P(y = 1): 0.19, 0.17 to 0.21 (95%), n = 2000
    """
    reading = keywords_among(locals())
    if resolution is not None and confidence_level is None:
        raise InputError("goes with confidence_level", argument="resolution", value=resolution)
    outcome = _measure(
        y_true, y_proba, reading, estimator, norm, n_bins, rng, options, confidence_level, resolution
    )
    if isinstance(y_true, Cells):
        spec = get_estimator(estimator)
        given = options if n_bins is None else {"n_bins": n_bins, **options}
        error = cell_error(y_true, lambda sample: spec(sample, norm=norm, **given).value)
        outcome = replace(outcome, cell_error=error)
    return outcome


def calibration_error(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    estimator: str = DEFAULT_ESTIMATOR,
    norm: NormLike = 2,
    n_bins: int | None = None,
    squared: bool = False,
    sample_weight: ArrayLike | None = None,
    weighting: str | None = None,
    clusters: Any = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    multiclass: str | None = None,
    rng: RNGLike = None,
    **options: Any,
) -> float:
    """Return the value of `estimate` alone, without the rest of the result.

    Parameters
    ----------
    y_true, y_proba, estimator, norm, n_bins, sample_weight, weighting, clusters, pos_label, labels, multiclass, rng, \
    **options
        As in `estimate`.
    squared : bool
        Whether to return the square of the l2 error, in the unit of the Brier score.

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
    reading = keywords_among(locals())
    if squared and get_estimator(estimator).resolve_norm(norm) != 2:
        raise InputError(
            f"is for the l2 error; {estimator} is not computed with norm=2 here", argument="squared"
        )
    value = _measure(y_true, y_proba, reading, estimator, norm, n_bins, rng, options).value
    return value**2 if squared else value


def _measure(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None,
    reading: dict[str, Any],
    estimator: str,
    norm: NormLike,
    n_bins: int | None,
    rng: RNGLike,
    options: dict[str, Any],
    confidence_level: float | None = None,
    resolution: int | None = None,
) -> Estimate:
    spec = get_estimator(estimator).with_norm(norm)
    if reading["multiclass"] == "canonical":
        from truecal.inference import canonical  # it needs packages that are slow to import

        bandwidth = canonical.check_arguments(
            spec.name, options, confidence_level=confidence_level, n_bins=n_bins
        )
        return canonical.canonical_error(*canonical.read_vectors(y_true, y_proba, reading), bandwidth)
    if confidence_level is not None:
        order = _check_interval(spec, norm, confidence_level)
    options = _options(spec, n_bins, rng, options)
    # An estimator that only needs sums over equal-width bins gets these, and no sorted rows.
    counted = check_count("n_bins", {**spec.options, **options}["n_bins"]) if spec.counting else None
    question = ask(y_true, y_proba, n_bins=counted, **reading)
    estimates = [spec(sample, norm=norm, **options) for sample in question.samples]
    if spec.name == DEFAULT_ESTIMATOR:  # it, and its interval, take rows to be independent
        warn_of_dependence(question.samples[0])
    if confidence_level is None:
        outcome = question.combine(estimates)
    else:
        outcome = _with_intervals(question, estimates, order, confidence_level, resolution)
    for note in outcome.notes:
        warn_user(f"{spec.name} of {outcome.target}: {note}")
    if question.samples[0].pseudo is not None:
        notes = label_notes(question.samples[0], outcome.norm or 2.0, confidence_level)
        outcome = replace(outcome, notes=(*outcome.notes, *notes))
    return outcome


def label_notes(sample: Sample, norm: float, confidence_level: float | None) -> tuple[str, ...]:
    """Return the notes on labels that are not the truth, and with an interval what a judge alone would say."""
    pseudo = sample.pseudo
    if pseudo is None or pseudo.gold is None or confidence_level is None:
        return sample.label_notes
    if (pseudo.weight == 1).all():
        alone = group_sorted(pseudo.score, pseudo.gold.judge.astype(float), pseudo.score.dtype)
    else:
        alone = Sample.from_rows(pseudo.gold.judge, pseudo.score, pseudo.weight, sampling=True)
    interval = interval_of(Question((alone,)), norm, confidence_level)
    value = analyse(alone).error(norm)
    return (*sample.label_notes, f"The judge's labels alone would say {value:.4f}, {interval}.")


def _options(
    spec: EstimatorSpec, n_bins: int | None, rng: RNGLike, options: dict[str, Any]
) -> dict[str, Any]:
    """Return the options of an estimator, with those that have a keyword of their own."""
    if n_bins is not None and "n_bins" not in spec.options:
        raise InputError(
            f"is not an option of {spec.name}: it has no bins, or it chooses their number itself",
            argument="n_bins",
        )
    if rng is not None and "rng" in spec.options:
        options = {"rng": rng, **options}
    return options if n_bins is None else {"n_bins": n_bins, **options}


def _with_intervals(
    question: Question,
    estimates: list[Estimate],
    norm: float,
    confidence_level: float,
    resolution: int | None,
) -> Estimate:
    """Return the estimate with its interval, and with those of the classes."""
    resolution = check_resolution(resolution)

    def with_interval(estimate: Estimate, asked: Question) -> Estimate:
        return replace(estimate, interval=interval_of(asked, norm, confidence_level, resolution=resolution))

    each = [with_interval(*pair) for pair in zip(estimates, question.of_each(), strict=True)]
    return each[0] if question.single else with_interval(question.combine(each), question)


def _check_interval(spec: EstimatorSpec, norm: NormLike, confidence_level: float) -> float:
    """Return the order of the norm; refuse what no interval is known for."""
    check_fraction("confidence_level", confidence_level)
    if spec.name != DEFAULT_ESTIMATOR:
        raise InputError(
            f"is for the estimator {DEFAULT_ESTIMATOR!r}, which has an interval, and not for {spec.name!r}",
            argument="confidence_level",
            remedy=f"Leave out confidence_level, or set estimator={DEFAULT_ESTIMATOR!r}.",
        )
    return check_interval_norm(norm)
