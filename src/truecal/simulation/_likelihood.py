r"""Maximum-likelihood fits of the two parts of a population: Beta scores, and twelve curves for E[Y | score].

*Scores.* A confident model gives many scores that differ from 1 by less than the spacing of floating-point numbers:
for Beta(2.78, 0.048) 18% of them in float64 and 47% in float32. Such a score was rounded to 1. It is
interval-censored, and its likelihood is the probability of the interval of all scores that round to it.

With :math:`t = 1 - c`, the interval of the score 1 is :math:`0 \le t \le h/2`, where :math:`h` is the spacing
of floats just below 1: :math:`h = 2^{-53}` in float64 and :math:`2^{-24}` in float32 (at the tie
:math:`t = h/2` rounding to even gives 1 as well). The next scores :math:`1 - kh` have the intervals
:math:`(k \pm \frac12) h`. For small k the density, proportional to :math:`t^{b - 1}`, varies over such an
interval, so the first `N_INTERVALS` scores are treated as intervals too. Beyond them the density is accurate enough.

*Curves.* A model has a link g and a transform t, each of log c, logflip c = log(1 - c) and logit c:

.. math:: g(p) = b_0 + b_1\, t(c),

and the paper fits four pairs, each with :math:`b_0` only, :math:`b_1` only, and both. Two facts simplify
the fits. The logflip link is the log link for the other class: :math:`\log(1 - p)` is the log of the
probability of a 0. A straight line is at most 0 between two points if it is
at most 0 at both, so that the constraint on p consists of two bounds for the log link: at the smallest and at
the largest covariate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln, digamma, polygamma

from truecal._lib.numeric import logistic_objective, maximise
from truecal._lib.types import FloatArray
from truecal.data.extremes import N_INTERVALS, Resolution, resolution_of
from truecal.exceptions import InputError
from truecal.results import Result

#: Parameters beyond these bounds count as infinite or zero: the likelihood has no maximum.
SMALLEST, LARGEST = 1e-6, 1e8

#: About thirty are needed; many more would mean that the grid moves along a plateau.
_MOST_GRIDS = 500

_KS_GROUPS = 10_000

_LEGENDRE_NODES, _LEGENDRE_WEIGHTS = np.polynomial.legendre.leggauss(20)
_LAGUERRE_NODES, _LAGUERRE_WEIGHTS = np.polynomial.laguerre.laggauss(24)


@dataclass(frozen=True)
class BetaFit(Result):
    """A Beta distribution fitted to scores.

    Attributes
    ----------
    a, b : float
        Parameters; the density is proportional to ``c**(a - 1) * (1 - c)**(b - 1)``.
    log_likelihood : float
        Log-likelihood at the parameters: probabilities of intervals, densities of points.
    n_at_zero, n_at_one : float
        Rows (or weight) with a score of exactly 0 or 1.
    resolution : Resolution or None
        Assumed rounding of the scores; None for the paper's recipe, which ignores it.
    converged : bool
        Whether the parameters are a maximum of the likelihood.
    message : str
        Problem with the fit; empty if there is none.
    information_se : tuple of float, or None
        Standard errors of `a` and `b` from the observed information, valid if the scores have a Beta
        distribution. The bootstrap of `fit_population` does not assume that. None without an interior maximum.
    """

    _omitted: ClassVar[tuple[str, ...]] = ("resolution",)

    a: float
    b: float
    log_likelihood: float
    n_at_zero: float
    n_at_one: float
    resolution: Resolution | None
    converged: bool
    message: str
    information_se: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class _Intervals:
    """Intervals near one end: logarithms of their smallest and largest distance from it, and their counts."""

    log_lower: FloatArray
    log_upper: FloatArray
    count: FloatArray


@dataclass(frozen=True, eq=False)
class CensoredScores:
    """Scores reduced to what the Beta likelihood needs: sums of log c and log(1 - c) over points, and intervals."""

    n: float
    log_score: float
    log_complement: float
    near_zero: _Intervals
    near_one: _Intervals


def censor(score: FloatArray, count: FloatArray, resolution: Resolution) -> CensoredScores:
    """Reduce grouped scores to sums over points and a few intervals at each end."""
    complement = 1 - score  # exact from 1/2 on, and below it never near 0
    low = (score <= N_INTERVALS * resolution.at_zero) & (score < 0.5)
    high = (complement <= N_INTERVALS * resolution.at_one) & (score >= 0.5)
    point = ~(low | high)
    return CensoredScores(
        n=float(count.sum()),
        log_score=float(count[point] @ np.log(score[point])),
        log_complement=float(count[point] @ np.log1p(-score[point])),
        near_zero=_intervals(score[low], count[low], resolution.at_zero),
        near_one=_intervals(complement[high], count[high], resolution.at_one),
    )


def _intervals(distance: FloatArray, count: FloatArray, step: float) -> _Intervals:
    # In logarithms, because half of the smallest float underflows.
    steps = distance / step
    lower = np.full_like(steps, -np.inf)
    lower[steps > 0.5] = np.log(steps[steps > 0.5] - 0.5)
    return _Intervals(lower + math.log(step), np.log(steps + 0.5) + math.log(step), count)


def _interval_terms(intervals: _Intervals, a: float, b: float) -> tuple[float, FloatArray, FloatArray]:
    r"""Return log-likelihood, gradient and Hessian of intervals near 1, without the factor 1/B(a, b).

    The probability of an interval is :math:`\int t^{b-1} (1-t)^{a-1} dt`, and its derivatives are the mean and
    covariance of :math:`(\log(1-t), \log t)` inside the interval; all come from one quadrature.
    """
    value, gradient, hessian = 0.0, np.zeros(2), np.zeros((2, 2))
    end = np.isneginf(intervals.log_lower)
    for chosen, nodes in ((~end, _inner_nodes), (end, _end_nodes)):
        if not chosen.any():
            continue
        columns = (intervals.log_lower, intervals.log_upper, intervals.count)
        low, high, rows = (column[chosen, np.newaxis] for column in columns)
        log_t, weight = nodes(low, high, b)
        log_s = np.log1p(-np.exp(log_t))
        weight = weight + (a - 1) * log_s
        top = weight.max(axis=1, keepdims=True)
        share = np.exp(weight - top)
        total = share.sum(axis=1, keepdims=True)
        share /= total
        value += float((rows * (top + np.log(total))).sum())
        means = [(share * term).sum(axis=1, keepdims=True) for term in (log_s, log_t)]
        gradient += [float((rows * mean).sum()) for mean in means]
        rest = (log_s - means[0], log_t - means[1])
        hessian += [[float((rows * share * u * v).sum()) for u in rest] for v in rest]
    return value, gradient, hessian


def _inner_nodes(low: FloatArray, high: FloatArray, b: float) -> tuple[FloatArray, FloatArray]:
    """Return nodes in log t, and the logarithms of their weights times t^b, by Gauss-Legendre."""
    log_t = (low + high) / 2 + (high - low) / 2 * _LEGENDRE_NODES
    return log_t, np.log((high - low) / 2) + np.log(_LEGENDRE_WEIGHTS) + b * log_t


def _end_nodes(low: FloatArray, high: FloatArray, b: float) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights like those of `_inner_nodes` for intervals that extend to t = 0.

    The upper part is split into four pieces, which are treated like other intervals. Below them either
    (1 - t)^(a - 1) is constant, so that -b log t is exponentially distributed and Gauss-Laguerre is exact, or b
    is so large that the remainder is negligible.
    """
    ends = [high - k * math.log(8) * min(1, 4 / b) for k in range(5)]
    pieces = [_inner_nodes(ends[k + 1], ends[k], b) for k in range(4)]
    last = ends[4]
    pieces.append((last - _LAGUERRE_NODES / b, b * last - math.log(b) + np.log(_LAGUERRE_WEIGHTS)))
    log_t, weight = (np.concatenate(arrays, axis=1) for arrays in zip(*pieces, strict=True))
    return log_t, weight


