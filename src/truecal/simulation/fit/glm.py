r"""Maximum-likelihood fits of the paper's twelve generalised linear models for E[Y | score].

A model has a link g and a transform t, each of log c, logflip c = log(1 - c) and logit c:

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

import numpy as np
from numpy.typing import NDArray

from truecal._lib.newton import maximise
from truecal._lib.types import FloatArray

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


@dataclass(frozen=True)
class GLMFit:
    """One fitted model of E[Y | score].

    Attributes
    ----------
    link, transform : str
        Of ``"log"``, ``"logflip"`` and ``"logit"``.
    b0, b1 : float or None
        Coefficients; None where the model has no such term.
    log_likelihood : float
        Log-likelihood at the coefficients; where there is no maximum, its upper bound.
    converged : bool
        Whether the coefficients are finite, unique and a maximum of the likelihood.
    boundary : bool
        Whether the maximum lies where p reaches 0 or 1 at the smallest or largest score.
    message : str
        Problem with the fit; empty if there is none.
    """

    link: str
    transform: str
    b0: float | None
    b1: float | None
    log_likelihood: float
    converged: bool
    boundary: bool
    message: str

    @property
    def name(self) -> str:
        """Name as in the paper: link, transform and coefficients."""
        terms = ["b0"] * (self.b0 is not None) + ["b1"] * (self.b1 is not None)
        return "_".join([self.link, self.transform, *terms])

    @property
    def n_coefficients(self) -> int:
        """Number of coefficients, one or two."""
        return (self.b0 is not None) + (self.b1 is not None)

    @property
    def aic(self) -> float:
        """Akaike's information criterion; smaller is better."""
        return 2 * self.n_coefficients - 2 * self.log_likelihood


def fit_glms(score: FloatArray, count: FloatArray, positives: FloatArray) -> tuple[GLMFit, ...]:
    """Fit all twelve models to the same rows, so that their AICs are comparable.

    Parameters
    ----------
    score : ndarray of shape (n_groups,)
        Distinct scores strictly between 0 and 1, ascending.
    count, positives : ndarray of shape (n_groups,)
        Rows, or weight, of each group, and those of them with label 1.

    Returns
    -------
    tuple of GLMFit
        Ordered by `PAIRS`, then by `TERMS`.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> score = np.sort(rng.random(20_000))
    >>> positives = (rng.random(20_000) < score**2).astype(float)  # log p = 2 log c
    >>> fits = fit_glms(score, np.ones(20_000), positives)
    >>> best = min(fits, key=lambda fit: fit.aic)
    >>> best.name, f"{best.b1:.2f}"
    ('log_log_b1', '2.00')
    """
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
    if not has_b1:
        line = _constant(link, float(hits.sum()), float(misses.sum()))
    elif has_b0 and covariate[0] == covariate[-1]:
        level = _constant(link, float(hits.sum()), float(misses.sum()))
        line = replace(level, problem="b0 and b1 are not identified with a single distinct score")
    elif link == "logit":
        line = _logit_line(covariate, hits, misses, has_b0)
    else:
        line = _log_line(covariate, hits, misses, has_b0)
    return GLMFit(
        link=link,
        transform=transform,
        b0=line.b0 if has_b0 else None,
        b1=line.b1 if has_b1 else None,
        log_likelihood=line.log_likelihood,
        converged=not line.problem,
        boundary=line.boundary,
        message=line.problem,
    )


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


def _logit_line(x: FloatArray, hits: FloatArray, misses: FloatArray, intercept: bool) -> _Line:
    basis = np.stack([np.ones_like(x), x] if intercept else [x])
    count = hits + misses
    linear = basis @ hits

    def objective(theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        eta = theta @ basis
        small = np.exp(-np.abs(eta))  # does not overflow
        p = np.where(eta >= 0, 1.0, small) / (1 + small)
        loss = count @ np.log1p(small) + hits @ np.maximum(-eta, 0) + misses @ np.maximum(eta, 0)
        return float(-loss), linear - basis @ (count * p), -(basis * (count * p * (1 - p))) @ basis.T

    start = np.zeros(len(basis))
    if intercept:
        start[0] = _constant("logit", float(hits.sum()), float(misses.sum())).b0
    top = maximise(objective, start)
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
