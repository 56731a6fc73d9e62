"""The API reference: every public name, grouped by task."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.autodoc.mock import mock

import truecal
from truecal.estimators._registry import list_estimators

#: Title, introduction, and names below ``truecal``; ``simulation.*`` means all other public names of that module.
GROUPS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "Measure",
        "Calibration error of a set of predictions.",
        ("calibration_error", "estimate", "confidence_interval", "reliability_curve", "decompose",
         "weak_calibration", "calibration_index", "net_benefit", "inference.c_statistic.c_statistic"),
    ),
    ("Report", "Estimates, interval, test, verdict and plots in one call.", ("assess", "advise")),
    ("Test", "Is the model calibrated?", ("calibration_test", "spiegelhalter_test", "describe_clusters")),
    ("Compare and audit", "Several models, or one model on many subgroups.", ("compare", "audit")),
    (
        "Recalibrate",
        "Learn a correction on held-out rows. All classes are scikit-learn transformers.",
        ("select_recalibrator", "recalibration.*"),
    ),
    (
        "Plan",
        "Sample size and power, before data is collected.",
        ("required_sample_size", "validation_sample_size", "simulation.plan_sample_size",
         "simulation.detectable_error", "power", "simulation.miss_rates", "simulation.population_with_error"),
    ),
    (
        "Large data, streams, monitoring",
        "Summaries of fixed size that can be merged, from any engine.",
        ("summarize", "cells_query", "read_cells", "Cells", "CalibrationStream", "CalibrationMonitor"),
    ),
    ("Plot", "Displays follow scikit-learn's conventions: ``from_predictions(..., ax=None)`` draws at once.",
     ("display.*", "inference.reliability.confidence_band", "assessment.calibration_plot")),
    (
        "Simulate",
        "Populations whose true calibration error is known, fits to your data, and studies of bias.",
        ("Population", "fit_population", "bias_study", "paper.*", "simulation.suites.*", "simulation.*"),
    ),
    ("Read data", "Input that is not two arrays, and demo data.", ("Sample", "data.*", "datasets.*")),
    ("Other libraries", "Each module needs the library it is named after.",
     ("integrations.sklearn.*", "integrations.torchmetrics.*", "integrations.inspect_ai.*", "integrations.lm_eval.*",
      "integrations.mlflow.*")),
    ("Language models", "Log files, stated confidences, and questions as clusters.",
     ("integrations.llm.*", "inference.thresholds.risk_coverage")),
    ("Estimators", "Call them by name, ``estimate(..., estimator=name)``.", ("list_estimators", "register_estimator")),
    ("Results", "What the functions return: frozen dataclasses with ``to_dict``.",
     ("results.Result", "results.Estimate", "results.Interval", "results.BinTable", "assessment.Assessment",
      "assessment.*",
      "inference.calibration_test.TestResult", "inference.spiegelhalter.SpiegelhalterResult",
      "inference.compare.Comparison", "inference.decompose.Decomposition", "recalibration.selection.Selection",
      "recalibration.selection.CandidateScore", "inference.reliability.Reliability",
      "inference.thresholds.RiskCoverage", "inference.monitor.Look", "inference.monitor.ChangePoint",
      "inference.monitor.Diagnosis",
      "inference.reliability.ConfidenceBand", "simulation.Advice", "simulation.AdviceRow",
      "simulation.PopulationFit", "simulation.Study", "simulation.Power", "simulation.MissRates",
      "simulation.SamplePlan", "simulation.ValidationSize", "simulation.BetaFit", "simulation.GoodnessOfFit")),
    ("Errors and warnings", "", ("InputError", "CalibrationWarning", "MissingExtraError")),
)  # fmt: skip

HEAD = """API reference
=============

Errors are fractions, not percentages. The order of arguments is scikit-learn's, ``(y_true, y_proba)``. Functions that
draw random numbers take ``rng``.
"""

#: A group on the first page, and its own page.
ENTRY = """
:doc:`{title} <{page}>`
    {introduction}

    {links}
