"""Plain Python objects that JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """Return nested dictionaries and lists without NumPy scalars; NaN and infinities, which JSON lacks, as None.

    Examples
    --------
    >>> plain({"loss": float("inf"), "bins": (1, 2.5)})
    {'loss': None, 'bins': [1, 2.5]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