def log_likelihood(scores: CensoredScores, a: float, b: float) -> tuple[float, FloatArray, FloatArray]:
    """Return the Beta log-likelihood with its gradient and Hessian in (a, b)."""
    trigamma_a, trigamma_b, trigamma_ab = polygamma(1, [a, b, a + b])
    value = (a - 1) * scores.log_score + (b - 1) * scores.log_complement - scores.n * betaln(a, b)
    gradient = np.array([scores.log_score, scores.log_complement])
    gradient -= scores.n * (digamma([a, b]) - digamma(a + b))
    hessian = scores.n * (trigamma_ab - np.diag([trigamma_a, trigamma_b]))
    near_one = _interval_terms(scores.near_one, a, b)
    near_zero = _interval_terms(scores.near_zero, b, a)
    return (
        float(value + near_one[0] + near_zero[0]),
        gradient + near_one[1] + near_zero[1][::-1],
        hessian + near_one[2] + near_zero[2][::-1, ::-1],
    )


def fit_beta(score: FloatArray, count: FloatArray, dtype: np.dtype[Any]) -> BetaFit:
    r"""Fit Beta(a, b) to grouped scores by maximum likelihood, with rounded scores as intervals.

    .. math::

       \ell(a, b) = \sum_{\text{points}} \log\frac{c_i^{a-1} (1-c_i)^{b-1}}{B(a, b)}
                  + \sum_{\text{intervals}} \log P(\text{interval}_j)

    Newton's method in :math:`(\log a, \log b)` on sums that are computed once, so that the time hardly depends on n.
    `message` says why if there is no maximum, as when all scores are equal.
    """
    resolution = resolution_of(score, dtype)
    scores = censor(score, count, resolution)

    def objective(theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        ab = np.exp(theta)
        value, gradient, hessian = log_likelihood(scores, *ab)
        return value, ab * gradient, np.outer(ab, ab) * hessian + np.diag(ab * gradient)

    bounds = math.log(SMALLEST), math.log(LARGEST)
    top = maximise(objective, np.log(_moments(score, count)), lower=bounds[0], upper=bounds[1])
    a, b = np.exp(top.x).tolist()
    message = _problem(score, a, b, bool(top.at_bound.any()), top.converged)
    return BetaFit(
        a=a,
        b=b,
        log_likelihood=top.value,
        n_at_zero=_count_at(score, count, 0.0),
        n_at_one=_count_at(score, count, 1.0),
        resolution=resolution,
        converged=not message,
        message=message,
        information_se=None if message else _information_se(scores, a, b),
    )


def _moments(score: FloatArray, count: FloatArray) -> FloatArray:
    """Return the Beta of the same mean and variance, well inside the bounds, as a starting point."""
    mean = float(np.average(score, weights=count))
    variance = float(np.average((score - mean) ** 2, weights=count))
    size = mean * (1 - mean) / variance - 1 if variance > 0 else 1e4
    return np.clip(np.array([mean, 1 - mean]) * size, 1e-2, 1e4)


def _count_at(score: FloatArray, count: FloatArray, value: float) -> float:
    return float(count[score == value].sum())


def _problem(score: FloatArray, a: float, b: float, at_bound: bool, converged: bool) -> str:
    if not ((score > 0) & (score < 1)).any():
        return (
            "Beta: all scores are exactly 0 or 1. The likelihood rises without a maximum as a and b fall "
            "to 0. Such scores are atoms and have no Beta distribution."
        )
    if len(score) == 1:
        return f"Beta: all scores equal {score[0]:g}. The likelihood rises without a maximum as a and b grow."
    if at_bound:
        return f"Beta: the likelihood has no maximum. The search stopped at its bounds: a = {a:g}, b = {b:g}."
    if not converged:
        return f"Beta: the search did not converge; it stopped at a = {a:.6g}, b = {b:.6g}."
    return ""


def _information_se(scores: CensoredScores, a: float, b: float) -> tuple[float, float] | None:
    information = -log_likelihood(scores, a, b)[2]
    if np.linalg.eigvalsh(information)[0] <= 0:
        return None
    variance = np.diag(np.linalg.inv(information))
    return math.sqrt(variance[0]), math.sqrt(variance[1])


def fit_beta_as_paper(
    score: FloatArray, count: FloatArray, *, points: int = 11, contraction: float = 0.5
) -> BetaFit:
    """Fit Beta(a, b) by the recipe of Roelofs et al. (2022), Appendix A, step by step.

    All scores are shifted down by 1e-16 and treated as points. The log-likelihood is maximised over a grid of
    `points` x `points` on a in [0, 200], b in [0, 50]. The grid is contracted around its best point by the factor
    `contraction`, or only moved if that point is on its edge, until it is narrower than 1e-5. Scores below 1e-16
    have no logarithm after the shift and raise InputError. The theory page on fits shows how far its results are
    from a maximum of the likelihood.
    """
    shifted = score - 1e-16
    if shifted[0] <= 0:
        rows = count[shifted <= 0].sum()
        raise InputError(
            f"method='paper' shifts scores by 1e-16, after which {rows:g} scores are not positive",
            remedy="Use method='mle', which accepts scores of 0.",
        )
    n = float(count.sum())
    log_score, log_complement = float(count @ np.log(shifted)), float(count @ np.log(1 - shifted))
    largest = np.array([200.0, 50.0])
    lower, upper = np.zeros(2), largest
    converged = False
    for _ in range(_MOST_GRIDS):
        a, b = np.linspace(lower, upper, points).T
        a = a[:, np.newaxis]
        with np.errstate(invalid="ignore"):  # a = 0 or b = 0 gives inf - inf
            value = (a - 1) * log_score + (b - 1) * log_complement - n * betaln(a, b)
        index = np.unravel_index(np.nanargmax(value), value.shape)
        best = np.array([a[index[0], 0], b[index[1]]])
        width = upper - lower
        converged = bool((width < 1e-5).all())
        if converged:
            break
        inside = ((best > lower) | (lower == 0)) & ((best < upper) | (upper == largest))
        if inside.all():
            width = width * contraction
        lower, upper = np.maximum(best - width / 2, 0), np.minimum(best + width / 2, largest)
    at_bound = bool((best > largest - 1e-5).any() or (best < 1e-5).any())
    best_a, best_b = best.tolist()
    message = _problem(score, best_a, best_b, at_bound, converged)
    return BetaFit(
        a=best_a,
        b=best_b,
        log_likelihood=float(value[index]),
        n_at_zero=0.0,
        n_at_one=_count_at(score, count, 1.0),
        resolution=None,
        converged=not message,
        message=message,
    )


def ks_distance(score: FloatArray, count: FloatArray, dtype: np.dtype[Any], a: float, b: float) -> float:
    r"""Return the Kolmogorov-Smirnov distance between scores and Beta(a, b) rounded as the scores are.

    .. math:: D = \sup_c |F_n(c) - F(c)|

    A score of exactly 1 represents its whole interval. Otherwise the rows at 1 would count as misfit although
    the rounded Beta has as many. There is no p-value, because the parameters were estimated from the same data.
    Above 10,000 groups only 10,000 are evaluated, evenly spaced by rows; the distance is then exact to 1e-4.
    """
    resolution = resolution_of(score, dtype)
    empirical = np.concatenate(([0.0], np.cumsum(count) / count.sum()))
    chosen = np.arange(len(score))
    if len(score) > _KS_GROUPS:  # the incomplete Beta function takes microseconds
        chosen = np.unique(empirical[1:-1].searchsorted(np.linspace(0, 1, _KS_GROUPS)))
    score = score[chosen]
    right = score >= 0.5
    # From the nearer end: 1 - c is exact from 1/2 on, and keeps the digits that c has lost near 1.
    distance = np.where(right, 1 - score, score)
    step = np.where(right, resolution.at_one, resolution.at_zero)
    half = np.where(distance <= N_INTERVALS * step, step / 2, 0.0)
    first, second = np.where(right, b, a), np.where(right, a, b)
    inner = betainc(first, second, np.maximum(distance - half, 0))
    outer = inner.copy()
    interval = half > 0
    outer[interval] = betainc(first[interval], second[interval], distance[interval] + half[interval])
    before, after = np.where(right, 1 - outer, inner), np.where(right, 1 - inner, outer)
    return float(max(np.abs(empirical[chosen] - before).max(), np.abs(empirical[chosen + 1] - after).max()))


#: The pairs of link and transform in Table 3 of the paper.
PAIRS = (("logflip", "logflip"), ("logit", "logflip"), ("logit", "logit"), ("log", "log"))

#: Which coefficients a model has: (b0, b1).
TERMS = ((True, True), (False, True), (True, False))

#: With log1p, so that no digits are lost near 0 and 1.
TRANSFORMS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "log": np.log,
    "logflip": lambda score: np.log1p(-score),
    "logit": lambda score: np.log(score) - np.log1p(-score),
}


