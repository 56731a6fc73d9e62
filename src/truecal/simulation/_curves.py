"""Calibration curves E[Y | score]: the paper's GLM family, powers, logistic, steps, any function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from truecal._lib.checks import check_choice, check_probabilities, check_real
from truecal._lib.types import FloatArray
from truecal.exceptions import InputError

LINKS: Final = ("log", "logit", "logflip")


class Curve(ABC):
    """The probability that the label is 1, given the score.

    Calling a curve with scores, or with scores and their complements 1 - score, gives probabilities in
    [0, 1], of the same shape. Pass the complements where scores are closer to 1 than floats can represent.
    """

    def __call__(self, score: ArrayLike, complement: ArrayLike | None = None) -> FloatArray:
        """Return E[Y | score], clipped to [0, 1]."""
        value = self._formula(*_complement_of(score, complement))
        if not self.is_bounded:
            np.clip(value, 0.0, 1.0, out=value)
        return _scalar_or_array(value)

    def unclipped(self, score: ArrayLike, complement: ArrayLike | None = None) -> FloatArray:
        """Return the value of the formula, which may lie outside [0, 1].

        Parameters
        ----------
        score : array-like
            Scores, of any shape.
        complement : array-like, optional
            1 - score, where scores are closer to 1 than floats can represent.
        """
        return _scalar_or_array(self._formula(*_complement_of(score, complement)))

    def gap(self, score: ArrayLike, complement: ArrayLike | None = None) -> FloatArray:
        """Return E[Y | score] - score, whose mean p-th power is the calibration error; see `unclipped`."""
        c, t = _complement_of(score, complement)
        return self(c, t) - c

    @property
    def breakpoints(self) -> Sequence[float]:
        """Scores at which the curve has a jump or a kink."""
        return ()

    @property
    def is_bounded(self) -> bool:
        """Whether the formula stays in [0, 1] for all scores, so that no clipping is needed."""
        return True

    @abstractmethod
    def _formula(self, score: FloatArray, complement: FloatArray) -> FloatArray:
        """Return the curve at float64 arrays of scores and complements, as a new array."""


@dataclass(frozen=True)
class IdentityCurve(Curve):
    """Perfect calibration, E[Y | c] = c.

    Examples
    --------
    >>> IdentityCurve()([0.2, 0.9]).tolist()
    [0.2, 0.9]
    """

    def _formula(self, score: FloatArray, complement: FloatArray) -> FloatArray:
        return score.copy()


@dataclass(frozen=True)
class PowerCurve(Curve):
    """A power of the score, E[Y | c] = c^d; overconfident for d > 1.

    Parameters
    ----------
    d : float
        Exponent, non-negative.

    Examples
    --------
    >>> PowerCurve(2)([0.5, 1.0]).tolist()
    [0.25, 1.0]
    """

    d: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", check_real("d", self.d, at_least=0))

    def _formula(self, score: FloatArray, complement: FloatArray) -> FloatArray:
        with np.errstate(under="ignore"):
            return np.asarray(score**self.d)

    def gap(self, score: ArrayLike, complement: ArrayLike | None = None) -> FloatArray:
        """Return c^d - c; as c (c^(d-1) - 1) where the two are close, near c = 1 or near d = 1."""
        c, t = _complement_of(score, complement)
        with np.errstate(under="ignore"):
            log_c = np.where(t < 0.5, np.log1p(-np.minimum(t, 0.5)), np.log(np.maximum(c, 1e-300)))
            log_ratio = (self.d - 1) * log_c
            close = np.abs(log_ratio) < 1
            return np.where(close, c * np.expm1(np.where(close, log_ratio, 0)), c**self.d - c)


@dataclass(frozen=True)
class LogisticCurve(Curve):
    r"""A logistic function of the score, :math:`E[Y | c] = 1 / (1 + e^{-(slope\, c + intercept)})`.

    Appendix D of the paper uses slope 10 and intercept -5.

    Parameters
    ----------
    slope, intercept : float

    Examples
    --------
    >>> LogisticCurve(10, -5)([0.0, 0.5, 1.0]).round(4).tolist()
    [0.0067, 0.5, 0.9933]
    """

    slope: float
    intercept: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "slope", check_real("slope", self.slope))
        object.__setattr__(self, "intercept", check_real("intercept", self.intercept))

    def _formula(self, score: FloatArray, complement: FloatArray) -> FloatArray:
        return np.asarray(expit(self.slope * score + self.intercept))


@dataclass(frozen=True)
class GLMCurve(Curve):
    r"""A generalised linear model of the paper's family.

    .. math:: g(E[Y | c]) = b_0 + b_1\, t(c)

    Link g and transform t are each one of log(x), logit(x) = log(x / (1 - x)) and logflip(x) = log(1 - x).
    The logit link always gives a probability. Values of the other two outside [0, 1] are clipped, and a
    `Population` warns about it.

    Parameters
    ----------
    link, transform : {"log", "logit", "logflip"}
    b0, b1 : float or None
        Intercept and slope; None omits the term (not both).

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), Mitigating bias in calibration error estimation, Appendix A.

    Examples
    --------
    >>> curve = GLMCurve("logflip", "logflip", b0=-0.24, b1=0.3)
    >>> curve([0.0, 0.9, 1.0]).round(4).tolist()
    [0.2134, 0.6057, 1.0]
    >>> float(1 - curve(1.0, complement=1e-40))  # a score that rounds to 1
    7.86...e-13
    """

    link: str
    transform: str
    b0: float | None = None
    b1: float | None = None

    def __post_init__(self) -> None:
        check_choice("link", self.link, LINKS)
        check_choice("transform", self.transform, LINKS)
        if self.b0 is None and self.b1 is None:
            raise InputError("cannot both be None. Pass an intercept, a slope, or both", argument="b0 and b1")
        for name in ("b0", "b1"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check_real(name, getattr(self, name)))

    def _formula(self, score: FloatArray, complement: FloatArray) -> FloatArray:
        b0, b1 = self.b0 or 0.0, self.b1 or 0.0
        # At an end the transform is infinite, and infinity times zero is NaN.
        if b1 == 0:
            return np.full(np.shape(score), inverse_link(self.link, np.asarray(b0)))
        return inverse_link(self.link, b0 + b1 * transform_score(self.transform, score, complement))

    @property
    def is_bounded(self) -> bool:
        """Whether the link is logit."""
        return self.link == "logit"


@dataclass(frozen=True)
class StepCurve(Curve):
    """A step function, as from isotonic regression or histogram binning.

    The value is values[k] where k is the number of edges at or below the score: values[1] applies to
    edges[0] <= c < edges[1].

    Parameters
    ----------
    edges : sequence of float
        Scores in [0, 1] where the second and later steps begin, strictly increasing.
    values : sequence of float
        Probabilities, one more than edges. They need not increase.

    Examples
    --------
    >>> curve = StepCurve(edges=[0.5, 0.8], values=[0.3, 0.6, 0.9])
    >>> curve([0.1, 0.5, 0.79, 0.8, 1.0]).tolist()
    [0.3, 0.6, 0.6, 0.9, 0.9]
    """

    edges: Sequence[float]
    values: Sequence[float]

    def __post_init__(self) -> None:
        values = check_probabilities("values", self.values)
        edges = check_probabilities("edges", self.edges) if np.size(self.edges) else np.empty(0)
        if values.size != edges.size + 1:
            raise InputError(
                f"must have one value more than edges ({edges.size}). Got {values.size} instead",
                argument="values",
            )
        if (np.diff(edges) <= 0).any():
            raise InputError(f"must be strictly increasing. Got {self.edges!r} instead", argument="edges")
        object.__setattr__(self, "edges", tuple(edges.tolist()))
        object.__setattr__(self, "values", tuple(values.tolist()))

    def _formula(self, score: FloatArray, complement: FloatArray) -> FloatArray:
        return np.asarray(self.values)[np.searchsorted(self.edges, score, side="right")]

    @property
    def breakpoints(self) -> Sequence[float]:
        """The edges."""
        return self.edges


@dataclass(frozen=True)
class FunctionCurve(Curve):
    """Any function of the score as a curve.

    Parameters
    ----------
    function : callable
        Vectorised function of the score, or of (score, complement), that returns probabilities. Values outside
        [0, 1] are clipped, and a `Population` warns about it.
    takes_complement : bool
        Whether `function` takes both arguments.
    breakpoints : sequence of float
        Scores at which it has a jump or a kink. They make `Population.true_error` faster.

    Examples
    --------
    >>> FunctionCurve(np.sqrt)([0.25, 1.0]).tolist()
    [0.5, 1.0]
    >>> FunctionCurve(lambda score, complement: 1 - complement**0.3, takes_complement=True)(0.5).round(4)
    np.float64(0.1877)
    """

    function: Callable[..., Any]
    takes_complement: bool = False
    breakpoints: Sequence[float] = ()

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"must be callable. Got {self.function!r} instead", argument="function")
        if np.size(self.breakpoints):
            points = check_probabilities("breakpoints", self.breakpoints)
            object.__setattr__(self, "breakpoints", tuple(points.tolist()))

    def _formula(self, score: FloatArray, complement: FloatArray) -> FloatArray:
        arguments = (score, complement) if self.takes_complement else (score,)
        value = np.array(self.function(*arguments), dtype=np.float64)
        if value.shape != score.shape and value.ndim:
            raise InputError(
                f"must return one value for each score. Got shape {value.shape} "
                f"for scores of shape {score.shape} instead",
                argument="function",
            )
        return value if value.ndim or not score.ndim else np.full(score.shape, value)

    @property
    def is_bounded(self) -> bool:
        """False, because nothing is known about the function."""
        return False


def _complement_of(score: ArrayLike, complement: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    """Return both as float64 arrays; the complement is 1 - score by default."""
    c = np.asarray(score, dtype=np.float64)
    return c, (1 - c if complement is None else np.asarray(complement, dtype=np.float64))


def _scalar_or_array(value: FloatArray) -> FloatArray:
    """Return a scalar for an array without dimensions, as NumPy's own functions do."""
    result: FloatArray = value[()]
    return result


def transform_score(transform: str, score: FloatArray, complement: FloatArray) -> FloatArray:
    """Return log(c), logit(c) or log(1 - c), infinite at the ends, from the score and the complement."""
    with np.errstate(divide="ignore"):
        if transform == "log":
            return np.log(score)
        if transform == "logflip":
            return np.log(complement)
        return np.asarray(np.log(score) - np.log(complement))


def inverse_link(link: str, predictor: FloatArray) -> FloatArray:
    """Return the p for which the link, log(p), logit(p) or log(1 - p), equals the predictor."""
    if link == "logit":
        return np.asarray(expit(predictor))
    with np.errstate(over="ignore", under="ignore"):
        if link == "log":
            return np.asarray(np.exp(predictor))
        return np.asarray(-np.expm1(predictor))
