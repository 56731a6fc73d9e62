"""How predictions are read: the same keywords for every function, the words for classes, and what weights mean."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from truecal._lib.checks import check_choice
from truecal._lib.lazy import fill_docstring
from truecal._lib.types import FloatArray
from truecal.data.faults import FRACTION
from truecal.data.labels import Codes
from truecal.exceptions import InputError

_Function = TypeVar("_Function", bound=Callable[..., object])


class Reading(TypedDict, total=False):
    """Keywords of `truecal.Sample.from_predictions`, which describes them."""

    sample_weight: ArrayLike | None
    weighting: str | None
    clusters: Any
    pos_label: Any
    labels: Sequence[Any] | None
    multiclass: str | None


_PREDICTIONS = """\
y_true : array-like of shape (n,), (n, 1) or one-hot (n, K), or Sample
    Labels. A `Sample` (or `Cells`) stands for both labels and probabilities.
y_proba : array-like of shape (n,), (n, 1), (n, 2) or (n, K), optional
    Probabilities."""

_WEIGHTS = """\
sample_weight : array-like of shape (n,), optional
    Weight of each row.
weighting : {"sampling", "counts", "clusters"}, optional
    Whether a weight of 2 stands for two rows (``"counts"``) or not (``"sampling"``, the default); ``"clusters"``
    makes every cluster count the same."""

_CLUSTERS = """\
clusters : array-like of shape (n,) or (n, k), or data frame, optional
    Rows with the same value depend on each other; several columns are crossed."""

_CLASSES = """\
pos_label, labels, multiclass
    The positive class, the class of each column, and what to look at for several classes; see
    `truecal.Sample.from_predictions`."""


def takes_predictions(function: _Function) -> _Function:
    """Write out ``**reading`` of a function, in its signature and for the lines of its docstring that are fragments.

    These are ``{predictions}`` and ``{reading}``, or ``{weights}``, ``{clusters}`` and ``{classes}`` one by one.
    `rng` is the last keyword everywhere.

    Examples
    --------
    >>> @takes_predictions
    ... def share(y_true, y_proba=None, *, digits=2, **reading): ...
    >>> list(inspect.signature(share).parameters)[2:5]
    ['digits', 'sample_weight', 'weighting']
    """
    signature = inspect.signature(function)
    *own, _ = signature.parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY
    read = [
        inspect.Parameter(name, keyword, default=None, annotation=getattr(kind, "__forward_arg__", kind))
        for name, kind in Reading.__annotations__.items()
    ]
    last = [parameter for parameter in own if parameter.name == "rng"]
    first = [parameter for parameter in own if parameter not in last]
    function.__signature__ = signature.replace(parameters=[*first, *read, *last])  # type: ignore[attr-defined]
    fragments = {"weights": _WEIGHTS, "clusters": _CLUSTERS, "classes": _CLASSES}
    whole = "\n".join(fragments.values())
    return fill_docstring(predictions=_PREDICTIONS, reading=whole, **fragments)(function)


#: The value of `multiclass` for the error of the top label among rows with the same predicted class.
TOP_BY_CLASS = "top_by_class"
#: That for columns that are labels, of which a row can have any number, and not classes.
MULTILABEL = "multilabel"

#: What weights mean where uncertainty is reported.
WEIGHT_KINDS = ("sampling", "counts", "clusters")
#: How a target says that it is one of several classes, has the rows of one predicted class, or is a label.
AGAINST_THE_REST, WHERE_TOP, LABEL = " against the rest", " where it is the top label", "label "


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
    """Return weights with the same total, the mean cluster size, in each cluster that has any weight."""
    given = np.ones(len(cluster)) if weight is None else weight
    total = np.bincount(cluster, given)
    scale = given.sum() / np.count_nonzero(total)
    return np.asarray(given * (scale / np.where(total > 0, total, 1.0))[cluster])
