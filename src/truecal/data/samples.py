"""Predictions as people pass them, or a `Sample` made before: the first step of every public function."""

from __future__ import annotations

from typing import Any

from truecal.data.predictions import read
from truecal.data.sample import Sample


def as_samples(y_true: Any, y_proba: Any = None, **reading: Any) -> tuple[Sample, ...]:
    """Return the samples of labels and probabilities, or the `Sample` itself if there is one.

    Parameters
    ----------
    y_true, y_proba
        As in `read`; or a `Sample` alone.
    **reading
        The other parameters of `read`. They say nothing to a `Sample`, and are refused with one.

    Returns
    -------
    tuple of Sample
        One, or K for classwise.
    """
    if isinstance(y_true, Sample):
        given = [name for name, value in {"y_proba": y_proba, **reading}.items() if value is not None]
        if given:
            raise ValueError(
                f"A Sample holds labels, scores and weights already. Leave out {', '.join(given)}."
            )
        return (y_true,)
    if y_proba is None:
        raise ValueError("y_proba is missing. Pass labels and probabilities, or one Sample.")
    return read(y_true, y_proba, **reading)


def one_sample(y_true: Any, y_proba: Any = None, **reading: Any) -> Sample:
    """Return the one sample of the predictions; several, as for classwise, are refused.

    Parameters
    ----------
    y_true, y_proba, **reading
        As in `as_samples`.

    Returns
    -------
    Sample

    Examples
    --------
    >>> one_sample([0, 1], [0.2, 0.9])
    Sample(n=2, groups=2, target='P(y = 1)')
    """
    samples = as_samples(y_true, y_proba, **reading)
    if len(samples) > 1:
        raise ValueError(
            f"multiclass='classwise' makes {len(samples)} samples, and this takes one. Choose a class with "
            f"pos_label, or the top label with multiclass='top'."
        )
    return samples[0]
