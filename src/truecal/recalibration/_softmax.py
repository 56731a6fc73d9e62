"""Vector scaling and Dirichlet calibration: a softmax over linear functions of log probabilities, with a penalty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize
from scipy.special import log_softmax, logsumexp, softmax

from truecal._lib.checks import check_real
from truecal._lib.numeric import maximise
from truecal._lib.types import FloatArray
from truecal.recalibration._base import Recalibrator
from truecal.recalibration._scores import Scores

#: Largest slope; labels that the scores separate without error have no finite one.
_STEEPEST = 100.0
#: Up to so many classes the optimum is found by Newton's method, whose matrix has the size of the squared parameters.
FEW_CLASSES = 10


@dataclass(frozen=True, eq=False)
class SoftmaxMap:
    """The map softmax(W log p + b)."""

    weight: FloatArray
    intercept: FloatArray

    def __call__(self, logs: FloatArray) -> FloatArray:
        """Return the probabilities of rows of log probabilities."""
        return np.asarray(softmax(logs @ self.weight.T + self.intercept, axis=1))


class SoftmaxRecalibrator(Recalibrator):
    """A recalibrator of the whole vector, with a penalty on what is not on the diagonal.

    Attributes
    ----------
    map_ : SoftmaxMap
        Weights and intercepts.
    n_iter_ : int
        Iterations of the optimiser.
    """

    map_: SoftmaxMap
    n_iter_: int
    _full: bool

    def __init__(self, regularization: float = 1.0, input: str = "probabilities") -> None:
        self.regularization = regularization
        self.input = input

    def _check_parameters(self) -> None:
        check_real("regularization", self.regularization, above=0)

    def _learn(self, scores: Scores, label: NDArray[np.intp], weight: FloatArray | None) -> None:
        self.map_, self.n_iter_ = fit_softmax(
            log_probabilities(scores), label, weight, penalty=float(self.regularization), full=self._full
        )

    def _apply(self, scores: Scores) -> FloatArray:
        values = self.map_(log_probabilities(scores))
        return scores.shaped(values[:, 1]) if scores.n_classes == 2 else values


def log_probabilities(scores: Scores) -> FloatArray:
    """Return (n, K) finite log probabilities; two classes have two columns, too."""
    if scores.n_classes == 2:
        positive, negative = scores.columns[0].logs
        return np.column_stack([negative, positive])
    if scores.are_logits:
        return np.asarray(log_softmax(np.asarray(scores.values, dtype=np.float64), axis=1))
    return scores.logs(float(np.finfo(scores.values.dtype).eps))


def fit_softmax(
    logs: FloatArray, label: NDArray[np.intp], weight: FloatArray | None, *, penalty: float, full: bool
) -> tuple[SoftmaxMap, int]:
    r"""Return the map that minimises the total log loss plus a penalty, and the number of iterations.

    The penalty is :math:`\lambda (\sum_{i \ne j} W_{ij}^2 + \sum_j b_j^2)`; the diagonal is free. The problem is
    convex, and its start is the identity.
    """
    n, classes = logs.shape
    w = np.ones(n) if weight is None else weight
    inputs = np.column_stack([logs, np.ones(n)])  # the last column is that of the intercept
    truth = np.zeros((n, classes))
    truth[np.arange(n), label] = 1
    diagonal = np.eye(classes, classes + 1, dtype=bool)
    used = np.ones_like(diagonal) if full else diagonal.copy()
    used[:, -1] = True
    strength = np.where(diagonal, 0.0, penalty)

    def table(x: FloatArray) -> FloatArray:
        values = np.zeros(used.shape)
        values[used] = x
        return values

    def likelihood(x: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the penalised log-likelihood, its gradient, and the probabilities of the classes."""
        parameters = table(x)
        values = inputs @ parameters.T
        total = logsumexp(values, axis=1)
        share = np.exp(values - total[:, np.newaxis])
        value = float(w @ (values[np.arange(n), label] - total) - np.sum(strength * parameters**2))
        gradient = (w[:, np.newaxis] * (truth - share)).T @ inputs - 2 * strength * parameters
        return value, gradient[used], share

    def curvature(share: FloatArray) -> FloatArray:
        size = classes + 1
        hessian = np.empty((classes, size, classes, size))
        for k in range(classes):
            for j in range(k + 1):
                bend = w * share[:, k] * ((k == j) - share[:, j])
                hessian[k, :, j] = hessian[j, :, k] = inputs.T @ (bend[:, np.newaxis] * inputs)
        flat, chosen = hessian.reshape(classes * size, -1), used.ravel()
        flat[np.diag_indices_from(flat)] += 2 * strength.ravel()
        return np.asarray(-flat[np.ix_(chosen, chosen)])

    start = diagonal[used].astype(np.float64)
    low, high = np.where(start == 1, 0.0, -np.inf), np.where(start == 1, _STEEPEST, np.inf)
    if classes <= FEW_CLASSES:

        def newton(x: FloatArray) -> tuple[float, FloatArray, FloatArray]:
            value, gradient, share = likelihood(x)
            return value, gradient, curvature(share)

        top = maximise(newton, start, lower=low, upper=high)
        x, steps = top.x, top.n_evaluations
    else:

        def mean_loss(x: FloatArray) -> tuple[float, FloatArray]:
            value, gradient, _ = likelihood(x)
            return -value / float(w.sum()), -gradient / float(w.sum())

        found = minimize(
            mean_loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(low, high),
            options={"maxiter": 1000, "ftol": 1e-13, "gtol": 1e-8},
        )
        x, steps = found.x, int(found.nit)
    parameters = table(x)
    return SoftmaxMap(parameters[:, :-1], parameters[:, -1]), steps


