"""Every integration says what to install where its package is missing."""

import subprocess
import sys
import tomllib

import pytest

from support.snippets import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
#: What a user calls first, the package that it needs, and the extra that installs it.
USES = [
    ("import truecal.integrations.sklearn", "sklearn", "sklearn"),
    ("import truecal.integrations.torchmetrics", "torch", "torch"),
    ("import truecal.integrations.torchmetrics", "torchmetrics", "torch"),
    ("from truecal.integrations.mlflow import *; log_calibration([0, 1], [0.5, 0.5])", "mlflow", "mlflow"),
    ("from truecal.integrations.mlflow import *; calibration_metric()", "mlflow", "mlflow"),
    ("from truecal.integrations.inspect_ai import *; calibration()", "inspect_ai", "llm"),
    ("from truecal.integrations.lm_eval import *; register()", "lm_eval", "llm"),
]
SCRIPT = """
import sys, types
if sys.argv[2] == "torchmetrics":
    sys.modules["torch"] = types.ModuleType("torch")
sys.modules[sys.argv[2]] = None  # importing it is an ImportError
from truecal.exceptions import MissingExtraError
try:
    exec(sys.argv[1])
except MissingExtraError as error:
    print(error)
"""


@pytest.mark.parametrize(("code", "package", "extra"), USES)
def test_a_missing_package_names_the_extra_that_installs_it(code, package, extra):
    assert extra in EXTRAS
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, code, package], capture_output=True, text=True, check=False
    )
    assert f"needs the package {package!r}. Install it with: pip install 'truecal[{extra}]'" in done.stdout, (
        done.stderr
    )
