"""Checks of parameters, random generators and optional packages, with one message shape."""

from __future__ import annotations

import difflib
import importlib
import math
import numbers
from collections.abc import Iterable
from types import ModuleType

import numpy as np

RNGLike = int | np.integer | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator | None


def check_norm(norm: object) -> float:
    """Return `norm` as a float, or say that it must be a finite number of at least 1."""
    value = _as_float(norm)
    if not 1 <= value < math.inf:
        hint = " For the largest gap use estimator='ew_mce' or 'em_mce'." if value == math.inf else ""
        raise ValueError(f"norm must be a finite number >= 1. Got {norm!r} instead.{hint}")
    return value


def check_count(name: str, value: object, *, least: int = 1) -> int:
    """Return `value` as an int, or say that `name` must be a whole number of at least `least`."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}. Got {value!r} instead.")
    return int(value)


def check_fraction(name: str, value: object) -> float:
    """Return `value` as a float, or say that `name` must lie strictly between 0 and 1."""
    fraction = _as_float(value)
    if not 0 < fraction < 1:
        raise ValueError(f"{name} must be a number strictly between 0 and 1. Got {value!r} instead.")
    return fraction


def _as_float(value: object) -> float:
    """Return a real number as a float, and NaN, which no range holds, for anything else."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def check_choice(name: str, value: object, choices: Iterable[str]) -> str:
    """Return `value` if it is one of `choices`, or name the choices and the nearest one."""
    known = list(choices)
    if isinstance(value, str) and value in known:
        return value
    close = difflib.get_close_matches(str(value), known, n=1, cutoff=0.6)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}. Got {value!r} instead.{hint}")


def as_generator(rng: RNGLike) -> np.random.Generator:
    """Return a generator by SPEC 7: `None` is fresh entropy, a number is a seed, a generator is itself."""
    if isinstance(rng, bool) or not isinstance(rng, RNGLike):
        raise ValueError(f"rng must be None, a seed or a numpy.random.Generator. Got {rng!r} instead.")
    return np.random.default_rng(rng)


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional package, or say what needs it and how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{purpose} needs the package {module.partition('.')[0]!r}. "
            f"Install it with: pip install 'truecal[{extra}]'"
        ) from error
