"""How far are predicted probabilities from the truth, and how sure can we be? These are the public names."""

from truecal._registry import EstimatorSpec, list_estimators
from truecal.measure import calibration_error, estimate
from truecal.results import BinTable, Estimate
from truecal.sample import Sample

__version__ = "0.1.0"

__all__ = [
    "BinTable",
    "Estimate",
    "EstimatorSpec",
    "Sample",
    "calibration_error",
    "estimate",
    "list_estimators",
]
