"""The metrics of examples/ inside the real packages, which are not among the tools of this project."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import truecal

EXAMPLES = Path(__file__).parents[3] / "examples"


def draw(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return (rng.random(n) < score**1.3).astype(int), score


def test_evaluate_loads_the_metric():
    evaluate = pytest.importorskip("evaluate", reason="evaluate is not installed: pip install evaluate")
    path = str(EXAMPLES / "calibration_error.py")
    y, p = draw()
    found = evaluate.load(path).compute(references=y, predictions=p)
    expected = truecal.estimate(y, p, confidence_level=0.95)
    assert found["calibration_error"] == pytest.approx(expected.value)
    assert (found["low"], found["high"]) == pytest.approx((expected.interval.low, expected.interval.high))
    assert found["pvalue"] == truecal.calibration_test(y, p, rng=0).pvalue
    proba = np.random.default_rng(1).dirichlet([1, 1, 1], 600)
    several = evaluate.load(path, config_name="multiclass")
    for start in range(0, 600, 200):
        rows = slice(start, start + 200)
        several.add_batch(references=proba[rows].argmax(axis=1), predictions=proba[rows])
    error = several.compute()["calibration_error"]
    assert error == pytest.approx(truecal.calibration_error(proba.argmax(axis=1), proba))


def test_evidently_runs_the_metric():
    evidently = pytest.importorskip(
        "evidently", reason="evidently is not installed: pip install evidently", exc_type=ImportError
    )
    pandas = pytest.importorskip("pandas")
    spec = importlib.util.spec_from_file_location("evidently_metric", EXAMPLES / "evidently_metric.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (y, p), (before, old) = draw(), draw(seed=1)
    current, reference = pandas.DataFrame({"y": y, "p": p}), pandas.DataFrame({"y": before, "p": old})
    report = evidently.Report([module.CalibrationError(label="y", score="p", estimator="em_debias")])
    found = report.run(current, reference).dict()["metrics"]
    assert found[0]["value"] == pytest.approx(truecal.calibration_error(y, p, estimator="em_debias"))
