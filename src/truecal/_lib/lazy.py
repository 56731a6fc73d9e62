"""Public names that are imported when they are first used, as their type stub declares them."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def attach(package: str, init_file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, read from the `.pyi` file beside its `__init__`.

    The stub is the one list of names: type checkers read it, and so does this function. Each line is
    ``from module import Name as Name``; from the package itself, a name is a submodule.

    Parameters
    ----------
    package : str
        Name of the package.
    init_file : str
        Its ``__file__``.

    Returns
    -------
    tuple
        ``__getattr__``, ``__dir__`` and ``__all__``.
    """
    stub = ast.parse(Path(init_file).with_suffix(".pyi").read_text(encoding="utf-8"))
    homes = {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    namespace = importlib.import_module(package).__dict__

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = homes[name]
        if module == package:
            value: Any = importlib.import_module(f"{module}.{attribute}")
        else:
            value = getattr(importlib.import_module(module), attribute)
        namespace[name] = value
        return value

    def names() -> list[str]:
        return sorted([*homes, "__version__"] if "__version__" in namespace else homes)

    return get, names, sorted(homes)
