"""Recalibrators, one per file: they learn the observed frequency at each score and correct the scores."""

from truecal.recalibration.beta import BetaCalibration
from truecal.recalibration.dirichlet import DirichletCalibration
from truecal.recalibration.histogram import HistogramBinning
from truecal.recalibration.identity import IdentityCalibration
from truecal.recalibration.isotonic import IsotonicCalibration
from truecal.recalibration.platt import PlattScaling
from truecal.recalibration.temperature import TemperatureScaling
from truecal.recalibration.vector import VectorScaling
from truecal.recalibration.venn_abers import VennAbersCalibration

__all__ = [
    "BetaCalibration",
    "DirichletCalibration",
    "HistogramBinning",
    "IdentityCalibration",
    "IsotonicCalibration",
    "PlattScaling",
    "TemperatureScaling",
    "VectorScaling",
    "VennAbersCalibration",
]
