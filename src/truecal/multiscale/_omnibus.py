r"""One test of perfect calibration against level shifts, slopes, shapes, waves, steps and local errors alike.

Every component is a sum of squares of linear functions of the residuals :math:`r = f - y`:

- **level**: the total, :math:`(\sum r)^2`;
- **spread**: :math:`(\sum (1 - 2f) r)^2`, Spiegelhalter's statistic;
- **logistic**: the score test of intercept and slope on the logit scale (Cox 1958), 2 degrees of freedom;
- **smooth**: Neyman's smooth tests with 4, 8 and 16 terms. The terms are 1, :math:`\mathrm{logit} f`,
  :math:`\ln f(1-f)` and cosines in information time :math:`t(f) = \sum_{f_i \le f} v_i / \sum v_i`, made orthonormal
  under the weight :math:`v = f(1-f) + 1/n`, the variance of a label and one row's worth more in all;
- **waves**: terms 3 to 8 of these, all but intercept and slope, 6 degrees of freedom;
- **bins**: :math:`\sum_k R_k^2 / (W_k + 1/2)` over :math:`2^j` bins of equal mass, :math:`W_k = \sum f(1-f)`, for each
  level j from 2 until bins have six rows, and if scores repeat with every distinct score as a bin.

Each has a known mean and variance under the null hypothesis, so that a scaled :math:`\chi^2` gives it an approximate
p-value :math:`p_c`. The statistic is the weighted mean

.. math:: T = \sum_c w_c\, p_c^{-1/2} ,

which one small p-value suffices to make large. Its own p-value comes from resampling and is exact for independent rows:
the approximations only decide how much each component counts.

References: Spiegelhalter (1986), Statistics in Medicine 5, 421-433; Cox (1958), Biometrika 45, 562-565; Neyman (1937),
Skandinavisk Aktuarietidskrift 20, 149-199; Ingster (1987), Theory of Probability and its Applications 31, 333-337;
Lee, Huang, Hassani, Dobriban (2023), T-Cal, Journal of Machine Learning Research 24(335).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from truecal._lib.types import FloatArray
from truecal.data.extremes import shown_by
from truecal.multiscale import _constants as const
from truecal.multiscale._null import ClusterNull, JointNull, Null
from truecal.multiscale._units import place_of
from truecal.results import Result

_NESTED = {1: "level", 2: "logistic"}


@dataclass(frozen=True)
class Component(Result):
    """Result of one component of the test.

    Attributes
    ----------
    family : {"level", "spread", "logistic", "smooth", "waves", "bins"}
        Which kind.
    terms : int
        Number of terms, or of bins.
    pvalue : float
        Its approximate p-value, if it were the only one.
    weight : float
        Its weight in the statistic.
    """

    family: str
    terms: int
    pvalue: float
    weight: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of the omnibus test.

    Attributes
    ----------
    statistic : float
        T; at least about 1, infinite if a score of exactly 0 or 1 is contradicted by a label.
    pvalue : float
        Share of draws, the data included, with a statistic at least as large; ties at random.
    pvalue_range : tuple of float
        The p-value with all ties below, and with all ties above.
    null : ndarray
        The statistic on the draws.
    component : str
        The part of the curve that contributes most, in words.
    components : tuple of Component
        All components.
    notes : tuple of str
        What a reader of the numbers must know.
    too_little : str
        Why the data hold too little information for a test; empty if they hold enough.
    doubt : float
        See `truecal.multiscale._null.FlipScale`; 0 without clusters.
    """

    statistic: float
    pvalue: float
    pvalue_range: tuple[float, float]
    null: FloatArray
    component: str
    components: tuple[Component, ...]
    notes: tuple[str, ...] = ()
    too_little: str = ""
    doubt: float = 0.0


