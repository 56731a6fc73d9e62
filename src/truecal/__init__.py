"""How far are predicted probabilities from the truth, and how sure can we be? These are the public names."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truecal import readers
    from truecal._registry import EstimatorSpec, estimator, list_estimators
    from truecal.measure import calibration_error, estimate
    from truecal.models import paper
    from truecal.models.curves import (
        FunctionCurve,
        GLMCurve,
        IdentityCurve,
        LogisticCurve,
        PowerCurve,
        StepCurve,
    )
    from truecal.models.fit import PopulationFit, fit_population
    from truecal.models.population import Population
    from truecal.models.scores import (
        AtomScores,
        BetaScores,
        EmpiricalScores,
        MixtureScores,
        RoundedScores,
        UniformScores,
        with_atoms,
    )
    from truecal.results import BinTable, Estimate
    from truecal.sample import Sample
    from truecal.study import Study, bias_study

__version__ = "0.1.0"

#: Where each public name lives. It is imported when it is first asked for, so that `import truecal` and
#: `truecal --help` take no longer than they need.
_HOME = {
    "AtomScores": "truecal.models.scores",
    "BetaScores": "truecal.models.scores",
    "BinTable": "truecal.results",
    "EmpiricalScores": "truecal.models.scores",
    "Estimate": "truecal.results",
    "EstimatorSpec": "truecal._registry",
    "FunctionCurve": "truecal.models.curves",
    "GLMCurve": "truecal.models.curves",
    "IdentityCurve": "truecal.models.curves",
    "LogisticCurve": "truecal.models.curves",
    "MixtureScores": "truecal.models.scores",
    "Population": "truecal.models.population",
    "PopulationFit": "truecal.models.fit",
    "PowerCurve": "truecal.models.curves",
    "RoundedScores": "truecal.models.scores",
    "Sample": "truecal.sample",
    "StepCurve": "truecal.models.curves",
    "Study": "truecal.study",
    "UniformScores": "truecal.models.scores",
    "bias_study": "truecal.study",
    "calibration_error": "truecal.measure",
    "estimate": "truecal.measure",
    "estimator": "truecal._registry",
    "fit_population": "truecal.models.fit",
    "list_estimators": "truecal._registry",
    "paper": "truecal.models",
    "readers": "truecal",
    "with_atoms": "truecal.models.scores",
}

__all__ = [
    "AtomScores",
    "BetaScores",
    "BinTable",
    "EmpiricalScores",
    "Estimate",
    "EstimatorSpec",
    "FunctionCurve",
    "GLMCurve",
    "IdentityCurve",
    "LogisticCurve",
    "MixtureScores",
    "Population",
    "PopulationFit",
    "PowerCurve",
    "RoundedScores",
    "Sample",
    "StepCurve",
    "Study",
    "UniformScores",
    "bias_study",
    "calibration_error",
    "estimate",
    "estimator",
    "fit_population",
    "list_estimators",
    "paper",
    "readers",
    "with_atoms",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'truecal' has no attribute {name!r}")
    home = _HOME[name]
    if name in ("paper", "readers"):
        value: Any = importlib.import_module(f"{home}.{name}")
    else:
        value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