def model_name(link: str, transform: str, has_b0: bool, has_b1: bool) -> str:
    """Return the name of a model as in the paper: link, transform and coefficients."""
    return "_".join([link, transform, *["b0"] * has_b0, *["b1"] * has_b1])


@dataclass(frozen=True)
class GLMFit:
    """One fitted model of E[Y | score]; a coefficient is None where the model has no such term.

    If the likelihood has no finite and unique maximum, `message` says why, and `log_likelihood` is the upper bound.
    `boundary`: at the maximum p reaches 0 or 1 at the smallest or largest score.
    """

    link: str
    transform: str
    b0: float | None
    b1: float | None
    log_likelihood: float
    boundary: bool
    message: str

    @property
    def converged(self) -> bool:
        """Whether the coefficients are finite, unique and a maximum of the likelihood."""
        return not self.message

    @property
    def name(self) -> str:
        """Name as in the paper: link, transform and coefficients."""
        return model_name(self.link, self.transform, self.b0 is not None, self.b1 is not None)

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients, one or two."""
        return (self.b0 is not None) + (self.b1 is not None)

    @property
    def aic(self) -> float:
        """Akaike's information criterion; smaller is better."""
        return 2 * self.n_coefficients - 2 * self.log_likelihood


def fit_glms(score: FloatArray, count: FloatArray, positives: FloatArray) -> tuple[GLMFit, ...]:
    """Fit all twelve models to the same rows, so that their AICs are comparable; by `PAIRS`, then by `TERMS`."""
    covariates = {name: transform(score) for name, transform in TRANSFORMS.items()}
    return tuple(
        fit_glm(link, transform, terms, covariates[transform], count, positives)
        for link, transform in PAIRS
        for terms in TERMS
    )