class Omnibus:
    """The statistic T for given scores: everything that does not depend on the labels is computed once.

    Parameters
    ----------
    null : Null
        Cell sums, with what is known of them under perfect calibration.
    """

    def __init__(self, null: Null) -> None:
        self.null = null
        self._spread = 1 - 2 * null.score[:, np.newaxis]
        # One row's worth of noise, spread over all, limits what a single surprising label near 0 or 1 can do.
        noise = np.where(null.information > 0, null.information + null.mass / null.mass.sum(), 0.0)
        # Labels that are not the truth vary also at scores of 0 and 1, which then count as what the rows can show.
        end = shown_by((round(null.mass.sum()),))
        score = np.select([null.score <= 0, null.score >= 1], [end, 1 - end], null.score)
        self._terms = _orthonormal_terms(score, noise, max(const.SMOOTH_TERMS))
        n_terms = self._terms.shape[1]
        enough = [c for c in (1, 2, *const.SMOOTH_TERMS) if c <= n_terms and null.resolves(None, c)]
        self._parts = [(_NESTED.get(count, "smooth"), slice(0, count)) for count in enough]
        if const.WAVE_TERMS.stop in enough:
            self._parts.append(("waves", const.WAVE_TERMS))
        self._levels = _levels(null) if enough else []
        rows = self._moments()
        self._components = [row for row in rows if row[3] > 0]
        self._varies = np.array([row[3] > 0 for row in rows])
        families = [row[0] for row in self._components]
        weight = np.array([const.TEST_WEIGHTS[family] / families.count(family) for family in families])
        self._weight = weight / weight.sum() if families else weight
        self._mean = np.array([row[2] for row in self._components])
        degrees = 2 * self._mean**2 / np.array([row[3] for row in self._components])
        self._degrees = np.maximum(degrees, const.FEWEST_DEGREES)

    def _moments(self) -> list[tuple[str, int, float, float]]:
        """Return family, number of terms, and mean and variance of the sum of squares, for each component."""
        null = self.null
        smooth = [
            (family, part.stop - part.start, *null.moments(self._terms[:, part]))
            for family, part in self._parts
        ]
        bins = [
            ("bins", len(level.scale), *null.bin_moments(level.start, level.scale)) for level in self._levels
        ]
        return [*smooth, *bins, ("spread", 1, *null.moments(self._spread))]

    def _squares(self, residual: FloatArray) -> FloatArray:
        """Return the sum of squares of each component in the same order, of shape (draws, components)."""
        squares = np.square(_product(residual, self._terms))
        found = [squares[:, part].sum(axis=1) for _, part in self._parts]
        sums, by_level = residual, []
        for level in reversed(self._levels):  # from fine to coarse, each from the sums of the one before
            sums = np.add.reduceat(sums, level.start_among_finer, axis=1)
            by_level.append(np.vecdot(np.square(sums), level.scale))
        found += by_level[::-1]
        found.append(np.square(np.vecdot(residual, self._spread[:, 0])))
        return np.stack(found, axis=1)[:, self._varies]

    def pvalues(self, residual: FloatArray) -> FloatArray:
        """Return the approximate p-value of each component, of shape (draws, components)."""
        # Rounding residue of cancelling sums must not separate draws with the same labels.
        # Next to scores of 0 a mean can be so small that the ratio is infinite.
        with np.errstate(over="ignore"):
            relative = np.maximum(self._squares(residual) / self._mean, 1e-9)
        return np.asarray(
            np.maximum(scipy.special.chdtrc(self._degrees, relative * self._degrees), const.SMALLEST_PVALUE)
        )

    def statistic(self, residual: FloatArray) -> FloatArray:
        """Return T for each draw."""
        found = np.asarray(np.vecdot(self.pvalues(residual) ** -0.5, self._weight))
        if not isinstance(self.null, ClusterNull):  # random signs keep impossible labels
            found[self._impossible(residual)] = math.inf
        return found

    def _impossible(self, residual: FloatArray) -> NDArray[np.bool_]:
        """Return which draws have labels that a score of exactly 0 or 1 rules out."""
        if not self.null.binary:
            return np.zeros(len(residual), dtype=np.bool_)
        certain = np.flatnonzero(self.null.information == 0)
        return np.asarray((np.abs(residual[:, certain]) > 1e-9 * self.null.mass[certain]).any(axis=1))

    @cached_property
    def observed(self) -> float:
        """T of the data; infinite if a label contradicts a score of exactly 0 or 1."""
        residual = self.null.residual[np.newaxis]
        return math.inf if self._impossible(residual)[0] else float(self.statistic(residual)[0])

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """What each component says about the data."""
        pvalues = self.pvalues(self.null.residual[np.newaxis])[0]
        return tuple(
            Component(family, terms, float(pvalue), float(weight))
            for (family, terms, *_), pvalue, weight in zip(
                self._components, pvalues, self._weight, strict=True
            )
        )

    def diagnosis(self) -> str:
        """Return in words which component counts most in T."""
        if math.isinf(self.observed):
            return "a score of exactly 0 or 1"
        if not self.components:
            return "none"
        best = max(self.components, key=lambda one: one.weight / math.sqrt(one.pvalue))
        score, residual = self.null.score, self.null.residual
        if np.ptp(score) == 0:  # one score has a level, and no slope
            return "a level shift"
        coefficient = residual @ self._terms
        if best.family == "bins":
            level = next(level for level in self._levels if len(level.scale) == best.terms)
            worst = int(np.argmax(np.add.reduceat(residual, level.start) ** 2 * level.scale))
            middle = np.add.reduceat(score * self.null.mass, level.start) / np.add.reduceat(
                self.null.mass, level.start
            )
            return f"local deviations around {middle[worst]:.2g}"
        if best.family == "smooth" and best.terms == const.SMOOTH_TERMS[0]:
            return "the shape of the curve"
        if best.family in ("smooth", "waves"):
            chosen = const.WAVE_TERMS if best.family == "waves" else slice(best.terms)
            fitted = np.abs(self._terms[:, chosen] @ coefficient[chosen]) * score * (1 - score)
            return f"local deviations around {score[int(np.argmax(fitted))]:.2g}"
        if best.family == "logistic":
            return "a level shift" if coefficient[0] ** 2 > coefficient[1] ** 2 else "the slope"
        return {"level": "a level shift", "spread": "the slope"}[best.family]


