"""The verdict of an assessment in plain sentences, all based on the same test."""

from __future__ import annotations

import math

import numpy as np

from truecal._lib.numeric import rejects
from truecal._lib.text import counted, in_clusters, level, percent
from truecal.data.arrays import is_top_label
from truecal.data.extremes import limits_of
from truecal.data.faults import CLASSES, are_classes
from truecal.data.sample import Sample
from truecal.exceptions import InputError
from truecal.inference._test_result import TestResult
from truecal.inference.c_statistic import reversed_scores
from truecal.inference.dependence import suspected_dependence
from truecal.inference.resample import count_impossible
from truecal.inference.thresholds import NetBenefit, net_benefit
from truecal.results import Estimate, Interval

#: What the data say about perfect calibration.
CONTRADICTED, NOT_CONTRADICTED, INCONCLUSIVE = "contradicted", "not contradicted", "inconclusive"

#: An error of this size that the data do not rule out means that they say little.
LARGE_ERROR = 0.1
#: A threshold of 50% says little if a smaller share of the rows lies on one side of it.
_FEW_ABOVE = 0.05
#: A difference of this many standard deviations is reported as a direction.
_CLEAR = 2.5


def contradicts(interval: Interval, pvalue: float | None, alpha: float) -> bool:
    """Return whether the data contradict perfect calibration: by the p-value or, without one, by the interval."""
    return interval.low > 0 if pvalue is None else rejects(pvalue, alpha)


def judge(interval: Interval, test: TestResult | None) -> str:
    """Return what the data say about perfect calibration: by the test or, without one, by the interval."""
    if contradicts(interval, None if test is None else test.pvalue, 1 - interval.confidence_level):
        return CONTRADICTED
    untested = test is not None and not test.tested
    return INCONCLUSIVE if untested or interval.high >= LARGE_ERROR else NOT_CONTRADICTED


def verdict(
    sample: Sample,
    estimate: Estimate,
    interval: Interval,
    test: TestResult | None,
    *,
    design_effect: float = 1.0,
) -> str:
    """Return the evidence against calibration, the size of the error, and its direction."""
    state = judge(interval, test)
    low, high, confidence = percent(interval.low), percent(interval.high), level(interval.confidence_level)
    evidence = "" if test is None else f" ({test.evidence})"
    if state == CONTRADICTED:
        first = f"The data contradict perfect calibration{evidence}."
        if interval.low > 0:
            size = f"The calibration error is about {percent(estimate.value)} ({confidence} interval {low} to {high})."
        elif interval.high >= min(0.9 * _largest_error(sample), 0.5):
            size = "They do not determine how large the error is."
        else:
            size = f"The error is small or uncertain: at most about {high} ({confidence} interval {low} to {high})."
        direction = "" if sample.n < 2 else " " + _direction(sample, estimate.value, design_effect)
        return f"{first} {size}{direction}"
    if test is None:
        first = f"The {confidence} interval of the calibration error includes 0."
    elif not test.tested:
        first = f"Perfect calibration was n{test.why_not_tested[1:]}"
        if not interval.reliable:
            return f"{first} {interval.assumption[0].upper()}{interval.assumption[1:]}."
        return f"{first} An error of up to {high} is possible ({confidence} interval)."
    else:
        first = f"The data do not contradict perfect calibration{evidence}."
    if state == INCONCLUSIVE:
        clusters = in_clusters(estimate.n_clusters)
        if clusters and not interval.reliable:
            return f"{first} That says little: {interval.assumption}."
        rows = counted(estimate.n, "row") + clusters
        return f"{first} That says little: with {rows} an error of up to {high} is possible ({confidence} interval)."
    return f"{first} An error of up to {high} is possible ({confidence} interval {low} to {high})."


def cost_in_words(interval: Interval, error: float, brier: float) -> str:
    """Return what an error costs of the Brier score: the square of the l2 error."""
    value, low, high = (end**2 for end in (error, interval.low, interval.high))
    if not brier > 0:
        return f"It costs about {value:.2g} of the Brier score, which is {brier:.3f}."
    shares = [percent(min(part / brier, 1.0)) for part in (value, low, high)]
    between = f"{level(interval.confidence_level)} interval {shares[1]} to {shares[2]}"
    return f"It costs about {shares[0]} of the Brier score of {brier:.3f} ({between})."


