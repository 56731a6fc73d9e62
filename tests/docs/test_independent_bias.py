"""The second calculation of the biases of Figures 4 and 6: it uses nothing of truecal, and gives the same estimates."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import truecal

SCRIPT = Path(__file__).parents[2] / "tools" / "independent_bias.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("independent_bias", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_uses_nothing_of_truecal():
    lines = SCRIPT.read_text().splitlines()
    assert not [line for line in lines if line.startswith(("import truecal", "from truecal"))]


@pytest.mark.parametrize("name", truecal.paper.NAMES)
@pytest.mark.parametrize("n", [200, 3200])
@pytest.mark.filterwarnings("ignore:.*not monotone:truecal.exceptions.CalibrationWarning")
def test_estimates_of_one_sample(script, name, n):
    y, p = truecal.paper.population(name).sample(n, rng=n)
    theirs = dict(zip(script.ESTIMATORS, script.estimates(np.asarray(p), np.asarray(y)), strict=True))
    for key, value in theirs.items():
        tolerance = 5e-4 if key == "kde" else 1e-12  # its density is computed on another grid
        assert truecal.calibration_error(y, p, estimator=key) == pytest.approx(value, abs=tolerance), key


@pytest.mark.parametrize("name", truecal.paper.NAMES)
def test_true_errors(script, name):
    (row, *_) = script.biases(name, False, 200, 2, 1)
    assert row["true_error"] == pytest.approx(truecal.paper.population(name).true_error(), abs=2e-5)