def omnibus_test(null: Null, n_resamples: int, rng: np.random.Generator) -> Outcome:
    """Test the hypothesis that every score is the probability that it states.

    Examples
    --------
    >>> from truecal.multiscale._null import LabelNull
    >>> score = np.linspace(0.01, 0.99, 99)
    >>> labels = (score > 0.5).astype(float)
    >>> outcome = omnibus_test(LabelNull(score, np.ones(99), labels), 199, np.random.default_rng(0))
    >>> outcome.pvalue, outcome.component
    (0.005, 'local deviations around 0.38')
    """
    omnibus = Omnibus(null)
    drawn = np.concatenate([omnibus.statistic(block) for block in null.draws(n_resamples, rng)])
    return _outcome(omnibus, drawn, rng)


def joint_test(
    joint: JointNull, n_resamples: int, rng: np.random.Generator
) -> tuple[Outcome, list[Outcome], list[float]]:
    """Test several classes together and one by one; return both, and the adjusted p-values of the classes.

    The joint statistic is the mean of T over the classes. The p-value of a class is adjusted by comparing its T with
    the largest T of all classes in each draw (Westfall and Young 1993). Classes whose clusters hold too little
    information for a test take no part in either.
    """
    tests = [Omnibus(null) for null in joint.nulls]
    blocks = [
        [test.statistic(block) for test, block in zip(tests, blocks, strict=True)]
        for blocks in joint.draws(n_resamples, rng)
    ]
    drawn = np.concatenate([np.stack(block) for block in blocks], axis=1)
    observed = [test.observed for test in tests]
    parts = [_outcome(test, values, rng) for test, values in zip(tests, drawn, strict=True)]
    tested = np.array([not outcome.too_little for outcome in parts])
    chosen = tested if tested.any() else ~tested
    mean, mean_drawn = float(np.mean(np.array(observed)[chosen])), drawn[chosen].mean(axis=0)
    largest = drawn[chosen].max(axis=0)
    pvalue, bounds = rank_pvalue(mean, mean_drawn, rng)
    reason = "" if tested.any() else parts[0].too_little
    whole = Outcome(mean, pvalue, bounds, mean_drawn, "", (), parts[0].notes, reason)
    adjusted = [
        max(rank_pvalue(one, largest, rng)[0], outcome.pvalue)
        for one, outcome in zip(observed, parts, strict=True)
    ]
    return whole, parts, adjusted


def _outcome(omnibus: Omnibus, drawn: FloatArray, rng: np.random.Generator) -> Outcome:
    null = omnibus.null
    pvalue, bounds = rank_pvalue(omnibus.observed, drawn, rng)
    reason = null.scale.reason(pvalue)
    notes = () if reason else null.notes
    found = omnibus.diagnosis(), omnibus.components
    return Outcome(omnibus.observed, pvalue, bounds, drawn, *found, notes, reason, null.scale.doubt)


