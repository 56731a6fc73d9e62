"""The layers as import-linter enforces them, with the first line of each module."""

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


class ImportLayers(SphinxDirective):
    """``{import-layers}``: a table of the layers contract, highest first."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        self.env.note_dependency(str(ROOT / "pyproject.toml"))
        lines = ["| layer | module | what it holds |", "|---|---|---|"]
        layers = _layers()
        for height, modules in zip(range(len(layers) - 1, -1, -1), layers, strict=True):
            lines += [
                f"| {height} | `{name}` | {summary} |" for name in modules if (summary := _summary(name))
            ]
        self.state.nested_parse(
            StringList(lines, "pyproject.toml"), self.content_offset, node := nodes.container()
        )
        return node.children


def _layers() -> list[list[str]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [re.findall(r"[\w.]+", layer) for layer in layers]


def _summary(name: str) -> str:
    """Return the first line of a module's docstring; empty if there is no such module."""
    base = ROOT / "src" / "truecal" / Path(*name.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.exists():
            text = ast.get_docstring(ast.parse(path.read_text())) or "-"
            return text.splitlines()[0].replace("|", r"\|")
    return ""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("import-layers", ImportLayers)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