def fit_glm(
    link: str,
    transform: str,
    terms: tuple[bool, bool],
    covariate: FloatArray,
    count: FloatArray,
    positives: FloatArray,
) -> GLMFit:
    """Fit one model to grouped rows; `covariate` is the transformed score.

    Newton's method, in (b0, b1) for the logit link. For the log and logflip links the parameters are the values
    of the line at the smallest and largest covariate, which must be at most 0.
    """
    hits, misses = positives, count - positives
    if link == "logflip":
        hits, misses = misses, hits
    has_b0, has_b1 = terms
    level = _constant(link, float(hits.sum()), float(misses.sum()))
    if not has_b1:
        line = level
    elif has_b0 and covariate[0] == covariate[-1]:
        line = replace(level, problem="b0 and b1 are not identified with a single distinct score")
    elif link == "logit":
        line = _logit_line(covariate, hits, misses, level.b0 if has_b0 else None)
    else:
        line = _log_line(covariate, hits, misses, has_b0)
    b0, b1 = line.b0 if has_b0 else None, line.b1 if has_b1 else None
    return GLMFit(link, transform, b0, b1, line.log_likelihood, line.boundary, line.problem)


@dataclass(frozen=True)
class _Line:
    b0: float
    b1: float
    log_likelihood: float
    boundary: bool = False
    problem: str = ""


