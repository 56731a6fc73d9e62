"""Probabilities, logits and weights as arrays: the one place where they are checked."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from truecal._lib.checks import check_choice
from truecal._lib.types import FloatArray
from truecal.data.arrays import (
    bad_values,
    check_shape,
    refuse_missing,
    to_array,
    to_numbers,
)
from truecal.data.labels import Codes
from truecal.data.scales import finite, fitting_remedy, look_at
from truecal.exceptions import InputError, Remedy

#: The value of `multiclass` for the error of the top label among rows with the same predicted class.
TOP_BY_CLASS = "top_by_class"

#: How far a row of probabilities may be from a sum of 1: float32 softmax and rounded files pass.
SUM_TOLERANCE = 1e-3

#: Limits of weights other than 0. Beyond them sums, products and squares of weights could overflow or vanish.
MIN_WEIGHT, MAX_WEIGHT = 1e-100, 1e100

#: What is wrong with other weights, and what weights mean.
WEIGHT_RULE = f"outside [{MIN_WEIGHT:g}, {MAX_WEIGHT:g}]"
WEIGHT_REMEDY = "A weight of 2 counts a row twice, and 0 leaves it out."
#: What is wrong with weights that are said to count rows and cannot.
COUNT_RULE = "with a fractional part, which cannot count rows"

#: What weights mean where uncertainty is reported.
WEIGHT_KINDS = ("sampling", "counts", "clusters")
#: How a target says that it is one of several classes.
AGAINST_THE_REST = " against the rest"


def class_target(classes: list[Any], k: int) -> str:
    """Return what a score of class k is the probability of, in words."""
    return f"P(y = {classes[k]!r}){'' if len(classes) == 2 else AGAINST_THE_REST}"


def check_multiclass(multiclass: str | None, pos_label: Any = None) -> None:
    """Refuse an unknown way to measure several classes, and a positive class with the top label."""
    if multiclass is None:
        return
    if multiclass in ("canonical", TOP_BY_CLASS):
        interval = "" if multiclass == "canonical" else ", confidence_interval"
        raise InputError(
            f"{multiclass!r} is for calibration_error, estimate{interval} and calibration_test only",
            argument="multiclass",
            value=multiclass,
            remedy="Use 'top', 'top_k' or 'classwise'.",
        )
    if not (isinstance(multiclass, str) and re.fullmatch("top_(k|[1-9][0-9]*)", multiclass)):
        check_choice("multiclass", multiclass, ("top", "classwise", "top_k", TOP_BY_CLASS, "canonical"))
    if pos_label is not None and multiclass.startswith("top"):
        raise InputError(
            f"cannot be combined with multiclass={multiclass!r}: the top class differs from row to row",
            argument="pos_label",
        )


def weights_are_counts(weight: FloatArray | None, kind: str | None, cluster: Codes | None = None) -> bool:
    """Return whether a weight of 2 stands for two rows; refuse an unknown meaning, or one that weights cannot have."""
    if kind is None:
        return False
    check_choice("weights", kind, WEIGHT_KINDS)
    if kind == "clusters":
        if cluster is None:
            raise InputError("'clusters' needs clusters", argument="weights", value=kind)
        return False
    if weight is None:
        raise InputError(f"{kind!r} needs sample_weight", argument="weights", value=kind)
    if kind == "counts" and (part := weight != np.floor(weight)).any():
        raise bad_values(part, weight, "sample_weight", "value", COUNT_RULE, remedy=Remedy.SAMPLING)
    return kind == "counts"


def equal_weights(weight: FloatArray | None, cluster: Codes) -> FloatArray:
    """Return weights that add up to the mean size of a cluster in each of them; a cluster without weight stays out."""
    given = np.ones(len(cluster)) if weight is None else weight
    total = np.bincount(cluster, given)
    scale = given.sum() / np.count_nonzero(total)
    return np.asarray(given * (scale / np.where(total > 0, total, 1.0))[cluster])


def read_logits(logits: Any, name: str = "logits") -> tuple[FloatArray, list[Any] | None]:
    """Return the probabilities of logits, and the names of their columns where there are any.

    One column goes through the sigmoid, several through the softmax, both stable and in float64, so that fewer
    scores round to 1.
    """
    array, names = finite_numbers(logits, name)
    if array.ndim == 1 or array.shape[1] == 1:
        return np.asarray(scipy.special.expit(array.reshape(-1))), None
    with np.errstate(over="ignore"):  # 1e308 less -1e308 is infinite, and its probability rightly 0
        return np.asarray(scipy.special.softmax(array, axis=1)), names


def finite_numbers(values: Any, name: str) -> tuple[FloatArray, list[Any] | None]:
    """Return finite numbers as float64, and the names of their columns where there are any."""
    array, names = to_array(values, name)
    check_shape(array, name)
    array = to_numbers(array, name).astype(np.float64)
    finite = np.isfinite(array)
    if not finite.all():
        raise bad_values(~finite, array, name, "infinite or NaN value", remedy=Remedy.DROP_ROWS)
    return array, names


def probabilities_from_logits(logits: ArrayLike) -> FloatArray:
    """Return the sigmoid of one column of logits, the softmax of several.

    Parameters
    ----------
    logits : array-like of shape (n,), (n, 1) or (n, K)
        Finite real numbers.

    Returns
    -------
    ndarray of shape (n,) or (n, K)
        Probabilities, float64.

    Examples
    --------
    >>> probabilities_from_logits([[1000.0, 1000.0], [0.0, -1000.0]])
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    return read_logits(logits)[0]


