"""How labels and probabilities are read: the same keywords for every function that takes predictions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypedDict, TypeVar

from numpy.typing import ArrayLike

from truecal._lib.lazy import fill_docstring

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

    Parameters
    ----------
    function : callable
        A function with ``**reading: Unpack[Reading]``.

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
