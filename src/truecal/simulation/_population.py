"""Populations whose calibration error is known, or chosen: a distribution of scores and a calibration curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.checks import as_generator, check_choice, check_count, check_norm, check_real
from truecal._lib.numeric import find_root
from truecal._lib.types import FloatArray, NormLike, RNGLike
from truecal.data.sample import Sample
from truecal.estimators._registry import DEFAULT_ESTIMATOR, TRUE_ERROR, get_estimator
from truecal.exceptions import InputError, warn_user
from truecal.simulation._curves import Curve, FunctionCurve, GLMCurve, IdentityCurve, PowerCurve
from truecal.simulation._scores import ScoreDistribution, UniformScores

# true_error is accurate to 1e-8; the quadrature aims at this to leave a margin.
_ACCURACY = 1e-11

# Edges of the cells between 0 and 1/2 of a census: narrow near 0, where many populations have most of their scores.
_CELLS = np.concatenate([[0.0], np.geomspace(1e-12, 2e-3, 2000)[:-1], np.linspace(2e-3, 0.5, 2**15)])


@dataclass(frozen=True)
class Population:
    r"""A distribution of scores C and a curve P(Y = 1 | C), which together have a known calibration error.

    The true calibration error is

    .. math:: \mathrm{TCE}_p = \left( E\,|\, C - E[Y | C] \,|^p \right)^{1/p} ,

    and samples from the population show the bias of an estimator (the paper's bias by construction).

    Parameters
    ----------
    scores : ScoreDistribution
        Distribution of the scores.
    curve : Curve
        E[Y | score]. Values outside [0, 1] are clipped, with a warning.

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), Mitigating bias in calibration error estimation, equation 1.

    Examples
    --------
    >>> from truecal.simulation import BetaScores, PowerCurve
    >>> population = Population(BetaScores(2.8, 0.05), PowerCurve(2))
    >>> round(population.true_error(), 6), round(population.true_error(norm=1), 6)
    (0.042359, 0.012759)
    >>> y_true, y_proba = population.sample(5, rng=0)
    >>> y_true.tolist()
    [1, 1, 1, 1, 1]
    >>> population.calibrated().true_error()
    0.0
    """

    scores: ScoreDistribution
    curve: Curve

    def __post_init__(self) -> None:
        if not isinstance(self.scores, ScoreDistribution):
            raise InputError(f"must be a score distribution. Got {self.scores!r} instead", argument="scores")
        if not isinstance(self.curve, Curve):
            hint = "Wrap a function in truecal.simulation.FunctionCurve." if callable(self.curve) else None
            raise InputError(
                f"must be a calibration curve. Got {self.curve!r} instead", argument="curve", remedy=hint
            )
        if not self.curve.is_bounded:
            self._check_range()

    def _check_range(self) -> None:
        """Warn if the curve leaves [0, 1] for scores that occur."""
        score, complement = self.scores.probe()
        value = self.curve.unclipped(score, complement)
        if np.isnan(value).any():
            where = score[np.isnan(value)][0]
            raise InputError(
                f"must give a probability for every score. Got NaN at score {where:.6g} instead",
                argument="curve",
            )
        excess = np.maximum(value - 1, -value)
        if excess.max() <= 1e-12:
            return
        # The share of such scores is more expensive; an end may have no scores at all.
        share = self.scores.expect(
            lambda c, t: np.abs(self.curve.unclipped(c, t) - 0.5) > 0.5, points=self.curve.breakpoints
        )
        if share <= 1e-12:
            return
        worst = int(excess.argmax())
        outside = score[excess > 1e-12]
        warn_user(
            f"The curve leaves [0, 1]: it reaches {value[worst]:.6g} at score {score[worst]:.6g}. "
            f"It is clipped for {100 * share:.3g}% of the scores, in about "
            f"[{outside.min():.6g}, {outside.max():.6g}]."
        )

    # -- known truth ---------------------------------------------------------------------------------

    def true_error(self, norm: NormLike = 2) -> float:
        """Return the true calibration error, to within 1e-8.

        By quadrature (see `ScoreDistribution.expect`).

        Parameters
        ----------
        norm : float, "l1" or "l2"
            Order of the norm, at least 1: 1 is the mean gap, 2 its root mean square.

        Returns
        -------
        float
            A fraction, not percent.
        """
        p = check_norm(norm)
        # In units of about the largest gap, so that a high power neither underflows nor overflows.
        unit = max(float(np.abs(self.curve.gap(*self.scores.probe())).max()), _ACCURACY)
        # |x^(1/p) - y^(1/p)| <= |x - y|^(1/p): this error before the root is _ACCURACY after it.
        atol = (_ACCURACY / unit) ** p

        def height(score: FloatArray, complement: FloatArray) -> FloatArray:
            with np.errstate(under="ignore"):
                return np.asarray((np.abs(self.curve.gap(score, complement)) / unit) ** p)

        mean = self.scores.expect(height, points=self.curve.breakpoints, atol=atol, rtol=1e-11)
        return float(unit * max(mean, 0.0) ** (1 / p))

    def efficiency_limit(self, n: int, norm: NormLike = 2) -> float:
        r"""Return the smallest asymptotic standard deviation of a regular estimator of the true error.

        With the gap d = C - E[Y | C], :math:`\mu = E[Y | C]` and :math:`T = E|d|^p`,

        .. math:: \frac{\sqrt{\mathrm{Var}(|d|^p) + p^2\, E[\,|d|^{2p-2}\, \mu(1 - \mu)\,]}}
                  {p\, T^{(p-1)/p} \sqrt n} .

        No estimator that makes no assumption about the curve can do better in large samples; in small ones, or with
        assumptions, it can (see the theory page on the limit). For norm 1 the gap must not be 0 on a set of scores
        that has positive probability.

        Parameters
        ----------
        n : int
            Number of predictions.
        norm : float, "l1" or "l2"
            Order of the norm.

        Returns
        -------
        float
            NaN for a calibrated population, where the error is not differentiable.

        Examples
        --------
        >>> population = Population(UniformScores(), PowerCurve(2))
        >>> round(population.efficiency_limit(1000), 4)
        0.013
        """
        p = check_norm(norm)
        error = self.true_error(p)
        if error < 1e-6:
            return float("nan")

        def squared_influence(score: FloatArray, complement: FloatArray) -> FloatArray:
            chance = self.curve(score, complement)
            gap = np.abs(self.curve.gap(score, complement)) / error
            return np.asarray(gap ** (2 * p) + (p / error) ** 2 * gap ** (2 * p - 2) * chance * (1 - chance))

        mean = self.scores.expect(squared_influence, points=self.curve.breakpoints, rtol=1e-9)
        return float(error / p * np.sqrt(max(mean - 1, 0.0) / check_count("n", n)))

    def true_value(
        self, estimator: str = DEFAULT_ESTIMATOR, *, norm: NormLike = 2, **options: Any
    ) -> float | None:
        """Return the population's own value of what an estimator estimates, or None if it is not known.

        For most estimators that is the true error. For others, such as ``"ks"`` or ``"smece"``, it is the same
        functional of the whole population, accurate to about 1e-6.

        Parameters
        ----------
        estimator : str
            Name of an estimator.
        norm : float, "l1", "l2" or "max"
            Order of the norm; ``"max"`` where the estimator accepts it.
        **options
            Options of the estimator.

        Examples
        --------
        >>> population = Population(UniformScores(), PowerCurve(2))
        >>> round(population.true_value("ks"), 5)  # the mean of c - c^2
        0.16667
        """
        spec = get_estimator(estimator).with_norm(norm)
        if spec.estimand == TRUE_ERROR:
            return self.true_error(spec.resolve_norm(norm) or norm)
        return spec.true_value(self.census(), norm=norm, **options)

    def census(self) -> Sample:
        """Return the whole population as a sample: narrow cells and point masses, with their expected labels."""
        atoms, masses = self.scores.point_masses
        cuts = np.asarray(self.curve.breakpoints, dtype=np.float64)
        lower = np.union1d(_CELLS, cuts[(cuts > 0) & (cuts < 0.5)])
        upper = np.union1d(_CELLS, 1 - cuts[(cuts > 0.5) & (cuts < 1)])
        edges = np.concatenate([lower, 1 - upper[-2::-1]])
        share = np.diff(self.scores.cdf(edges))
        np.subtract.at(share, np.searchsorted(edges, atoms[atoms > 0]) - 1, masses[atoms > 0])
        middle, other = (lower[1:] + lower[:-1]) / 2, ((upper[1:] + upper[:-1]) / 2)[::-1]
        score = np.concatenate([middle, 1 - other, atoms])
        complement = np.concatenate([1 - middle, other, 1 - atoms])
        share = np.concatenate([share, masses])
        chance = np.asarray(self.curve(score, complement), dtype=np.float64)
        # Next to 0 and 1 a curve may vary by more than floating-point scores can show.
        for cell, edge in ((0, _CELLS[1]), (len(edges) - 2, 1 - _CELLS[1])):
            if share[cell] > 1e-15:
                chance[cell] = self._mean_chance(edge, cell > 0) / share[cell]
        kept = share > 1e-15
        score, group = np.unique(score[kept], return_inverse=True)
        count, positives = (
            np.bincount(group, weight[kept]).astype(np.float64) for weight in (share, share * chance)
        )
        return Sample(score=score, count=count, positives=np.minimum(positives, count))

    def _mean_chance(self, edge: float, above: bool) -> float:
        """Return E[curve(C)] over scores strictly between `edge` and the end next to it."""

        def height(score: FloatArray, complement: FloatArray) -> FloatArray:
            inside = (complement < 1 - edge) & (complement > 0) if above else (score < edge) & (score > 0)
            return np.where(inside, self.curve(score, complement), 0.0)

        atoms, masses = self.scores.point_masses
        points = [*self.curve.breakpoints, edge]
        total = self.scores.expect(height, points=points)
        return total - float(np.sum(masses * height(atoms, 1 - atoms)))

    @property
    def mean_label(self) -> float:
        """The base rate P(Y = 1) = E[curve(C)]."""
        return self.scores.expect(self.curve, points=self.curve.breakpoints)

    def calibrated(self) -> Population:
        """Return the population with the same scores and perfect calibration."""
        return Population(self.scores, IdentityCurve())

    # -- data ----------------------------------------------------------------------------------------

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw `n` scores and return (score, complement); see `truecal.simulation.ScoreDistribution.draw`."""
        return self.scores.draw(n, rng)

    def sample(self, n: int, *, rng: RNGLike = None) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
        """Draw labels and scores.

        The generator draws the scores, then `n` uniform numbers u; the label is u < curve(score).

        Parameters
        ----------
        n : int
            Number of predictions.
        rng : seed or numpy.random.Generator, optional
            Random seed.

        Returns
        -------
        y_true : array of int64, shape (n,)
            Labels, 0 or 1.
        y_proba : array of float64, shape (n,)
            Scores, float32 or float64; see `ScoreDistribution.output_dtype`.
        """
        label, score = self.sample_many(n, [as_generator(rng)])
        return label[0].astype(np.int64), score[0]

    def sample_many(
        self, n: int, rngs: Sequence[np.random.Generator]
    ) -> tuple[NDArray[np.bool_], NDArray[np.floating]]:
        """Draw one data set from each generator; row r equals `sample(n, rng=rngs[r])`.

        The curve is evaluated for many data sets at once, which reduces Python's overhead.

        Parameters
        ----------
        n : int
            Number of predictions in each data set.
        rngs : sequence of numpy.random.Generator
            One for each data set.

        Returns
        -------
        label : array of bool, shape (len(rngs), n)
        score : array of float, shape (len(rngs), n)
        """
        n = check_count("n", n)
        score, complement, uniform = (np.empty((len(rngs), n)) for _ in range(3))
        for row, rng in enumerate(rngs):
            score[row], complement[row] = self.scores.draw(n, rng)
            rng.random(out=uniform[row])
        label = uniform < self.curve(score, complement)
        return label, score.astype(self.scores.output_dtype, copy=False)


