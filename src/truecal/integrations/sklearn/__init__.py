"""For scikit-learn: a classifier that is recalibrated where it is fitted, and scorers of calibration error."""

from truecal._lib.checks import require

# Before anything imports scikit-learn, so that the error says what to install.
require("sklearn", extra="sklearn", purpose="The integration with scikit-learn")

from truecal.integrations.sklearn._calibrated_model import CalibratedModel  # noqa: E402
from truecal.integrations.sklearn._scorer import CalibrationScorer  # noqa: E402

__all__ = ["CalibratedModel", "CalibrationScorer"]
