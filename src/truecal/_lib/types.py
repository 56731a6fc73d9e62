"""Type aliases that the whole package shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: A vectorised function of a score and of its complement 1 - score.
ScoreFunction = Callable[[FloatArray, FloatArray], Any]

#: What a parameter `norm` takes: the order of the norm, or its name.
NormLike: TypeAlias = 'float | Literal["l1", "l2", "max"]'

#: What a parameter `rng` takes, by SPEC 7.
RNGLike: TypeAlias = (
    "int | np.integer | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator | None"
)
