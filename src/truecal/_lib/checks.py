"""Checks of parameters, random generators and optional packages, with one message shape."""

from __future__ import annotations

import difflib
import importlib
import math
import numbers
from collections.abc import Iterable
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike

from truecal._lib.text import counted
from truecal._lib.types import FloatArray, RNGLike
from truecal.exceptions import InputError, MissingExtraError

#: Whole and real numbers; Python's own types come first, because they are recognised at once.
_WHOLE, _REAL = (int, numbers.Integral), (float, int, numbers.Real)


#: Names of norms.
_NORMS = {"l1": 1.0, "l2": 2.0, "max": math.inf}


def read_norm(norm: object) -> float:
    """Return the order of a norm: infinity for "max", NaN if it is not a norm."""
    return _NORMS.get(norm, math.nan) if isinstance(norm, str) else _as_float(norm)


def check_norm(norm: object) -> float:
    """Return `norm` as a float, or say that it must be a finite number of at least 1, or the name of one."""
    value = read_norm(norm)
    if not 1 <= value < math.inf:
        hint = "For the largest gap use estimator='ew_mce' or 'em_mce'." if value == math.inf else None
        raise _wrong("norm", "a finite number >= 1, 'l1' or 'l2'", norm, hint)
    return value


def check_count(name: str, value: object, *, at_least: int = 1) -> int:
    """Return `value` as an int, or say that `name` must be a whole number of at least `at_least`."""
    if not isinstance(value, _WHOLE) or isinstance(value, bool) or value < at_least:
        raise _wrong(name, f"a whole number >= {at_least}", value)
    return int(value)


def check_fraction(name: str, value: object) -> float:
    """Return `value` as a float, or say that `name` must lie strictly between 0 and 1."""
    fraction = _as_float(value)
    if not 0 < fraction < 1:
        hint = f"For {fraction:g}% write {fraction / 100:g}." if 1 <= fraction < 100 else None
        raise _wrong(name, "a number strictly between 0 and 1", value, hint)
    return fraction


def _as_float(value: object) -> float:
    """Return a real number as a float, and NaN for anything else."""
    if not isinstance(value, _REAL) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def check_real(
    name: str,
    value: object,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> float:
    """Return `value` as a float, or say that `name` must be a finite number within the bounds."""
    bounds = [(above, ">"), (at_least, ">="), (at_most, "<=")]
    number = _as_float(value)
    low_enough = at_most is None or number <= at_most
    high_enough = (above is None or number > above) and (at_least is None or number >= at_least)
    if math.isfinite(number) and low_enough and high_enough:
        return number
    wanted = " and ".join(f"{sign} {bound:g}" for bound, sign in bounds if bound is not None)
    raise _wrong(name, f"a finite number{wanted and ' ' + wanted}", value)


def check_probabilities(name: str, values: ArrayLike) -> FloatArray:
    """Return `values` as a new float64 vector, or say how many lie outside [0, 1] and where."""
    array = np.array(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise InputError(
            f"must be a vector of at least one number. Got shape {array.shape} instead", argument=name
        )
    bad = np.flatnonzero(~((array >= 0) & (array <= 1)))
    if bad.size:
        first = bad[0]
        raise InputError(
            f"has {counted(bad.size, 'value')} outside [0, 1]",
            argument=name,
            count=int(bad.size),
            first_row=int(first),
            value=float(array[first]),
            remedy="Pass probabilities.",
        )
    return array


def check_shares(name: str, values: ArrayLike, *, count: int) -> FloatArray:
    """Return `count` shares that sum to 1, or say what they sum to."""
    shares = check_probabilities(name, values)
    if shares.size != count:
        raise InputError(f"must hold {count} numbers, one for each. Got {shares.size} instead", argument=name)
    total = math.fsum(shares)
    if abs(total - 1) > 1e-9:
        raise InputError(f"must sum to 1. Got a sum of {total:.10g} instead", argument=name)
    return shares / total


def check_choice(name: str, value: object, choices: Iterable[str]) -> str:
    """Return `value` if it is one of `choices`, or name the choices and the nearest one."""
    known = list(choices)
    if isinstance(value, str) and value in known:
        return value
    raise _wrong(name, f"one of {', '.join(map(repr, known))}", value, did_you_mean(value, known))


def did_you_mean(value: object, known: Iterable[str]) -> str | None:
    """Return a question that suggests the nearest known name, or None if none is close.

    Examples
    --------
    >>> did_you_mean("em_sweeep", ["em_bin", "em_sweep"])
    "Did you mean 'em_sweep'?"
    """
    names = {name.lower(): name for name in known}
    close = difflib.get_close_matches(str(value).lower(), list(names), n=1, cutoff=0.6)
    return f"Did you mean {names[close[0]]!r}?" if close else None


def check_flag(name: str, value: object) -> bool:
    """Return `value` as a bool, or say that `name` must be True or False."""
    if not isinstance(value, bool | np.bool_):
        raise _wrong(name, "True or False", value)
    return bool(value)


def unknown_option(name: str, owner: str, known: Iterable[str] = ()) -> InputError:
    """Return the error for an option that `owner` does not have, with the name that was probably meant."""
    options = list(known)
    listed = f". Its options: {', '.join(options)}" if options else ""
    return InputError(
        f"is not an option of {owner}{listed}",
        argument=name,
        remedy=hint_at_name(name) or did_you_mean(name, options),
    )


#: What to write instead of keywords of other packages.
_HINTS = {
    **dict.fromkeys(("seed", "random_state", "random_seed"), "Random seeds are passed as rng."),
    **dict.fromkeys(("weight", "weights", "sample_weights"), "Weights are passed as sample_weight."),
    **dict.fromkeys(
        ("confidence", "level", "alpha"), "For an interval use truecal.estimate(..., confidence_level=0.95)."
    ),
}


def hint_at_name(name: str) -> str | None:
    """Return a hint at the keyword that stands for one of another package, or None.

    Examples
    --------
    >>> hint_at_name("random_state")
    'Random seeds are passed as rng.'
    """
    return _HINTS.get(name)


def _wrong(name: str, expected: str, value: object, hint: str | None = None) -> InputError:
    return InputError(f"must be {expected}. Got {value!r} instead", argument=name, value=value, remedy=hint)


def as_generator(rng: RNGLike) -> np.random.Generator:
    """Return a generator by SPEC 7: `None` is fresh entropy, a number is a seed, a generator is used as it is."""
    random = np.random  # imported only here: estimates need no random numbers
    kinds = int | np.integer | random.SeedSequence | random.BitGenerator | random.Generator | None
    if isinstance(rng, bool) or not isinstance(rng, kinds):
        raise _wrong("rng", "None, a seed or a numpy.random.Generator", rng)
    if isinstance(rng, numbers.Integral) and int(rng) < 0:
        raise _wrong("rng", "a seed of at least 0", rng)
    return np.random.default_rng(rng)


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional package, or say what needs it and how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(module.partition(".")[0], extra=extra, purpose=purpose) from error
