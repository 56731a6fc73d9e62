"""A metric for Evidently: the calibration error of a column of probabilities.

from evidently import Report
from evidently_metric import CalibrationError
Report([CalibrationError(label="target", score="probability")]).run(current, reference)
"""

# Where it is not installed, its classes are unknown to mypy.
# mypy: disable-error-code="import-not-found,misc,no-any-unimported"

from __future__ import annotations

from typing import Any

from evidently.core.metric_types import SingleValueCalculation, SingleValueMetric

import truecal


class CalibrationError(SingleValueMetric):
    """The calibration error; `label` and `score` name columns, `estimator` is any of truecal's."""

    label: str
    score: str
    estimator: str = "multiscale"


class CalibrationErrorCalculation(SingleValueCalculation[CalibrationError]):
    """Measures the current and the reference data."""

    def calculate(self, context: Any, current_data: Any, reference_data: Any) -> Any:
        """Return the error of the current data, and of the reference data if there are any."""
        return self._measure(current_data), None if reference_data is None else self._measure(reference_data)

    def _measure(self, data: Any) -> Any:
        metric, frame = self.metric, data.as_dataframe()
        error = truecal.calibration_error(
            frame[metric.label], frame[metric.score], estimator=metric.estimator
        )
        return self.result(error)

    def display_name(self) -> str:
        """Return the name in reports."""
        return f"Calibration error of {self.metric.score}"
