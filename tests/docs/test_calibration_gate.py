"""The job and the tests on the page "Calibration gate in CI" are run, on predictions that pass and that fail."""

import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from support.command_line import run, spread
from support.snippets import ROOT, fences, workplace

pl = pytest.importorskip("polars")

PAGE = (ROOT / "docs" / "guide" / "calibration_in_ci.md").read_text(encoding="utf-8")


def block(kind, word):
    (found,) = [one.text for one in fences(PAGE) if one.kind == kind and word in one.text]
    return found


@pytest.fixture
def steps():
    (job,) = yaml.safe_load(block("yaml", "jobs:"))["jobs"].values()
    return job["steps"]


@pytest.mark.parametrize(("power", "codes"), [(1, (0, 0, 0)), (2, (1, 1, 0))])
def test_the_job_passes_and_fails_as_it_should(steps, power, codes):
    y, p = spread(4000, power)
    commands = [step["run"] for step in steps if step.get("run", "").startswith("truecal ")]
    with workplace():
        table = {"y": y, "p": p, "region": np.array(["north", "south"])[np.arange(4000) % 2]}
        pl.DataFrame(table).write_parquet("predictions.parquet")
        for command, code in zip(commands, codes, strict=True):
            run(*shlex.split(command)[1:], code=code)
        (artifact,) = [step["with"]["path"] for step in steps if "upload-artifact" in step.get("uses", "")]
        assert "calibration" in Path(artifact).read_text(encoding="utf-8")


def test_steps_that_must_run_after_a_failure_do(steps):
    after_gate = steps[[step.get("run", "").startswith("truecal test") for step in steps].index(True) + 2 :]
    assert all(step.get("if") == "always()" for step in after_gate)


def test_the_pytest_file_passes_and_fails_as_it_should(tmp_path):
    code = block("python", "def test_")
    (tmp_path / "test_calibration.py").write_text(code, encoding="utf-8")
    (tmp_path / "test_strict.py").write_text(code.replace("at_most=0.05", "at_most=0.02"), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        tmp_path,
        tmp_path,
    ]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "1 failed, 3 passed" in result.stdout, result.stdout + result.stderr
    assert "The data show that the calibration error is above 0.02" in result.stdout
