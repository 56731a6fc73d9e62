"""Input that is refused or warned of: the words are recorded."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import truecal
from golden.cases import FIT, Case, public, weighted
from golden.data import binary, classes

NAN, INF = float("nan"), float("inf")
Y, P = [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]
THREE = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]]

#: Labels, scores and options that no function of predictions takes, or about which it warns.
PREDICTIONS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "empty": ([], [], {}),
    "lengths": ([0, 1], P, {}),
    "outside": (Y, [0.1, 1.2, -0.3, 0.8], {}),
    "just outside": (Y, [0.1, 1.0000001, 0.3, 0.8], {}),
    "percent": (Y, [10.0, 40.0, 35.0, 80.0], {}),
    "nan": (Y, [0.1, NAN, 0.3, NAN], {}),
    "infinite": (Y, [0.1, INF, 0.3, 0.4], {}),
    "None": (Y, [0.1, None, 0.3, 0.4], {}),
    "text": (Y, ["a", "b", "c", "d"], {}),
    "complex": (Y, [0.1j, 0.2, 0.3, 0.4], {}),
    "three dimensions": (Y, np.zeros((4, 2, 2)), {}),
    "scalar": (1, 0.5, {}),
    "one label": ([1, 1, 1, 1], P, {}),
    "labels nan": ([0, NAN, 1, 1], P, {}),
    "labels None": ([0, None, 1, 1], P, {}),
    "labels fractions": ([0, 0.3, 1, 1], P, {}),
    "labels 1 and 2": ([1, 1, 2, 2], P, {}),
    "labels -1 and 1": ([-1, -1, 1, 1], P, {}),
    "labels three": ([0, 1, 2, 1], P, {}),
    "labels words": (["no", "no", "yes", "yes"], P, {}),
    "labels two dimensions": ([[0], [0], [1], [1]], P, {}),
    "pos_label absent": (Y, P, {"pos_label": 7}),
    "weights negative": (Y, P, {"sample_weight": [1, 1, -1, 1]}),
    "weights nan": (Y, P, {"sample_weight": [1, 1, NAN, 1]}),
    "weights zero": (Y, P, {"sample_weight": [0, 0, 0, 0]}),
    "weights length": (Y, P, {"sample_weight": [1, 1]}),
    "weights text": (Y, P, {"sample_weight": ["a", "b", "c", "d"]}),
    "counts fractional": (Y, P, {"sample_weight": [1.5, 1, 1, 1], **weighted("counts")}),
    "weighting unknown": (Y, P, {"sample_weight": [1, 1, 1, 1], **weighted("count")}),
    "weighting without weights": (Y, P, weighted("counts")),
    "equal without clusters": (Y, P, weighted("clusters")),
    "clusters length": (Y, P, {"clusters": [1, 2]}),
    "clusters nan": (Y, P, {"clusters": [1, NAN, 2, 2]}),
    "clusters one": (Y, P, {"clusters": [1, 1, 1, 1]}),
    "rows do not sum to 1": ([0, 1, 2, 0], np.array(THREE) * 0.8, {}),
    "classes outside": ([0, 1, 3, 0], THREE, {}),
    "labels of columns": (["a", "b", "c", "a"], THREE, {"labels": ["a", "b"]}),
    "labels twice": (["a", "b", "c", "a"], THREE, {"labels": ["a", "b", "b"]}),
    "multiclass unknown": ([0, 1, 2, 0], THREE, {"multiclass": "classwize"}),
    "multiclass of one column": (Y, P, {"multiclass": "classwise"}),
    "top 9": ([0, 1, 2, 0], THREE, {"multiclass": "top_9"}),
    "top 0": ([0, 1, 2, 0], THREE, {"multiclass": "top_0"}),
    "multilabel": (
        [[0, 1], [1, 1], [0, 0], [1, 0]],
        [[0.1, 0.2], [0.3, 0.4], [0.4, 0.5], [0.6, 0.7]],
        {"multiclass": "multilabel"},
    ),
    "logits": (Y, [-2.0, 0.5, 3.0, 1.0], {}),
    "certain": ([0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0], {}),
    "impossible": ([1, 0, 1, 0], [0.0, 1.0, 1.0, 0.0], {}),
    "missing scores": (Y, None, {}),
    "keyword unknown": (Y, P, {"sample_weights": [1, 1, 1, 1]}),
}

FUNCTIONS = ("estimate", "calibration_test", "assess")


def cases() -> Iterator[Case]:
    """Yield bad input of all functions of predictions, and bad options of each function."""
    for function in FUNCTIONS:
        extra: dict[str, Any] = {} if function == "estimate" else {"rng": 0, "n_resamples": 49}
        if function == "assess":
            extra["recalibration"] = False
        for name, (y, p, options) in PREDICTIONS.items():
            if function == "assess" and name in (
                "weights text",
                "complex",
                "scalar",
                "three dimensions",
                "labels twice",
            ):
                continue
            yield _case(f"{function}: {name}", public(function), y, p, **options, **extra)
    for name, make in OPTIONS.items():
        yield Case("bad input", name, FIT, make)


def _case(name: str, function: Any, *arguments: Any, **options: Any) -> Case:
    return Case("bad input", name, FIT, partial(function, *arguments, **options))


def _of(path: str, *arguments: Any, **options: Any) -> Any:
    """Return a call that is made when the case is."""
    return lambda: public(path)(*arguments, **options)


def _frame(**columns: Any) -> Any:
    import polars as pl

    return pl.DataFrame({"label": Y, "score": P, **columns}, strict=False)


def _summarize(columns: dict[str, Any], **options: Any) -> Any:
    return lambda: truecal.summarize(_frame(**columns), **{"label": "label", "score": "score", **options})


def _recalibrator(name: str, scores: Any, y: Any, options: dict[str, Any] | None = None, **fit: Any) -> Any:
    return lambda: public(f"recalibration.{name}")(**(options or {})).fit(scores, y, **fit)


def _monitor(*batches: Any, **options: Any) -> Any:
    def run() -> Any:
        monitor = truecal.CalibrationMonitor(**options)
        return [monitor.update(*batch) for batch in batches]

    return run


LONG = binary("calibrated", 120)
MANY = classes(3, 60)

OPTIONS: dict[str, Any] = {
    "estimate: estimator unknown": _of("estimate", Y, P, estimator="em_swep"),
    "estimate: option unknown": _of("estimate", Y, P, estimator="ew_bin", bins=3),
    "estimate: n_bins 0": _of("estimate", Y, P, estimator="ew_bin", n_bins=0),
    "estimate: n_bins 1.5": _of("estimate", Y, P, estimator="ew_bin", n_bins=1.5),
    "estimate: n_bins of multiscale": _of("estimate", Y, P, n_bins=5),
    "estimate: norm 0.5": _of("estimate", Y, P, norm=0.5),
    "estimate: norm text": _of("estimate", Y, P, norm="two"),
    "estimate: norm of ks": _of("estimate", Y, P, estimator="ks", norm=1),
    "estimate: level 1": _of("estimate", Y, P, confidence_level=1),
    "estimate: level 95": _of("estimate", Y, P, confidence_level=95),
    "estimate: level of ks": _of("estimate", Y, P, estimator="ks", confidence_level=0.9),
    "estimate: rng text": _of("estimate", Y, P, estimator="skce", method="block", rng="seed"),
    "estimate: resolution 0": _of("estimate", *LONG, confidence_level=0.9, resolution=0),
    "calibration_error: squared of ks": _of("calibration_error", Y, P, estimator="ks", squared=True),
    "confidence_interval: assume": _of("confidence_interval", *LONG, assume="monotonic"),
    "confidence_interval: assume and resolution": _of(
        "confidence_interval", *LONG, assume="none", resolution=3
    ),
    "confidence_interval: resolution 1.5": _of("confidence_interval", *LONG, resolution=1.5),
    "confidence_interval: level 0": _of("confidence_interval", *LONG, confidence_level=0),
    "confidence_interval: norm": _of("confidence_interval", *LONG, norm=INF),
    "calibration_test: method": _of("calibration_test", *LONG, method="hosmer"),
    "calibration_test: n_resamples": _of("calibration_test", *LONG, n_resamples=0),
    "calibration_test: at_most 0": _of("calibration_test", *LONG, at_most=0),
    "calibration_test: at_most 5": _of("calibration_test", *LONG, at_most=5),
    "calibration_test: at_most with method": _of("calibration_test", *LONG, at_most=0.1, method="ew_bin"),
    "calibration_test: resolution without at_most": _of("calibration_test", *LONG, resolution=4),
    "calibration_test: rng": _of("calibration_test", *LONG, rng=-1),
    "compare: lengths": _of("compare", Y, P, [0.1, 0.2]),
    "compare: one model": _of("compare", Y, {"a": P}),
    "compare: nothing": _of("compare", Y, P),
    "compare: level": _of("compare", Y, P, P, confidence_level=2),
    "compare: names": _of("compare", Y, P, P, names=("a", "a")),
    "audit: features length": _of("audit", *LONG, {"a": [1, 2]}),
    "audit: no features": _of("audit", *LONG, {}),
    "audit: max_depth": _of("audit", *LONG, {"a": np.arange(120) % 2}, max_depth=4),
    "audit: min_rows": _of("audit", *LONG, {"a": np.arange(120) % 2}, min_rows=500),
    "audit: alpha": _of("audit", *LONG, {"a": np.arange(120) % 2}, alpha=0),
    "monitor: alpha": _monitor(alpha=2),
    "monitor: at_most": _monitor(at_most=-0.1),
    "monitor: both": _monitor(at_most=0.1, reference=(Y, P)),
    "monitor: run length": _monitor(average_run_length=0.5),
    "monitor: scores": _monitor((Y, [0.1, 2, 0.3, 0.4])),
    "monitor: lengths": _monitor(([0, 1], P)),
    "monitor: targets": _monitor((Y, P), MANY),
    "stream: nothing": lambda: truecal.CalibrationStream().compute(),
    "stream: multiclass": lambda: truecal.CalibrationStream(multiclass="classwise"),
    "decompose: name": _of("decompose", Y, P, score="briar"),
    "decompose: infinite": _of("decompose", [1, 0, 1, 0], [0.0, 0.5, 0.4, 0.3], score="log_loss"),
    "weak_calibration: one class": _of("weak_calibration", [1, 1, 1], [0.3, 0.4, 0.5]),
    "weak_calibration: constant": _of("weak_calibration", [1, 0, 1], [0.4, 0.4, 0.4]),
    "weak_calibration: separated": _of("weak_calibration", [0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]),
    "net_benefit: threshold 0": _of("net_benefit", Y, P, thresholds=[0]),
    "net_benefit: threshold 1.5": _of("net_benefit", Y, P, thresholds=[1.5]),
    "net_benefit: none": _of("net_benefit", Y, P, thresholds=[]),
    "reliability_curve: binning": _of("reliability_curve", Y, P, binning="mass"),
    "reliability_curve: n_bins": _of("reliability_curve", Y, P, n_bins="auto"),
    "describe_clusters: none": _of("describe_clusters", Y, P),
    "fit_population: method": _of("fit_population", *LONG, method="ml"),
    "fit_population: constant": _of("fit_population", Y, [0.5] * 4),
    "bias_study: sizes": lambda: truecal.bias_study(
        {"a": truecal.paper.population("resnet110_c10")}, estimators=["ew_bin"], sizes=[0]
    ),
    "bias_study: estimators": lambda: truecal.bias_study(
        {"a": truecal.paper.population("resnet110_c10")}, estimators=["no"], sizes=[10]
    ),
    "bias_study: populations": lambda: truecal.bias_study({}, estimators=["ew_bin"], sizes=[10]),
    "power: n": lambda: truecal.power(truecal.paper.population("resnet110_c10"), 0),
    "required_sample_size: error": _of("required_sample_size", 0),
    "required_sample_size: power": _of("required_sample_size", 0.1, power=1),
    "required_sample_size: icc": _of("required_sample_size", 0.1, icc=2),
    "required_sample_size: at_most": _of("required_sample_size", 0.2, at_most=0.1),
    "validation_sample_size: prevalence": _of("validation_sample_size", prevalence=0, c_statistic=0.8),
    "validation_sample_size: nothing": _of("validation_sample_size", prevalence=0.1),
    "paper.population: name": _of("paper.population", "resnet"),
    "datasets.load: name": _of("datasets.load", "flight"),
    "suites.suite: name": _of("simulation.suites.suite", "Z"),
    "BetaScores: a": _of("simulation.BetaScores", 0, 1),
    "UniformScores: order": _of("simulation.UniformScores", 0.6, 0.2),
    "AtomScores: outside": _of("simulation.AtomScores", [1.5]),
    "MixtureScores: weights": lambda: truecal.simulation.MixtureScores(
        [truecal.simulation.UniformScores()], [0.5, 0.5]
    ),
    "GLMCurve: link": _of("simulation.GLMCurve", "logot", "log", 0, 1),
    "PowerCurve: d": _of("simulation.PowerCurve", -1),
    "StepCurve: edges": _of("simulation.StepCurve", [0.6, 0.3], [0.1, 0.2, 0.3]),
    "Population.true_error: norm": lambda: truecal.paper.population("resnet110_c10").true_error(0.2),
    "Population.sample: n": lambda: truecal.paper.population("resnet110_c10").sample(-1),
    "select_recalibrator: criterion": _of("select_recalibrator", *LONG, criterion="logloss"),
    "select_recalibrator: cv": _of("select_recalibrator", *LONG, cv=1),
    "select_recalibrator: candidates": _of("select_recalibrator", *LONG, candidates=["plat"]),
    "select_recalibrator: rows": _of("select_recalibrator", [0, 1], [0.2, 0.8]),
    "recalibrator: not fitted": lambda: truecal.recalibration.PlattScaling().transform(P),
    "recalibrator: columns": lambda: truecal.recalibration.PlattScaling().fit(P, Y).transform(THREE),
    "recalibrator: outside": _recalibrator("IsotonicCalibration", [0.1, 2, 0.3, 0.4], Y),
    "recalibrator: labels": _recalibrator("IsotonicCalibration", P, [0, 1, 2, 3]),
    "recalibrator: one class": _recalibrator("PlattScaling", P, [1, 1, 1, 1]),
    "recalibrator: lengths": _recalibrator("PlattScaling", P, [1, 0]),
    "recalibrator: input": _recalibrator("PlattScaling", P, Y, {"input": "logit"}),
    "recalibrator: probabilities for logits": _recalibrator("TemperatureScaling", P, Y),
    "recalibrator: targets": _recalibrator("PlattScaling", P, Y, {"targets": "smooth"}),
    "recalibrator: strategy": _recalibrator("HistogramBinning", P, Y, {"strategy": "em"}),
    "recalibrator: n_bins": _recalibrator("HistogramBinning", P, Y, {"n_bins": 0}),
    "recalibrator: regularization": _recalibrator(
        "DirichletCalibration", THREE, [0, 1, 2, 0], {"regularization": -1}
    ),
    "recalibrator: weights": _recalibrator("PlattScaling", P, Y, sample_weight=[1, -1, 1, 1]),
    "recalibrator: set_params": lambda: truecal.recalibration.PlattScaling().set_params(target="labels"),
    "summarize: column": _summarize({}, score="scores"),
    "summarize: outside": _summarize({"score": [0.1, 2.0, 0.3, 0.4]}),
    "summarize: nan": _summarize({"score": [0.1, None, 0.3, 0.4]}),
    "summarize: labels": _summarize({"label": [0, 1, 2, 1]}),
    "summarize: words": _summarize({"label": ["a", "b", "a", "c"]}),
    "summarize: text": _summarize({"score": ["a", "b", "c", "d"]}),
    "summarize: weights": _summarize({"w": [1.0, -1.0, 1.0, 1.0]}, weight="w"),
    "summarize: counts": _summarize({"w": [1.0, 1.5, 1.0, 1.0]}, weight="w", **weighted("counts")),
    "summarize: weighting": _summarize({}, **weighted("count")),
    "summarize: not a frame": _of("summarize", [1, 2], label="label", score="score"),
    "summarize: by": _summarize({}, by="group"),
    "summarize: multiclass": _summarize({}, multiclass="classwise"),
    "cells_query: dialect": _of("cells_query", "t", label="y", score="p", dialect="oracle"),
    "cells_query: table": _of("cells_query", "", label="y", score="p"),
    "cells_query: injection": _of("cells_query", "t; drop table t", label="y", score="p"),
    "cells_query: labels": _of("cells_query", "t", label="y", score="p", pos_label="a", neg_label="a"),
    "cells_query: same column": _of("cells_query", "t", label="y", score="y"),
    "read_cells: columns": lambda: truecal.read_cells(_frame()),
    "read_cells: not a frame": _of("read_cells", 3),
    "Sample.from_logits: nan": _of("Sample.from_logits", Y, [NAN, 1, 2, 3]),
    "Cells.load: no file": _of("Cells.load", "/nonexistent/cells.npz"),
    "CalibrationMonitor.load: no file": _of("CalibrationMonitor.load", "/nonexistent/state.json"),
    "assess: by length": _of("assess", *LONG, by=[1, 2]),
    "assess: time length": _of("assess", *LONG, time=[1, 2]),
    "assess: thresholds without clinical": _of(
        "assess", *LONG, thresholds=[0.1], recalibration=False, n_resamples=49, rng=0
    ),
    "assess: level": _of("assess", *LONG, confidence_level=1.5),
    "advise: estimators": _of("advise", *LONG, estimators=["no"]),
    "MissingExtraError": lambda: str(
        truecal.MissingExtraError("polars", extra="app", purpose="Reading Parquet files")
    ),
    "InputError": lambda: str(
        truecal.InputError(
            "has bad values", argument="y_proba", count=3, first_row=17, value=1.2, remedy="Fix them."
        )
    ),
}