_STEPS = 4
_WAVES = 3


@dataclass(frozen=True)
class _Family:
    """Curves by a strength from 0, which is calibrated, to `strongest`; the error grows with it."""

    description: str
    curve: Callable[[float], Curve]
    strongest: float


def _stepped(score: FloatArray, strength: float) -> FloatArray:
    step = (np.floor(_STEPS * score).clip(max=_STEPS - 1) + 0.5) / _STEPS
    return score + strength * (step - score)


def _wavy(score: FloatArray, strength: float) -> FloatArray:
    return score + strength * score * (1 - score) * np.sin(2 * np.pi * _WAVES * score)


#: Families of alternatives by name.
ALTERNATIVES = {
    "power": _Family(
        "the curve c^d, d > 1: scores too high", lambda s: PowerCurve(math.exp(s)), math.log(1e6)
    ),
    "level": _Family(
        "scores too high by a constant on the logit scale",
        lambda s: GLMCurve("logit", "logit", -s, 1.0),
        30.0,
    ),
    "slope": _Family(
        "a slope below 1 on the logit scale: overconfident scores",
        lambda s: GLMCurve("logit", "logit", 0.0, math.exp(-s)),
        15.0,
    ),
    "steps": _Family(
        f"a curve that rises in {_STEPS} steps instead of steadily",
        lambda s: FunctionCurve(
            partial(_stepped, strength=s), breakpoints=[k / _STEPS for k in range(1, _STEPS)]
        ),
        1.0,
    ),
    "waves": _Family(
        f"{_WAVES} waves around the diagonal", lambda s: FunctionCurve(partial(_wavy, strength=s)), 1.0
    ),
}


