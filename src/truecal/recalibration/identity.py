"""The recalibrator that leaves a model alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from truecal._lib.types import FloatArray
from truecal.recalibration._base import Recalibrator
from truecal.recalibration._scores import Scores


class IdentityCalibration(Recalibrator):
    """Return the model's own probabilities: what a calibrated model needs.

    Parameters
    ----------
    input : {"probabilities", "logits"}
        What the scores are. Logits go through the sigmoid or softmax.

    Examples
    --------
    >>> from truecal.recalibration import IdentityCalibration
    >>> same = IdentityCalibration(input="logits").fit([-1.0, 2.0], [0, 1])
    >>> same.transform([0.0, 100.0])
    array([0.5, 1. ])
    """

    def __init__(self, input: str = "probabilities") -> None:
        self.input = input

    def _learn(self, scores: Scores, label: NDArray[np.intp], weight: FloatArray | None) -> None:
        pass

    def _apply(self, scores: Scores) -> FloatArray:
        return scores.shaped(scores.probabilities) if scores.n_classes == 2 else scores.probabilities
