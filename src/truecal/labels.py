"""Labels that are not the truth: a judge with gold labels, annotators, misclassification, censoring.

Each function returns an object that takes the place of ``y_true`` in every function of truecal that takes predictions.
With K > 2 columns of probabilities a label of 1 means that the top label is right, or, with ``pos_label``, that the row
belongs to that class.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from truecal._lib.checks import check_count, check_real
from truecal._lib.text import counted, listing
from truecal._lib.types import FloatArray
from truecal.data.arrays import check_length, refuse_missing, to_array, to_numbers
from truecal.data.faults import Rule, bad_values
from truecal.data.labels import number_values
from truecal.data.pseudo_labels import FEWEST_GOLD, FEWEST_OF_CLASS, Censored, Judged, Misclassified, Soft
from truecal.exceptions import InputError, warn_user

__all__ = ["censored", "judged", "misclassified", "soft"]

#: Sensitivity + specificity at which labels carry too little information.
_LEAST_INFORMATION = 1.1
#: Standard errors by which a rate must lie outside [0, 1] to contradict sensitivity and specificity.
_CLEAR = 3.0
#: What values of each argument must not be.
_RULES = {
    "judge": Rule(
        "{noun} outside [0, 1]",
        "Pass 0 and 1, such as verdict == 'right', or probabilities; a rating from 1 to 10 as (rating - 1) / 9.",
        lambda v, _: (v < 0) | (v > 1),
    ),
    "gold": Rule(
        "{noun} other than 0, 1 and NaN",
        "Pass 0 and 1, and NaN or None where no human labelled.",
        lambda v, missing: ~missing(v) & (v != 0) & (v != 1),
    ),
    "probability": Rule(
        "{noun} outside (0, 1]",
        "Every row must have had a chance of a gold label.",
        lambda v, _: ~((v > 0) & (v <= 1)),
    ),
    "fraction": Rule("{noun} outside [0, 1]", "Divide votes by annotators.", lambda v, _: (v < 0) | (v > 1)),
    "n_annotators": Rule(
        "{noun} other than whole numbers of at least 1",
        "Pass the number of votes of each row.",
        lambda v, _: ~((v >= 1) & (v == np.floor(v))),
    ),
    "label": Rule(
        "{noun} other than 0 and 1",
        "Pass the labels as 0 and 1; a model's probabilities go to truecal.labels.judged, with gold labels.",
        lambda v, _: (v != 0) & (v != 1),
    ),
    "time": Rule(
        "{noun} below 0 or infinite",
        "Pass the time from the start, as a number.",
        lambda v, _: ~((v >= 0) & np.isfinite(v)),
    ),
    "event": Rule(
        "{noun} other than 0, 1, 2, ...",
        "0 is censored; 1, 2, ... are causes.",
        lambda v, _: ~((v >= 0) & (v == np.floor(v))),
    ),
}


def judged(judge: ArrayLike, gold: ArrayLike, probability: ArrayLike | float | None = None) -> Judged:
    r"""Return the labels of a judge in all rows, with gold labels in some of them.

    The gold rows show how the judge errs. With a gold label y in a row with probability :math:`\pi`, and m what judge
    and score predict, :math:`z = m + (G / \pi)(y - m)` is an unbiased label, whatever the judge is like; a good judge
    makes it less noisy than the gold labels alone.

    Parameters
    ----------
    judge : array-like of shape (n,) or (n, k)
        What the judge said in every row: 0 and 1, or a probability. Several judges are columns.
    gold : array-like of shape (n,)
        Gold labels, 0 and 1, and NaN or None where no human labelled. If all rows have one, they are ordinary labels.
    probability : array-like of shape (n,) or float, optional
        Probability with which each row was chosen for a gold label. By default the gold rows are a random sample.

    Returns
    -------
    Judged
        To be passed as ``y_true``.

    References
    ----------
    Angelopoulos, Bates, Fannjiang, Jordan, Zrnic (2023), Prediction-powered inference, Science 382.
    Robins, Rotnitzky, Zhao (1994), Journal of the American Statistical Association 89.

    Examples
    --------
    >>> import numpy as np, truecal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(3000)
    >>> y = rng.random(3000) < p
    >>> judge = np.where(y, rng.random(3000) < 0.95, rng.random(3000) < 0.1)
    >>> gold = np.where(rng.random(3000) < 0.1, y, np.nan)
    >>> round(truecal.calibration_error(judge, p), 2)
    0.06
    >>> 0.0 in truecal.confidence_interval(truecal.labels.judged(judge, gold), p)
    True
    """
    said = _column(judge, "judge", columns=True)
    human = _column(gold, "gold", beside=("judge", len(said)))
    known = ~np.isnan(human)
    n_gold, ones = int(known.sum()), int(human[known].sum())
    if n_gold < len(human) and (n_gold < FEWEST_GOLD or min(ones, n_gold - ones) < FEWEST_OF_CLASS):
        raise InputError(
            f"has {counted(n_gold, 'label')}, {n_gold - ones} of them 0 and {ones} of them 1: too few to tell how the "
            f"judge errs. At least {FEWEST_GOLD}, and {FEWEST_OF_CLASS} of each class, are needed",
            argument="gold",
            count=n_gold,
            remedy="Label more rows, or use the rows with gold labels alone.",
        )
    pi = None
    if probability is not None:
        pi = _column(probability, "probability", beside=("gold", len(human)), one_for_all=True)
        if (never := (pi == 1) & ~known).any():
            rule, remedy = "of 1 in a row without a gold label", "Pass the probability of being chosen."
            raise bad_values(never, pi, "probability", "value", rule, remedy=remedy)
    return Judged(said.reshape(len(said), -1), human, pi)


def soft(fraction: ArrayLike, n_annotators: ArrayLike | int | None = None) -> Soft:
    """Return fractions of annotators, or relative frequencies, as labels.

    The mean fraction at a score must be the rate of positives there, as for independent annotators of whom each is
    right on average. A model's probability is not a soft label: pass that to `judged`.

    Parameters
    ----------
    fraction : array-like of shape (n,)
        Share of annotators who said 1.
    n_annotators : array-like of shape (n,) or int, optional
        Their number, to check the fractions.

    Returns
    -------
    Soft
        To be passed as ``y_true``.

    Examples
    --------
    >>> import truecal
    >>> votes = truecal.labels.soft([0.0, 1 / 3, 2 / 3, 1.0], n_annotators=3)
    >>> truecal.weak_calibration(votes, [0.1, 0.3, 0.8, 0.9]).observed_expected.value
    0.9523809523809523
    """
    share = _column(fraction, "fraction")
    if n_annotators is None:
        return Soft(share)
    number = _column(n_annotators, "n_annotators", beside=("fraction", len(share)), one_for_all=True)
    votes = share * number
    if (part := np.abs(votes - np.rint(votes)) > 0.01 * number + 1e-9).any():
        rule, remedy = "that so many annotators cannot give", "Fractions are votes divided by annotators."
        raise bad_values(part, share, "fraction", "value", rule, remedy=remedy)
    return Soft(share, number)


def misclassified(
    label: ArrayLike,
    *,
    sensitivity: float,
    specificity: float,
    validated: tuple[int, int] | None = None,
) -> Misclassified:
    r"""Return labels that are wrong with known probabilities, the same at all scores.

    With sensitivity a and specificity b, :math:`z = (j - (1 - b)) / (a + b - 1)` is an unbiased label (Rogan and Gladen
    1978). Errors that depend on the score would look like miscalibration: if gold labels are available for some of
    these rows, `judged` needs no such assumption.

    Parameters
    ----------
    label : array-like of shape (n,)
        Observed labels, 0 and 1.
    sensitivity, specificity : float
        Probability that a positive is labelled 1, and that a negative is labelled 0.
    validated : tuple of int, optional
        Number of positives and of negatives from which these two were estimated, on other rows. Their uncertainty then
        enters intervals and tests.

    Returns
    -------
    Misclassified
        To be passed as ``y_true``.

    Examples
    --------
    >>> import truecal
    >>> seen = truecal.labels.misclassified([0, 1, 1, 0], sensitivity=0.9, specificity=0.8)
    >>> round(truecal.weak_calibration(seen, [0.2, 0.7, 0.4, 0.3]).observed_expected.value, 4)
    1.0714
    """
    seen = _column(label, "label")
    a = check_real("sensitivity", sensitivity, above=0, at_most=1)
    b = check_real("specificity", specificity, above=0, at_most=1)
    if a + b <= _LEAST_INFORMATION:
        raise InputError(
            f"and specificity sum to {a + b:g}: such labels say next to nothing (1 is guessing). More than "
            f"{_LEAST_INFORMATION:g} is needed",
            argument="sensitivity",
            value=sensitivity,
            remedy="Label some rows by hand, and pass them with truecal.labels.judged.",
        )
    counts = None
    if validated is not None:
        if not isinstance(validated, tuple | list) or len(validated) != 2:
            raise InputError(
                f"must be two numbers of rows, of positives and of negatives. Got {validated!r} instead",
                argument="validated",
                value=validated,
            )
        first, second = (check_count("validated", number, at_least=2) for number in validated)
        counts = first, second
    labels = Misclassified(seen, a, b, counts)
    reach = 1.96 * math.sqrt(float(labels.rate_variances.sum()))
    if labels.youden <= reach:
        raise InputError(
            f"is too small: {validated} rows cannot tell sensitivity + specificity, {a + b:g} ± {reach:.2g}, from 1, "
            f"which is guessing",
            argument="validated",
            value=validated,
            remedy="Validate more rows.",
        )
    _refuse_contradiction(labels)
    return labels


def _refuse_contradiction(labels: Misclassified) -> None:
    """Refuse labels whose rate is impossible for the stated sensitivity and specificity."""
    rate, n = float(labels.label.mean()), len(labels)
    value = (rate - (1 - labels.specificity)) / labels.youden
    slope = np.array([-value, 1 - value]) / labels.youden
    floor = max(rate * (1 - rate), 1 / n)
    error = math.sqrt(floor / n / labels.youden**2 + float(slope**2 @ labels.rate_variances))
    if -_CLEAR * error <= value <= 1 + _CLEAR * error:
        return
    raise InputError(
        f"contradicts the stated sensitivity and specificity: {100 * rate:.3g}% are 1, but "
        f"{100 * (1 - labels.specificity):.3g}% to {100 * labels.sensitivity:.3g}% are possible",
        argument="label",
        remedy="Check sensitivity and specificity.",
    )


def censored(
    time: ArrayLike,
    event: ArrayLike,
    *,
    horizon: float,
    strata: ArrayLike | int | None = None,
    cause: int = 1,
) -> Censored:
    r"""Return outcomes at a horizon, of which some are unknown because rows were censored before it.

    The label is whether the event occurred by the horizon t. Rows with a known outcome count by the inverse of their
    probability of not being censored before, which is estimated by Kaplan and Meier within strata of the score:
    :math:`z = f + W (y - f)`. Censoring is assumed to be independent of the outcome within a stratum.

    Parameters
    ----------
    time : array-like of shape (n,)
        Time of the event or of censoring, 0 or more.
    event : array-like of shape (n,)
        0 or False if censored, 1 or True if the event occurred; 2 and more are competing events. A forecast that is
        resolved early is an event at its time: 1 if yes, 2 if no.
    horizon : float
        By when the event must have occurred, in the unit of `time`; the scores are probabilities of that.
    strata : int or array-like of shape (n,), optional
        Number of strata of the score, by default up to 10 with 50 known outcomes each; or the stratum of each row.
    cause : int
        Which event counts; others are known not to become it.

    Returns
    -------
    Censored
        To be passed as ``y_true``.

    References
    ----------
    Graf, Schmoor, Sauerbrei, Schumacher (1999), Statistics in Medicine 18.
    Austin, Harrell, van Klaveren (2020), Graphical calibration curves and the integrated calibration index (ICI) for
    survival models, Statistics in Medicine 39.

    Examples
    --------
    >>> import numpy as np, truecal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.9, 1500)
    >>> time, stop = rng.exponential(-1 / np.log(1 - p)), rng.exponential(2.0, 1500)
    >>> seen = truecal.labels.censored(np.minimum(time, stop), time <= stop, horizon=1.0)
    >>> 0.0 in truecal.confidence_interval(seen, p)
    True
    """
    when = _column(time, "time")
    what = _column(event, "event", beside=("time", len(when)))
    number = check_count("cause", cause)
    until = check_real("horizon", horizon, above=0)
    causes = sorted({int(one) for one in np.unique(what)} - {0})
    if causes and number not in causes:
        raise InputError(
            f"{number} does not occur in event, which holds {listing(causes)}",
            argument="cause",
            value=cause,
            remedy="Choose one of these.",
        )
    if causes == [1, 2] and what.all():  # as R codes them
        warn_user("event holds 1 and 2 and no 0: no row is censored. If 1 means censored, pass event - 1.")
    stratum: Any = strata
    if strata is not None and np.ndim(strata) > 0:
        column = to_array(strata, "strata")[0]
        check_length(column, "strata", len(when), "time")
        refuse_missing(column, "strata")
        stratum = number_values(column)[1]
    elif strata is not None:
        stratum = check_count("strata", strata)
    return Censored(when, what, until, stratum, number)


def _column(
    values: Any,
    name: str,
    *,
    beside: tuple[str, int] | None = None,
    columns: bool = False,
    one_for_all: bool = False,
) -> FloatArray:
    """Return one number for each row, or refuse those that break the rule of their name; gold labels may be missing.

    There must be as many rows as the argument `beside` has. With `columns`, several numbers for each row are possible;
    with `one_for_all` a single number stands for all rows.
    """
    if one_for_all and beside is not None and np.ndim(values) == 0:
        values = np.full(beside[1], check_real(name, values))
    array = to_array(values, name)[0]
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 and not (columns and array.ndim == 2):
        raise InputError(
            f"must have shape (n,){' or (n, k)' if columns else ''}. Got shape {array.shape} instead",
            argument=name,
            remedy="Reshape your data.",
        )
    if array.size == 0:
        raise InputError("is empty", argument=name)
    numbers = to_numbers(array, name, _RULES[name].remedy).astype(np.float64)
    if beside is not None:
        check_length(numbers, name, beside[1], beside[0])
    if name != "gold":
        refuse_missing(numbers, name)
    _RULES[name].refuse(numbers, name)
    return numbers
