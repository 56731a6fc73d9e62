"""What the numbers of an assessment come to, in plain sentences."""

from __future__ import annotations

import math

import numpy as np

from truecal._lib.text import p_equals, percent
from truecal.data.sample import Sample
from truecal.inference.calibration_test import TestResult
from truecal.results import Estimate, Interval

#: A hidden error of this size means that the data said next to nothing.
_MUCH = 0.1
#: A difference of so many standard deviations is no chance.
_CLEAR = 2.5


def verdict(
    sample: Sample, estimate: Estimate, interval: Interval, test: TestResult | None, found: bool
) -> str:
    """Return two sentences: whether there is miscalibration, and of what kind or how much could be hidden.

    Parameters
    ----------
    sample : Sample
        The predictions.
    estimate : Estimate
        The error that is quoted.
    interval : Interval
        Of the true error.
    test : TestResult or None
        None where it could not be made, as with fractional weights.
    found : bool
        Whether miscalibration was found, by the test or, without it, by the interval.
    """
    low, high = percent(interval.low), percent(interval.high)
    level = f"{100 * interval.confidence_level:g} %"
    p = "" if test is None else f" ({p_equals(test.pvalue)})"
    rows = f"{sample.n:,.10g} prediction{'' if sample.n == 1 else 's'}"
    if found and interval.low > 0:
        said = "" if test is None else f"; {p_equals(test.pvalue)}"
        size = f"{percent(estimate.value)} ({level} interval {low} to {high}{said})"
        return f"These probabilities are miscalibrated, by about {size}. {_kind(sample, estimate.value)}"
    if found:
        first = f"There is evidence of miscalibration{p}, but of no more than {high} ({level} interval)."
        return f"{first} {_kind(sample, estimate.value)}"
    if interval.low > 0:
        return (
            f"The test found no miscalibration in {rows}{p}, though the {level} interval of the error, {low} to "
            f"{high}, leaves out zero. The evidence is mixed; more rows would settle it."
        )
    first = f"No miscalibration was found in {rows}{p}."
    if interval.high >= _MUCH:
        return f"{first} That says little: an error of up to {high} could still be hidden ({level} interval)."
    return f"{first} A calibration error of up to {high} could still be hidden ({level} interval {low} to {high})."


def _kind(sample: Sample, error: float) -> str:
    """Say in which direction the scores are wrong: on the whole, at both ends, or here and there."""
    said = float(np.average(sample.score, weights=sample.count))
    came = float(sample.positives.sum()) / sample.n
    numbers = f"{percent(said)} promised on average, {percent(came)} came true"
    variance = sample.count * sample.score * (1 - sample.score)
    # By how much the mean label varies from sample to sample if the scores are right.
    noise = math.sqrt(float(variance.sum())) / sample.n
    top = sample.target.startswith("top label")
    if abs(said - came) > _CLEAR * noise and abs(said - came) >= 0.5 * error:
        if top:
            return f"The model is {'over' if said > came else 'under'}-confident: {numbers}."
        return f"On the whole they are too {'high' if said > came else 'low'}: {numbers}."
    away = sample.score - said
    spread = math.sqrt(float(np.sum(sample.count * away**2)) * came * (1 - came))
    if float(np.sum(away * sample.positives)) < -_CLEAR * spread:
        return "The higher the score, the rarer it came true: are labels or scores the wrong way round?"
    tilt = float(np.sum(away * (sample.count * sample.score - sample.positives)))
    noise = math.sqrt(float(np.sum(variance * away**2)))
    # A slope alone would make an error of this size.
    of_slope = abs(tilt) / math.sqrt(max(float(np.sum(sample.count * away**2)), 1e-300) * sample.n)
    if not top and abs(tilt) > _CLEAR * noise and of_slope >= 0.5 * error:
        if tilt > 0:
            return f"They are over-confident: high ones are too high and low ones too low ({numbers})."
        return f"They are under-confident: high ones are not high enough and low ones not low enough ({numbers})."
    return f"Some are too high and others too low ({numbers})."


def data_warnings(sample: Sample) -> tuple[str, ...]:
    """Return what to know of the data before believing numbers on it."""
    warnings = []
    if not sample.whole:
        warnings.append(
            "The weights have fractions, so that the number of rows cannot be told: the test and the bands, which "
            "draw labels anew, are left out, and the interval takes weights for counts."
        )
    wrong = float(sample.positives[sample.score == 0].sum())
    wrong += float((sample.count - sample.positives)[sample.score == 1].sum())
    if wrong:
        are = "prediction of exactly 0 or 1 was" if wrong == 1 else "predictions of exactly 0 or 1 were"
        warnings.append(
            f"{wrong:,.10g} {are} wrong. The log loss is infinite: what is certain must not fail."
        )
    if len(sample) == 1:
        warnings.append("All scores are equal.")
    elif len(sample) <= 20 < sample.n:
        warnings.append(f"There are only {len(sample)} different scores, and bins are what these make them.")
    elif sample.n > 20 and (tie := float(sample.count.max()) / sample.n) > 0.2:
        warnings.append(f"{percent(tie)} of the rows share one score.")
    rare = min(float(sample.positives.sum()), sample.n - float(sample.positives.sum()))
    if rare == 0:
        warnings.append("Only one of the two outcomes occurs.")
    elif rare < 30:
        times = "once" if rare == 1 else f"{rare:,.10g} times"
        warnings.append(f"The rarer outcome occurs only {times}, and little can be said with so few.")
    return tuple(warnings)