#: Replaces infinity where a coefficient diverges: p is then 0 or 1 to machine precision.
_FAR = 53 * math.log(2)

_ONE_CLASS = "all rows have the same label, so the coefficients grow without bound"
_SEPARATED = "the score separates the labels, so the coefficients grow without bound"
_NOT_CONVERGED = "the search did not converge"


def _constant(link: str, hits: float, misses: float) -> _Line:
    """Return the model without a slope, which has a closed form: p is the mean label."""
    if hits > 0 and misses > 0:
        n = hits + misses
        value = hits * math.log(hits / n) + misses * math.log(misses / n)
        return _Line(math.log(hits / misses) if link == "logit" else math.log(hits / n), 0.0, value)
    if hits > 0 and link != "logit":
        return _Line(0.0, 0.0, 0.0, boundary=True)  # log p = 0 is finite, and the maximum
    return _Line(_FAR if hits > 0 else -_FAR, 0.0, 0.0, problem=_ONE_CLASS)


def _logit_line(x: FloatArray, hits: FloatArray, misses: FloatArray, level: float | None) -> _Line:
    """Return the line logit p = b0 + b1 x, from b0 = `level`; without an intercept if that is None."""
    intercept = level is not None
    basis = np.stack([np.ones_like(x), x] if intercept else [x])
    objective = logistic_objective(basis.T, 0.0, hits + misses, hits)
    top = maximise(objective, np.array([0.0] if level is None else [level, 0.0]))
    b0, b1 = top.x.tolist() if intercept else (0.0, float(top.x[0]))
    problem = _why_logit_diverges(x, hits > 0, misses > 0, intercept)
    return _Line(b0, b1, top.value, problem=problem or ("" if top.converged else _NOT_CONVERGED))


