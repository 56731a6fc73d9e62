"""State files: JSON with a checksum, written whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.files import write_text
from truecal.exceptions import InputError

_VERSION = 3


def encode(array: NDArray[Any]) -> str:
    """Return numbers of 64 bits as text, without loss.

    Examples
    --------
    >>> decode(encode(np.array([0.1, np.inf]))).tolist()
    [0.1, inf]
    """
    return base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode("ascii")


def decode(text: str, *shape: int, dtype: str = "<f8") -> NDArray[Any]:
    """Return the numbers that `encode` wrote, or ValueError if they do not have the given shape."""
    array = np.frombuffer(base64.b64decode(text), dtype=dtype)
    array = array.astype(array.dtype.newbyteorder("="))
    return array.reshape(shape) if shape else array


def write_state(path: str | Path, kind: str, content: dict[str, Any]) -> None:
    """Write a state file, whole or not at all.

    Parameters
    ----------
    path : str or Path
        The file.
    kind : str
        What the state is of.
    content : dict
        What JSON can hold.
    """
    body = {"truecal": kind, "version": _VERSION, **content}
    text = json.dumps({**body, "checksum": _checksum(body)}, allow_nan=False, indent=1)
    write_text(path, text + "\n")


def read_state(path: str | Path, kind: str) -> dict[str, Any]:
    """Return the content of a state file, or refuse one that was changed, cut off or written by something else.

    Parameters
    ----------
    path : str or Path
        The file.
    kind : str
        What the state must be of.
    """
    if not Path(path).is_file() and Path(path).exists():  # a device may never end
        raise InputError(f"{path} is not a regular file, and cannot hold the state")
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    try:
        body = json.loads(text)
        given = body.pop("checksum")
        expected = _checksum(body)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise InputError(f"{path} is not a state file of truecal, or it is incomplete") from None
    if given != expected:
        raise InputError(
            f"{path} was changed after truecal wrote it: its checksum does not match",
            remedy="Restore the file from a backup, or start again without it.",
        )
    if body.get("truecal") != kind or body.get("version") != _VERSION:
        found = f"{body.get('truecal')!r}, version {body.get('version')}"
        raise InputError(f"{path} holds {found}; expected {kind!r}, version {_VERSION}")
    return dict(body)


@contextmanager
def restoring(path: str | Path) -> Iterator[None]:
    """Refuse a state whose checksum is right and whose content truecal cannot have written."""
    try:
        yield
    except (ValueError, KeyError, AttributeError, TypeError, IndexError, OverflowError) as error:
        raise InputError(
            f"{path} holds a state that contradicts itself ({type(error).__name__}: {error})",
            remedy="Restore the file from a backup, or start again without it.",
        ) from error


def check_kinds(state: dict[str, Any], kinds: dict[str, Any]) -> dict[str, Any]:
    """Return parts of a state, or TypeError if one is not of its kind, or negative.

    Examples
    --------
    >>> check_kinds({"rows": 3, "name": "x"}, {"rows": int})
    {'rows': 3}
    """
    for name, kind in kinds.items():
        value = state[name]
        is_bool = isinstance(value, bool) and kind is not bool
        if is_bool or not isinstance(value, kind) or (isinstance(value, int | float) and value < 0):
            raise TypeError(f"{name} cannot be {value!r}")
    return {name: state[name] for name in kinds}


def _checksum(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