"""

PAGE = """{title}
{line}

{introduction}

.. autosummary::
   :toctree: generated
   :nosignatures:

"""


def sections(missing: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield title, introduction and full names of each section; `missing` packages are replaced by mocks."""
    results = _result_classes()  # before there are mocks, which scipy would take for torch
    with mock(list(missing)):
        named = {name for _, _, names in GROUPS for name in names}
        seen: set[int] = set()
        for title, introduction, names in GROUPS:
            found = []
            for name in names:
                candidates = _members(name[:-2]) if name.endswith(".*") else [name]
                if name == "results.Result":
                    candidates += results
                for candidate in candidates:
                    value = _resolve(candidate)
                    elsewhere = candidate in named and candidate not in names
                    if value is not None and id(value) not in seen and not elsewhere:
                        seen.add(id(value))
                        found.append(f"truecal.{candidate}")
            if title == "Estimators":
                functions = {spec.function for spec in list_estimators()}
                own = (f"{f.__module__}.{f.__name__}" for f in functions)
                found += sorted(name for name in own if name.startswith("truecal."))
            yield title, introduction, found
        rest = [name for name in _members("") if id(_resolve(name)) not in seen]
        if rest:
            yield "Other", "", [f"truecal.{name}" for name in rest]


def _resolve(name: str) -> Any:
    """Return a function or class below ``truecal``; None if there is none of that name, or it is a module."""
    module, _, attribute = f"truecal.{name}".rpartition(".")
    try:
        value = getattr(importlib.import_module(module), attribute, None)
    except ImportError:  # the name of a class in front of a dot
        value = reduce(getattr, name.split("."), truecal)
    return value if inspect.isfunction(value) or inspect.isclass(value) else None


def _members(module: str) -> list[str]:
    """Return the public functions and classes of a module, as names below ``truecal``."""
    path = f"truecal.{module}".rstrip(".")
    found = importlib.import_module(path)
    names = getattr(found, "__all__", None) or [
        name
        for name, value in vars(found).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == path
    ]
    full = [f"{module}.{name}".lstrip(".") for name in names]
    return [name for name in full if _resolve(name) is not None]


def _result_classes() -> list[str]:
    """Return the classes of results, by the modules that define them."""
    for module in pkgutil.walk_packages(truecal.__path__, "truecal."):
        if not module.name.startswith(("truecal.cli", "truecal.integrations", "truecal.__main__")):
            importlib.import_module(module.name)
    found, waiting = [], truecal.results.Result.__subclasses__()
    while waiting:
        one = waiting.pop()
        waiting += one.__subclasses__()
        found.append(f"{one.__module__}.{one.__name__}".removeprefix("truecal."))
    return sorted(name for name in found if "._" not in name and not name.startswith(("cli", "reproduce")))


def write(app: Sphinx, config: Any) -> None:
    """Write a page for each group and one that lists them, before Sphinx looks for pages."""
    folder = Path(app.srcdir, "api")
    pages, stubs, head = {}, set(), HEAD
    for title, introduction, names in sections(config.autodoc_mock_imports):
        page = re.sub(r"\W+", "_", title.lower())
        stubs.update(names)
        links = ", ".join(f":py:obj:`{name.rpartition('.')[2]} <{name}>`" for name in names)
        head += ENTRY.format(title=title, page=page, introduction=introduction or title, links=links)
        text = PAGE.format(title=title, line="=" * len(title), introduction=introduction)
        pages[page] = text + "".join(f"   {name}\n" for name in names)
    toctree = "".join(f"   {page}\n" for page in pages)
    pages["index"] = f"{head}\n.. toctree::\n   :hidden:\n\n{toctree}"
    folder.mkdir(exist_ok=True)
    for old in [*folder.glob("*.rst"), *folder.glob("generated/*.rst")]:
        if old.stem not in (pages if old.parent == folder else stubs):  # of a name that has been removed
            old.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect to the first event."""
    app.connect("config-inited", write)
    return {"version": "3", "parallel_read_safe": True, "parallel_write_safe": True}
