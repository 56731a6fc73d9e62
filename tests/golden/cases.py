"""One thing that is recorded: its kind, its name, how it is compared, and how it is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import truecal

#: Keywords and names that are going to change (see the design); a rename is made here and nowhere else.
WEIGHTING = "weighting"
REGISTER = "register_estimator"

#: Relative tolerance of formulas, and of values that an iteration finds.
CLOSED, FIT = "closed", "fit"
TOLERANCES = {CLOSED: 1e-10, FIT: 1e-6}


def resampled(n_resamples: int, times: int = 1, base: str = CLOSED) -> str:
    """Return the rule for p-values by resampling: within one resample, or `times` as much where they are adjusted."""
    return f"{base}, p {times / (n_resamples + 1):.6g}"


@dataclass(frozen=True)
class Case:
    """One call; `run` returns the result, or raises what a user would see."""

    kind: str
    name: str
    rule: str
    run: Callable[[], Any]


def weighted(kind: str) -> dict[str, str]:
    """Return the keyword that says what weights mean."""
    return {WEIGHTING: kind}


def public(path: str) -> Any:
    """Return a public name below truecal, such as ``simulation.BetaScores``."""
    return reduce(getattr, path.split("."), truecal)


def call(kind: str, path: str, data: Any = None, rule: str = CLOSED, /, *more: Any, **options: Any) -> Case:
    """Return the call of a function on named data (see `golden.data`) with options."""
    from golden.data import arguments

    def run() -> Any:
        positional, keywords = ((), {}) if data is None else arguments(data)
        return public(path)(*positional, *more, **{**keywords, **options})

    shown = [*([] if data is None else [f"<{data}>"]), *map(_shown, more)]
    shown += [f"{name}={_shown(value)}" for name, value in options.items()]
    return Case(kind, f"{path}({', '.join(shown)})", rule, run)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_shown(one)}" for key, one in value.items()) + "}"
    text = repr(value)
    return text if len(text) <= 80 and " at 0x" not in text else f"<{type(value).__name__}>"
