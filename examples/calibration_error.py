"""A metric for Hugging Face's evaluate: the calibration error with its interval, and the test.

import evaluate
metric = evaluate.load("calibration_error.py")  # the path of this file
metric.compute(references=labels, predictions=probabilities)
"""

# Where it is not installed, its classes are unknown to mypy.
# mypy: disable-error-code="import-not-found,misc,no-any-unimported"

from __future__ import annotations

from typing import Any

import datasets
import evaluate

import truecal


class CalibrationError(evaluate.Metric):
    """Calibration error of probabilities of the class 1, or of the top label of several classes.

    Load it with ``config_name="multiclass"`` for a list of probabilities in each row.
    """

    def _info(self) -> Any:
        number = datasets.Value("float64")
        several = self.config_name == "multiclass"
        return evaluate.MetricInfo(
            description="Calibration error with its confidence interval, and the test of perfect calibration.",
            citation="Roelofs, Cain, Shlens, Mozer (2022), Mitigating bias in calibration error estimation, AISTATS.",
            inputs_description="predictions: probabilities; references: labels; options of truecal.estimate.",
            features=datasets.Features(
                {
                    "predictions": datasets.Sequence(number) if several else number,
                    "references": datasets.Value("int64"),
                }
            ),
        )

    def _compute(self, *, predictions: Any, references: Any, rng: int = 0, **options: Any) -> dict[str, Any]:
        """Return the error, both ends of its 95% interval, and the p-value of perfect calibration."""
        found = truecal.estimate(references, predictions, confidence_level=0.95, **options)
        assert found.interval is not None
        reading = {name: options[name] for name in ("multiclass", "labels", "pos_label") if name in options}
        test = truecal.calibration_test(references, predictions, rng=rng, **reading)
        return {
            "calibration_error": found.value,
            "low": found.interval.low,
            "high": found.interval.high,
            "pvalue": test.pvalue,
        }
