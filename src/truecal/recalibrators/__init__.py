"""The recalibrators, one idea in each file: they learn how often scores come true, and correct them."""

from truecal.recalibrators.beta import BetaCalibration
from truecal.recalibrators.histogram import HistogramBinning
from truecal.recalibrators.identity import IdentityCalibration
from truecal.recalibrators.isotonic import IsotonicCalibration
from truecal.recalibrators.platt import PlattScaling
from truecal.recalibrators.temperature import TemperatureScaling

__all__ = [
    "BetaCalibration",
    "HistogramBinning",
    "IdentityCalibration",
    "IsotonicCalibration",
    "PlattScaling",
    "TemperatureScaling",
]
