"""What is asked of several classes, and what weights mean: the words for it, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from truecal._lib.checks import check_choice
from truecal._lib.types import FloatArray
from truecal.data.faults import FRACTION
from truecal.data.labels import Codes
from truecal.exceptions import InputError

#: The value of `multiclass` for the error of the top label among rows with the same predicted class.
TOP_BY_CLASS = "top_by_class"
#: That for columns that are labels, of which a row can have any number, and not classes.
MULTILABEL = "multilabel"

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
    if multiclass in ("canonical", TOP_BY_CLASS, MULTILABEL):
        interval = "" if multiclass == "canonical" else ", confidence_interval"
        raise InputError(
            f"{multiclass!r} is for calibration_error, estimate{interval} and calibration_test only",
            argument="multiclass",
            value=multiclass,
            remedy="Use 'top', 'top_k' or 'classwise'.",
        )
    if not (isinstance(multiclass, str) and re.fullmatch("top_(k|[1-9][0-9]*)", multiclass)):
        check_choice(
            "multiclass", multiclass, ("top", "classwise", "top_k", TOP_BY_CLASS, MULTILABEL, "canonical")
        )
    if pos_label is not None and multiclass.startswith("top"):
        raise InputError(
            f"cannot be combined with multiclass={multiclass!r}: the top class differs from row to row",
            argument="pos_label",
        )


def weights_are_counts(weight: FloatArray | None, kind: str | None, cluster: Codes | None = None) -> bool:
    """Return whether a weight of 2 stands for two rows; refuse an unknown meaning, or one that weights cannot have."""
    if kind is None:
        return False
    check_choice("weighting", kind, WEIGHT_KINDS)
    if kind == "clusters":
        if cluster is None:
            raise InputError("'clusters' needs clusters", argument="weighting", value=kind)
        return False
    if weight is None:
        raise InputError(f"{kind!r} needs sample_weight", argument="weighting", value=kind)
    if kind == "counts":
        FRACTION.refuse(weight, "sample_weight")
    return kind == "counts"


def equal_weights(weight: FloatArray | None, cluster: Codes) -> FloatArray:
    """Return weights that add up to the mean size of a cluster in each of them; a cluster without weight stays out."""
    given = np.ones(len(cluster)) if weight is None else weight
    total = np.bincount(cluster, given)
    scale = given.sum() / np.count_nonzero(total)
    return np.asarray(given * (scale / np.where(total > 0, total, 1.0))[cluster])
