"""Public calls, by kind."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import truecal
from golden.cases import CLOSED, FIT, REGISTER, Case, call, public, resampled, weighted
from golden.data import arguments, binary, classes, uniform

EXTRAS = ("counts", "weights", "clusters", "uneven", "equal")


def cases() -> Iterator[Case]:
    """Yield all calls."""
    for make in (
        estimates,
        small,
        intervals,
        tests,
        gates,
        comparisons,
        audits,
        monitors,
        streams,
        cells,
        sql,
        recalibrators,
        selections,
        clinical,
        curves,
        populations,
        fits,
        studies,
        planning,
        assessments,
        displays,
        samples,
        integrations,
        demo_data,
    ):
        yield from make()


def flow(kind: str, name: str, rule: str = CLOSED) -> Callable[[Callable[[], Any]], Case]:
    """Make a case of a function that does several things."""
    return lambda run: Case(kind, name, rule, run)


def specs() -> list[tuple[str, bool]]:
    """Return each estimator and whether it takes a norm."""
    return [(spec.name, spec.norms != "none") for spec in truecal.list_estimators()]


def rule_of(estimator: str) -> str:
    """Return how values of an estimator are compared."""
    iterative = ("multiscale", "smece", "kde", "overconfidence", "underconfidence")
    return FIT if estimator in iterative else CLOSED


def estimates() -> Iterator[Case]:
    kind = "estimates"
    slow = ("skce", "smece", "neighbor", "kde")
    for name, has_norm in specs():
        norms = ({"norm": 1}, {"norm": 2}) if has_norm else ({},)
        rule = rule_of(name)
        for norm in norms:
            for data in (
                "square 300",
                "calibrated 250",
                "rounded 200",
                "ends 120",
                "rare 400",
                "high 150 column",
            ):
                yield call(kind, "estimate", data, rule, estimator=name, **norm)
            for extra in EXTRAS:
                yield call(kind, "estimate", f"overconfident 200 {extra}", rule, estimator=name, **norm)
            for multiclass in ("top", "classwise", "top_by_class", "top_2"):
                yield call(kind, "estimate", f"three 150 {multiclass}", rule, estimator=name, **norm)
        for data in (
            "square 200 weights clusters",
            "rounded 200 counts clusters",
            "words 120",
            "square 90 two_columns named",
            "float32 300",
            "constant 60",
            "certain 80",
            "two 100 weights",
            "contradicted 90",
        ):
            yield call(kind, "estimate", data, rule, estimator=name)
        for data in ("three 120 top clusters", "three 120 classwise weights", "four 200 top counts"):
            yield call(kind, "estimate", data, rule, estimator=name)
        if name not in slow:
            yield call(kind, "estimate", "square 6000", rule, estimator=name)
        if has_norm:
            yield call(kind, "estimate", "overconfident 300", rule, estimator=name, norm=3)
            yield call(kind, "calibration_error", "overconfident 300", rule, estimator=name, squared=True)
    for name in ("ew_bin", "em_bin", "ew_label", "em_label", "ew_debias", "em_debias", "ew_mce", "em_mce"):
        for n_bins in (1, 7, 40):
            yield call(kind, "estimate", "overconfident 300", estimator=name, n_bins=n_bins)
        yield call(kind, "estimate", "rounded 300", estimator=name, n_bins=20)
    for alias in ("ece", "ace", "mce", "ecce_mad", "ecce_r"):
        yield call(kind, "estimate", "square 300", estimator=alias)
    for name in ("multiscale", "skce", "ew_bin"):
        yield call(kind, "estimate", "three 150 canonical", FIT, estimator=name)
    for options in ({"bandwidth": 0.1}, {"bandwidth": 0.15}):
        yield call(kind, "estimate", "square 200", FIT, estimator="kde", **options)
        yield call(kind, "estimate", "square 200", estimator="skce", **options)
    yield call(kind, "estimate", "square 200", estimator="skce", method="block", rng=1)
    yield call(kind, "estimate", "square 200", FIT, estimator="smece", variant="exact")
    for n_neighbors in (1, 10):
        yield call(kind, "estimate", "square 200", estimator="neighbor", n_neighbors=n_neighbors)
    for norm in (1, 1.5, 2, 4):
        for data in ("square 500", "high 500", "rounded 400"):
            yield call(kind, "calibration_error", data, FIT, norm=norm)
    for name in ("multiscale", "ew_bin", "em_sweep"):
        for k in (0, 1, 2):
            yield call(kind, "estimate", "three 150", FIT, estimator=name, pos_label=k)
    about = (
        "name",
        "summary",
        "estimand",
        "reference",
        "norms",
        "weights",
        "random",
        "range",
        "aliases",
        "options",
    )
    yield flow(kind, "list_estimators")(
        lambda: [{field: getattr(spec, field) for field in about} for spec in truecal.list_estimators()]
    )


def small() -> Iterator[Case]:
    kind = "few rows"
    for name, _ in specs():
        for data in ("calibrated 1", "calibrated 2", "square 5", "calibrated 12 clusters"):
            yield call(
                kind,
                "estimate",
                data,
                rule_of(name),
                estimator=name,
            )
    for data in (
        "calibrated 1",
        "calibrated 2",
        "square 5",
        "square 12",
        "calibrated 12 clusters",
        "square 20 weights",
        "square 20 few",
    ):
        for function in (
            "confidence_interval",
            "weak_calibration",
            "calibration_index",
            "net_benefit",
            "decompose",
            "spiegelhalter_test",
        ):
            yield call(kind, function, data, FIT)
        yield call(kind, "calibration_test", data, resampled(99, base=FIT), n_resamples=99, rng=0)
        yield call(kind, "calibration_test", data, FIT, at_most=0.2)
        yield call(kind, "reliability_curve", data, FIT, n_bins=3, n_resamples=50, rng=0)


def intervals() -> Iterator[Case]:
    kind = "intervals"
    function = "confidence_interval"
    several = (
        "square 300",
        "calibrated 300",
        "rounded 300",
        "ends 200",
        "rare 600",
        "high 400",
        "two 200",
        "constant 80",
        "contradicted 150",
        "float32 300",
        "certain 90",
    )
    for data in several:
        for norm in (1, 2):
            yield call(kind, function, data, FIT, norm=norm)
        for level in (0.8, 0.99):
            yield call(kind, function, data, FIT, confidence_level=level)
        for assume in ("monotone", "none"):
            yield call(kind, function, data, FIT, assume=assume)
        yield call(kind, function, data, FIT, resolution=4)
    for extra in (*EXTRAS, "few"):
        for data in ("overconfident 300", "calibrated 300", "rounded 200"):
            for norm in (1, 2):
                yield call(kind, function, f"{data} {extra}", FIT, norm=norm)
        for assume in ("monotone", "none"):
            yield call(kind, function, f"overconfident 300 {extra}", FIT, assume=assume)
    yield call(kind, function, "square 300 weights clusters", FIT)
    for multiclass in ("top", "classwise", "top_by_class", "top_2", "canonical"):
        for extra in ("", " clusters", " weights"):
            yield call(kind, function, f"three 200 {multiclass}{extra}", FIT)
    for norm in (1.5, 3):
        yield call(kind, function, "square 500", FIT, norm=norm)
    for resolution in (1, 2, 16, 64):
        yield call(kind, function, "overconfident 500", FIT, resolution=resolution)
    for n in (50, 100, 1000, 5000, 20000):
        yield call(kind, function, f"overconfident {n}", FIT)
        yield call(kind, function, f"calibrated {n}", FIT)
    for extra in ("", *EXTRAS):
        yield call(kind, "estimate", f"overconfident 300 {extra}".rstrip(), FIT, confidence_level=0.9)
    yield call(kind, "estimate", "square 300", FIT, estimator="ew_bin", confidence_level=0.9)
    for data in ("three 200 classwise", "three 200 top_by_class", "words 200"):
        yield call(kind, "estimate", data, FIT, confidence_level=0.95)
    yield call(kind, "estimate", "square 300", FIT, confidence_level=0.95, resolution=4)


def tests() -> Iterator[Case]:
    kind, function, n = "tests", "calibration_test", 99
    for name, has_norm in specs():
        rule = resampled(n, base=rule_of(name))
        clustered = (
            ("overconfident 100 clusters",) if name in ("multiscale", "ks", "kuiper", "ew_bin") else ()
        )
        for data in ("square 100", "calibrated 100", "rounded 100 counts", "rare 100", *clustered):
            yield call(kind, function, data, rule, method=name, n_resamples=n, rng=1)
        if has_norm:
            yield call(kind, function, "square 100", rule, method=name, norm=1, n_resamples=n, rng=1)
        yield call(
            kind, function, "three 100 classwise", resampled(n, 3, FIT), method=name, n_resamples=n, rng=1
        )
    rule = resampled(199, base=FIT)
    for data in (
        "overconfident 300",
        "rounded 300",
        "ends 200",
        "rare 600",
        "high 400",
        "two 200",
        "constant 80",
        "float32 300",
        "contradicted 150",
        "certain 90",
        "calibrated 3000",
        "overconfident 20000",
    ):
        yield call(kind, function, data, rule, n_resamples=199, rng=2)
    for extra in (*EXTRAS, "few", "weights clusters"):
        for curve in ("calibrated", "overconfident", "rare"):
            yield call(kind, function, f"{curve} 300 {extra}", rule, n_resamples=199, rng=3)
    for multiclass in ("top", "classwise", "top_by_class", "top_2", "canonical"):
        for extra in ("", " clusters", " weights"):
            yield call(
                kind,
                function,
                f"three 150 {multiclass}{extra}",
                resampled(199, 3, FIT),
                n_resamples=199,
                rng=4,
            )
    for data in ("overconfident 300", "calibrated 300"):
        yield call(kind, function, data, resampled(999, base=FIT), rng=0)
        yield call(kind, function, data, resampled(999, base=FIT), rng=7)
    for options in ({"n_bins": 5}, {"n_bins": 30}):
        yield call(
            kind, function, "square 200", resampled(n), method="ew_bin", n_resamples=n, rng=1, **options
        )
    for data in (
        "square 300",
        "calibrated 300",
        "rounded 300 counts",
        "overconfident 300 weights",
        "overconfident 300 clusters",
        "ends 200",
        "three 150",
        "three 150 classwise",
    ):
        yield call(kind, "spiegelhalter_test", data)


def gates() -> Iterator[Case]:
    kind, function = "at most", "calibration_test"
    for data in (
        "calibrated 300",
        "overconfident 600",
        "rounded 400",
        "rare 800",
        "high 500",
        "two 300",
        "ends 300",
    ):
        for limit in (0.03, 0.1, 0.2):
            yield call(kind, function, data, FIT, at_most=limit)
    for extra in (*EXTRAS, "few"):
        for limit in (0.05, 0.2):
            yield call(kind, function, f"calibrated 400 {extra}", FIT, at_most=limit)
    for multiclass in ("top", "classwise", "top_by_class", "top_2"):
        yield call(kind, function, f"three 300 {multiclass}", FIT, at_most=0.15)
    for options in ({"norm": 1}, {"norm": 3}, {"resolution": 2}, {"resolution": 32}):
        yield call(kind, function, "calibrated 500", FIT, at_most=0.1, **options)
    for n in (100, 3000, 20000):
        yield call(kind, function, f"calibrated {n}", FIT, at_most=0.05)


def comparisons() -> Iterator[Case]:
    kind, rule = "comparisons", FIT
    y, a = binary("calibrated", 400)
    b, c = np.clip(a**1.3, 0, 1), np.clip(0.1 + 0.8 * a, 0, 1)
    rows = np.arange(400)
    extras = {
        "": {},
        "counts": {"sample_weight": rows % 3, **weighted("counts")},
        "weights": {"sample_weight": 1 + uniform(400, 0.38)},
        "clusters": {"clusters": rows // 5},
        "equal": {"clusters": rows // 5, **weighted("clusters")},
    }
    for name, keywords in extras.items():
        for norm in (1, 2):
            for label, other in (("power", b), ("linear", c), ("itself", a)):
                yield flow(kind, f"compare two <{label}> norm={norm} {name}".rstrip(), rule)(
                    lambda norm=norm, other=other, keywords=keywords: truecal.compare(
                        y, a, other, norm=norm, **keywords
                    )
                )
        yield flow(kind, f"compare three {name}".rstrip(), rule)(
            lambda keywords=keywords: truecal.compare(y, {"raw": a, "power": b, "linear": c}, **keywords)
        )
    y2, a2 = binary("overconfident", 300)
    yield flow(kind, "compare unpaired", rule)(lambda: truecal.compare(y, a, a2, y_true_b=y2))
    yield flow(kind, "compare unpaired norm=1", rule)(lambda: truecal.compare(y, a, a2, y_true_b=y2, norm=1))
    for options in ({"confidence_level": 0.8}, {"resolution": 4}, {"names": ("old", "new")}):
        yield flow(kind, f"compare two {options}", rule)(
            lambda options=options: truecal.compare(y, a, b, **options)
        )
    yk, pk = classes(3, 300)
    qk = pk**1.4 / (pk**1.4).sum(axis=1, keepdims=True)
    for multiclass in (None, "top", "classwise", "top_by_class", "top_2", "canonical"):
        yield flow(kind, f"compare three classes {multiclass}", rule)(
            lambda multiclass=multiclass: truecal.compare(yk, pk, qk, multiclass=multiclass)
        )
    yield flow(kind, "compare dict of two", rule)(lambda: truecal.compare(y, {"first": a, "second": b}))
    yield flow(kind, "compare samples", rule)(
        lambda: truecal.compare(
            truecal.Sample.from_predictions(y, a), truecal.Sample.from_predictions(y2, a2)
        )
    )


def features(n: int) -> dict[str, np.ndarray]:
    """Return features of rows; the error is in one of them."""
    rows = np.arange(n)
    names = np.array(["north", "south", "east"])
    return {"region": names[rows % 3], "age": 20 + 60 * uniform(n, 0.5698402909980532), "sex": rows % 2}


def audits() -> Iterator[Case]:
    import polars as pl

    kind, n = "audits", 900
    y, p = binary("calibrated", n)
    table = features(n)
    bad = np.where(table["region"] == "south", np.clip(p + 0.15, 0, 1), p)
    rows = np.arange(n)
    rule = resampled(99, 1, FIT)
    for name, score in (("calibrated", p), ("south", bad)):
        options: list[dict[str, Any]] = [
            {},
            {"max_depth": 1},
            {"n_bins": 2},
            {"min_rows": 200},
            {"alpha": 0.2},
            {"clusters": rows // 6},
        ]
        for option in options:
            shown = ", ".join(
                f"{key}={'...' if key == 'clusters' else value}" for key, value in option.items()
            )
            yield flow(kind, f"audit <{name}> {shown}".rstrip(), rule)(
                lambda score=score, option=option: truecal.audit(
                    y, score, table, n_resamples=99, rng=0, **option
                )
            )
    frame = pl.DataFrame(table)
    yield flow(kind, "audit <south> frame", rule)(lambda: truecal.audit(y, bad, frame, n_resamples=99, rng=0))
    yk, pk = classes(3, n)
    for multiclass in (None, "top"):
        yield flow(kind, f"audit three classes {multiclass}", rule)(
            lambda multiclass=multiclass: truecal.audit(
                yk, pk, table, n_resamples=99, rng=0, multiclass=multiclass
            )
        )


def monitors() -> Iterator[Case]:
    kind = "monitor"
    settings: dict[str, dict[str, Any]] = {
        "plain": {},
        "alpha": {"alpha": 0.2},
        "at most": {"at_most": 0.05},
        "run length": {"average_run_length": 5000.0},
        "reference": {"reference": binary("overconfident", 800)},
    }
    batches = {
        "calibrated": ("calibrated",) * 6,
        "drift": ("calibrated",) * 3 + ("square",) * 4,
        "rare": ("rare",) * 5,
    }
    for name, options in settings.items():
        for way, curve_names in batches.items():
            for clustered in (False, True):
                label = f"CalibrationMonitor <{name}> {way}{' clusters' if clustered else ''}"
                yield flow(kind, label, FIT)(
                    lambda options=options, curve_names=curve_names, clustered=clustered: watched(
                        options, curve_names, clustered
                    )
                )

    def top() -> Any:
        monitor = truecal.CalibrationMonitor(multiclass="top")
        return [monitor.update(*classes(3, n)) for n in (200, 300, 400)]

    def merged() -> Any:
        parts = [fed(truecal.CalibrationMonitor(), one) for one in (("calibrated", "square"), ("rounded",))]
        total = truecal.CalibrationMonitor().merge(*parts)
        return [str(total), total.evalue, total.pvalue, total.n]

    def saved() -> Any:
        monitor = fed(truecal.CalibrationMonitor(at_most=0.02), ("square", "square"))
        with tempfile.TemporaryDirectory() as folder:
            monitor.save(Path(folder, "state.json"))
            again = truecal.CalibrationMonitor.load(Path(folder, "state.json"))
        return [str(monitor), str(again), fed(again, ("square",)).history[-1]]

    def returning() -> Any:
        monitor = truecal.CalibrationMonitor()
        y, p = binary("calibrated", 100, dependent=True)
        looks = [
            monitor.update(y, p, clusters=np.arange(100) // 5),
            monitor.update(y, p, clusters=10 + np.arange(100) // 5),
        ]
        return [*looks, monitor.rows_left_out]

    def from_cells() -> Any:
        monitor = truecal.CalibrationMonitor()
        for curve in ("calibrated", "square"):
            stream = truecal.CalibrationStream()
            stream.update(*binary(curve, 300))
            monitor.update(stream.cells)
        return [str(monitor), monitor.history]

    for label, run in {
        "top": top,
        "merge": merged,
        "save and load": saved,
        "clusters that return": returning,
        "cells": from_cells,
    }.items():
        yield flow(kind, f"CalibrationMonitor {label}", FIT)(run)
    yield flow(kind, "CalibrationMonitor empty batch")(lambda: truecal.CalibrationMonitor().update([], []))


def fed(monitor: Any, curve_names: tuple[str, ...], clustered: bool = False) -> Any:
    """Give a monitor one batch for each curve."""
    for day, curve in enumerate(curve_names):
        y, p = binary(curve, 200 + 10 * day, clustered)
        own = {"clusters": 1000 * day + np.arange(len(y)) // 5} if clustered else {}
        monitor.update(y, p, time=f"2026-03-{day + 1:02d}", **own)
    return monitor


def watched(options: dict[str, Any], curve_names: tuple[str, ...], clustered: bool) -> Any:
    """Return all that a monitor says after some batches."""
    monitor = fed(truecal.CalibrationMonitor(**options), curve_names, clustered)
    return {
        "text": str(monitor),
        "history": [str(look) for look in monitor.history],
        "last": monitor.history[-1],
        "evalue": monitor.evalue,
        "pvalue": monitor.pvalue,
        "alarm": monitor.alarm,
        "change_alarm": monitor.change_alarm,
        "change": monitor.change,
        "diagnosis": monitor.diagnosis,
        "log_detector": monitor.log_detector,
    }


def streams() -> Iterator[Case]:
    kind = "streams"

    def stream(data: str, estimator: str, **options: Any) -> Any:
        found = truecal.CalibrationStream(**options)
        (y, p), keywords = arguments(data)
        n = len(y)
        own = {key: value for key, value in keywords.items() if key in ("sample_weight", "clusters")}
        for part in (slice(0, n // 3), slice(n // 3, n // 2), slice(n // 2, n)):
            found.update(y[part], p[part], **{key: value[part] for key, value in own.items()})
        return {
            "estimate": found.compute(estimator, confidence_level=0.9 if estimator == "multiscale" else None),
            "n": found.n,
            "text": str(found),
        }

    for data in (
        "square 300",
        "rounded 300",
        "overconfident 300 weights",
        "overconfident 300 clusters",
        "rare 400",
    ):
        for estimator in ("multiscale", "ew_bin", "em_sweep", "em_debias"):
            yield flow(kind, f"CalibrationStream <{data}> {estimator}", FIT)(
                lambda data=data, estimator=estimator: stream(data, estimator)
            )
    yield flow(kind, "CalibrationStream three classes", FIT)(lambda: stream("three 200", "multiscale"))

    def merged() -> Any:
        one, two = truecal.CalibrationStream(), truecal.CalibrationStream()
        one.update(*binary("square", 200))
        two.update(*binary("calibrated", 300))
        return one.merge(two).compute()

    yield flow(kind, "CalibrationStream merge", FIT)(merged)


def frame_of(data: str) -> Any:
    """Return a data frame of named data."""
    import polars as pl

    (y, p), keywords = arguments(data)
    columns = {
        "label": y,
        "weight": keywords.get("sample_weight", np.ones(len(y))),
        "part": np.array(["a", "b"])[np.arange(len(y)) % 2],
    }
    columns["cluster"] = keywords.get("clusters", np.arange(len(y)) // 4)
    columns |= {"score": p} if p.ndim == 1 else {f"p{k}": column for k, column in enumerate(p.T)}
    return pl.DataFrame(columns)


def cells() -> Iterator[Case]:
    kind = "cells"
    options: dict[str, dict[str, Any]] = {
        "": {},
        "weight": {"weight": "weight"},
        "counts": {"weight": "weight", **weighted("counts")},
        "cluster": {"cluster": "cluster"},
        "by": {"by": "part"},
        "by two": {"by": ["part", "cluster"]},
        "equal": {"cluster": "cluster", **weighted("clusters")},
    }
    for data in ("square 300", "rounded 200 counts", "rare 500", "ends 150 counts"):
        for name, own in options.items():
            if name == "by two" and data != "rounded 200 counts":
                continue
            yield flow(kind, f"summarize <{data}> {name}".rstrip())(
                lambda data=data, own=own: truecal.summarize(
                    frame_of(data), label="label", score="score", **own
                )
            )
            if name in ("", "weight", "counts", "cluster", "equal"):
                yield flow(kind, f"estimate(summarize <{data}> {name})".replace(" )", ")"), FIT)(
                    lambda data=data, own=own: truecal.estimate(
                        truecal.summarize(frame_of(data), label="label", score="score", **own),
                        confidence_level=0.95,
                    )
                )
    for name, _ in specs():
        yield flow(kind, f"estimate(summarize <square 2000>, {name})", FIT)(
            lambda name=name: truecal.estimate(
                truecal.summarize(frame_of("square 2000"), label="label", score="score"), estimator=name
            )
        )
    for multiclass in (None, "top", "classwise", "top_2"):
        yield flow(kind, f"summarize <four 200> {multiclass}")(
            lambda multiclass=multiclass: truecal.summarize(
                frame_of("four 200"), label="label", score=["p0", "p1", "p2", "p3"], multiclass=multiclass
            )
        )

    def same(backend: str) -> Any:
        frame = frame_of("square 300")
        own = {"pandas": frame.to_pandas, "pyarrow": frame.to_arrow, "lazy": frame.lazy}[backend]()
        return truecal.summarize(own, label="label", score="score", weight="weight")

    for backend in ("pandas", "pyarrow", "lazy"):
        yield flow(kind, f"summarize <{backend}>")(lambda backend=backend: same(backend))

    def on_cells(function: str, **own: Any) -> Any:
        made = truecal.summarize(frame_of("overconfident 2000 clusters"), label="label", score="score")
        return public(function)(made, **own)

    for function, own, rule in (
        ("calibration_test", {"n_resamples": 99, "rng": 0}, resampled(99, base=FIT)),
        ("calibration_test", {"at_most": 0.1}, FIT),
        ("weak_calibration", {}, FIT),
        ("calibration_index", {}, FIT),
        ("net_benefit", {}, FIT),
        ("decompose", {}, FIT),
        ("spiegelhalter_test", {}, FIT),
        ("reliability_curve", {"n_resamples": 50, "rng": 0}, FIT),
        ("fit_population", {}, FIT),
        ("assess", {"recalibration": False, "n_resamples": 99, "rng": 0}, resampled(99, base=FIT)),
    ):
        yield flow(kind, f"{function}(cells, {own})", rule)(
            lambda function=function, own=own: on_cells(function, **own)
        )

    def merged() -> Any:
        one, two = (
            truecal.summarize(frame_of(data), label="label", score="score")
            for data in ("square 300", "rounded 200")
        )
        with tempfile.TemporaryDirectory() as folder:
            one.save(Path(folder, "cells.npz"))
            one = truecal.Cells.load(Path(folder, "cells.npz"))
        return [one.merge(two), str(one), repr(two)]

    yield flow(kind, "Cells save, load, merge")(merged)


def sql() -> Iterator[Case]:
    kind = "sql"
    options: dict[str, dict[str, Any]] = {
        "": {},
        "weight": {"weight": "w"},
        "by": {"by": "g"},
        "by two": {"by": ["g", "h"]},
        "cluster": {"cluster": "c"},
        "labels": {"pos_label": "yes", "neg_label": "no"},
        "numbers": {"pos_label": 2, "neg_label": 1},
        "bool": {"pos_label": True},
        "all": {"weight": "w", "by": "g", "cluster": "c"},
    }
    for dialect in ("postgres", "duckdb", "sqlite", "bigquery", "snowflake", "redshift", "spark"):
        for own in options.values():
            yield call(
                kind,
                "cells_query",
                None,
                CLOSED,
                "schema.table",
                label="y",
                score="p",
                dialect=dialect,
                **own,
            )
    yield call(kind, "cells_query", None, CLOSED, "{{ ref('scores') }}", label='"Y y"', score="p")

    def read(data: str, by: Any = None, kind_of_weights: str = "sampling", **own: Any) -> Any:
        import polars as pl

        frame = frame_of(data)
        with sqlite3.connect(":memory:") as database:
            database.execute(f"create table t ({', '.join(frame.columns)})")
            database.executemany(f"insert into t values ({','.join('?' * frame.width)})", frame.rows())
            query = truecal.cells_query("t", label="label", score="score", by=by, dialect="sqlite", **own)
            cursor = database.execute(query)
            table = pl.DataFrame(
                cursor.fetchall(),
                schema=[one[0] for one in cursor.description],
                orient="row",
                infer_schema_length=None,
            )
        return truecal.read_cells(table, by=by, **weighted(kind_of_weights))

    for data in ("square 300", "rounded 200 counts", "ends 150", "rare 400 weights"):
        yield flow(kind, f"read_cells <{data}>")(lambda data=data: read(data))
        yield flow(kind, f"read_cells <{data}> by")(lambda data=data: read(data, by="part"))
        yield flow(kind, f"read_cells <{data}> weight")(lambda data=data: read(data, weight="weight"))
        yield flow(kind, f"estimate(read_cells <{data}> cluster)", FIT)(
            lambda data=data: truecal.estimate(read(data, cluster="cluster"), confidence_level=0.9)
        )
    yield flow(kind, "read_cells counts")(
        lambda: read("rounded 200 counts", kind_of_weights="counts", weight="weight")
    )


def recalibrators() -> Iterator[Case]:
    kind = "recalibrators"
    space = "recalibration"
    names: dict[str, tuple[dict[str, Any], ...]] = {
        "BetaCalibration": ({},),
        "DirichletCalibration": ({}, {"regularization": 0.01}),
        "HistogramBinning": ({}, {"n_bins": 5, "strategy": "width"}),
        "IdentityCalibration": ({},),
        "IsotonicCalibration": ({},),
        "PlattScaling": ({}, {"targets": "labels"}),
        "TemperatureScaling": ({"input": "probabilities"},),
        "VectorScaling": ({}, {"regularization": 0.1}),
        "VennAbersCalibration": ({},),
    }

    def fitted(name: str, options: dict[str, Any], data: str) -> Any:
        (y, p), keywords = arguments(data)
        one = public(f"{space}.{name}")(**options)
        one.fit(p, y, sample_weight=keywords.get("sample_weight"))
        probes = np.array([0.0, 0.01, 0.2, 0.5, 0.77, 0.999, 1.0])
        if p.ndim == 2:
            probes = np.vstack([p[:4], np.full(p.shape[1], 1 / p.shape[1])])
        found = {
            key: getattr(one, key)
            for key in sorted(vars(one))
            if key.endswith("_") and not key.startswith("_")
        }
        return {
            "rows": one.transform(p),
            "probes": one.transform(probes),
            "params": one.get_params(),
            "fitted": sorted(found),
            "text": repr(one),
        }

    for name, several in names.items():
        rule = (
            CLOSED
            if name
            in ("HistogramBinning", "IdentityCalibration", "IsotonicCalibration", "VennAbersCalibration")
            else FIT
        )
        for options in several:
            for data in (
                "square 300",
                "overconfident 200 counts",
                "rounded 150",
                "ends 150",
                "rare 400",
                "high 200 two_columns",
                "three 200",
                "words 150",
                "contradicted 120",
            ):
                yield flow(kind, f"{name}({options}) <{data}>", rule)(
                    lambda name=name, options=options, data=data: fitted(name, options, data)
                )

    def logits(name: str, k: int) -> Any:
        y, p = classes(k, 200) if k > 2 else binary("overconfident", 200)
        scores = 2 * np.log(p) if k > 2 else 2 * np.log(p / (1 - p))
        return public(f"{space}.{name}")(input="logits").fit(scores, y).transform(scores)

    for name in names:
        for k in (2, 3):
            yield flow(kind, f"{name}(input='logits') {k} classes", FIT)(
                lambda name=name, k=k: logits(name, k)
            )


def selections() -> Iterator[Case]:
    kind = "selection"
    rule = FIT
    for data in (
        "square 300",
        "calibrated 300",
        "overconfident 200 clusters",
        "rounded 300 counts",
        "three 150",
        "high 300",
    ):
        yield call(kind, "select_recalibrator", data, rule, n_resamples=20, rng=0)
    for criterion in ("brier", "em_sweep", "multiscale"):
        yield call(
            kind, "select_recalibrator", "square 300", rule, criterion=criterion, n_resamples=20, rng=0
        )
    for options in (
        {"cv": 3},
        {"candidates": ("platt", "isotonic")},
        {"candidates": ["beta"]},
        {"multiclass": "classwise"},
    ):
        yield call(
            kind,
            "select_recalibrator",
            "three 150" if "multiclass" in options else "overconfident 300",
            rule,
            n_resamples=20,
            rng=0,
            **options,
        )

    def applied() -> Any:
        y, p = binary("overconfident", 300)
        chosen = truecal.select_recalibrator(y, p, n_resamples=20, rng=1)
        return chosen.transform(p)

    def validated() -> Any:
        y, p = binary("overconfident", 400)
        return truecal.select_recalibrator(
            y[:200], p[:200], validation=(y[200:], p[200:]), n_resamples=20, rng=1
        )

    yield flow(kind, "transform of the chosen one", rule)(applied)
    yield flow(kind, "select_recalibrator with validation rows", rule)(validated)


def clinical() -> Iterator[Case]:
    kind = "clinical"
    several = (
        "square 300",
        "calibrated 300",
        "overconfident 300",
        "rounded 200",
        "ends 200",
        "rare 600",
        "high 300",
        "contradicted 150",
        "two 100",
        "constant 60",
        "three 200",
        "three 200 classwise",
        "certain 90",
    )
    several += tuple(f"overconfident 300 {extra}" for extra in (*EXTRAS, "few", "weights clusters"))
    for data in several:
        for function in ("weak_calibration", "calibration_index", "net_benefit"):
            yield call(kind, function, data, FIT)
        if {"clusters", "uneven", "equal", "few"} & set(data.split()):
            yield call(kind, "describe_clusters", data, FIT)
        for name in ("brier", "log_loss"):
            yield call(kind, "decompose", data, score=name)
        yield call(kind, "decompose", data, FIT, confidence_level=0.9)
    for level in (0.5, 0.99):
        for function in ("weak_calibration", "calibration_index", "net_benefit"):
            yield call(kind, function, "overconfident 300", FIT, confidence_level=level)
    yield call(kind, "net_benefit", "rare 600", FIT, thresholds=[0.01, 0.05, 0.1, 0.2])
    yield call(kind, "net_benefit", "rare 600 clusters", FIT, thresholds=[0.05])


def curves() -> Iterator[Case]:
    kind = "reliability curves"
    for data in (
        "square 300",
        "rounded 200",
        "ends 150",
        "rare 400",
        "three 200",
        *(f"overconfident 200 {extra}" for extra in EXTRAS),
    ):
        for binning in ("em", "ew"):
            yield call(kind, "reliability_curve", data, FIT, binning=binning, n_resamples=50, rng=0)
        yield call(kind, "reliability_curve", data, FIT, n_bins=5, band=False)
        yield call(kind, "reliability_curve", data, FIT, n_bins="sweep", n_resamples=50, rng=0)
    for options in ({"confidence_level": 0.8}, {"n_resamples": 200}, {"rng": 5}):
        yield call(kind, "reliability_curve", "square 300", FIT, **{"rng": 0, "n_resamples": 50, **options})


def score_distributions() -> dict[str, Callable[[], Any]]:
    simulation = truecal.simulation
    beta = simulation.BetaScores(2.0, 0.7)
    return {
        "Beta(2, .7)": lambda: beta,
        "Beta(.05, 3)": lambda: simulation.BetaScores(0.05, 3.0),
        "uniform": simulation.UniformScores,
        "uniform(.2, .6)": lambda: simulation.UniformScores(0.2, 0.6),
        "atoms": lambda: simulation.AtomScores([0.1, 0.5, 0.9], [0.25, 0.5, 0.25]),
        "mixture": lambda: simulation.MixtureScores([beta, simulation.UniformScores()], [0.3, 0.7]),
        "rounded": lambda: simulation.RoundedScores(beta, decimals=2),
        "float32": lambda: simulation.RoundedScores(beta, dtype="float32"),
        "with atoms": lambda: simulation.with_atoms(beta, at_zero=0.1, at_one=0.2),
        "empirical": lambda: simulation.EmpiricalScores(binary("high", 200)[1]),
    }


def truth_curves() -> dict[str, Callable[[], Any]]:
    simulation = truecal.simulation
    return {
        "identity": simulation.IdentityCurve,
        "power 2": lambda: simulation.PowerCurve(2.0),
        "logistic": lambda: simulation.LogisticCurve(0.7, 0.1),
        "step": lambda: simulation.StepCurve([0.3, 0.6], [0.1, 0.5, 0.8]),
        "function": lambda: simulation.FunctionCurve(lambda score: 0.5 * score + 0.2),
        "glm": lambda: simulation.GLMCurve("logit", "log", -0.9, 1.2),
    }


def populations() -> Iterator[Case]:
    kind = "populations"

    def about(population: Any, norms: tuple[float, ...] = (1, 2)) -> Any:
        y, p = population.sample(50, rng=3)
        return {
            "true_error": [population.true_error(norm) for norm in norms],
            "efficiency_limit": population.efficiency_limit(500),
            "mean_label": population.mean_label,
            "sum": float(p.sum()),
            "scores": p,
            "labels": y,
            "calibrated": population.calibrated().true_error(),
            "text": repr(population) if "0x" not in repr(population) else "",
        }

    for name in truecal.paper.NAMES:
        for calibrated in (False, True):
            yield flow(kind, f"paper.population({name}, calibrated={calibrated})", FIT)(
                lambda name=name, calibrated=calibrated: about(truecal.paper.population(name, calibrated))
            )
    for name, scores in score_distributions().items():
        for label, curve in truth_curves().items():
            yield flow(kind, f"Population({name}, {label})", FIT)(
                lambda scores=scores, curve=curve: about(truecal.Population(scores(), curve()))
            )
    for name, _ in specs():
        yield flow(kind, f"true_value({name})", FIT)(
            lambda name=name: truecal.Population(
                score_distributions()["atoms"](), truth_curves()["power 2"]()
            ).true_value(name)
        )
    for suite in ("A", "B", "C", "C1", "C2"):
        yield flow(kind, f"suites.suite({suite!r})", FIT)(
            lambda suite=suite: {
                key: one.true_error() for key, one in truecal.simulation.suites.suite(suite).items()
            }
        )


def fits() -> Iterator[Case]:
    kind = "fits"
    for data in (
        "square 300",
        "overconfident 300",
        "high 400",
        "rare 400",
        "rounded 300 counts",
        "three 300",
        "ends 200",
        "overconfident 300 weights",
        "overconfident 300 clusters",
    ):
        for method in ("mle", "paper"):
            yield call(kind, "fit_population", data, FIT, method=method)
    yield call(kind, "fit_population", "high 300", FIT, standard_errors=True, n_resamples=10, rng=0)
    for data in ("square 200", "high 200"):
        yield call(kind, "advise", data, FIT, estimators=("em_sweep", "ew_bin"), rng=0)


def studies() -> Iterator[Case]:
    kind = "studies"

    def study(*estimators: Any, norm: float = 2) -> Any:
        chosen = {
            "power": truecal.Population(
                truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(1.5)
            ),
            "paper": truecal.paper.population("resnet110_c10"),
        }
        return truecal.bias_study(
            chosen, estimators=estimators, sizes=(50, 200), repeats=20, norm=norm, rng=0, progress=False
        ).rows

    for name, has_norm in specs():
        yield flow(kind, f"bias_study({name})", FIT)(lambda name=name: study(name))
        if has_norm and name in ("multiscale", "em_sweep", "ew_bin", "em_debias"):
            yield flow(kind, f"bias_study({name}, norm=1)", FIT)(lambda name=name: study(name, norm=1))
    yield flow(kind, "bias_study with options", FIT)(
        lambda: study({"estimator": "em_bin", "n_bins": 30}, "ece", norm=1)
    )

    def kept() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "study.csv")
            options = {"estimators": ["ew_bin"], "sizes": [50], "rng": 0, "progress": False}
            chosen = {"one": truecal.paper.population("resnet110_c10")}
            truecal.bias_study(chosen, repeats=10, path=path, **options)
            return [path.read_text(), truecal.simulation.Study.from_csv(path).rows]

    yield flow(kind, "bias_study written and read", FIT)(kept)


def planning() -> Iterator[Case]:
    kind, simulation = "planning", truecal.simulation

    def population(d: float) -> Any:
        return truecal.Population(simulation.UniformScores(), simulation.PowerCurve(d))

    for method in ("multiscale", "em_sweep", "ew_bin"):
        for d in (1.0, 1.5):
            yield flow(kind, f"power(d={d}, {method})", resampled(50, base=FIT))(
                lambda d=d, method=method: truecal.power(population(d), 200, method=method, repeats=50, rng=0)
            )
    for options in (
        {},
        {"power": 0.8},
        {"alpha": 0.2},
        {"norm": 1},
        {"cluster_size": 5, "icc": 0.1},
        {"alternative": "level"},
        {"alternative": "waves"},
    ):
        yield call(kind, "simulation.plan_sample_size", None, FIT, 0.15, repeats=50, rng=0, **options)
    yield call(kind, "required_sample_size", None, FIT, 0.2, repeats=50, rng=0, method="ew_bin")
    yield call(kind, "required_sample_size", None, FIT, 0.0, at_most=0.2, repeats=50, rng=0)
    for options in ({}, {"power": 0.8}):
        yield call(kind, "simulation.detectable_error", None, FIT, 300, repeats=50, rng=0, **options)
    yield call(
        kind,
        "simulation.miss_rates",
        None,
        resampled(50, base=FIT),
        [0.05, 0.2],
        [100, 300],
        repeats=50,
        rng=0,
    )
    for alternative in ("power", "level", "slope", "steps", "waves"):
        yield flow(kind, f"population_with_error({alternative})", FIT)(
            lambda alternative=alternative: simulation.population_with_error(
                0.1, alternative=alternative
            ).true_error()
        )
    for options in (
        {"c_statistic": 0.8},
        {"linear_predictor": (-1.0, 0.9)},
        {"c_statistic": 0.7, "width_slope": 0.4},
        {"c_statistic": 0.75, "confidence_level": 0.9},
    ):
        for prevalence in (0.05, 0.3):
            yield call(kind, "validation_sample_size", None, FIT, prevalence=prevalence, **options)
    yield flow(kind, "validation_sample_size(scores)", FIT)(
        lambda: truecal.validation_sample_size(prevalence=0.2, scores=simulation.BetaScores(1.0, 4.0))
    )


def assessments() -> Iterator[Case]:
    kind, rule, quick = "assess", resampled(99, 1, FIT), {"recalibration": False, "n_resamples": 99, "rng": 0}
    for data in (
        "square 300",
        "calibrated 300",
        "rounded 200",
        "ends 200",
        "rare 500",
        "high 300",
        "three 200",
        "three 200 classwise",
        "words 200",
        "constant 60",
        "two 120",
        "contradicted 120",
        "square 12",
        "calibrated 1",
        "certain 80",
        *(f"overconfident 300 {extra}" for extra in (*EXTRAS, "few")),
    ):
        yield call(kind, "assess", data, rule, **quick)
    for data in ("square 200", "calibrated 200", "three 150"):
        yield call(kind, "assess", data, rule, n_resamples=99, rng=0)
    for options in (
        {"clinical": True},
        {"clinical": True, "thresholds": [0.1, 0.3]},
        {"confidence_level": 0.8},
        {"resolution": 4},
    ):
        yield call(kind, "assess", "overconfident 300", rule, **quick, **options)
    yield call(kind, "assess", "overconfident 300 clusters", rule, **quick, clinical=True)

    def grouped(by: Any, data: str = "overconfident 400", **options: Any) -> Any:
        (y, p), keywords = arguments(data)
        return truecal.assess(y, p, by=by(len(y)), **keywords, **quick, **options)

    def letters(n: int) -> np.ndarray:
        return np.array(["a", "b", "c"])[np.arange(n) % 3]

    yield flow(kind, "assess by=groups", resampled(99, 4, FIT))(lambda: grouped(letters))
    yield flow(kind, "assess by=groups clusters", resampled(99, 4, FIT))(
        lambda: grouped(letters, "overconfident 400 clusters")
    )
    yield flow(kind, "assess by=two", resampled(99, 4, FIT))(
        lambda: grouped(lambda n: {"letter": letters(n), "half": np.arange(n) // (n / 2)})
    )
    yield flow(kind, "assess time=days", rule)(
        lambda: truecal.assess(
            *binary("overconfident", 400), time=np.datetime64("2026-01-01") + np.arange(400) // 20, **quick
        )
    )
    yield flow(kind, "assess time=numbers", rule)(
        lambda: truecal.assess(*binary("calibrated", 300), time=np.arange(300.0), **quick)
    )


def displays() -> Iterator[Case]:
    kind, display = "displays", truecal.display

    def drawn(make: Callable[[], Any], **options: Any) -> Any:
        """Return the lines, bars and texts of a plot."""
        import matplotlib as mpl

        mpl.use("Agg")
        import matplotlib.pyplot as plt

        try:
            make().plot(**options)
            axes = plt.gcf().axes
            return [
                {
                    "title": ax.get_title(),
                    "x": ax.get_xlabel(),
                    "y": ax.get_ylabel(),
                    "texts": [one.get_text() for one in ax.texts],
                    "lines": [np.asarray(line.get_xydata(), float) for line in ax.lines],
                    "patches": len(ax.patches),
                    "legend": [one.get_text() for one in ax.get_legend().get_texts()]
                    if ax.get_legend()
                    else None,
                }
                for ax in axes
            ]
        finally:
            plt.close("all")

    y, p = binary("overconfident", 300)
    quick = {"n_resamples": 50, "rng": 0}
    makers: dict[str, Callable[[], Any]] = {
        **{
            f"ReliabilityDisplay {which}": lambda which=which: display.ReliabilityDisplay.from_predictions(
                y, p, kind=which, **quick
            )
            for which in ("isotonic", "bins")
        },
        "ReliabilityDisplay logit": lambda: display.ReliabilityDisplay.from_predictions(
            y, p, scale="logit", **quick
        ),
        "CalibrationPlotDisplay": lambda: display.CalibrationPlotDisplay.from_predictions(y, p),
        "RiskCoverageDisplay": lambda: display.RiskCoverageDisplay.from_predictions(y, p),
        "DecisionCurveDisplay": lambda: display.DecisionCurveDisplay.from_predictions(y, p),
        "ScoreDisplay": lambda: display.ScoreDisplay.from_predictions(y, p),
        "CurveDisplay": lambda: display.CurveDisplay.from_predictions(y, p),
        "BinCountDisplay": lambda: display.BinCountDisplay.from_predictions(y, p),
        "ComparisonDisplay": lambda: display.ComparisonDisplay.from_predictions(
            y, {"a": p, "b": p**1.2}, **quick
        ),
        "ComparisonDisplay groups": lambda: display.ComparisonDisplay.from_groups(
            y, p, np.arange(300) % 3, **quick
        ),
        "AuditDisplay": lambda: display.AuditDisplay(
            truecal.audit(y, p, features(300), n_resamples=50, rng=0)
        ),
        "MonitorDisplay": lambda: display.MonitorDisplay.from_monitor(
            fed(truecal.CalibrationMonitor(), ("calibrated", "square"))
        ),
    }
    for name, make in makers.items():
        yield flow(kind, name, FIT)(lambda make=make: drawn(make))
    for name in ("CalibrationPlotDisplay", "RiskCoverageDisplay", "DecisionCurveDisplay"):
        for data in ("square 200", "rare 300 weights", "overconfident 200 clusters", "three 200"):
            yield flow(kind, f"{name}.from_predictions(<{data}>) data", FIT)(
                lambda name=name, data=data: held(name, data)
            )
    for band in ("pointwise", "simultaneous"):
        yield flow(kind, f"ReliabilityDisplay confidence={band}", FIT)(
            lambda band=band: (
                display.ReliabilityDisplay.from_predictions(y, p, confidence=band, **quick).confidence
            )
        )


def held(name: str, data: str) -> Any:
    """Return the results that a display holds."""
    (y, p), keywords = arguments(data)
    made = public(f"display.{name}").from_predictions(y, p, **keywords)
    return {key: value for key, value in sorted(vars(made).items()) if hasattr(value, "to_dict")}


def samples() -> Iterator[Case]:
    kind = "samples"
    for data in (
        "square 100",
        "rounded 100 counts",
        "overconfident 100 weights",
        "overconfident 100 clusters",
        "three 60",
        "words 60",
        "float32 50",
        "square 60 named",
        "square 60 two_columns",
        "square 60 column",
        "square 60 bool",
        "square 60 list",
    ):
        yield call(kind, "Sample.from_predictions", data)
        yield flow(kind, f"repr(Sample <{data}>)")(lambda data=data: describe(data))
    yield flow(kind, "Sample.from_logits")(
        lambda: truecal.Sample.from_logits([0, 1, 1, 0], [-2.0, 0.5, 3.0, 0.0])
    )
    yield flow(kind, "Sample.from_logits three")(
        lambda: truecal.Sample.from_logits([0, 1, 2], [[2.0, 0, 0], [0, 1, 0], [0, 0, 3.0]])
    )
    for function in (
        "estimate",
        "confidence_interval",
        "weak_calibration",
        "decompose",
        "spiegelhalter_test",
        "describe_clusters",
    ):
        for data in ("square 200", "overconfident 200 clusters"):
            yield flow(kind, f"{function}(Sample <{data}>)", FIT)(
                lambda function=function, data=data: public(function)(sample_of(data))
            )


def sample_of(data: str) -> Any:
    positional, keywords = arguments(data)
    return truecal.Sample.from_predictions(*positional, **keywords)


def describe(data: str) -> Any:
    sample = sample_of(data)
    return [repr(sample), sample.n, sample.target, len(sample.score), float(sample.label.sum())]


def integrations() -> Iterator[Case]:
    kind = "integrations"
    import truecal.integrations.llm as llm

    texts = (
        "0.8",
        "80%",
        "80 percent",
        "Confidence: 0.75",
        "I am 90% sure",
        "9/10",
        "high",
        "very unsure",
        "",
        "nan",
        "1.2",
        "-0.1",
        "85",
        "between 60% and 70%",
        ".5",
        "0,7",
        "100%",
        "certain",
        "no idea",
        "**Confidence:** 65%",
    )
    for text in texts:
        for scale in ("fraction", "percent"):
            yield flow(kind, f"llm.parse_confidence({text!r}, scale={scale!r})")(
                lambda text=text, scale=scale: llm.parse_confidence(text, scale=scale)
            )

    def answers(slope: float) -> Any:
        y, p = binary("overconfident", 240, dependent=True)
        p = p**slope
        rows = np.arange(240)
        return llm.Answers(
            correct=y.astype(bool),
            confidence=p,
            question=np.array([f"q{k}" for k in rows // 5]),
            cluster=np.array([f"q{k}" for k in rows // 5]),
            repeat=rows % 5,
            model="m",
            task="t",
            n_refused=1,
            n_unparsed=2,
            n_ungraded=0,
        )

    yield flow(kind, "llm.Answers.estimate", FIT)(lambda: answers(1.0).estimate())
    yield flow(kind, "llm.Answers.risk_coverage", FIT)(lambda: answers(1.0).risk_coverage())
    yield flow(kind, "llm.Answers.sentence", FIT)(lambda: answers(1.0).sentence())
    yield flow(kind, "llm.compare_answers", FIT)(lambda: llm.compare_answers(answers(1.0), answers(0.6)))

    for reader, logs in (("read_eval_log", inspect_log), ("read_lm_eval_samples", lm_eval_log)):
        for options in ({}, {"cluster": "topic"}, {"cluster": "nothing"}):
            yield flow(kind, f"llm.{reader}({options})", FIT)(
                lambda reader=reader, logs=logs, options=options: read_log(
                    getattr(llm, reader), logs, options
                )
            )

    def model(**options: Any) -> Any:
        from sklearn.naive_bayes import GaussianNB

        import truecal.integrations.sklearn as ours

        x = np.column_stack([uniform(200, 0.618), uniform(200, 0.754)])
        y = (uniform(200, 0.82) < x[:, 0] ** 2).astype(int)
        fitted = ours.CalibratedModel(GaussianNB(), cv=3, random_state=0, **options).fit(x, y)
        return {
            "proba": fitted.predict_proba(x[:5]),
            "score": ours.CalibrationScorer()(fitted, x, y),
            "ece": ours.CalibrationScorer("ece")(fitted, x, y),
        }

    for recalibrator in ("auto", "platt", "isotonic"):
        yield flow(kind, f"sklearn.CalibratedModel({recalibrator})", FIT)(
            lambda recalibrator=recalibrator: model(recalibrator=recalibrator)
        )


def inspect_log(folder: Path) -> Path:
    """Write answers as Inspect logs them."""
    y, p = binary("overconfident", 60)
    samples = [
        {
            "id": k // 2,
            "epoch": 1 + k % 2,
            "metadata": {"topic": f"t{k // 6}"},
            "output": {"completion": f"Answer: A\nConfidence: {100 * p[k]:.0f}%" if k % 20 else "no idea"},
            "scores": {"graded": {"value": "CI"[1 - y[k]] if k % 15 else "N"}},
        }
        for k in range(60)
    ]
    path = folder / "log.json"
    log = {"status": "success", "eval": {"model": "m", "task": "quiz"}, "samples": samples}
    path.write_text(json.dumps(log))
    return path


def lm_eval_log(folder: Path) -> Path:
    """Write answers as lm-evaluation-harness logs them."""
    y, p = binary("overconfident", 60)
    samples = [
        {
            "doc_id": k,
            "doc": {"topic": f"t{k // 6}"},
            "filtered_resps": [[str(float(np.log(p[k]))), "False"], [str(float(np.log(1 - p[k]))), "False"]],
            "filter": "none",
            "metrics": ["acc"],
            "acc": float(y[k]),
        }
        for k in range(60)
    ]
    path = folder / "samples_quiz_2026-11-16T14-17-14.869352.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in samples))
    return path


def read_log(reader: Any, write: Callable[[Path], Path], options: dict[str, Any]) -> Any:
    """Return what a log says."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            answers = reader(write(Path(folder)), **options)
        except truecal.InputError as error:
            return str(error).replace(folder, "FOLDER")
    return [answers, answers.sentence(), answers.estimate(), answers.accuracy, answers.n_questions]


