r"""Maximum-likelihood fit of a Beta distribution to scores, and the paper's own recipe for it.

A confident model gives many scores that differ from 1 by less than the spacing of floating-point numbers:
for Beta(2.78, 0.048) 18% of them in float64 and 47% in float32. Such a score was rounded to 1. It is
interval-censored, and its likelihood is the probability of the interval of all scores that round to it.

With :math:`t = 1 - c`, the interval of the score 1 is :math:`0 \le t \le h/2`, where :math:`h` is the spacing
of floats just below 1: :math:`h = 2^{-53}` in float64 and :math:`2^{-24}` in float32 (at the tie
:math:`t = h/2` rounding to even gives 1 as well). The next scores :math:`1 - kh` have the intervals
:math:`(k \pm \frac12) h`. For small k the density, proportional to :math:`t^{b - 1}`, varies over such an
interval, so the first `N_INTERVALS` scores are treated as intervals too. Beyond them the density is accurate enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import betainc, betaln, digamma, polygamma

from truecal._lib.newton import maximise
from truecal._lib.types import FloatArray
from truecal.data.resolution import N_INTERVALS, Resolution, resolution_of
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
    """Scores reduced to what the Beta likelihood needs.

    Attributes
    ----------
    n : float
        Number of rows.
    log_score, log_complement : float
        Sums of log c and log(1 - c) over the rows that are points.
    near_zero, near_one : _Intervals
        The other rows, as intervals.
    """

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
    for part, nodes in ((~end, _inner_nodes), (end, _end_nodes)):
        if not part.any():
            continue
        log_t, weight = nodes(intervals.log_lower[part, np.newaxis], intervals.log_upper[part, np.newaxis], b)
        rows = intervals.count[part, np.newaxis]
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
    """Return the same for intervals that extend to t = 0.

    The upper part is split into four pieces, which are treated like other intervals. Below them either
    (1 - t)^(a - 1) is constant, so that -b log t is exponentially distributed and Gauss-Laguerre is exact, or b
    is so large that the remainder is negligible.
    """
    ends = [high - k * math.log(8) * min(1, 4 / b) for k in range(5)]
    pieces = [_inner_nodes(ends[k + 1], ends[k], b) for k in range(4)]
    last = ends[4]
    pieces.append((last - _LAGUERRE_NODES / b, b * last - math.log(b) + np.log(_LAGUERRE_WEIGHTS)))
    log_t, weight = (np.concatenate(part, axis=1) for part in zip(*pieces, strict=True))
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

    Parameters
    ----------
    score : ndarray of shape (n_groups,)
        Distinct scores in [0, 1], ascending.
    count : ndarray of shape (n_groups,)
        Rows, or weight, of each.
    dtype : numpy.dtype
        Original type of the scores.

    Returns
    -------
    BetaFit
        `converged` and `message` tell whether there is a maximum; there is none if all scores are equal.

    Examples
    --------
    >>> score = np.sort(np.random.default_rng(0).beta(2.0, 3.0, size=20_000))
    >>> fit = fit_beta(score, np.ones_like(score), score.dtype)
    >>> f"{fit.a:.2f} {fit.b:.2f}", fit.converged
    ('2.01 3.01', True)
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


def fit_beta_as_paper(score: FloatArray, count: FloatArray) -> BetaFit:
    r"""Fit Beta(a, b) by the recipe of Roelofs et al. (2022), Appendix A, step by step.

    All scores are shifted down by 1e-16 and treated as points. The log-likelihood is maximised over an 11 x 11
    grid on a in [0, 200], b in [0, 50]. The grid is halved around its best point, or only moved if that point
    is on its edge, until it is narrower than 1e-5. Scores below 1e-16 have no logarithm after the shift and
    raise InputError.

    Notes
    -----
    The nearest float64 to 1 - 1e-16 is 1 - 2^-53, so a score of 1 becomes a point at t = 1.1e-16. All that is
    known is that t is below 2^-54 (float64) or 2^-25 (float32). The mean of log t over that interval is
    log(2^-54) - 1/b, which is -58 for b = 0.048, whereas the recipe uses -37: for float64 scores it
    underestimates the skew. For float32 the mean is -17 - 1/b, and -37 is too low once b > 0.05. From samples of
    Beta(2.7752, 0.0478) the recipe gives (3.35, 0.059) in float64 and (2.87, 0.050) in float32.

    On the four public sets of test outputs (float32) it does not give the printed parameters either. It comes
    close if all scores within 2^-20 of 1 are set to 1, as a softmax exp(x - log sum exp x) in float32 would
    round them, because near 1 it has the resolution of the logits. That the paper's scores were rounded in this
    way is inferred from this table:

    ================  ================  ================  ================
    data set          recipe            rounded           printed
    ================  ================  ================  ================
    ResNet-110 C10    (3.4005, 0.0606)  (2.7439, 0.0472)  (2.7752, 0.0478)
    DenseNet-40 C10   (2.1097, 0.0429)  (1.9854, 0.0398)  (1.9824, 0.0397)
    ResNet-110 C100   (1.3556, 0.1307)  (1.1859, 0.1085)  (1.1823, 0.1081)
    DenseNet-40 C100  (1.2194, 0.0960)  (1.1128, 0.0843)  (1.0805, 0.0808)
    ================  ================  ================  ================

    References
    ----------
    R. Roelofs, N. Cain, J. Shlens, M. C. Mozer, "Mitigating Bias in Calibration Error Estimation",
    AISTATS 2022, Appendix A.1.

    Examples
    --------
    >>> score = np.sort(np.random.default_rng(0).beta(2.0, 3.0, size=20_000))
    >>> fit = fit_beta_as_paper(score, np.ones_like(score))
    >>> f"{fit.a:.2f} {fit.b:.2f}", fit.converged
    ('2.01 3.01', True)
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
        a, b = np.linspace(lower, upper, 11).T
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
            width = width / 2
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

    Examples
    --------
    >>> score = np.array([0.25, 0.5, 0.75])
    >>> ks_distance(score, np.ones(3), score.dtype, 1.0, 1.0)
    0.25
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
