"""Dirichlet calibration: a full matrix over the log probabilities."""

from __future__ import annotations

from truecal.recalibration._softmax import SoftmaxRecalibrator


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
