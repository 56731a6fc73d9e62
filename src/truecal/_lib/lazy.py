"""Lazy imports, signatures and docstrings of public functions and packages."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast


def attach(package: str, init_file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package, read from the `.pyi` file beside its `__init__`.

    The stub is the one list of names: type checkers read it, and so does this function. Each line is
    ``from module import Name as Name``; from the package itself, a name is a submodule.
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
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package]
            )
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


_Arguments = ParamSpec("_Arguments")
_Returned = TypeVar("_Returned")
_Function = TypeVar("_Function", bound=Callable[..., object])


def fill_docstring(**pieces: str) -> Callable[[_Function], _Function]:
    """Replace each line ``{name}`` of a docstring by the piece of that name, indented as the line is."""
    named = {f"{{{name}}}": text for name, text in pieces.items()}

    def fill(function: _Function) -> _Function:
        lines = []
        for line in (function.__doc__ or "").splitlines():
            text = named.get(line.strip())
            indent = line[: len(line) - len(line.lstrip())]
            lines += (
                [line] if text is None else [indent + part if part else part for part in text.splitlines()]
            )
        function.__doc__ = "\n".join(lines) or None
        return function

    return fill


def with_arguments_of(
    other: Callable[_Arguments, object],
) -> Callable[[Callable[..., _Returned]], Callable[_Arguments, _Returned]]:
    """Give a wrapper the signature of the function to which it passes all arguments."""

    def adapt(function: Callable[..., _Returned]) -> Callable[_Arguments, _Returned]:
        returned = inspect.signature(function).return_annotation
        function.__signature__ = inspect.signature(other).replace(  # type: ignore[attr-defined]
            return_annotation=returned
        )
        return cast("Callable[_Arguments, _Returned]", function)

    return adapt
