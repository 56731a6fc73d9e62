"""For scikit-learn: a classifier that is recalibrated where it is fitted, and scorers of calibration error."""

from truecal.integrations.sklearn.calibrated_model import CalibratedModel
from truecal.integrations.sklearn.scorer import CalibrationScorer

__all__ = ["CalibratedModel", "CalibrationScorer"]
