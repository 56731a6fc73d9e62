"""Is the model calibrated? One omnibus test, or any estimator as a statistic; and tests of "at most this error"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from truecal._lib.checks import as_generator, check_choice, check_count, check_fraction, unknown_option
from truecal._lib.types import NormLike, RNGLike
from truecal.data.arrays import TOP_BY_CLASS, keywords_among
from truecal.data.question import Question, ask
from truecal.data.sample import Sample
from truecal.estimators._registry import MULTISCALE, list_estimators
from truecal.exceptions import InputError
from truecal.inference._test_result import TestResult
from truecal.inference._tests import each_alone, estimator_test, multiscale_test
from truecal.inference.c_statistic import reversed_scores
from truecal.inference.dependence import warn_of_dependence
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


def calibration_test(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    method: str = MULTISCALE,
    at_most: float | None = None,
    resolution: int | None = None,
    norm: NormLike = 2,
    n_resamples: int = 999,
    sample_weight: ArrayLike | None = None,
    weighting: str | None = None,
    clusters: Any = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    multiclass: str | None = None,
    rng: RNGLike = None,
    **options: Any,
) -> TestResult:
    r"""Test the hypothesis that every score is the probability of a positive label.

    **The multiscale test**, the default, looks for level shifts, wrong slopes, smooth deviations and local
    deviations at every scale the data can resolve, and names the part that contributes most. Its statistic T is
    compared with its values on labels drawn from the scores (consistency resampling). With R such draws,

    .. math:: p = \frac{1 + \#\{r : T^*_r \ge T\}}{1 + R} .

    If the model is calibrated and rows are independent, the data are one more draw of the same kind, and every rank
    of T is equally likely: the level is exact for any n and any scores. A large p-value does not show that the model
    is calibrated, only that these rows do not contradict it. `truecal.simulation.detectable_error` gives the size of
    error that would be detected.

    **An estimator as the statistic** (``method="em_sweep"`` and so on) is tested in the same way. Debiased
    estimators are compared before they are clipped at 0. For ``"ks"`` and ``"kuiper"`` the result also has the p-value
    of their limit, the largest absolute value and the range of a Brownian motion, as `asymptotic_pvalue`. It is
    conservative in small samples and where scores tie, because the path is then observed at fewer points.

    **Ties.** With few rows, or scores near 0 and 1, draws can have the same labels as the data. T takes a random
    place among such ties, which keeps the level exact; `pvalue_range` shows the smallest and the largest p-value that
    this can give. If more than half of the draws tie, all ties are counted. A label that a score of exactly 0 or 1
    rules out gives the smallest p-value, 1 / (R + 1).

    **Clusters.** If rows depend on each other, labels cannot be drawn again one by one. The residuals of each cluster
    are multiplied by random signs instead, which is approximate: it needs about 15 clusters or more. With G clusters
    the smallest p-value is :math:`2^{1-G}`. Where rare events make the sums of clusters skewed, they are scaled to the
    variance that the scores imply. If clusters hold too little information for a test, `tested` is False, the p-value
    is 1 and a note says why. Of the estimators only ``"ks"`` and ``"kuiper"``, functions of sums of
    residuals, can be tested in this way.

    **Classwise.** One class is drawn for each row, which gives the joint distribution of all classes. The statistic
    is the mean over the classes. The p-value of each class is also adjusted for their number: by the distribution of
    the largest statistic for the multiscale test, by Holm's method for an estimator.

    **Top label, class by class.** ``multiclass="top_by_class"`` tests the rows of each predicted class by themselves.
    The statistic is the mean over the classes, and `classes` has the test of each with an adjusted p-value.

    **Several labels.** ``multiclass="multilabel"`` takes each column of 0 and 1 as a question of its own, and tests
    it by itself. `classes` has these tests with p-values adjusted by Holm's method, which allows any dependence between
    labels; the smallest of them is the joint p-value.

    **Canonical.** ``multiclass="canonical"`` tests the whole probability vector. The statistic is the squared kernel
    calibration error over all pairs of rows, and classes are drawn from the predicted vectors, so that the level is
    exact. Beyond 512 rows the kernel is projected on 512 of them, which keeps the time linear.

    **Equivalence.** With ``at_most=eps`` the null hypothesis is that the error is `eps` or more, and a small p-value
    shows that it is below. The p-value is at most alpha exactly when the one-sided upper confidence limit of the error
    is at most `eps`. Both allow any error in each of a number of intervals of scores that the number of rows and the
    scores fix, as `truecal.confidence_interval` explains.

    **Large samples.** Beyond 131,072 rows one binomial is drawn for each of a few thousand narrow cells of scores.
    Their variance is then too large by a fraction that the notes give, which makes the test slightly conservative.

    Parameters
    ----------
    y_true : array-like of shape (n,), (n, 1) or one-hot (n, K), or Sample
        Labels; a `Sample` stands for both labels and scores.
    y_proba : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities.
    method : str
        ``"multiscale"``, or one of `truecal.list_estimators`.
    at_most : float, optional
        Test the hypothesis that the error is at least this large, instead of 0; 0.05 is 5%.
    resolution : int, optional
        With `at_most`: largest number of intervals of scores in each of which any error is allowed.
    norm : float, "l1", "l2" or "max"
        Order of the norm of an estimator, or of the error with `at_most`. The multiscale test of calibration has none.
    n_resamples : int
        Number of Monte Carlo resamples. The smallest p-value is 1 / (n_resamples + 1).
    sample_weight : array-like of shape (n,), optional
        Sampling weights. Estimators as statistics need counts.
    weighting : {"sampling", "counts", "clusters"}, optional
        Whether a weight of 2 stands for two rows (``"counts"``) or not (``"sampling"``, the default); ``"clusters"``
        makes every cluster count the same.
    clusters : array-like of shape (n,), optional
        Rows that depend on each other have the same value.
    pos_label : label, optional
        The positive class.
    labels : sequence of K labels, optional
        The class of each column.
    multiclass : {"top", "classwise", "top_k", "top_by_class", "multilabel", "canonical"}, optional
        What to test for several classes; the top label by default. See `truecal.estimate`.
    rng : seed or numpy.random.Generator, optional
        Random seed.
    **options
        Options of an estimator, such as ``n_bins``.

    Returns
    -------
    TestResult

    Warns
    -----
    CalibrationWarning
        If an estimator that is used as the statistic warns.

    References
    ----------
    Bröcker, Smith (2007), Increasing the reliability of reliability diagrams, Weather and Forecasting 22, 651-661.
    Vaicenavicius et al. (2019), Evaluating model calibration in classification, AISTATS.
    Davison, Hinkley (1997), Bootstrap methods and their application, section 4.2.
    Widmann, Lindsten, Zachariah (2019), Calibration tests in multi-class classification, NeurIPS.
    Westfall, Young (1993), Resampling-based multiple testing.
    Holm (1979), Scandinavian Journal of Statistics 6, 65-70.

    Examples
    --------
    >>> import truecal
    >>> from truecal.simulation import BetaScores, PowerCurve
    >>> population = truecal.Population(BetaScores(1, 1), PowerCurve(1.2))
    >>> y, p = population.sample(1000, rng=0)
    >>> print(calibration_test(y, p, rng=0))
    multiscale test of P(y = 1), n = 1,000
    p = 0.003 (999 resamples)
    Largest contribution: a level shift
    Spiegelhalter's Z = -0.48, p = 0.63 (tests the mean squared error only, where these errors balance)
    """
    n_resamples = check_count("n_resamples", n_resamples)
    if resolution is not None and at_most is None:
        raise InputError("goes with at_most", argument="resolution", value=resolution)
    generator = as_generator(rng)
    reading = keywords_among(locals())
    if multiclass == "canonical":
        from truecal.inference import canonical  # it needs packages that are slow to import

        bandwidth = canonical.check_arguments(method, options, at_most=at_most)
        vectors = canonical.read_vectors(y_true, y_proba, reading)
        return canonical.canonical_test(*vectors, n_resamples, generator, bandwidth)
    if multiclass == TOP_BY_CLASS and (method != MULTISCALE or options):
        raise InputError(
            f"must be 'multiscale' with multiclass={TOP_BY_CLASS!r}, without options",
            argument="method",
            value=method,
        )
    question = ask(y_true, y_proba, **reading)
    _check_method(method, at_most, options)
    if at_most is not None:
        result = equivalence_test(question, at_most, norm, resolution)
    elif method == MULTISCALE:
        result = each_alone(question, lambda part: multiscale_test(part, n_resamples, generator))
    else:
        result = each_alone(
            question, lambda part: estimator_test(part, method, norm, options, n_resamples, generator)
        )
    if question.apart:
        return result
    notes = [*result.notes, *warn_of_dependence(question.samples[0])]
    if question.single and (reversal := reversed_scores(question.samples[0])):
        notes.append(reversal)
    return replace(result, notes=tuple(dict.fromkeys(notes)))


def _check_method(method: str, at_most: float | None, options: dict[str, Any]) -> None:
    """Refuse an unknown method, and what goes only with an estimator or only with the multiscale test."""
    if method == MULTISCALE:
        if options:
            raise unknown_option(next(iter(options)), "the multiscale test")
        return
    check_choice("method", method, method_names())  # which looks for estimators of other packages
    if at_most is not None:
        raise InputError("needs method='multiscale'", argument="at_most")


def method_names() -> list[str]:
    """Return all tests: the multiscale test, and every estimator by name and alias."""
    names = (name for spec in list_estimators() for name in (spec.name, *spec.aliases))
    return list(dict.fromkeys([MULTISCALE, *names]))
