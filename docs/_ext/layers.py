"""The architecture, drawn from the source tree: one box per package, stacked as import-linter enforces the layers."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "truecal"


class ImportLayers(SphinxDirective):
    """``{import-layers}``: the layers contract, highest first, with the packages of each and their modules."""

    def run(self) -> list[nodes.Node]:
        """Return the stack of boxes."""
        self.env.note_dependency(str(ROOT / "pyproject.toml"))
        stack = nodes.container(classes=["tc-layers"])
        for layer in layers():
            row = nodes.container(classes=["tc-layer"])
            row += [self._box(name) for name in layer]
            stack += row
        return [stack]

    def _box(self, name: str) -> nodes.container:
        box = nodes.container(classes=["tc-package"])
        title = f"**{name}{'/' if (SOURCE / name).is_dir() else ''}** {summary(name)}"
        for text in filter(None, (title, " ".join(f"`{module}`" for module in modules(name)))):
            self.state.nested_parse(StringList([text], "src"), self.content_offset, box)
        return box


def layers() -> list[list[str]]:
    """Return the packages of each layer, the highest layer first, as in pyproject.toml."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    contract = next(contract for contract in contracts if contract["type"] == "layers")
    return [re.findall(r"\w+", layer) for layer in contract["layers"]]


def modules(name: str) -> list[str]:
    """Return the public modules of a package, subpackages with a slash; none for a single module."""
    folder = SOURCE / name
    found = (path for path in folder.glob("*") if path.suffix == ".py" or (path / "__init__.py").exists())
    return sorted(
        f"{path.name}/" if path.is_dir() else path.stem for path in found if not path.name.startswith("_")
    )


def summary(name: str) -> str:
    """Return the first line of the docstring of a package or module."""
    path = SOURCE / name / "__init__.py" if (SOURCE / name).is_dir() else SOURCE / f"{name}.py"
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("import-layers", ImportLayers)
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