def _why_logit_diverges(
    x: FloatArray, hit: NDArray[np.bool_], miss: NDArray[np.bool_], intercept: bool
) -> str:
    """Return a problem if some line separates the labels: any multiple of it then has a higher likelihood."""
    if not intercept:
        right = hit & ~miss & (x > 0) | miss & ~hit & (x < 0) | (x == 0)
        wrong = hit & ~miss & (x < 0) | miss & ~hit & (x > 0) | (x == 0)
        return _SEPARATED if right.all() or wrong.all() else ""
    if not (hit.any() and miss.any()):
        return _ONE_CLASS
    of_hits, of_misses = x[hit], x[miss]
    apart = of_hits.min() >= of_misses.max() or of_misses.min() >= of_hits.max()
    return _SEPARATED if apart else ""


def _log_line(x: FloatArray, hits: FloatArray, misses: FloatArray, intercept: bool) -> _Line:
    """Return the line log p = b0 + b1 x, for x < 0, that is at most 0 at every row."""
    if not misses.any():
        return _Line(0.0, 0.0, 0.0, boundary=True)
    # The negative of the line is a convex combination of its ends, which must be non-negative.
    if intercept:
        share = (x - x[0]) / (x[-1] - x[0])
        basis = np.stack([1 - share, share])
    else:
        farthest = float(x.min())
        basis = (x / farthest)[np.newaxis]
    linear = basis @ hits
    missed = misses > 0  # elsewhere log(1 - p) has no weight, and the line may reach 0
    basis_missed, weight = basis[:, missed], misses[missed]

    def objective(theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        minus_log_p = theta @ basis_missed
        with np.errstate(divide="ignore", invalid="ignore"):  # p = 1 has likelihood 0 for a miss
            p, not_p = np.exp(-minus_log_p), -np.expm1(-minus_log_p)
            value = weight @ np.log(not_p) - theta @ linear
            gradient = basis_missed @ (weight * p / not_p) - linear
            hessian = -(basis_missed * (weight * p / not_p**2)) @ basis_missed.T
        return float(value), gradient, hessian

    problem = _why_log_diverges(basis, hits > 0)
    level = -_constant("log", max(float(hits.sum()), 0.5), float(misses.sum())).b0
    top = maximise(objective, np.full(len(basis), level) / basis.mean(axis=1).sum(), lower=0.0)
    if intercept:
        b1 = float((top.x[0] - top.x[1]) / (x[-1] - x[0]))
        b0 = float(-top.x[0] - b1 * x[0])
    else:
        b0, b1 = 0.0, float(-top.x[0] / farthest)
    problem = problem or ("" if top.converged else _NOT_CONVERGED)
    return _Line(b0, b1, top.value, boundary=bool(top.at_bound.any()), problem=problem)


def _why_log_diverges(basis: FloatArray, hit: NDArray[np.bool_]) -> str:
    """Return a problem if an end of the line can go to minus infinity without affecting any hit."""
    if not hit.any():
        return _ONE_CLASS
    return _SEPARATED if (basis[:, hit] == 0).all(axis=1).any() else ""
