"""Isotonic regression of grouped labels."""

from __future__ import annotations

import numpy as np

from truecal._lib.types import FloatArray


def isotonic_rate(count: FloatArray, positives: FloatArray) -> FloatArray:
    """Return for each group the rate under the best rising curve (pool adjacent violators).

    Parameters
    ----------
    count, positives : ndarray of shape (n_groups,)
        Rows and positive labels of each group, in ascending order of the score.

    Returns
    -------
    ndarray of shape (n_groups,)
        Rates in [0, 1], never falling.

    Examples
    --------
    >>> isotonic_rate(np.array([1.0, 1.0, 2.0]), np.array([1.0, 0.0, 2.0]))
    array([0.5, 0.5, 1. ])
    """
    from scipy.optimize import isotonic_regression  # slow to import

    fitted: FloatArray = isotonic_regression(positives / count, weights=count).x
    return np.clip(fitted, 0.0, 1.0)
