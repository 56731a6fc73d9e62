"""Distributions of predicted probabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincinv, betaln, xlog1py, xlogy

from truecal._lib.checks import check_choice, check_count, check_probabilities, check_real, check_shares
from truecal._lib.types import FloatArray, ScoreFunction
from truecal.exceptions import InputError
from truecal.simulation._quadrature import PowerWeight

# (score, complement) on a fixed grid that is dense at both ends, where curves vary most.
_TAIL = np.logspace(-300, -3, 34)
_BODY = np.linspace(0, 1, 101)[1:-1]
GRID: tuple[FloatArray, FloatArray] = (
    np.concatenate([[0.0], _TAIL, _BODY, 1 - _TAIL, [1.0]]),
    np.concatenate([[1.0], 1 - _TAIL, 1 - _BODY, _TAIL, [0.0]]),
)


class ScoreDistribution(ABC):
    """A distribution of predicted probabilities on [0, 1].

    A score c is always accompanied by its complement t = 1 - c. Skewed models put a large share of their scores
    closer to 1 than floating-point numbers can represent (18% of Beta(2.78, 0.048) lies within 2^-54 of 1), and
    a curve that needs log(1 - c) must compute it from t.
    """

    @abstractmethod
    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw `n` scores and return (score, complement), two float64 arrays.

        Parameters
        ----------
        n : int
            Number of scores.
        rng : numpy.random.Generator
            Random generator.

        Returns
        -------
        score, complement : ndarray of shape (n,)
            The scores, and 1 - score without loss of precision near 1; float64.
        """

    def expect(
        self,
        function: ScoreFunction,
        *,
        points: Sequence[float] = (),
        atol: float = 1e-12,
        rtol: float = 1e-12,
    ) -> float:
        """Return E[function(score, complement)].

        Parameters
        ----------
        function : callable
            Vectorised function of (score, complement), bounded.
        points : sequence of float
            Scores where it has a jump or a kink. Others are found by bisection, which is slower and may miss a
            narrow spike.
        atol, rtol : float
            Target accuracy: max(atol, rtol * abs(result)).
        """
        return self._expect(function, points, atol, rtol)

    @abstractmethod
    def _expect(self, function: ScoreFunction, points: Sequence[float], atol: float, rtol: float) -> float:
        """Return E[function(score, complement)]; the parameters are those of `expect`."""

    @abstractmethod
    def cdf(self, score: ArrayLike) -> FloatArray:
        """Return P(C <= score).

        Parameters
        ----------
        score : array-like
            Scores, of any shape.
        """

    @abstractmethod
    def pdf(self, score: ArrayLike) -> FloatArray:
        """Return the density of the continuous part; `point_masses` has the rest.

        Parameters
        ----------
        score : array-like
            Scores, of any shape.
        """

    @property
    @abstractmethod
    def mean(self) -> float:
        """The mean score."""

    @property
    def point_masses(self) -> tuple[FloatArray, FloatArray]:
        """Scores with positive probability, increasing, and these probabilities."""
        return np.empty(0), np.empty(0)

    @property
    def output_dtype(self) -> np.dtype[Any]:
        """Type of the scores that a population returns: float64 or float32."""
        return np.dtype(np.float64)

    def probe(self) -> tuple[FloatArray, FloatArray]:
        """Return fixed (score, complement) pairs that cover the support, for quick checks of a curve."""
        return GRID


class DiscreteScores(ScoreDistribution):
    """Base of distributions that consist of point masses: expectations are sums."""

    def _expect(self, function: ScoreFunction, points: Sequence[float], atol: float, rtol: float) -> float:
        """Return the sum over the point masses, which is exact."""
        values, masses = self.point_masses
        return float(np.sum(masses * np.asarray(function(values, 1 - values), dtype=np.float64)))

    def cdf(self, score: ArrayLike) -> FloatArray:
        """Return P(C <= score), a step function."""
        return step_cdf(self.point_masses, score)

    def pdf(self, score: ArrayLike) -> FloatArray:
        """Return zeros: there is no continuous part."""
        return np.zeros(np.shape(score))

    @property
    def mean(self) -> float:
        """The mean score."""
        values, masses = self.point_masses
        return float(values @ masses)

    def probe(self) -> tuple[FloatArray, FloatArray]:
        """Return the point masses themselves."""
        values, _ = self.point_masses
        return values, 1 - values


