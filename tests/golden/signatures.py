"""Public names and their signatures."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import truecal
from golden.cases import CLOSED, Case

#: Namespaces that a user can reach, below truecal.
NAMESPACES = (
    "simulation",
    "simulation.paper",
    "simulation.suites",
    "recalibration",
    "display",
    "datasets",
    "paper",
    "integrations.sklearn",
    "integrations.llm",
    "exceptions",
    "results",
)


def cases() -> Iterator[Case]:
    """Yield one case for each namespace and each public name in it."""
    for space in ("", *NAMESPACES):
        label = f"truecal.{space}".rstrip(".")
        yield Case("signatures", f"dir({label})", CLOSED, lambda space=space: names(space))
        try:
            members = names(space)
        except AttributeError:
            continue
        for name in members:
            yield Case(
                "signatures",
                f"{label}.{name}",
                CLOSED,
                lambda space=space, name=name: describe(_member(space, name)),
            )


def _namespace(space: str) -> Any:
    value: Any = truecal
    for part in filter(None, space.split(".")):
        if not hasattr(value, part):
            importlib.import_module(f"{value.__name__}.{part}")
        value = getattr(value, part)
    return value


def _member(space: str, name: str) -> Any:
    return getattr(_namespace(space), name)


def names(space: str) -> list[str]:
    """Return the public names: those of ``__all__``, or what the module itself defines."""
    found = _namespace(space)
    listed = getattr(found, "__all__", None)
    if listed is None:
        listed = [
            name
            for name, value in vars(found).items()
            if not inspect.ismodule(value) and getattr(value, "__module__", found.__name__) == found.__name__
        ]
    return sorted(name for name in listed if not name.startswith("_"))


def describe(value: Any) -> Any:
    """Return the signature of a function; of a class also its fields, properties and methods."""
    if inspect.ismodule(value):
        return "module"
    if not callable(value):
        return f"{type(value).__name__}: {value!r}"
    found: dict[str, Any] = {"signature": _signature(value)}
    if inspect.isclass(value):
        found["bases"] = [
            base.__name__ for base in value.__mro__[1:-1] if base.__module__.startswith("truecal")
        ]
        for name in sorted(name for name in dir(value) if not name.startswith("_")):
            member = inspect.getattr_static(value, name)
            if isinstance(member, property) or not callable(getattr(value, name, None)):
                found[name] = "attribute"
            elif _own(getattr(value, name)):
                found[name] = _signature(getattr(value, name))
    return found


def _own(member: Any) -> bool:
    return str(getattr(member, "__module__", "")).startswith("truecal")


def _signature(value: Any) -> str:
    try:
        return str(inspect.signature(value))
    except (TypeError, ValueError):
        return "no signature"