def demo_data() -> Iterator[Case]:
    kind = "data sets"
    for name in truecal.datasets.NAMES:
        yield call(kind, "datasets.load", None, CLOSED, name)
        for model in truecal.datasets.load(name).predictions:

            def run(name: str = name, model: str = model) -> Any:
                data = truecal.datasets.load(name)
                return truecal.estimate(
                    data.y_true, data.predictions[model], labels=data.labels, confidence_level=0.95
                )

            yield flow(kind, f"estimate(datasets.load({name!r}), {model})", FIT)(run)


def last_cases() -> Iterator[Case]:
    """Yield what changes the process: an estimator of one's own is registered."""

    def run() -> Any:
        from truecal.results import Estimate

        @public(REGISTER)("golden_mean", summary="Mean gap.", reference="none", norms="none")
        def golden_mean(sample: Any) -> Any:
            """Return the absolute difference between mean score and mean label."""
            return Estimate(
                abs(
                    float(np.average(sample.score, weights=sample.count))
                    - float(sample.positives.sum() / sample.n)
                )
            )

        (y, p), _ = arguments("square 100")
        return [
            truecal.estimate(y, p, estimator="golden_mean"),
            "golden_mean" in {spec.name for spec in truecal.list_estimators()},
        ]

    yield Case("registration", f"{REGISTER}('golden_mean')", CLOSED, run)
