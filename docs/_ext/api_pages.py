"""The API reference: every public name, in groups; a name that no group holds goes into the last."""

from __future__ import annotations

import importlib
import inspect
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.autodoc.mock import mock

import truecal
from truecal.estimators._registry import list_estimators

#: Title, a sentence, and names; what does not exist (yet) is left out.
GROUPS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "Measure",
        "Predictions in, calibration error out.",
        ("calibration_error", "estimate", "confidence_interval", "list_estimators", "get_estimator"),
    ),
    (
        "Everything at once",
        "One call that answers what a person asks of one set of predictions.",
        ("assess", "Assessment", "advise", "Advice", "decompose", "Decomposition"),
    ),
    (
        "Test and plan",
        "Is it calibrated, and how much data does it take to tell?",
        (
            "calibration_test", "TestResult", "spiegelhalter_test", "SpiegelhalterResult", "power", "Power",
            "required_sample_size", "plan_sample_size", "SamplePlan", "detectable_error", "miss_rates", "MissRates",
            "population_with_error",
        ),
    ),
    ("Compare", "Two models, on the same rows or on others.", ("compare", "Comparison")),
    (
        "Recalibrate",
        "Learn on held-out rows how often scores come true, and correct others by it.",
        (
            "select_recalibrator", "Selection", "CandidateScore", "HistogramBinning", "IsotonicCalibration",
            "TemperatureScaling", "PlattScaling", "BetaCalibration", "IdentityCalibration",
        ),
    ),
    (
        "Known truth",
        "Populations whose true calibration error is known, fits to your data, and studies of bias.",
        (
            "Population", "bias_study", "Study", "fit_population", "PopulationFit", "paper", "suites",
            "ScoreDistribution", "BetaScores", "UniformScores", "MixtureScores", "AtomScores",
            "EmpiricalScores", "RoundedScores", "with_atoms",
            "Curve", "IdentityCurve", "PowerCurve", "LogisticCurve", "GLMCurve", "StepCurve", "FunctionCurve",
        ),
    ),
    (
        "Large data",
        "Summaries of fixed size that can be merged, from any engine.",
        ("summarize", "Cells", "CalibrationStream", "WindowedStream"),
    ),
    (
        "Pictures",
        "Results that can be drawn, and display objects in scikit-learn's manner.",
        ("reliability_curve", "Reliability", "score_histogram", "ScoreHistogram", "bin_counts", "BinCounts"),
    ),
    (
        "Data in, results out",
        "What the functions take and return.",
        ("readers", "Sample", "Estimate", "Interval", "BinTable", "datasets"),
    ),
    ("Extend", "An estimator is one function under a decorator.", ("estimator", "EstimatorSpec")),
)  # fmt: skip

#: Modules that are not in `truecal.__all__`, with what of them is documented (all of `__all__` if empty).
MODULES: tuple[tuple[str, str], ...] = (
    ("truecal.data", "Readers"),
    ("truecal.datasets", "Bundled predictions"),
    ("truecal.simulation.suites", "Suites of populations"),
    ("truecal.integrations.sklearn", "scikit-learn scorers"),
    ("truecal.integrations.torchmetrics", "torchmetrics"),
)

HEAD = """API reference
=============

Errors are fractions, never percent. Weights are frequencies. Argument order is scikit-learn's. Whatever draws
random numbers takes ``rng``.
"""

SECTION = """
{title}
{line}

{sentence}

.. autosummary::
   :toctree: generated
   :nosignatures:

"""


def sections(missing: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield title, sentence and full names of each section."""
    public = set(truecal.__all__)
    taken: set[str] = set()
    modules = {name for name in public if isinstance(getattr(truecal, name), types.ModuleType)}
    for title, sentence, names in GROUPS:
        here = [name for name in names if name in public and name not in modules]
        if title == "Pictures":
            here += sorted(name for name in public if name.endswith("Display"))
        taken.update(here)
        if here:
            yield title, sentence, [f"truecal.{name}" for name in here]
    rest = sorted(public - taken - modules)
    if rest:
        yield "More", "", [f"truecal.{name}" for name in rest]
    yield "The paper's populations", "", ["truecal.simulation.paper.population"]
    for path, title in MODULES:
        names = module_names(path, missing)
        if names:
            yield title, f"In ``{path}``.", names
    functions = {spec.function for spec in list_estimators()}
    own = sorted(f"{f.__module__}.{f.__name__}" for f in functions if f.__module__.startswith("truecal."))
    yield "Estimators, one by one", "Call them by name through :py:obj:`truecal.estimate`.", own


def module_names(path: str, missing: Sequence[str]) -> list[str]:
    """Return the public functions and classes of a module; what it imports may be missing."""
    with mock(list(missing)):
        module = importlib.import_module(path)
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    found = {name: getattr(module, name) for name in names}
    return [
        f"{path}.{name}"
        for name, value in found.items()
        if (inspect.isfunction(value) or inspect.isclass(value)) and value.__module__.startswith(path)
    ]


def write(app: Sphinx, config: Any) -> None:
    """Write the page, if it changed, before Sphinx looks for pages."""
    text, stubs = HEAD, set()
    for title, sentence, names in sections(config.autodoc_mock_imports):
        stubs.update(config.autosummary_filename_map.get(name, name) for name in names)
        text += SECTION.format(title=title, line="-" * len(title), sentence=sentence)
        text += "".join(f"   {name}\n" for name in names)
    page = Path(app.srcdir, "api", "index.rst")
    page.parent.mkdir(exist_ok=True)
    for stub in page.parent.glob("generated/*.rst"):
        if stub.stem not in stubs:  # of a name that has gone
            stub.unlink()
    if not page.exists() or page.read_text() != text:
        page.write_text(text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect to the first event that there is."""
    app.connect("config-inited", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
