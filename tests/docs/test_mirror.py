"""Every module of `src/truecal` that contains code has a test file in the mirrored place."""

import ast
from pathlib import Path

import pytest

from support.snippets import ROOT

SOURCE, TESTS = ROOT / "src" / "truecal", ROOT / "tests" / "unit"

#: Modules that are tested elsewhere, because their tests need an environment of their own.
ELSEWHERE = {
    "integrations/inspect_ai.py": "engines/test_inspect_ai.py",  # needs inspect_ai
    "integrations/mlflow.py": "engines/test_mlflow.py",  # needs mlflow
    "integrations/torchmetrics.py": "engines/test_torchmetrics.py",  # needs torch
}
#: The parts of the reproduction are tested together.
_PARTS = "unit/reproduce/test_parts.py"


def _has_code(path: Path) -> bool:
    """Return whether a module defines a function or a class."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in tree.body)


def _mirror(path: Path) -> Path:
    """Return the test file of a module; for a package, that of the package's name."""
    relative = path.relative_to(SOURCE)
    stem = relative.parent.name if relative.name == "__init__.py" else relative.stem
    return TESTS / relative.parent / f"test_{stem.strip('_')}.py"


def _modules() -> list[str]:
    return sorted(path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if _has_code(path))


def _is_part(module: str) -> bool:
    return module.startswith("reproduce/") and "@part(" in (SOURCE / module).read_text(encoding="utf-8")


@pytest.mark.parametrize("module", _modules())
def test_a_module_has_a_test_file(module):
    other = ELSEWHERE.get(module) or (_PARTS if _is_part(module) else None)
    path = ROOT / "tests" / other if other else _mirror(SOURCE / module)
    assert path.exists(), f"{path.relative_to(ROOT)} is missing"
