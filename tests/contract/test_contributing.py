"""The estimator, the command and the kind of label of CONTRIBUTING.md work when they are added as it says."""

import doctest
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import truecal
from truecal import cli, estimators
from truecal.estimators import _registry

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
CODE = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)
MODULE = "truecal.estimators.isotonic"


@pytest.fixture
def example(tmp_path, monkeypatch):
    """Add the example to the estimators for one test, and return its module."""
    (tmp_path / "isotonic.py").write_text(CODE[0], encoding="utf-8")
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


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Add the command for one test, and return a function that runs it."""
    (tmp_path / "spiegelhalter.py").write_text(CODE[1], encoding="utf-8")
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])
    monkeypatch.setitem(cli.COMMANDS, "spiegelhalter", "Test the squared errors.")
    yield lambda *arguments: CliRunner().invoke(cli.main, ["spiegelhalter", *map(str, arguments)])
    sys.modules.pop("truecal.cli.spiegelhalter", None)


def test_the_command_reads_tests_and_writes(command, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    file = tmp_path / "rows.csv"
    rows = [f"{score},{int(rng.random() < score**2)}" for score in p]
    file.write_text("\n".join(["score,label", *rows]))
    expected = truecal.spiegelhalter_test([int(row[-1]) for row in rows], p)
    found = command(file, "--format", "json")
    assert found.exit_code == (expected.pvalue <= 0.05)
    content = json.loads(found.stdout)
    assert content["command"] == "spiegelhalter"
    assert content["statistic"] == pytest.approx(expected.statistic)
    assert command(file, "--label", "nothing").exit_code == 2
    assert "Significance level" in command("--help").stdout


def test_the_kind_of_label_works_everywhere():
    made = {}
    exec(CODE[2], made)
    rng = np.random.default_rng(1)
    p = rng.random(2000)
    said = [(rng.random(2000) < p).astype(int) for _ in range(2)]
    labels = made["two_annotators"](*said)
    found = truecal.estimate(labels, p, confidence_level=0.95)
    assert 0.0 in found.interval
    assert found.label_kind == "labels of two annotators"
    assert any("disagree" in note for note in found.notes)
    assert truecal.calibration_test(labels, p, n_resamples=99, rng=0).pvalue > 0.01
    assert truecal.assess(labels, p).to_dict()["label_kind"] == found.label_kind
    with pytest.raises(truecal.InputError, match="other than 0 and 1"):
        made["two_annotators"](said[0], said[1] + 1)
