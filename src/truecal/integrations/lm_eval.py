"""Aggregations for lm-evaluation-harness: the calibration error of a task, its interval and its standard error.

A task uses them by name. `process_results` returns a pair (confidence, correct) for each, or a triple with the cluster:

.. code-block:: yaml

    process_results: !function utils.process_results
    metric_list:
      - metric: calibration_error
        aggregation: truecal_error
        higher_is_better: false
      - metric: calibration_low
        aggregation: truecal_low
      - metric: calibration_high
        aggregation: truecal_high

with ``from truecal.integrations.lm_eval import register`` and ``register()`` in ``utils.py``. The harness computes
standard errors for its own aggregations only, so the interval is reported as metrics of its own. For logs that exist
already see `truecal.integrations.llm.read_lm_eval_samples`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from truecal._lib.checks import require
from truecal.exceptions import InputError
from truecal.inference.estimate import estimate
from truecal.results import Estimate, Interval

#: A confidence, whether the answer is right, and what it belongs to if answers depend on each other.
Item = Sequence[Any]


def truecal_error(items: Sequence[Item]) -> float:
    """Return the l2 calibration error.

    Parameters
    ----------
    items : sequence of (confidence, correct) or (confidence, correct, cluster)
        One for each answer.

    Examples
    --------
    >>> items = [(0.9, i % 10 < 6) for i in range(100)]
    >>> round(truecal_error(items), 1)
    0.3
    """
    return _estimate(items).value


def truecal_low(items: Sequence[Item]) -> float:
    """Return the lower end of the 95% confidence interval.

    Parameters
    ----------
    items : sequence of (confidence, correct) or (confidence, correct, cluster)
        One for each answer.
    """
    return _interval(items).low


def truecal_high(items: Sequence[Item]) -> float:
    """Return the upper end of the 95% confidence interval.

    Parameters
    ----------
    items : sequence of (confidence, correct) or (confidence, correct, cluster)
        One for each answer.
    """
    return _interval(items).high


def truecal_stderr(items: Sequence[Item]) -> float:
    """Return half the width of the 95% interval in units of 1.96: a standard error where the error is not near 0.

    Parameters
    ----------
    items : sequence of (confidence, correct) or (confidence, correct, cluster)
        One for each answer.
    """
    interval = _interval(items)
    return (interval.high - interval.low) / (2 * float(ndtri(0.975)))


AGGREGATIONS = (truecal_error, truecal_low, truecal_high, truecal_stderr)


def register() -> None:
    """Register the aggregations with lm_eval under their function names; calling it again is harmless."""
    registry = require("lm_eval.api.registry", extra="llm", purpose="Registering aggregations")
    for function in AGGREGATIONS:
        registry.register_aggregation(function.__name__)(function)


def _interval(items: Sequence[Item]) -> Interval:
    interval = _estimate(items).interval
    assert interval is not None
    return interval


def _estimate(items: Sequence[Item]) -> Estimate:
    lengths = {len(item) for item in items}
    if lengths not in ({2}, {3}):
        raise InputError(
            "must be pairs (confidence, correct), or triples with the cluster. Got "
            + (f"items of {' and '.join(map(str, sorted(lengths)))}" if lengths else "none"),
            argument="items",
        )
    confidence, correct, *cluster = (np.array(column) for column in zip(*items, strict=True))
    return estimate(correct, confidence, confidence_level=0.95, clusters=cluster[0] if cluster else None)