def step_cdf(point_masses: tuple[FloatArray, FloatArray], score: ArrayLike) -> FloatArray:
    """Return the total of the point masses at or below each score."""
    values, masses = point_masses
    total = np.concatenate([[0.0], np.cumsum(masses)])
    return np.asarray(total[np.searchsorted(values, score, side="right")])


def merge_masses(values: FloatArray, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return distinct values, increasing, with their total masses; values without mass are dropped."""
    distinct, position = np.unique(values, return_inverse=True)
    total = np.bincount(position, weights=masses, minlength=distinct.size).astype(np.float64)
    return distinct[total > 0], total[total > 0]


def draw_index(weights: FloatArray, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw `n` indices with these probabilities, from one uniform number each."""
    # Without the last boundary, which may be below 1 by rounding.
    return np.searchsorted(np.cumsum(weights)[:-1], rng.random(n), side="right")


@dataclass(frozen=True)
class UniformScores(ScoreDistribution):
    """Scores with a uniform distribution on [low, high].

    Parameters
    ----------
    low, high : float
        Ends of the interval, 0 <= low < high <= 1.

    Examples
    --------
    >>> scores = UniformScores(0.5, 1)
    >>> scores.mean
    0.75
    >>> round(scores.expect(lambda score, complement: complement**2), 12)
    0.083333333333
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "high", check_real("high", self.high, above=0, at_most=1))
        object.__setattr__(self, "low", check_real("low", self.low, at_least=0))
        if not self.low < self.high:
            raise InputError(
                f"must be smaller than high ({self.high:g}). Got {self.low!r} instead", argument="low"
            )

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw `n` scores and return (score, complement)."""
        share = rng.random(n)
        width = self.high - self.low
        return self.low + width * share, (1 - self.high) + width * (1 - share)

    def _expect(self, function: ScoreFunction, points: Sequence[float], atol: float, rtol: float) -> float:
        """Return E[function(score, complement)] by adaptive quadrature."""
        eighths = np.array([1e-3, 0.125, 0.25, 0.375])
        weight = PowerWeight(
            1.0, 1.0, float(np.log(self.high - self.low)), self.low, self.high, cuts=(eighths, eighths)
        )
        return weight.mean(function, points, atol, rtol)

    def cdf(self, score: ArrayLike) -> FloatArray:
        """Return P(C <= score)."""
        c = np.asarray(score, dtype=np.float64)
        return np.asarray(np.clip((c - self.low) / (self.high - self.low), 0, 1))

    def pdf(self, score: ArrayLike) -> FloatArray:
        """Return the density, 1 / (high - low) on the interval."""
        c = np.asarray(score, dtype=np.float64)
        return np.where((c >= self.low) & (c <= self.high), 1 / (self.high - self.low), 0.0)

    @property
    def mean(self) -> float:
        """The mean score, (low + high) / 2."""
        return (self.low + self.high) / 2

    def moment(self, power: float) -> float:
        """Return E[C^power].

        Parameters
        ----------
        power : float
            The exponent, greater than -1.
        """
        top = power + 1
        return float((self.high**top - self.low**top) / (top * (self.high - self.low)))

    def probe(self) -> tuple[FloatArray, FloatArray]:
        """Return the part of the fixed grid that lies in the interval, and its ends."""
        score, complement = super().probe()
        inside = (score > self.low) & (score < self.high)
        return (
            np.concatenate([[self.low], score[inside], [self.high]]),
            np.concatenate([[1 - self.low], complement[inside], [1 - self.high]]),
        )


# The first panels of the quadrature end at these quantiles, so that a narrow peak is not missed.
_PROBABILITIES = np.array([1e-12, 1e-6, 1e-3, 0.03, 0.15, 0.4, 0.7, 0.9, 0.99])


@dataclass(frozen=True)
class BetaScores(ScoreDistribution):
    r"""Scores with a Beta(a, b) distribution.

    .. math:: f(c) = \frac{c^{a-1} (1-c)^{b-1}}{B(a, b)}

    The singular end is drawn directly, so that no precision is lost there: for b < 1 the complement
    t ~ Beta(b, a) with score = 1 - t; for a < 1 the score; if both are below 1, each with its probability in
    the mixture Beta(a, b) = a/(a+b) Beta(a+1, b) + b/(a+b) Beta(a, b+1).

    Parameters
    ----------
    a, b : float
        Shape parameters, positive.

    Examples
    --------
    >>> scores = BetaScores(2.7752, 0.0478)
    >>> round(scores.mean, 4)
    0.9831
    >>> score, complement = scores.draw(1000, np.random.default_rng(0))
    >>> bool((score == 1).any()), bool((complement == 0).any())
    (True, False)
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", check_real("a", self.a, above=0))
        object.__setattr__(self, "b", check_real("b", self.b, above=0))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw `n` scores and return (score, complement)."""
        a, b = self.a, self.b
        if a < 1 and b < 1:
            at_one = rng.random(n) < a / (a + b)
            small = rng.beta(np.where(at_one, b, a), np.where(at_one, a + 1, b + 1))
            return np.where(at_one, 1 - small, small), np.where(at_one, small, 1 - small)
        if a < 1:
            score = rng.beta(a, b, n)
            return score, 1 - score
        complement = rng.beta(b, a, n)
        return 1 - complement, complement

    def _expect(self, function: ScoreFunction, points: Sequence[float], atol: float, rtol: float) -> float:
        """Return E[function(score, complement)] by quadrature that removes both singularities.

        Rounding in the density adds a relative error of about 1e-15 (a + b).
        """
        return self._weight.mean(function, points, atol, rtol)

    @cached_property
    def _weight(self) -> PowerWeight:
        cuts = (betaincinv(self.a, self.b, _PROBABILITIES), betaincinv(self.b, self.a, _PROBABILITIES))
        return PowerWeight(self.a, self.b, float(betaln(self.a, self.b)), cuts=cuts)

    def cdf(self, score: ArrayLike) -> FloatArray:
        """Return P(C <= score), the regularised incomplete beta function."""
        return np.asarray(betainc(self.a, self.b, np.clip(np.asarray(score, dtype=np.float64), 0, 1)))

    def pdf(self, score: ArrayLike) -> FloatArray:
        """Return the density; it is infinite at 1 when b < 1 and at 0 when a < 1."""
        c = np.asarray(score, dtype=np.float64)
        inside = (c >= 0) & (c <= 1)
        c = np.where(inside, c, 0.5)
        height = np.exp(xlogy(self.a - 1, c) + xlog1py(self.b - 1, -c) - betaln(self.a, self.b))
        return np.where(inside, height, 0.0)

    @property
    def mean(self) -> float:
        """The mean score, a / (a + b)."""
        return self.a / (self.a + self.b)

    def moment(self, power: float) -> float:
        """Return E[C^power] = B(a + power, b) / B(a, b).

        Parameters
        ----------
        power : float
            The exponent, greater than -a.
        """
        return float(np.exp(betaln(self.a + power, self.b) - betaln(self.a, self.b)))


@dataclass(frozen=True)
class AtomScores(DiscreteScores):
    """Scores with finitely many values, each with its own probability.

    Parameters
    ----------
    values : sequence of float
        Scores in [0, 1].
    weights : sequence of float, optional
        Their probabilities, which sum to 1. By default all are equal.

    Examples
    --------
    >>> scores = AtomScores([0.0, 0.5, 1.0], weights=[0.1, 0.2, 0.7])
    >>> round(scores.mean, 12)
    0.8
    >>> scores.cdf([0.0, 0.5, 0.99]).round(12).tolist()
    [0.1, 0.3, 0.3]
    """

    values: Sequence[float]
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        values = check_probabilities("values", self.values)
        weights = np.full(values.size, 1 / values.size) if self.weights is None else self.weights
        shares = check_shares("weights", weights, count=values.size)
        object.__setattr__(self, "values", tuple(values.tolist()))
        object.__setattr__(self, "weights", tuple(shares.tolist()))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw `n` scores and return (score, complement)."""
        score = np.asarray(self.values)[draw_index(np.asarray(self.weights), n, rng)]
        return score, 1 - score

    @property
    def point_masses(self) -> tuple[FloatArray, FloatArray]:
        """The distinct values, increasing, and their probabilities."""
        return merge_masses(np.asarray(self.values), np.asarray(self.weights))


@dataclass(frozen=True, eq=False)
class EmpiricalScores(DiscreteScores):
    """Observed scores, resampled with replacement; each distinct score is a point mass.

    Parameters
    ----------
    values : array-like
        Observed scores in [0, 1]. A population returns float32 scores if these are float32.

    Examples
    --------
    >>> scores = EmpiricalScores([0.2, 0.9, 0.9, 1.0])
    >>> scores
    EmpiricalScores(4 scores, mean 0.75)
    >>> scores.point_masses[1].tolist()
    [0.25, 0.5, 0.25]
    """

    values: FloatArray
    _dtype: np.dtype[Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = getattr(self.values, "dtype", None)
        values = check_probabilities("values", self.values)
        values.flags.writeable = False
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "_dtype", np.dtype(np.float32 if given == np.float32 else np.float64))

    def __repr__(self) -> str:
        return f"EmpiricalScores({self.values.size} scores, mean {self.mean:.6g})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EmpiricalScores):
            return NotImplemented
        return self._dtype == other._dtype and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash((self._dtype.str, self.values.tobytes()))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw `n` scores with replacement and return (score, complement)."""
        score = self.values[rng.integers(0, self.values.size, size=n)]
        return score, 1 - score

    @cached_property
    def point_masses(self) -> tuple[FloatArray, FloatArray]:
        """The distinct scores, increasing, and their shares."""
        distinct, count = np.unique(self.values, return_counts=True)
        return distinct, count / self.values.size

    @property
    def output_dtype(self) -> np.dtype[Any]:
        """The type of the observed scores: float32 or float64."""
        return self._dtype


@dataclass(frozen=True)
class MixtureScores(ScoreDistribution):
    r"""A mixture: each score comes from component k with probability w_k.

    .. math:: F(c) = \sum_k w_k F_k(c)

    Parameters
    ----------
    components : sequence of ScoreDistribution
    weights : sequence of float
        Their probabilities, which sum to 1.

    Examples
    --------
    >>> scores = MixtureScores([UniformScores(), BetaScores(5, 1)], weights=[0.25, 0.75])
    >>> round(scores.mean, 12)
    0.75
    """

    components: Sequence[ScoreDistribution]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        components = tuple(self.components)
        for component in components:
            if not isinstance(component, ScoreDistribution):
                raise InputError(
                    f"must be score distributions. Got {component!r} instead", argument="components"
                )
        shares = check_shares("weights", self.weights, count=len(components))
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "weights", tuple(shares.tolist()))

    @property
    def _weighted(self) -> Iterator[tuple[float, ScoreDistribution]]:
        return zip(self.weights, self.components, strict=True)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw `n` scores and return (score, complement): first the components, then a score from each."""
        chosen = draw_index(np.asarray(self.weights), n, rng)
        score, complement = np.empty(n), np.empty(n)
        for k, component in enumerate(self.components):
            rows = np.flatnonzero(chosen == k)
            score[rows], complement[rows] = component.draw(rows.size, rng)
        return score, complement

    def _expect(self, function: ScoreFunction, points: Sequence[float], atol: float, rtol: float) -> float:
        """Return E[function(score, complement)], the weighted mean over the components."""
        return fsum(
            weight * component.expect(function, points=points, atol=atol, rtol=rtol)
            for weight, component in self._weighted
        )

    def cdf(self, score: ArrayLike) -> FloatArray:
        """Return P(C <= score)."""
        return np.asarray(sum(weight * component.cdf(score) for weight, component in self._weighted))

    def pdf(self, score: ArrayLike) -> FloatArray:
        """Return the density of the continuous part; it integrates to less than 1 if there are atoms."""
        return np.asarray(
            sum(weight * component.pdf(score) for weight, component in self._weighted if weight)
        )

    @property
    def mean(self) -> float:
        """The mean score."""
        return fsum(weight * component.mean for weight, component in self._weighted)

    @property
    def point_masses(self) -> tuple[FloatArray, FloatArray]:
        """The point masses of all components, increasing, and their probabilities."""
        masses = [(weight, *component.point_masses) for weight, component in self._weighted]
        return merge_masses(
            np.concatenate([values for _, values, _ in masses]),
            np.concatenate([weight * mass for weight, _, mass in masses]),
        )

    @property
    def output_dtype(self) -> np.dtype[Any]:
        """float32 if all components are float32, ignoring exact zeros and ones; else float64."""
        dtypes = [component.output_dtype for component in self.components if not _only_ends(component)]
        return np.result_type(*dtypes) if dtypes else np.dtype(np.float64)

    def probe(self) -> tuple[FloatArray, FloatArray]:
        """Return the points of all components."""
        score, complement = zip(*(component.probe() for component in self.components), strict=True)
        return np.concatenate(score), np.concatenate(complement)


def with_atoms(scores: ScoreDistribution, *, at_zero: float = 0.0, at_one: float = 0.0) -> MixtureScores:
    """Return a mixture of `scores` with exact zeros and exact ones.

    Parameters
    ----------
    scores : ScoreDistribution
        The distribution of the other scores.
    at_zero, at_one : float
        Shares of all scores that are exactly 0 and exactly 1; together at most 1.

    Returns
    -------
    MixtureScores

    Examples
    --------
    >>> scores = with_atoms(UniformScores(), at_one=0.3)
    >>> scores.point_masses[1].tolist()
    [0.3]
    >>> scores.cdf([0.5, 1.0]).tolist()
    [0.35, 1.0]
    """
    zero = check_real("at_zero", at_zero, at_least=0, at_most=1)
    one = check_real("at_one", at_one, at_least=0, at_most=1 - zero)
    return MixtureScores((AtomScores([0.0]), AtomScores([1.0]), scores), (zero, one, 1 - zero - one))


def _only_ends(scores: ScoreDistribution) -> bool:
    return isinstance(scores, AtomScores) and set(scores.values) <= {0.0, 1.0}


# Spacing of the float32 numbers below 1, and of those above 0.
_STEP_AT_ONE: Final = 2.0**-24
_STEP_AT_ZERO: Final = 2.0**-149

# Number of float32 values at either end whose masses are computed exactly (see RoundedScores).
_EXACT_VALUES: Final = 4096


class _Intervals(NamedTuple):
    """Rounded scores, increasing, each with the interval of the scores that round to it."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class RoundedScores(ScoreDistribution):
    r"""Scores of `base`, rounded to a number of decimals or to a narrower float.

    The label depends on the rounded score r: E[Y | r] = curve(r).

    With decimals or float16 there are few scores, and expectations are sums over them. The mass of r is that of
    `base` on the interval of all scores that round to r,

    .. math:: P(R = r) = F(r + h/2) - F(r - h/2) .

    float32 has 10^9 scores in [0, 1]. Masses are computed exactly for the 4,096 scores next to 1 (including 1,
    which often has half of the mass), the 4,096 next to 0, and those whose interval contains one of the `points`
    given to `expect`. An atom at 1 alone would not be enough: near 1 rounding changes t = 1 - c by a large
    factor, and with it the t^0.3 of a calibration curve. Elsewhere rounding changes the mean of a smooth g only
    to second order,

    .. math:: E[g(R)] - E[g(C)] \approx \frac{h^2}{24} \int (g'' f + 2 g' f')\,dc ,

    with h / t < 1 / 4096 and h / c < 2^-23: below 1e-10 for the paper's populations. There, E[g(C)] is used.

    Parameters
    ----------
    base : ScoreDistribution
        The scores before rounding.
    decimals : int, optional
        Digits after the point, 0 to 6, rounded as `numpy.round` does.
    dtype : {"float32", "float16"}, optional
        Floating-point type. Exactly one of `decimals` and `dtype` must be given.

    Examples
    --------
    >>> scores = RoundedScores(UniformScores(), decimals=1)
    >>> scores.point_masses[1].round(12).tolist()
    [0.05, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.05]
    >>> scores = RoundedScores(BetaScores(2.7752, 0.0478), dtype="float32")
    >>> values, masses = scores.point_masses
    >>> float(values[-1]), round(float(masses[-1]), 4)  # the share of scores that are exactly 1
    (1.0, 0.4665)
    """

    base: ScoreDistribution
    decimals: int | None = None
    dtype: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.base, ScoreDistribution):
            raise InputError(f"must be a score distribution. Got {self.base!r} instead", argument="base")
        if (self.decimals is None) == (self.dtype is None):
            raise InputError(
                "RoundedScores needs either decimals or dtype. "
                f"Got decimals={self.decimals!r} and dtype={self.dtype!r} instead"
            )
        if self.dtype is not None:
            check_choice("dtype", self.dtype, ("float32", "float16"))
        elif check_count("decimals", self.decimals, at_least=0) > 6:
            raise InputError(
                f"must be at most 6. Got {self.decimals!r} instead",
                argument="decimals",
                remedy="For more digits use dtype='float32'.",
            )

    # -- rounding ------------------------------------------------------------------------------------

    def _round(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rounded scores and their complements, both as float64."""
        if self.decimals is not None:
            grid = 10.0**self.decimals
            step = np.rint(score * grid)
            return step / grid, (grid - step) / grid
        with np.errstate(under="ignore"):
            rounded = score.astype(self.dtype).astype(np.float64)
        return rounded, 1 - rounded

    @property
    def _is_countable(self) -> bool:
        return self.dtype != "float32"

    @cached_property
    def _exact(self) -> _Intervals:
        """All rounded scores where they are countable, else those at the two ends."""
        if self.decimals is not None:
            value = np.arange(10**self.decimals + 1) / 10.0**self.decimals
        elif self.dtype == "float16":
            # Non-negative floats are ordered like their bit patterns.
            last = int(np.float16(1).view(np.uint16))
            value = np.arange(last + 1, dtype=np.uint16).view(np.float16).astype(np.float64)
        else:
            steps = np.arange(_EXACT_VALUES)

            def both_ends(shift: float) -> FloatArray:
                ends = [(steps + shift) * _STEP_AT_ZERO, 1 - (steps[::-1] - shift) * _STEP_AT_ONE]
                return np.clip(np.concatenate(ends), 0.0, 1.0)

            return _Intervals(both_ends(0), both_ends(-0.5), both_ends(0.5))
        middle = (value[1:] + value[:-1]) / 2
        return _Intervals(value, np.concatenate([[0.0], middle]), np.concatenate([middle, [1.0]]))

    def _continuous_cdf(self, score: FloatArray) -> FloatArray:
        """Return the mass of the continuous part of the base at or below each score."""
        return self.base.cdf(score) - step_cdf(self.base.point_masses, score)

    def _mass(self, intervals: _Intervals) -> FloatArray:
        """Return the mass of the continuous part of the base in each interval; the first includes 0."""
        below = np.where(intervals.low > 0, self._continuous_cdf(intervals.low), 0.0)
        return np.maximum(self._continuous_cdf(intervals.high) - below, 0.0)

    @cached_property
    def _counted(self) -> tuple[FloatArray, FloatArray]:
        """The rounded atoms of the base and the exactly computed rounded scores, with their masses."""
        atoms, atom_masses = self.base.point_masses
        values, masses = self._round(atoms)[0], atom_masses
        if 1 - masses.sum() > 1e-15:
            values = np.concatenate([values, self._exact.value])
            masses = np.concatenate([masses, self._mass(self._exact)])
        return merge_masses(values, masses)

    # -- the interface -------------------------------------------------------------------------------

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw `n` scores of the base, round them, and return (score, complement)."""
        score, _ = self.base.draw(n, rng)
        return self._round(score)

    def _expect(self, function: ScoreFunction, points: Sequence[float], atol: float, rtol: float) -> float:
        """Return E[function(score, complement)] at the rounded scores."""
        values, masses = self._counted
        total = float(np.sum(masses * np.asarray(function(values, 1 - values), dtype=np.float64)))
        if self._is_countable or masses.sum() > 1 - 1e-15:
            return total

        # The function jumps inside these intervals, but all of their scores are rounded to the same value.
        jumps = self._intervals_around(np.asarray(points, dtype=np.float64))
        total += float(np.sum(self._mass(jumps) * np.asarray(function(jumps.value, 1 - jumps.value))))
        low, far = (_EXACT_VALUES - 0.5) * _STEP_AT_ZERO, (_EXACT_VALUES - 0.5) * _STEP_AT_ONE

        def elsewhere(score: FloatArray, complement: FloatArray) -> FloatArray:
            outside = (score > low) & (complement > far)
            for first, last in zip(jumps.low, jumps.high, strict=True):
                outside &= (score < first) | (score > last)
            return np.where(outside, function(score, complement), 0.0)

        # The expectation over the base includes its atoms, which were added above.
        atoms, atom_masses = self.base.point_masses
        total -= float(np.sum(atom_masses * elsewhere(atoms, 1 - atoms)))
        return total + self.base.expect(
            elsewhere,
            points=[*points, *jumps.low, *jumps.high, low, 1 - far],
            atol=atol,
            rtol=rtol,
        )

    def _intervals_around(self, points: FloatArray) -> _Intervals:
        """Return the float32 intervals that contain these scores, without those computed exactly anyway."""
        value = np.unique(points.astype(np.float32))
        at_end = (value < _EXACT_VALUES * _STEP_AT_ZERO) | (value > 1 - _EXACT_VALUES * _STEP_AT_ONE)
        value = value[~at_end]
        below = np.nextafter(value, np.float32(-1)).astype(np.float64)
        above = np.nextafter(value, np.float32(2)).astype(np.float64)
        middle = value.astype(np.float64)
        return _Intervals(middle, (below + middle) / 2, (middle + above) / 2)

    def cdf(self, score: ArrayLike) -> FloatArray:
        """Return P(R <= score) of the rounded score R."""
        c = np.asarray(score, dtype=np.float64)
        if self._is_countable:
            return step_cdf(self._counted, c)
        with np.errstate(under="ignore"):
            nearest = np.clip(c, -1, 2).astype(np.float32)
        below = np.where(nearest > c, np.nextafter(nearest, np.float32(-1)), nearest)
        above = np.nextafter(below, np.float32(2)).astype(np.float64)
        edge = np.where(below < 0, -1.0, (below.astype(np.float64) + above) / 2)
        atoms, masses = self.base.point_masses
        rounded = merge_masses(self._round(atoms)[0], masses)
        return self._continuous_cdf(edge) + step_cdf(rounded, c)

    def pdf(self, score: ArrayLike) -> FloatArray:
        """Return zeros where the scores are countable; for float32 the density of the base.

        Scores that float32 rounds to 0 or to 1 have no density: they are in `point_masses`.
        """
        c = np.asarray(score, dtype=np.float64)
        if self._is_countable:
            return np.zeros(c.shape)
        with np.errstate(under="ignore"):
            rounded = c.astype(np.float32)
        inside = (rounded > 0) & (rounded < 1)
        return np.where(inside, self.base.pdf(np.where(inside, c, 0.5)), 0.0)

    @property
    def mean(self) -> float:
        """The mean of the rounded scores."""
        return self.expect(lambda score, _: score)

    @property
    def point_masses(self) -> tuple[FloatArray, FloatArray]:
        """All scores and their probabilities; for float32 only 0, 1 and the atoms of the base."""
        values, masses = self._counted
        if self._is_countable:
            return values, masses
        kept = np.isin(values, [0.0, 1.0, *self._round(self.base.point_masses[0])[0]])
        return values[kept], masses[kept]

    @property
    def output_dtype(self) -> np.dtype[Any]:
        """float64 for decimals, else the type that was rounded to."""
        return np.dtype(self.dtype or np.float64)

    def probe(self) -> tuple[FloatArray, FloatArray]:
        """Return the points of the base, rounded."""
        return self._round(self.base.probe()[0])