def decisions_in_words(sample: Sample, confidence_level: float, given: NetBenefit | None) -> str:
    """Return what an error costs decisions: the net benefit that a logistic recalibration adds, or nothing.

    The threshold is 50% or, where nearly all rows lie on one side of that, the observed rate; of `given` thresholds it
    is the one at which recalibration adds most.
    """
    rate = float(sample.positives.sum()) / sample.n
    above = float(sample.count[sample.score >= 0.5].sum()) / sample.n
    threshold = 0.5 if min(above, 1 - above) >= _FEW_ABOVE else rate
    try:
        curve = given or net_benefit(sample, thresholds=threshold, confidence_level=confidence_level)
    except InputError:  # labels or weights for which it is not defined, or only one outcome
        return ""
    worst = int(np.argmax(curve.cost))
    threshold = float(curve.thresholds[worst])
    lost, least, most = (
        f"{round(1000 * float(part[worst])):,d}".replace("-", "−")
        for part in (curve.cost, curve.cost_low, curve.cost_high)
    )
    where = f"scores of {100 * threshold:.3g}% and more{' (the observed rate)' if threshold == rate else ''}"
    cost = f"about {lost} per 1,000 rows ({level(confidence_level)} interval {least} to {most})"
    shown = curve.cost_low[worst] > 0
    if threshold == 0.5:
        verb = "adds" if shown else "is not shown to add"
        return f"If one acts on {where}, it {verb} wrong decisions: {cost}."
    verb = "costs" if shown else "is not shown to cost"
    odds = threshold / (1 - threshold)
    weight = f"{odds:.2g} {'of a missed positive' if odds < 1 else 'missed positives'}"
    return (
        f"If one acts on {where}, where a needless action counts as {weight}, it {verb} as much as missed positives: "
        f"{cost}."
    )


def _largest_error(sample: Sample) -> float:
    """Return the largest l2 error that the scores allow."""
    return math.sqrt(float(sample.count @ np.maximum(sample.score, 1 - sample.score) ** 2) / sample.n)


def _direction(sample: Sample, error: float, design_effect: float) -> str:
    """Return in which direction the scores are wrong: reversed, overall, at both ends, or none of these."""
    mean = float(sample.count @ sample.score) / sample.n
    rate = float(sample.positives.sum()) / sample.n
    numbers = f"mean prediction {percent(mean)}, observed rate {percent(rate)}"
    if (reversal := reversed_scores(sample)) is not None:
        return f"{reversal} {numbers.capitalize()}."
    variance = design_effect * sample.count * sample.score * (1 - sample.score)
    # Standard deviation of the mean label if the scores are right.
    noise = math.sqrt(float(variance.sum())) / sample.n
    top = is_top_label(sample.target)
    if abs(mean - rate) > _CLEAR * noise and abs(mean - rate) >= 0.5 * error:
        if top:
            return f"The model is {'over' if mean > rate else 'under'}confident: {numbers}."
        return f"Overall the scores are too {'high' if mean > rate else 'low'}: {numbers}."
    centred = sample.score - mean
    tilt = float(centred @ (sample.count * sample.score - sample.positives))
    noise = math.sqrt(float(variance @ centred**2))
    # The error that a slope alone would cause.
    of_slope = abs(tilt) / math.sqrt(max(float(sample.count @ centred**2), 1e-300) * sample.n)
    if not top and abs(tilt) > _CLEAR * noise and of_slope >= 0.5 * error:
        if tilt > 0:
            return (
                f"The scores are overconfident: high scores are too high and low scores too low ({numbers})."
            )
        return f"The scores are underconfident: high scores are too low and low scores too high ({numbers})."
    return f"Some scores are too high and others too low ({numbers})."


def _finite_loss(sample: Sample) -> float:
    """Return the log loss, with scores of exactly 0 and 1 moved to the most extreme values that the rows can show."""
    score = limits_of(sample.score, sample.count).clip(sample.score)
    total = sample.positives @ np.log(score) + (sample.count - sample.positives) @ np.log1p(-score)
    return -float(total) / sample.n


def data_warnings(sample: Sample) -> tuple[str, ...]:
    """Return warnings about the data."""
    warnings = []
    wrong = count_impossible(sample)
    if wrong:
        subject = f"{counted(wrong, 'prediction')} of exactly 0 or 1 {'was' if wrong == 1 else 'were'}"
        warnings.append(
            f"{subject} wrong. The log loss is infinite. With exact 0 and 1 as certain as the rows can show, as "
            f"recalibrators count them, it is {_finite_loss(sample):.4f}."
        )
    if sample.n == 1:
        warnings.append("There is only one row.")
    elif len(sample) == 1:
        warnings.append("All scores are equal.")
    elif are_classes(sample.score):
        warnings.append(CLASSES)
    elif len(sample) <= 20 < sample.n:
        warnings.append(f"There are only {len(sample)} distinct scores; bins cannot be finer.")
    elif sample.n > 20 and (tie := float(sample.count.max()) / sample.n) > 0.2:
        warnings.append(f"{percent(tie)} of the rows have the same score.")
    if (text := suspected_dependence(sample)) is not None:
        warnings.append(text)
    positives = float(sample.positives.sum())
    rare = min(positives, sample.n - positives)
    if rare == 0:
        warnings.append("Only one of the two outcomes occurs.")
    elif rare < 30:
        warnings.append(f"The rarer outcome occurs only {'once' if rare == 1 else f'{rare:,.10g} times'}.")
    return tuple(warnings)