def population_with_error(
    true_error: float,
    scores: ScoreDistribution | None = None,
    norm: NormLike = 2,
    *,
    alternative: str = "power",
) -> Population:
    r"""Return the population of a family of curves that has this true error.

    Parameters
    ----------
    true_error : float
        The error, a fraction.
    scores : ScoreDistribution, optional
        Distribution of the scores; by default uniform, which is Beta(1, 1).
    norm : float, "l1" or "l2"
        Order of the norm.
    alternative : {"power", "level", "slope", "steps", "waves"}
        Family of curves: ``"power"`` is c^d as in the paper, ``"level"`` shifts all scores by a constant on the logit
        scale, ``"slope"`` is overconfidence, ``"steps"`` a curve that rises in four steps, ``"waves"`` has three waves.

    Returns
    -------
    Population

    Raises
    ------
    InputError
        If no curve of the family has that error on these scores.

    Examples
    --------
    >>> population = population_with_error(0.1)
    >>> round(population.curve.d, 4), round(population.true_error(), 6)
    (1.4491, 0.1)
    >>> round(population_with_error(0.05, alternative="slope").true_error(), 6)
    0.05
    """
    family = _family(alternative)
    scores = UniformScores() if scores is None else scores
    largest = largest_error(scores, norm, alternative=alternative)
    wanted = check_real("true_error", true_error, at_least=0)
    if wanted > largest:
        raise InputError(
            f"must lie between 0 and {largest:.4g}, the largest error that these scores can have here. "
            f"Got {true_error:g} instead",
            argument="true_error",
            value=true_error,
            remedy=f"For {wanted:g}% write {wanted / 100:g}." if 1 <= wanted <= 100 * largest else None,
        )

    def excess(strength: float) -> float:
        return Population(scores, family.curve(strength)).true_error(norm) - wanted

    if wanted == 0:
        return Population(scores, PowerCurve(1.0) if alternative == "power" else IdentityCurve())
    strength = find_root(excess, 0.0, family.strongest, xtol=1e-12, rtol=1e-12)
    return Population(scores, family.curve(strength))


def largest_error(scores: ScoreDistribution, norm: NormLike, *, alternative: str = "power") -> float:
    """Return the largest true error that `population_with_error` can give."""
    family = _family(alternative)
    return Population(scores, family.curve(family.strongest)).true_error(norm)


def _family(alternative: str) -> _Family:
    return ALTERNATIVES[check_choice("alternative", alternative, ALTERNATIVES)]
