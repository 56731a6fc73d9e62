"""Calibration in MLflow: metrics with intervals and the report in one call, and a metric for its evaluations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from truecal._lib.checks import require
from truecal._lib.text import listing
from truecal._lib.types import NormLike
from truecal.assessment import Assessment, assess
from truecal.estimators._registry import DEFAULT_ESTIMATOR
from truecal.exceptions import InputError
from truecal.inference.estimate import estimate


def log_calibration(
    y_true: ArrayLike,
    y_proba: ArrayLike | None = None,
    *,
    prefix: str = "calibration",
    step: int | None = None,
    run_id: str | None = None,
    report: bool = True,
    **options: Any,
) -> Assessment:
    """Log the calibration error, its interval, the test and the HTML report to MLflow.

    The metrics are ``calibration_error``, ``calibration_error_low``, ``calibration_error_high`` and
    ``calibration_test_pvalue``; the artifacts are ``calibration.html`` and ``calibration.json``.

    Parameters
    ----------
    y_true, y_proba
        As in `truecal.assess`.
    prefix : str
        Beginning of the names of metrics and artifacts.
    step : int, optional
        Step of the metrics, for a model that is followed in training. Artifacts of a later step replace earlier ones.
    run_id : str, optional
        Run to log to; by default the active one, or a new one.
    report : bool
        Whether to log the artifacts as well.
    **options
        Keywords of `truecal.assess`, such as `clusters`, `sample_weight` and `rng`.

    Returns
    -------
    Assessment
    """
    mlflow = require("mlflow", extra="mlflow", purpose="Logging to MLflow")
    found = assess(y_true, y_proba, **options)
    metrics = {
        "error": found.estimate.value,
        "error_low": found.interval.low,
        "error_high": found.interval.high,
    }
    if found.test is not None:
        metrics["test_pvalue"] = found.test.pvalue
    mlflow.log_metrics(
        {f"{prefix}_{name}": value for name, value in metrics.items()}, step=step, run_id=run_id
    )
    if report:
        mlflow.log_text(found.to_html(), f"{prefix}.html", run_id=run_id)
        mlflow.log_dict(found.to_dict(), f"{prefix}.json", run_id=run_id)
    return found


def calibration_metric(*, norm: NormLike = 2, confidence_level: float = 0.95, **options: Any) -> Any:
    """Return a metric for ``mlflow.models.evaluate(..., extra_metrics=[calibration_metric()])``.

    The predictions must be probabilities of the positive class: a column of the data, or a function that returns them,
    such as ``lambda X: model.predict_proba(X)[:, 1]``. Of a logged classifier MLflow passes the classes that `predict`
    returns, whatever ``pyfunc_predict_fn`` says; the metric refuses them. It logs ``calibration_error/value``,
    ``calibration_error/low`` and ``calibration_error/high``.

    Parameters
    ----------
    norm : {1, 2, "l1", "l2"}
        Order of the norm.
    confidence_level : float
        Level of the interval.
    **options
        Keywords of `truecal.estimate`, such as `pos_label`.

    Returns
    -------
    EvaluationMetric
    """
    models = require("mlflow.models", extra="mlflow", purpose="The metric for MLflow")
    metrics = require("mlflow.metrics", extra="mlflow", purpose="The metric for MLflow")
    if options.get("estimator", DEFAULT_ESTIMATOR) != DEFAULT_ESTIMATOR:
        raise InputError(
            f"must be {DEFAULT_ESTIMATOR!r}, to which the interval belongs", argument="estimator"
        )

    def compute(predictions: Any, targets: Any, metrics_so_far: Any = None) -> Any:
        _refuse_classes(predictions, targets)
        found = estimate(targets, predictions, norm=norm, confidence_level=confidence_level, **options)
        assert found.interval is not None
        values = {"value": found.value, "low": found.interval.low, "high": found.interval.high}
        return metrics.MetricValue(aggregate_results=values)

    return models.make_metric(eval_fn=compute, greater_is_better=False, name="calibration_error")


def _refuse_classes(predictions: Any, targets: Any) -> None:
    """Refuse predictions that are classes: all exactly 0 or 1, or all among the labels."""
    rows = np.asarray(predictions)
    if len(rows) < 2:  # MLflow tries each metric on the first row, which may have a probability of 1
        return
    classes = {0, 1, *np.asarray(targets).tolist()}
    for part in (rows[:100], rows):  # the first rows rule out nearly all probabilities
        try:
            values = set(np.ravel(part.tolist()).tolist())  # each row may be a list
        except ValueError:  # lists of different lengths, which are refused later
            return
        if not values <= classes:
            return
    raise InputError(
        f"are predicted classes ({listing(sorted(values, key=str), 3)}), not probabilities: "
        "for a classifier mlflow.models.evaluate passes the output of predict",
        argument="predictions",
        remedy="Pass mlflow.models.evaluate a function, lambda X: model.predict_proba(X)[:, 1], in place of the model, "
        "or data with a column of probabilities and its name as predictions=.",
    )
