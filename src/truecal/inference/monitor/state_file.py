"""State files: JSON with a checksum, written whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from truecal._lib.files import write_text
from truecal._lib.types import FloatArray
from truecal.exceptions import InputError

_VERSION = 2


def encode(array: FloatArray) -> str:
    """Return numbers as text, without loss.

    Examples
    --------
    >>> decode(encode(np.array([0.1, np.inf]))).tolist()
    [0.1, inf]
    """
    return base64.b64encode(np.ascontiguousarray(array, dtype="<f8").tobytes()).decode("ascii")


def decode(text: str) -> FloatArray:
    """Return the numbers that `encode` wrote."""
    return np.frombuffer(base64.b64decode(text), dtype="<f8").astype(np.float64)


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
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    try:
        body = json.loads(text)
        given = body.pop("checksum")
    except (ValueError, KeyError, AttributeError, TypeError):
        raise InputError(f"{path} is not a state file of truecal, or it is incomplete") from None
    if given != _checksum(body):
        raise InputError(
            f"{path} was changed after truecal wrote it: its checksum does not match",
            remedy="Restore the file from a backup, or start again without it.",
        )
    if body.get("truecal") != kind or body.get("version") != _VERSION:
        found = f"{body.get('truecal')!r}, version {body.get('version')}"
        raise InputError(f"{path} holds {found}; expected {kind!r}, version {_VERSION}")
    return dict(body)


def _checksum(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
