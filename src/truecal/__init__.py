"""How far are predicted probabilities from the truth, and how sure can we be? These are the public names."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truecal import datasets as datasets
    from truecal import readers as readers
    from truecal import suites as suites
    from truecal._registry import EstimatorSpec as EstimatorSpec
    from truecal._registry import estimator as estimator
    from truecal._registry import list_estimators as list_estimators
    from truecal.advice import Advice as Advice
    from truecal.advice import advise as advise
    from truecal.assessment import Assessment as Assessment
    from truecal.assessment import assess as assess
    from truecal.bin_counts import BinCounts as BinCounts
    from truecal.cells import Cells as Cells
    from truecal.comparison import Comparison as Comparison
    from truecal.comparison import compare as compare
    from truecal.decomposition import Decomposition as Decomposition
    from truecal.decomposition import decompose as decompose
    from truecal.detection import MissRates as MissRates
    from truecal.detection import Power as Power
    from truecal.detection import miss_rates as miss_rates
    from truecal.detection import population_with_error as population_with_error
    from truecal.detection import power as power
    from truecal.display import BiasDisplay as BiasDisplay
    from truecal.display import BinCountDisplay as BinCountDisplay
    from truecal.display import ComparisonDisplay as ComparisonDisplay
    from truecal.display import CurveDisplay as CurveDisplay
    from truecal.display import MissRateDisplay as MissRateDisplay
    from truecal.display import ReliabilityDisplay as ReliabilityDisplay
    from truecal.display import ScoreDisplay as ScoreDisplay
    from truecal.engines import summarize as summarize
    from truecal.histogram import ScoreHistogram as ScoreHistogram
    from truecal.histogram import score_histogram as score_histogram
    from truecal.hypotheses import TestResult as TestResult
    from truecal.hypotheses import calibration_test as calibration_test
    from truecal.intervals import confidence_interval as confidence_interval
    from truecal.measure import calibration_error as calibration_error
    from truecal.measure import estimate as estimate
    from truecal.models import paper as paper
    from truecal.models.curves import Curve as Curve
    from truecal.models.curves import FunctionCurve as FunctionCurve
    from truecal.models.curves import GLMCurve as GLMCurve
    from truecal.models.curves import IdentityCurve as IdentityCurve
    from truecal.models.curves import LogisticCurve as LogisticCurve
    from truecal.models.curves import PowerCurve as PowerCurve
    from truecal.models.curves import StepCurve as StepCurve
    from truecal.models.fit import PopulationFit as PopulationFit
    from truecal.models.fit import fit_population as fit_population
    from truecal.models.population import Population as Population
    from truecal.models.scores import AtomScores as AtomScores
    from truecal.models.scores import BetaScores as BetaScores
    from truecal.models.scores import EmpiricalScores as EmpiricalScores
    from truecal.models.scores import MixtureScores as MixtureScores
    from truecal.models.scores import RoundedScores as RoundedScores
    from truecal.models.scores import ScoreDistribution as ScoreDistribution
    from truecal.models.scores import UniformScores as UniformScores
    from truecal.models.scores import with_atoms as with_atoms
    from truecal.planning import SamplePlan as SamplePlan
    from truecal.planning import detectable_error as detectable_error
    from truecal.planning import plan_sample_size as plan_sample_size
    from truecal.planning import required_sample_size as required_sample_size
    from truecal.recalibrators import BetaCalibration as BetaCalibration
    from truecal.recalibrators import HistogramBinning as HistogramBinning
    from truecal.recalibrators import IdentityCalibration as IdentityCalibration
    from truecal.recalibrators import IsotonicCalibration as IsotonicCalibration
    from truecal.recalibrators import PlattScaling as PlattScaling
    from truecal.recalibrators import TemperatureScaling as TemperatureScaling
    from truecal.reliability import Reliability as Reliability
    from truecal.reliability import reliability_curve as reliability_curve
    from truecal.results import BinTable as BinTable
    from truecal.results import Estimate as Estimate
    from truecal.results import Interval as Interval
    from truecal.sample import Sample as Sample
    from truecal.selection import CandidateScore as CandidateScore
    from truecal.selection import Selection as Selection
    from truecal.selection import select_recalibrator as select_recalibrator
    from truecal.spiegelhalter import spiegelhalter_test as spiegelhalter_test
    from truecal.streaming import CalibrationStream as CalibrationStream
    from truecal.streaming import WindowedStream as WindowedStream
    from truecal.study import Study as Study
    from truecal.study import bias_study as bias_study

__version__ = "0.1.0"

#: Where each public name lives. It is imported when it is first asked for, so that `import truecal` and
#: `truecal --help` take no longer than they need. A module of the same name is the module itself.
_HOME = {
    "Advice": "truecal.advice",
    "Assessment": "truecal.assessment",
    "AtomScores": "truecal.models.scores",
    "BetaCalibration": "truecal.recalibrators",
    "BetaScores": "truecal.models.scores",
    "BiasDisplay": "truecal.display",
    "BinCountDisplay": "truecal.display",
    "BinCounts": "truecal.bin_counts",
    "BinTable": "truecal.results",
    "CalibrationStream": "truecal.streaming",
    "CandidateScore": "truecal.selection",
    "Cells": "truecal.cells",
    "Comparison": "truecal.comparison",
    "ComparisonDisplay": "truecal.display",
    "Curve": "truecal.models.curves",
    "CurveDisplay": "truecal.display",
    "Decomposition": "truecal.decomposition",
    "EmpiricalScores": "truecal.models.scores",
    "Estimate": "truecal.results",
    "EstimatorSpec": "truecal._registry",
    "FunctionCurve": "truecal.models.curves",
    "GLMCurve": "truecal.models.curves",
    "HistogramBinning": "truecal.recalibrators",
    "IdentityCalibration": "truecal.recalibrators",
    "IdentityCurve": "truecal.models.curves",
    "Interval": "truecal.results",
    "IsotonicCalibration": "truecal.recalibrators",
    "LogisticCurve": "truecal.models.curves",
    "MissRateDisplay": "truecal.display",
    "MissRates": "truecal.detection",
    "MixtureScores": "truecal.models.scores",
    "PlattScaling": "truecal.recalibrators",
    "Population": "truecal.models.population",
    "PopulationFit": "truecal.models.fit",
    "Power": "truecal.detection",
    "PowerCurve": "truecal.models.curves",
    "Reliability": "truecal.reliability",
    "ReliabilityDisplay": "truecal.display",
    "RoundedScores": "truecal.models.scores",
    "Sample": "truecal.sample",
    "SamplePlan": "truecal.planning",
    "ScoreDisplay": "truecal.display",
    "ScoreDistribution": "truecal.models.scores",
    "ScoreHistogram": "truecal.histogram",
    "Selection": "truecal.selection",
    "StepCurve": "truecal.models.curves",
    "Study": "truecal.study",
    "TemperatureScaling": "truecal.recalibrators",
    "TestResult": "truecal.hypotheses",
    "UniformScores": "truecal.models.scores",
    "WindowedStream": "truecal.streaming",
    "advise": "truecal.advice",
    "assess": "truecal.assessment",
    "bias_study": "truecal.study",
    "calibration_error": "truecal.measure",
    "calibration_test": "truecal.hypotheses",
    "compare": "truecal.comparison",
    "confidence_interval": "truecal.intervals",
    "datasets": "truecal.datasets",
    "decompose": "truecal.decomposition",
    "detectable_error": "truecal.planning",
    "estimate": "truecal.measure",
    "estimator": "truecal._registry",
    "fit_population": "truecal.models.fit",
    "list_estimators": "truecal._registry",
    "miss_rates": "truecal.detection",
    "paper": "truecal.models.paper",
    "plan_sample_size": "truecal.planning",
    "population_with_error": "truecal.detection",
    "power": "truecal.detection",
    "readers": "truecal.readers",
    "reliability_curve": "truecal.reliability",
    "required_sample_size": "truecal.planning",
    "score_histogram": "truecal.histogram",
    "select_recalibrator": "truecal.selection",
    "spiegelhalter_test": "truecal.spiegelhalter",
    "suites": "truecal.suites",
    "summarize": "truecal.engines",
    "with_atoms": "truecal.models.scores",
}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'truecal' has no attribute {name!r}")
    module = importlib.import_module(_HOME[name])
    value = (
        module
        if _HOME[name].rpartition(".")[2] == name and not hasattr(module, name)
        else getattr(module, name)
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
