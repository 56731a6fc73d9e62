"""Pieces of docstrings, and signatures, that several functions share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

_Arguments = ParamSpec("_Arguments")
_Returned = TypeVar("_Returned")
_Function = TypeVar("_Function", bound=Callable[..., object])


def fill_docstring(**pieces: str) -> Callable[[_Function], _Function]:
    """Replace each line ``{name}`` in the docstring of a function by the piece of that name, indented as the line is.

    Parameters
    ----------
    **pieces : str
        Text by name, not indented.
    """
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
    """Give a function that passes all its arguments on to another the signature of that one.

    Parameters
    ----------
    other : callable
        The function that gets the arguments.
    """

    def adapt(function: Callable[..., _Returned]) -> Callable[_Arguments, _Returned]:
        returned = inspect.signature(function).return_annotation
        function.__signature__ = inspect.signature(other).replace(  # type: ignore[attr-defined]
            return_annotation=returned
        )
        return cast("Callable[_Arguments, _Returned]", function)

    return adapt
