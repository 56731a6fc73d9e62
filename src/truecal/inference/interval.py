"""Confidence intervals for the true calibration error, each with the assumption that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from truecal import multiscale
from truecal._lib.checks import check_choice, check_count, check_fraction, check_norm
from truecal._lib.types import NormLike
from truecal.data.arrays import Reading, takes_predictions
from truecal.data.question import Question, ask
from truecal.data.sample import Sample
from truecal.exceptions import InputError
from truecal.inference.dependence import are_single_rows, warn_of_dependence
from truecal.results import Interval

#: Effective number of rows below which nothing is known about their variance.
_FEWEST_ROWS = 2

#: Assumptions that an interval can be asked for, beside a resolution.
ASSUMPTIONS = ("monotone", "none")


@takes_predictions
def confidence_interval(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    norm: NormLike = 2,
    confidence_level: float = 0.95,
    resolution: int | None = None,
    assume: str | None = None,
    **reading: Unpack[Reading],
) -> Interval:
    r"""Return a confidence interval for the true calibration error, with half of the error probability on either side.

    No interval for continuous scores can hold without an assumption on the calibration curve: labels of a curve that
    jumps up and down between neighbouring scores look like those of a calibrated model. And no upper limit that holds
    for a class of curves can be shorter, even for a calibrated model, than the smallest error that can be detected over
    this class. So the class is fixed before the labels are looked at.

    By default
        The upper end allows any error in each of B intervals of scores, which the number of rows and the scores fix;
        inside an interval the error is assumed to vary smoothly or to jump once. If few distinct scores have enough
        rows each, every score is an interval, and nothing is assumed but independent rows. `Interval.resolution` is B.
        The lower end is adaptive and needs no such assumption.
    ``resolution=16``
        The same with at most 16 intervals. Choose it before you look at the labels: fewer intervals make the upper end
        shorter and the assumption stronger.
    ``assume="monotone"``
        The upper end is guaranteed for rising curves, in samples of any size: the largest error of a curve inside a
        simultaneous confidence band, over the scores at hand. Much wider. The lower end is that of ``"none"``.
    ``assume="none"``
        A lower limit for any curve. The upper end is the largest error that the scores allow.

    For ``norm=1`` the upper end is that of the l2 error, which the l1 error cannot exceed.

    Parameters
    ----------
    {predictions}
    norm : {1, 2, "l1", "l2"}
        Order of the norm.
    confidence_level : float
        Probability that such an interval contains the true error.
    resolution : int, optional
        Largest number of intervals of scores in each of which any error is allowed; by default it follows from the
        number of rows and the scores.
    assume : {"monotone", "none"}, optional
        Another assumption about the calibration curve.
    {reading}
        For ``multiclass="classwise"``, ``"top_by_class"`` and ``"multilabel"`` the interval is for the lp mean over
        classes or labels, from their joint distribution.

    Returns
    -------
    Interval

    References
    ----------
    Dimitriadis, Dümbgen, Henzi, Puke, Ziegel (2023), Honest calibration assessment for binary outcome predictions,
    Biometrika.

    Examples
    --------
    >>> import truecal
    >>> population = truecal.paper.population("resnet152_imgnet")
    >>> y, p = population.sample(5000, rng=0)
    >>> interval = truecal.confidence_interval(y, p)
    >>> population.true_error() in interval
    True
    >>> interval.resolution
    25
    >>> interval.assumption
    'any error in each of 25 intervals of scores; inside an interval it varies smoothly or jumps once'
    """
    level = check_fraction("confidence_level", confidence_level)
    if assume is not None:
        check_choice("assume", assume, ASSUMPTIONS)
        if resolution is not None:
            raise InputError("cannot be given beside assume", argument="resolution", value=resolution)
    resolution = check_resolution(resolution)
    order = check_interval_norm(norm)
    question = ask(y_true, y_proba, **reading)
    warn_of_dependence(question.samples[0])
    return interval_of(question, order, level, assume=assume, resolution=resolution)


def check_interval_norm(norm: NormLike, purpose: str = "for an interval") -> float:
    """Return 1 or 2, or say that `norm` must be one of them."""
    order = check_norm(norm)
    if order not in (1, 2):
        raise InputError(f"must be 1 or 2 {purpose}. Got {norm!r} instead", argument="norm", value=norm)
    return order


def check_resolution(resolution: int | None) -> int | None:
    """Return a number of intervals of scores, or None for the default."""
    return None if resolution is None else check_count("resolution", resolution)


def interval_of(
    question: Question,
    norm: float,
    level: float,
    *,
    assume: str | None = None,
    resolution: int | None = None,
) -> Interval:
    """Return the interval of one sample, or of the lp mean over several."""
    limits = limits_of(question, norm, resolution)
    if not limits.reliable:
        return Interval(0.0, limits.largest, level, _too_few(question.samples), reliable=False)
    if assume is None:
        assumption = assumption_of(question.samples, limits)
        return Interval(*limits.interval(level), level, assumption, limits.above.resolution)
    alpha = 1 - level
    if assume == "monotone":
        low, high = _any_curve(question, norm, alpha / 2), _rising(question, norm, alpha / 2)
        assumption = "the curve rises"
    else:
        low, high = _any_curve(question, norm, alpha), limits.largest
        assumption = "any curve; lower limit only"
    low = min(low, limits.error) if limits.evident(alpha / 2) else 0.0
    return Interval(low, min(max(high, limits.error), limits.largest), level, assumption)


def limits_of(question: Question, norm: float, resolution: int | None = None) -> multiscale.Limits:
    """Return the confidence limits of one sample, or of the lp mean over several."""
    cores = [multiscale.analyse(sample) for sample in question.samples]
    size = sum(core.size for core in cores) if question.apart else cores[0].size
    limits = cores[0].limits_for(norm, resolution)
    if len(cores) > 1:
        limits = _joint_limits(cores, question, norm, resolution)
    return limits if size >= _FEWEST_ROWS else replace(limits, reliable=False)


def _joint_limits(
    cores: Sequence[multiscale.Multiscale], question: Question, norm: float, resolution: int | None
) -> multiscale.Limits:
    """Return the limits of the lp mean over classes, or over parts of the rows."""
    influence, dependence = None, 1.0
    if question.rows is not None:
        pairs = zip(cores, question.rows, strict=True)
        each = (core.influence(rows.label, rows.score, norm=norm) for core, rows in pairs)
        scores = [rows.score for rows in question.rows]
        if question.apart:
            influence = np.concatenate(list(each))
        else:
            influence = np.asarray(sum(values / len(cores) for values in each))
            dependence = multiscale.class_dependence(scores)
        if question.multilabel:
            dependence = multiscale.label_dependence([rows.label for rows in question.rows], scores)
    return multiscale.joint_limits(
        cores, influence, question, norm=norm, resolution=resolution, dependence=dependence
    )


def assumption_of(samples: Sequence[Sample], limits: multiscale.Limits) -> str:
    """Return what the limits of one sample, or of several classes, assume about the calibration curve."""
    if not limits.reliable:
        return f"none: {_too_few(samples)}"
    of_class = " of each class" if len(samples) > 1 else ""
    number = limits.above.resolution
    if limits.above.every_score:
        scores = "the score" if number == 1 else f"each of the {number} scores"
        return f"any error at {scores}{of_class}; nothing is assumed but independent {samples[0].dependence.unit}"
    where = "all scores" if number == 1 else f"each of {number} intervals of scores{of_class}"
    return f"any error in {where}; inside an interval it varies smoothly or jumps once"


def _too_few(samples: Sequence[Sample]) -> str:
    """Return why the variances of limits cannot be relied on."""
    if samples[0].pseudo is not None and samples[0].pseudo.too_few:
        return samples[0].pseudo.too_few
    most = max((sample.dependence for sample in samples), key=lambda one: one.n_clusters)
    if most.unit == "rows":
        return "one row is too few for an interval"
    if most.n_clusters < multiscale.MIN_CLUSTERS:
        few = "1 cluster is" if most.n_clusters == 1 else f"{most.n_clusters} clusters are"
        return f"{few} too few for an interval; at least {multiscale.MIN_CLUSTERS} are needed"
    return (
        f"few of the {most.n_clusters:,} clusters hold most of the rows: like {most.effective_number:.1f} clusters of "
        f"equal size, they are too few for an interval"
    )


def _any_curve(question: Question, norm: float, tail: float) -> float:
    """Return a lower limit that holds for any curve; over classes, the limit of the class that has the largest."""
    cores = [multiscale.analyse(sample) for sample in question.samples]
    square = max(
        float(share) * core.lower_limit(tail / len(cores)) ** 2
        for core, share in zip(cores, question.share, strict=True)
    )
    if norm == 2:
        return float(square**0.5)
    # l2^2 <= l1 max|d|, and no error exceeds the distance from a score to the farther end.
    farthest = max(float(np.maximum(core.score, 1 - core.score).max()) for core in cores)
    return float(square / farthest)


def _rising(question: Question, norm: float, tail: float) -> float:
    """Return the largest error of a rising curve inside a simultaneous confidence band."""
    total = 0.0
    for sample, share in zip(question.samples, question.share, strict=True):
        if not are_single_rows(sample):
            raise InputError(
                "'monotone' needs independent rows without sampling weights",
                argument="assume",
                value="monotone",
            )
        limits = multiscale.band(sample, tail / len(question.samples))
        total += float(share) * multiscale.largest_error(sample, *limits, norm) ** norm
    return float(total ** (1 / norm))