def read_probabilities(
    y_proba: Any, name: str = "y_proba", *, remedy: Remedy = Remedy.LOGITS
) -> tuple[NDArray[np.floating[Any]], list[Any] | None]:
    """Return checked probabilities, and the names of their columns where there are any.

    Parameters
    ----------
    y_proba : array-like of shape (n,), (n, 1) or (n, K)
        Probabilities; those of several columns must sum to 1.
    name : str
        What messages call them.
    remedy : Remedy
        What to do about values that look like logits.
    """
    array, names = to_array(y_proba, name)
    check_shape(array, name)
    proba = to_numbers(array, name)
    # The minimum and the maximum are NaN if any value is, so this one comparison finds every fault.
    if not (proba.min() >= 0 and proba.max() <= 1):
        refuse_missing(proba, name, "value")
        raise _out_of_range(proba, name, remedy)
    if proba.dtype.itemsize > 8:  # only now, for rounding would hide an excess beyond float64
        proba = proba.astype(np.float64)
    if proba.ndim == 1 or proba.shape[1] == 1:
        return proba, None
    total = proba.sum(axis=1, dtype=np.float64)
    off = np.abs(total - 1) > SUM_TOLERANCE
    if off.any():
        raise bad_values(off, total, name, "row", "whose sum is not 1", remedy=Remedy.NORMALIZE)
    return proba, names


def _out_of_range(proba: NDArray[np.floating[Any]], name: str, logits: Remedy) -> InputError:
    """Return the error of values outside [0, 1], with the scale that fits them; `logits` is what to do about logits."""
    values = look_at([finite(proba)])
    remedy = fitting_remedy(values)
    outside = (proba < 0) | (proba > 1)
    if remedy is Remedy.LOGITS:
        remedy = logits
    elif remedy is Remedy.LOG_PROBABILITIES and logits is Remedy.SCORES_ARE_LOGITS:
        remedy = Remedy.SCORES_ARE_LOG_PROBABILITIES
    error = bad_values(outside, proba, name, "value", "outside [0, 1]", remedy=remedy)
    if remedy is not Remedy.MISSING_CODE:
        return error
    first = int((proba == values.code).reshape(len(proba), -1).any(axis=1).argmax())
    return InputError(
        error.problem, argument=name, count=error.count, first_row=first, value=values.code, remedy=remedy
    )


def read_weights(sample_weight: Any, n: int) -> FloatArray | None:
    """Return checked weights, or None if there are none."""
    if sample_weight is None:
        return None
    weight = to_numbers(to_array(sample_weight, "sample_weight")[0], "sample_weight").astype(np.float64)
    if weight.shape not in ((n,), (n, 1)):
        raise InputError(
            f"has shape {weight.shape}. One weight is needed for each of {n} rows", argument="sample_weight"
        )
    weight = weight.reshape(n)
    wrong = ~((weight == 0) | (weight >= MIN_WEIGHT) & (weight <= MAX_WEIGHT))
    if wrong.any():
        raise bad_values(wrong, weight, "sample_weight", "value", WEIGHT_RULE, remedy=WEIGHT_REMEDY)
    if not weight.any():
        raise InputError("is zero in every row. At least one row must count", argument="sample_weight")
    return weight
