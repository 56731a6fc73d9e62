"""Pieces of docstrings that several functions share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Function = TypeVar("_Function", bound=Callable[..., object])

#: The two arguments with which every function that looks at predictions begins.
PREDICTIONS = """\
y_true : array-like of shape (n,), (n, 1) or one-hot (n, K), or Sample
    Labels. A `Sample` (or `Cells`) stands for both labels and probabilities.
y_proba : array-like of shape (n,), (n, 1), (n, 2) or (n, K), optional
    Probabilities."""

#: How weights and classes are read.
READING = """\
sample_weight : array-like of shape (n,), optional
    Weight of each row.
weights : {"sampling", "counts", "clusters"}, optional
    Whether a weight of 2 stands for two rows (``"counts"``) or not (``"sampling"``, the default); ``"clusters"``
    makes every cluster count the same.
pos_label, labels, multiclass
    The positive class, the class of each column, and what to look at for several classes; see
    `truecal.Sample.from_predictions`."""

#: Rows that depend on each other.
CLUSTERS = """\
clusters : array-like of shape (n,), optional
    Rows with the same value depend on each other."""


def fill_docstring(**pieces: str) -> Callable[[_Function], _Function]:
    """Replace each line ``{name}`` in the docstring of a function by the piece of that name, indented as the line is.

    Parameters
    ----------
    **pieces : str
        Text by name, not indented.
    """
    named = {f"{{{name}}}": text for name, text in pieces.items()}

    def fill(function: _Function) -> _Function:
        lines = []
        for line in (function.__doc__ or "").splitlines():
            text = named.get(line.strip())
            indent = line[: len(line) - len(line.lstrip())]
            lines += (
                [line] if text is None else [indent + part if part else part for part in text.splitlines()]
            )
        function.__doc__ = "\n".join(lines) or None
        return function

    return fill
