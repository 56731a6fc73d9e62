"""Temperature scaling: one number that makes all logits more or less sure."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from truecal._lib.newton import maximise
from truecal._lib.types import FloatArray
from truecal.exceptions import CalibrationWarning
from truecal.recalibration._base import Recalibrator, unless_worse
from truecal.recalibration._scores import Scores

#: The temperature is kept within this factor of the spread of the logits, at either side.
_REACH = 1e4


@dataclass(frozen=True)
class TemperatureFit:
    """The maximum-likelihood temperature, and the number of Newton steps."""

    temperature: float
    n_steps: int
    note: str = ""


class TemperatureScaling(Recalibrator):
    r"""Divide the logits by one temperature.

    .. math:: q = \mathrm{softmax}(z / T) , \qquad
              T = \arg\min_T -\sum_i w_i \log \mathrm{softmax}(z_i / T)_{y_i}

    and the sigmoid in place of the softmax for one column. The order of the classes, and so the accuracy,
    does not change. T > 1 makes an over-confident model less sure. The likelihood is concave in 1/T, so
    that it has one maximum; Newton's method on log T finds it in a few steps.

    It works on the whole vector of logits, also for several classes.

    Parameters
    ----------
    input : {"logits", "probabilities"}
        What the scores are. The logits of probabilities are their logarithms, log p for K > 2 classes and
        log p - log(1 - p) for two; the sigmoid or softmax undoes that. Probabilities of exactly 0 and 1 count
        as no more than the rows can show (see `floor_`).

    Attributes
    ----------
    temperature_ : float
        T.
    n_iter_ : int
        Newton steps taken.

    Warns
    -----
    CalibrationWarning
        If there is no best temperature: labels do not rise with the logits, and T is as large as is
        allowed; or the largest logit is right in every row, and T is about 0.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), On calibration of modern neural networks, ICML.

    Examples
    --------
    >>> from truecal.recalibration import TemperatureScaling
    >>> scaling = TemperatureScaling()
    >>> scaling.fit([[4.0, 0.0, 0.0], [0.0, 5.0, 1.0], [3.0, 0.0, 1.0], [0.0, 4.0, 2.0]], [0, 1, 2, 1])
    TemperatureScaling()
    >>> round(scaling.temperature_, 3)
    1.434
    >>> scaling.transform([[4.0, 0.0, 0.0]]).round(3)
    array([[0.891, 0.055, 0.055]])
    """

    temperature_: float
    n_iter_: int

    def __init__(self, input: str = "logits") -> None:
        self.input = input

    def _learn(self, scores: Scores, label: NDArray[np.intp], weight: FloatArray | None) -> None:
        logits = _logits(scores)
        # Two classes are a softmax over (0, z): one code for both.
        table = np.column_stack([np.zeros(len(scores)), logits]) if logits.ndim == 1 else logits
        fit = fit_temperature(table, label, weight)
        if fit.note:
            warnings.warn(fit.note, CalibrationWarning, stacklevel=4)
        self.temperature_ = fit.temperature
        self.n_iter_ = fit.n_steps

    def _apply(self, scores: Scores) -> FloatArray:
        cooled = _logits(scores) / self.temperature_
        if scores.n_classes == 2:
            return scores.shaped(np.asarray(expit(cooled)))
        return np.asarray(softmax(cooled, axis=1))


def _logits(scores: Scores) -> FloatArray:
    """Return (n,) logits for two classes, (n, K) for more."""
    if scores.n_classes == 2:
        return scores.columns[0].logit
    if scores.are_logits:
        return np.asarray(scores.values, dtype=np.float64)
    return scores.logs(float(np.finfo(scores.values.dtype).tiny))


def fit_temperature(
    logits: FloatArray, label: NDArray[np.intp], weight: FloatArray | None = None
) -> TemperatureFit:
    """Return the maximum-likelihood temperature for (n, K) logits and the numbers of the classes.

    Examples
    --------
    >>> logits = np.array([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [2.0, 0.0]])
    >>> fit = fit_temperature(logits, np.array([0, 0, 0, 1]))
    >>> round(float(np.exp(2 / fit.temperature)), 6)  # odds of 3 to 1
    3.0
    """
    w = np.ones(len(label)) if weight is None else weight
    # A constant added to a row changes nothing; this one keeps the exponentials from overflowing.
    z = logits - logits.max(axis=1, keepdims=True)
    true = z[np.arange(len(z)), label]
    spread = float(np.sqrt(np.average(z.var(axis=1), weights=w)))
    if spread == 0:
        return TemperatureFit(1.0, 0)
    if w @ (true - z.mean(axis=1)) <= 0:
        # The slope of the likelihood in 1/T at 0. From there on it only falls.
        note = "The labels do not rise with the logits: no temperature is high enough to undo that."
        return TemperatureFit(spread * _REACH, 0, note)
    note = ""
    if not true.any():
        note = "The largest logit is right in every row, so the optimum is at temperature 0. More rows are needed."
    n_steps = -1

    def log_likelihood(x: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        nonlocal n_steps
        n_steps += 1
        inverse = float(np.exp(-x[0]))
        share = np.exp(inverse * z)
        total = share.sum(axis=1)
        value = float(w @ (inverse * true - np.log(total)))
        share /= total[:, np.newaxis]
        mean = np.einsum("ij,ij->i", share, z)
        variance = np.einsum("ij,ij,ij->i", share, z, z) - mean**2
        slope = float(w @ (true - mean))  # in 1/T
        bend = float(w @ variance)
        return value, np.array([-inverse * slope]), np.array([[inverse * slope - inverse**2 * bend]])

    reach = np.log(_REACH)
    centre = np.log(spread)
    top = maximise(log_likelihood, np.zeros(1), lower=centre - reach, upper=centre + reach)
    # The gradient and curvature there are at hand: one more step costs nothing and squares the error.
    steps = n_steps
    flat = top.at_bound[0] or top.hessian[0, 0] == 0
    last = 0.0 if flat else float(top.gradient[0] / abs(top.hessian[0, 0]))
    x = unless_worse(top.x + last, top.value, np.zeros(1), log_likelihood(np.zeros(1))[0])
    return TemperatureFit(float(np.exp(x[0])), steps, note)
