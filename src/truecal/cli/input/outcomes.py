"""Groups and features that are the outcome under another name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal.cli.input.values import called
from truecal.exceptions import InputError

#: Rows of a label, and mean rows of a value, below which one label for each value may be chance.
_FEW_ROWS = 10


def refuse_outcomes(columns: Mapping[str, Any], label: NDArray[Any], *, remedy: str) -> None:
    """Refuse columns that determine the label: given the outcome, no probability but 0 and 1 is calibrated.

    Parameters
    ----------
    columns : mapping of str to array or polars.Series
        Groups, or features.
    label : ndarray of shape (n,)
        The labels.
    remedy : str
        What to do.
    """
    import polars as pl

    labels = _series(label).alias("label")
    sizes = labels.value_counts()["count"].sort(descending=True)
    if len(sizes) < 2 or sizes[1] < _FEW_ROWS:
        return
    for name, column in columns.items():
        values = _series(column).alias("value")
        rows = pl.DataFrame([values, labels])
        # The first rows rule out nearly all columns.
        if _is_one_label(rows.head(1000)) and _is_one_label(rows):
            n = values.n_unique()
            if n * _FEW_ROWS <= len(values):
                raise InputError(
                    f"has {n:,} values, and all rows with the same value have the same label: it is the outcome, "
                    f"or was known only after it",
                    argument=called([name]),
                    remedy=remedy,
                )


def _series(values: Any) -> Any:
    import polars as pl

    is_object = isinstance(values, np.ndarray) and values.dtype.kind == "O"
    return pl.Series(values=values.tolist() if is_object else values, strict=False)


def _is_one_label(rows: Any) -> bool:
    """Return whether all rows with the same value have the same label."""
    return bool(rows.n_unique() == rows["value"].n_unique())
