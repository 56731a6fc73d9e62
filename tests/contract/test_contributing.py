"""The example of an estimator in CONTRIBUTING.md works when it is added as a file."""

import doctest
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import truecal
from truecal import estimators
from truecal.estimators import _registry

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
MODULE = "truecal.estimators.isotonic"


@pytest.fixture
def example(tmp_path, monkeypatch):
    """Add the example to the estimators for one test, and return its module."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)
    (tmp_path / "isotonic.py").write_text(code, encoding="utf-8")
    truecal.list_estimators()  # the real ones register first, and stay when the example goes
    monkeypatch.setattr(_registry, "_SPECS", dict(_registry._SPECS))
    monkeypatch.setattr(estimators, "__path__", [*estimators.__path__, str(tmp_path)])
    _registry._discover.cache_clear()
    truecal.list_estimators()
    yield sys.modules[MODULE]
    del sys.modules[MODULE], estimators.isotonic


def test_the_file_is_all_that_is_needed(example):
    assert "isotonic" in [spec.name for spec in truecal.list_estimators()]
    estimate = truecal.estimate([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], estimator="isotonic", norm=1)
    assert (estimate.estimator, estimate.norm, estimate.n) == ("isotonic", 1, 4)
    assert estimate.value == pytest.approx(0.1)


def test_its_own_example_runs(example):
    outcome = doctest.testmod(example)
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_row_order_and_weights(example):
    rng = np.random.default_rng(0)
    p = rng.integers(0, 20, 500) / 20  # many ties
    y = rng.random(500) < p**2
    weight = rng.integers(1, 4, 500)
    value = truecal.calibration_error(y, p, sample_weight=weight, estimator="isotonic")
    order = rng.permutation(np.repeat(np.arange(500), weight))
    assert truecal.calibration_error(y[order], p[order], estimator="isotonic") == pytest.approx(value)


def test_the_example_is_removed_after_each_test():
    assert "isotonic" not in [spec.name for spec in truecal.list_estimators()]