class VectorScaling(SoftmaxRecalibrator):
    r"""Multiply the log probability of each class by a slope of its own, and add an intercept.

    .. math:: q = \mathrm{softmax}(a_1 \log p_1 + b_1, \ldots, a_K \log p_K + b_K)

    by maximum likelihood with the penalty :math:`\lambda \sum_k b_k^2`. It has 2K parameters and lies between
    temperature scaling, which has one, and Dirichlet calibration, which has K^2 + K. For two classes it is a beta
    calibration with an intercept.

    Parameters
    ----------
    regularization : float
        The factor :math:`\lambda` of the penalty on the total log loss. It counts as a few rows, and vanishes as their
        number grows.
    input : {"probabilities", "logits"}
        What the scores are; logits are turned into log probabilities.

    Attributes
    ----------
    map_ : SoftmaxMap
        Weights (a diagonal matrix) and intercepts.
    n_iter_ : int
        Iterations of the optimiser.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger (2017), On calibration of modern neural networks, ICML.

    Examples
    --------
    >>> from truecal.recalibration import VectorScaling
    >>> p = [[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6], [0.7, 0.2, 0.1], [0.2, 0.2, 0.6], [0.3, 0.6, 0.1]]
    >>> scaling = VectorScaling().fit(p, [0, 1, 2, 1, 2, 0])
    >>> scaling.transform([[0.7, 0.2, 0.1]]).round(2)
    array([[0.7 , 0.26, 0.05]])
    """

    _full = False


class DirichletCalibration(SoftmaxRecalibrator):
    r"""Apply a matrix to the log probabilities: every class may correct every other.

    .. math:: q = \mathrm{softmax}(W \log p + b)

    by maximum likelihood with the penalty :math:`\lambda (\sum_{i \ne j} W_{ij}^2 + \sum_j b_j^2)` on what is off the
    diagonal and on the intercepts (ODIR). It can express every map between Dirichlet distributions of the vector given
    its class. With K^2 + K parameters it needs many rows for many classes, or a larger `regularization`.

    Parameters
    ----------
    regularization : float
        The factor :math:`\lambda` of the penalty on the total log loss. It counts as a few rows, and vanishes as their
        number grows.
    input : {"probabilities", "logits"}
        What the scores are. With logits it is matrix scaling of log-softmax values.

    Attributes
    ----------
    map_ : SoftmaxMap
        Weights W and intercepts b.
    n_iter_ : int
        Iterations of the optimiser.

    References
    ----------
    Kull, Perello-Nieto, Kängsepp, Silva Filho, Song, Flach (2019), Beyond temperature scaling: obtaining
    well-calibrated multiclass probabilities with Dirichlet calibration, NeurIPS.

    Examples
    --------
    >>> from truecal.recalibration import DirichletCalibration
    >>> p = [[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6], [0.7, 0.2, 0.1], [0.2, 0.2, 0.6], [0.3, 0.6, 0.1]]
    >>> calibration = DirichletCalibration().fit(p, [0, 1, 2, 1, 2, 0])
    >>> calibration.transform([[0.7, 0.2, 0.1]]).round(2)
    array([[0.66, 0.32, 0.02]])
    """

    _full = True
