"""Vector scaling: one slope and one intercept for each class."""

from __future__ import annotations

from truecal.recalibration._softmax import SoftmaxRecalibrator


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
