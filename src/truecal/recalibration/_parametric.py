"""Curves of few parameters: none, a temperature, a logistic, a beta curve and a spline."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from truecal._lib.checks import check_choice, check_count
from truecal._lib.numeric import fit_logistic, maximise
from truecal._lib.types import FloatArray
from truecal.exceptions import warn_user
from truecal.recalibration._base import PerClassRecalibrator, Recalibrator
from truecal.recalibration._scores import Column, Scores


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

    def _learn(self, scores: Scores, label: NDArray[np.intp], weight: FloatArray | None) -> None:
        pass

    def _apply(self, scores: Scores) -> FloatArray:
        return scores.shaped(scores.probabilities) if scores.n_classes == 2 else scores.probabilities


#: The temperature is kept within this factor of the spread of the logits, at either side.
_REACH = 1e4

#: Bound of the parameters of a logistic curve, which only keeps their products with logits finite.
_FAR = 1e12


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
        self.temperature_, self.n_iter_ = fit_temperature(table, label, weight)

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
) -> tuple[float, int]:
    """Return the maximum-likelihood temperature for (n, K) logits and the numbers of the classes, and the Newton steps.

    Examples
    --------
    >>> logits = np.array([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [2.0, 0.0]])
    >>> temperature, _ = fit_temperature(logits, np.array([0, 0, 0, 1]))
    >>> round(float(np.exp(2 / temperature)), 6)  # odds of 3 to 1
    3.0
    """
    w = np.ones(len(label)) if weight is None else weight
    # A constant added to a row changes nothing; this one keeps the exponentials from overflowing.
    z = logits - logits.max(axis=1, keepdims=True)
    true = z[np.arange(len(z)), label]
    spread = float(np.sqrt(np.average(z.var(axis=1), weights=w)))
    if spread == 0:
        return 1.0, 0
    if w @ (true - z.mean(axis=1)) <= 0:
        # The slope of the likelihood in 1/T at 0. From there on it only falls.
        warn_user("The labels do not rise with the logits: no temperature is high enough to undo that.")
        return spread * _REACH, 0
    if not true.any():
        warn_user(
            "The largest logit is right in every row, so the optimum is at temperature 0. More rows are needed."
        )

    def log_likelihood(x: FloatArray) -> tuple[float, FloatArray, FloatArray]:
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
    flat = top.at_bound[0] or top.hessian[0, 0] == 0
    last = 0.0 if flat else float(top.gradient[0] / abs(top.hessian[0, 0]))
    return float(np.exp(top.x[0] + last)), top.n_evaluations - 1


@dataclass(frozen=True)
class LogisticMap:
    """The curve sigmoid(slope * logit + intercept)."""

    slope: float
    intercept: float

    def __call__(self, column: Column) -> FloatArray:
        """Return the curve at each score."""
        return np.asarray(expit(self.slope * column.logit + self.intercept))


class PlattScaling(PerClassRecalibrator):
    r"""Fit a logistic curve to the logit of the score.

    .. math:: q(s) = \sigma(a z + b) , \qquad z = \log\frac{s}{1 - s}\ \text{or the logit itself}

    by maximum likelihood. Slope 1 and intercept 0 leave the score as it is. The slope may come out
    negative if labels fall as scores rise.

    Several classes are fitted each against the rest, and rows are divided by their sum.

    Parameters
    ----------
    targets : {"smoothed", "labels"}
        ``"smoothed"``, as Platt proposed: labels are taken as (n1 + 1)/(n1 + 2) and 1/(n0 + 2) instead of 1
        and 0, for n1 and n0 rows (or total weights) of each. It keeps the curve finite where scores tell
        the labels apart without error, or where there is one class only. ``"labels"`` is logistic
        regression.
    input : {"probabilities", "logits"}
        What the scores are. Probabilities of exactly 0 and 1 count as no more than the rows can show (see
        `floor_`). Margins of a support vector machine count as logits.

    Attributes
    ----------
    maps_ : tuple of LogisticMap
        Slope and intercept; one for two classes, K for K > 2.

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines and comparisons to regularized
    likelihood methods, Advances in Large Margin Classifiers.

    Examples
    --------
    >>> from truecal.recalibration import PlattScaling
    >>> curve = PlattScaling().fit([0.1, 0.2, 0.6, 0.7, 0.9], [0, 0, 1, 0, 1])
    >>> curve.transform([0.5, 0.99]).round(3)
    array([0.41 , 0.887])
    """

    maps_: tuple[LogisticMap, ...]

    def __init__(self, targets: str = "smoothed", input: str = "probabilities") -> None:
        self.targets = targets
        self.input = input

    def _check_parameters(self) -> None:
        check_choice("targets", self.targets, ("smoothed", "labels"))

    def _fit_map(self, column: Column, label: NDArray[np.bool_], weight: FloatArray | None) -> LogisticMap:
        target = label.astype(np.float64)
        if self.targets == "smoothed":
            total = float(len(label)) if weight is None else float(weight.sum())
            positive = float(label.sum()) if weight is None else float(weight @ label)
            target = np.where(label, (positive + 1) / (positive + 2), 1 / (total - positive + 2))
        slope, intercept = _fit_curve([column.logit], target, weight, lowest=-_FAR)
        return LogisticMap(slope, intercept)


@dataclass(frozen=True)
class BetaMap:
    """The curve sigmoid(a ln s - b ln(1 - s) + c)."""

    a: float
    b: float
    c: float

    def __call__(self, column: Column) -> FloatArray:
        """Return the curve at each score."""
        log_score, log_complement = column.logs
        return np.asarray(expit(self.a * log_score - self.b * log_complement + self.c))


class BetaCalibration(PerClassRecalibrator):
    r"""Fit the three-parameter beta curve.

    .. math:: q(s) = \Big(1 + e^{-c} \frac{(1 - s)^b}{s^a}\Big)^{-1} , \qquad a, b \ge 0

    that is logit q = a ln s - b ln(1 - s) + c, by maximum likelihood. a = b = 1, c = 0 leave the score as
    it is, so a calibrated model can stay calibrated; Platt's curve over raw scores cannot do that.
    The bounds keep the curve rising, and an optimum on a bound is found exactly.

    Several classes are fitted each against the rest, and rows are divided by their sum.

    Parameters
    ----------
    input : {"probabilities", "logits"}
        What the scores are. Probabilities of exactly 0 and 1 count as no more than the rows can show (see
        `floor_`); logits keep what was lost there.

    Attributes
    ----------
    maps_ : tuple of BetaMap
        a, b and c; one for two classes, K for K > 2.

    References
    ----------
    Kull, Silva Filho, Flach (2017), Beta calibration: a well-founded and easily implemented improvement on
    logistic calibration for binary classifiers, AISTATS.

    Examples
    --------
    >>> from truecal.recalibration import BetaCalibration
    >>> curve = BetaCalibration().fit([0.1, 0.2, 0.6, 0.7, 0.9], [0, 1, 1, 0, 1])
    >>> curve.transform([0.2, 0.5, 0.99]).round(3)
    array([0.468, 0.652, 0.839])
    """

    maps_: tuple[BetaMap, ...]

    def _fit_map(self, column: Column, label: NDArray[np.bool_], weight: FloatArray | None) -> BetaMap:
        log_score, log_complement = column.logs
        return BetaMap(*_fit_curve([log_score, -log_complement], label.astype(np.float64), weight))


@dataclass(frozen=True)
class SplineMap:
    """The curve sigmoid(spline + intercept), with a spline of the logit that has a slope in each piece."""

    knots: tuple[float, ...]
    slopes: tuple[float, ...]
    intercept: float

    def __call__(self, column: Column) -> FloatArray:
        """Return the curve at each score."""
        pieces = _pieces(column.logit, self.knots)
        total = sum(slope * piece for slope, piece in zip(self.slopes, pieces, strict=True))
        return np.asarray(expit(total + self.intercept))


class SplineCalibration(PerClassRecalibrator):
    r"""Fit a rising spline to the logit of the score.

    .. math:: q(s) = \sigma\Big(b + \sum_k a_k h_k(z)\Big) , \qquad a_k \ge 0

    by maximum likelihood, where :math:`h_k` is the part of the logit z between two knots, which are quantiles of the
    logits, so that :math:`\sum_k h_k(z) = z`. Slopes 1 and intercept 0 leave the score as it is. It follows curves that
    Platt's and the beta curve cannot, with few parameters and without the steps of isotonic regression.

    Several classes are fitted each against the rest, and rows are divided by their sum.

    Parameters
    ----------
    n_pieces : int
        Number of pieces.
    input : {"probabilities", "logits"}
        What the scores are. Probabilities of exactly 0 and 1 count as no more than the rows can show (see
        `floor_`).

    Attributes
    ----------
    maps_ : tuple of SplineMap
        Knots, slopes and intercept; one for two classes, K for K > 2.

    Examples
    --------
    >>> from truecal.recalibration import SplineCalibration
    >>> curve = SplineCalibration(n_pieces=2).fit([0.1, 0.2, 0.6, 0.7, 0.9], [0, 1, 1, 0, 1])
    >>> bool((np.diff(curve.transform([0.1, 0.5, 0.9, 0.99])) >= 0).all())
    True
    """

    maps_: tuple[SplineMap, ...]

    def __init__(self, n_pieces: int = 3, input: str = "probabilities") -> None:
        self.n_pieces = n_pieces
        self.input = input

    def _check_parameters(self) -> None:
        check_count("n_pieces", self.n_pieces)

    def _fit_map(self, column: Column, label: NDArray[np.bool_], weight: FloatArray | None) -> SplineMap:
        parts = np.arange(1, self.n_pieces) / self.n_pieces
        # A weight of 2 is the row twice, at any scale of the weights.
        quantiles = np.quantile(column.logit, parts, weights=weight, method="inverted_cdf")
        knots = tuple(np.unique(quantiles).tolist())
        *slopes, intercept = _fit_curve(_pieces(column.logit, knots), label.astype(np.float64), weight)
        return SplineMap(knots, tuple(slopes), intercept)


def _pieces(logit: FloatArray, knots: tuple[float, ...]) -> list[FloatArray]:
    """Return the parts of logits below, between and above knots, whose sum is the logit."""
    ends = [-np.inf, *knots, np.inf]
    return [np.clip(logit, low, high) - (low if k else 0.0) for k, (low, high) in enumerate(pairwise(ends))]


def _fit_curve(
    features: list[FloatArray], target: FloatArray, weight: FloatArray | None, lowest: float = 0.0
) -> list[float]:
    """Return the slopes, each at least `lowest`, and the intercept of a logistic regression on the features.

    Slopes of 1 and an intercept of 0 are the identity.
    """
    start, lower = np.array([1.0] * len(features) + [0.0]), np.array([lowest] * len(features) + [-_FAR])
    design = np.stack([*features, np.ones(len(target))]).T
    count, positives = (1.0, target) if weight is None else (weight, weight * target)
    fit = fit_logistic(design, 0.0, count, positives, start=start, lower=lower, upper=_FAR)
    coefficients: list[float] = fit.x.tolist()
    return coefficients
