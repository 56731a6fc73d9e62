"""Probes of the evidence pages: a few rows, with a few draws each, that today's code must give again.

``python -m experiments NAME`` writes the probe of a page beside its tables, as ``NAME_probe.csv``.
`tests/docs/test_probes.py` recomputes each and fails if it differs: the results of the page are then those of other
code, and the experiment has to be run again. Pages of times have none.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import truecal
from truecal.reproduce import Settings
from truecal.reproduce._contract import write_csv
from truecal.simulation.suites import suite

Row = Mapping[str, Any]

#: Experiments about time and memory, which differ from run to run.
TIMES = ("application", "core", "engines", "peers", "study")


#: Pages that were made before a change of the estimator or of the upper limit, and have to be run again. They have no
#: probe, or one of the code that made them; a run writes a new one, and the test then says to take the name out.
STALE: tuple[str, ...] = ()


def _module(name: str) -> Any:
    return import_module(f"experiments.{name}")


def _populations(*names: str) -> list[tuple[str, str, truecal.Population]]:
    """Return the first population of each suite."""
    return [(name, *next(iter(suite(name).items()))) for name in names]


def _accuracy() -> list[Row]:
    return [_module("accuracy")._cell(*case, 200, 20) for case in _populations("A", "C2", "D2")]


def _agreement() -> list[Row]:
    return [_module("agreement").closed_form_level("uniform", 100, 50)]


def _bands() -> list[Row]:
    bands = _module("bands")
    return [bands._case(name, 2) for name in list(bands.CASES)[:2]]


def _labels() -> list[Row]:
    labels = _module("labels")
    return [labels.count(name, 0.05, 0, 1) for name in list(labels.DESIGNS)[:2]]


def _clinical() -> list[Row]:
    clinical = _module("clinical")
    return [
        clinical.cell(next(iter(clinical.CURVES)), 200, 3),
        clinical.clustered(next(iter(clinical.CLUSTERED)), 2),
    ]


def _clusters() -> list[Row]:
    clusters = _module("clusters")
    return [clusters.count(*case, 0, 4) for case in clusters.CASES[:2]]


def _coverage() -> list[Row]:
    coverage = _module("coverage")
    return [coverage._cell(*case, 200, 5) for case in _populations("B", "C2")]


def _honest() -> list[Row]:
    honest = _module("honest")
    return [honest._suite(name, key, 200, 5) for name, key, _ in _populations("A", "C2", "D1")]


def _honest_cost() -> list[Row]:
    return [_module("honest_cost")._row(300, 5)]


def _study(names: Sequence[str]) -> list[Row]:
    populations = {f"{name}: {key}": population for name, key, population in _populations("A", "B", "C2")}
    rows = truecal.bias_study(populations, estimators=names, sizes=[200], repeats=20, rng=1).rows
    return [{key: value for key, value in row.items() if key != "fingerprint"} for row in rows]


def _leaderboard() -> list[Row]:
    return _study(["multiscale", "em_sweep", "em_debias", "ew_bin"])


def _measures() -> list[Row]:
    return _study(["ks", "smece", "skce", "em_mce"])


def _monitor() -> list[Row]:
    """Return the e-values of a stream that changes, and of one that does not."""
    rows: list[Row] = []
    for drift in (0.0, 0.1):
        rng = np.random.default_rng(5)
        monitor = truecal.CalibrationMonitor()
        for _ in range(6):
            score = rng.random(200)
            monitor.update(rng.random(200) < score + drift, score)
        rows.append({"drift": drift, "evalue": monitor.evalue, "pvalue": monitor.pvalue})
    return rows


def _power() -> list[Row]:
    power = _module("power")
    name, case = next(iter(power.HELD_OUT.items()))
    return [
        *power._power("held out", name, case, 2, power._statistics),
        power._size("uniform", power._UNIFORM, 40),
    ]


def _rare_events() -> list[Row]:
    rare = _module("rare_events")
    return [rare.count(rare.DESIGNS[0], 1.0, 3)]


def _recalibration() -> list[Row]:
    data = truecal.datasets.load("flights")
    label, proba = np.asarray(data.y_true), np.asarray(data.predictions["naive_bayes"])
    return list(_module("recalibration").cell("flights, naive_bayes", 500, label, proba, draws=2)[:7])


def _external_interval() -> list[Row]:
    return list(_module("external_interval")._cell(1, 0.8, 5, 1))


def _comparison(name: str) -> list[Row]:
    """Return the comparisons of a tiny run."""
    with tempfile.TemporaryDirectory(prefix="truecal-") as folder:
        settings = Settings(Path(folder), "tiny", seed=1, progress=False)
        outcome = _module(name).main.measure(settings)
    return [{"quantity": row.quantity, "reproduced": row.reproduced} for row in outcome.comparisons]


PROBES: dict[str, Callable[[], Sequence[Row]]] = {
    "accuracy": _accuracy,
    "agreement": _agreement,
    "bands": _bands,
    "clinical": _clinical,
    "clusters": _clusters,
    "coverage": _coverage,
    "external_interval": _external_interval,
    "honest": _honest,
    "honest_cost": _honest_cost,
    "labels": _labels,
    "leaderboard": _leaderboard,
    "measures": _measures,
    "monitor": _monitor,
    "power": _power,
    "rare_events": _rare_events,
    "recalibration": _recalibration,
    **{
        name: partial(_comparison, name)
        for name in (
            "external_debiasing",
            "external_efficiency",
            "external_lp",
            "external_test",
            "open_batch",
            "open_binary",
            "open_families",
            "open_l1",
            "open_measures",
            "open_skew",
            "open_tradeoff",
        )
    },
}


def probe(name: str) -> list[Row]:
    """Return the rows of the probe of an experiment, none for pages of times."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few draws of some designs warn
        return list(PROBES[name]()) if name in PROBES else []


def write_probe(name: str, folder: Path) -> None:
    """Write the probe of an experiment beside its tables."""
    if rows := probe(name):
        write_csv(folder / f"{name}_probe.csv", rows)
