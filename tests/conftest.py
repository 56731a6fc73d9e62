"""What the tests share: data that every machine makes alike, and the folder of real predictions."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Golden = Callable[..., tuple[np.ndarray, np.ndarray]]


@pytest.fixture(scope="session")
def golden() -> Golden:
    """`golden(n, curve="square")`: labels and tie-free scores, without any random generator.

    Scores and the levels that decide the labels are the two coordinates of the R2 sequence, the golden
    ratio's relative in the plane, so that both are evenly spread and their pairs too. `curve` is the
    frequency of the label 1: "square" of the score, "identity" for a calibrated model, or any function.
    """

    def make(n: int, curve: str | Callable[[np.ndarray], np.ndarray] = "square"):
        i = np.arange(1, n + 1, dtype=np.float64)
        score = (0.5 + i * 0.7548776662466927) % 1.0
        level = (0.5 + i * 0.5698402909980532) % 1.0
        frequency = {"square": np.square, "identity": np.positive}.get(curve, curve)(score)
        return (level < frequency).astype(np.int64), score

    return make


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data beside the project, or wherever TRUECAL_SHARED points; not part of it."""
    folder = Path(os.environ.get("TRUECAL_SHARED", Path(__file__).parents[2] / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"no real data at {folder}; set TRUECAL_SHARED to a folder that holds data/*.npz")
    return folder