def rank_pvalue(
    observed: float, drawn: FloatArray, rng: np.random.Generator, rounding: float | None = None
) -> tuple[float, tuple[float, float]]:
    """Return the p-value of a statistic among draws, with random ties, and its range over all orders of the ties.

    If more than half of the draws tie with the data, the data can say nothing, and all ties are counted.
    """
    if math.isinf(observed):
        above = tied = 0
    else:
        rounding = 1e-9 * abs(observed) if rounding is None else rounding
        above = int(np.count_nonzero(drawn > observed + rounding))
        tied = int(np.count_nonzero(np.abs(drawn - observed) <= rounding))
    counted = tied if 2 * tied > len(drawn) else int(rng.integers(tied, endpoint=True))
    total = 1 + len(drawn)
    return (1 + above + counted) / total, ((1 + above) / total, (1 + above + tied) / total)


def tail_pvalue(statistic: float, drawn: FloatArray, pvalue: float) -> float:
    """Return a p-value that is extrapolated beyond the draws, if fewer than ten of them reach the statistic.

    The reciprocal roots of p-values have a tail of index 2, and so has T if they are exact. As they are approximate
    the index 1.65 is used, which was conservative down to p = 0.0005 for n from 50 to 20,000 and eight kinds of scores.
    """
    if len(drawn) < 2 * const.TAIL_DRAWS or (drawn >= statistic).sum() >= const.TAIL_DRAWS:
        return pvalue
    start = float(np.partition(drawn, -const.TAIL_DRAWS)[-const.TAIL_DRAWS])
    share = const.TAIL_DRAWS / (len(drawn) + 1)
    return min(pvalue, float(share * (start / statistic) ** const.TAIL_INDEX))


@dataclass(frozen=True, eq=False)
class _Level:
    """A partition of the cells into bins: where each begins, also among the bins of the next finer level."""

    start: NDArray[np.intp]
    start_among_finer: NDArray[np.intp]
    scale: FloatArray


def _levels(null: Null) -> list[_Level]:
    """Return the levels of bins from coarse to fine; a level with the same bins as the one before is left out."""
    total, n_cells = float(null.mass.sum()), len(null.score)
    rank = (np.cumsum(null.mass) - null.mass / 2) / total
    finest = min(const.MOST_TEST_LEVELS, max(2, math.floor(math.log2(max(total, 1) / const.ROWS_PER_BIN))))
    starts = [
        np.flatnonzero(np.diff(place_of(rank, null.score, 2**level), prepend=-1))
        for level in range(2, finest + 1)
    ]
    if n_cells <= total / 2:
        starts.append(np.arange(n_cells))  # scores repeat: every one can be its own bin
    kept: list[NDArray[np.intp]] = []
    for start in starts:
        if len(start) > (len(kept[-1]) if kept else 1) and null.resolves(start, len(start)):
            kept.append(start)
    finer = [*kept[1:], np.arange(n_cells)]
    return [
        _Level(start, np.searchsorted(inner, start), 1 / null.bin_noise(start))
        for start, inner in zip(kept, finer, strict=False)
    ]


def _product(residual: FloatArray, terms: FloatArray) -> FloatArray:
    """Return the products of draws with terms, in pieces that BLAS does not share among threads.

    Threads would not make such a narrow product faster; they would only wait for each other.
    """
    product, step = np.empty((len(residual), terms.shape[1])), max(1, const.ONE_THREAD // max(terms.size, 1))
    for first in range(0, len(residual), step):
        piece = slice(first, first + step)
        np.matmul(residual[piece], terms, out=product[piece])
    return product


def _orthonormal_terms(score: FloatArray, information: FloatArray, most: int) -> FloatArray:
    """Return smooth terms as columns, orthonormal under the information, without those that depend on others."""
    varies = information > 0
    if not varies.any():
        return np.zeros((len(score), 0))
    f, v = score[varies], information[varies]
    time = (np.cumsum(v) - v / 2) / v.sum()
    rows = [np.ones_like(f), np.log(f) - np.log1p(-f), np.log(f) + np.log1p(-f)]
    rows += [np.cos(np.pi * k * time) for k in range(1, most - 2)]
    # Gram and Schmidt, in the inner product with the information as the weight.
    root = np.sqrt(v)
    chosen = np.zeros((0, len(f)))
    for row in rows:
        new = row * root
        length = float(np.sqrt(new @ new))
        new = new / length if length > 0 else new
        for _ in range(2):  # a second pass removes what rounding has left
            new = new - (chosen @ new) @ chosen
        square = float(new @ new)
        if square > 1e-12 and len(chosen) < len(f):
            chosen = np.concatenate([chosen, new[np.newaxis] / math.sqrt(square)])
    terms = np.zeros((len(score), len(chosen)))
    terms[varies] = (chosen / root).T
    return terms
