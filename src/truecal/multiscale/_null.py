r"""Residuals of data and of resampled data under perfect calibration, as sums over cells of scores.

Under the hypothesis that every score is the probability that it states, labels of independent rows are Bernoulli draws
from the scores. A statistic of the cell sums of :math:`w (f - y)` therefore has a known null distribution: draw the
labels again. If rows of a cluster depend on each other only the clusters can be resampled: the sums of each cluster are
multiplied by a random sign (wild bootstrap with Rademacher weights), which needs symmetric sums and many clusters.

References: Vaicenavicius et al. (2019), AISTATS; Liu (1988), Annals of Statistics 16, 1696-1708; Cameron, Gelbach,
Miller (2008), Review of Economics and Statistics 90, 414-427.

How far random signs of clusters can be trusted where events are rare.

If rows of a cluster depend on each other, a test compares the data with residual sums of clusters :math:`s_c` whose
signs are random (see `truecal.multiscale._null`). That needs sums that are about as often positive as negative. Rare
events make them skewed: most clusters have none and a small negative sum, a few have many. If those few happen to be
missing, the total is far below 0 *and* the sums that should show how large a total can be are small. Without any event
every sum is negative, and the data are the most extreme pattern of signs there is, whatever the model.

So the sums with random signs must have the variance that the scores imply, if their own is smaller. With
:math:`V_c = \sum f (1 - f)` the variance of independent labels, :math:`e_c = s_c - V_c \sum s / \sum V` the sums less
what they have in common, and r the variance of a label at the observed rate of events, divided by that at the expected
rate but at most 1, the factor is the root of

.. math:: \lambda^2 = \frac{1}{\sum s_c^2}
    \max\Big(\sum_c s_c^2,\ \sum_c V_c,\ r^{-a} \frac{G}{G-1} \sum_c e_c^2\Big) .

The residuals of the data are divided by it, and the draws left as they are: components of the statistic, whose usual
sizes follow from the sums, then see both on the same scale. The second term says that what independent rows show by
chance is no evidence. The third is the variance between
clusters that the data show, carried over from the rate that was observed to the rate that the scores expect: fewer
events show less of it. The power a is 1 for 20 clusters and 3/4 for 40 or more. No dependence at all can give more than
:math:`\sum_c m_c V_c` with m the rows of a cluster, which limits the factor.

The third term is an estimate from :math:`G_e = (\sum e_c^2)^2 / \sum e_c^4` clusters, as if these were equal. If they
are fewer than 3 or 4, or all labels are the same, it says nothing. The limit is then used for the variance: a model
that is far off is still found, and otherwise the data hold *too little information for a test*.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from truecal._lib.numeric import draw_binomials
from truecal._lib.text import counted
from truecal._lib.types import FloatArray
from truecal.data.pseudo_labels import Gold
from truecal.multiscale import _constants as const
from truecal.multiscale._units import gram, hardly_sparse, in_blocks, sums_of_runs


def variance_excess(binomial: FloatArray, exact: FloatArray) -> float:
    """Return the largest relative excess of the variance of binomials; those that hardly vary do not matter."""
    matters = exact > 1e-3
    return float(np.max(binomial[matters] / exact[matters], initial=1.0)) - 1


@dataclass(frozen=True)
class FlipScale:
    """What sums with random signs of clusters must be multiplied by, or the data divided, and whether they say enough.

    Attributes
    ----------
    factor : float
        At least 1.
    deviation : float
        Standard deviation of the total of the sums with random signs, scaled.
    too_little : str
        Why the clusters hold too little information for a test; empty if they hold enough.
    doubt : float
        Relative variance of the variance between clusters beyond that of normal sums, :math:`1 / G_e - 3 / (G + 2)`,
        and at least 1 / G: far out in the tail skewed sums make random signs too certain even if no few stand out.
    dependence : float
        The part of `factor` that dependence adds. The rest brings sums up to those of independent rows, for which the
        evidence of curves allows already.
    """

    factor: float
    deviation: float
    too_little: str = ""
    doubt: float = 0.0
    dependence: float = 1.0

    def discounted(self, pvalue: float) -> float:
        """Return a p-value of sums of clusters as if these were scaled, and compared with Student's t."""
        if self.too_little:
            return 1.0
        return far_tail(
            2 * float(scipy.special.ndtr(scipy.special.ndtri(pvalue / 2) / self.dependence)), self.doubt
        )

    def reason(self, pvalue: float) -> str:
        """Return why a p-value from random signs is not a valid test; empty if it is.

        Parameters
        ----------
        pvalue : float
            With too little information it allows for any dependence, and counts if it is small.
        """
        return "" if pvalue <= const.CLEAR_PVALUE else self.too_little


class Null(ABC):
    """Cell sums of residuals, for the data and for draws under calibration; cells are independent, unless overridden.

    Attributes
    ----------
    score, mass, information : ndarray of shape (n_cells,)
        Mean score, sum of the weights and sum of w^2 f (1 - f) of each cell, in ascending order of score. Weights are
        scaled to sum to the effective number of rows.
    residual : ndarray of shape (n_cells,)
        Sum of w (f - y) of each cell, divided by the factor of `scale`.
    """

    score: FloatArray
    mass: FloatArray
    information: FloatArray
    residual: FloatArray
    #: Whether labels are 0 and 1, so that a score of exactly 0 or 1 rules one of them out.
    binary: bool = True
    #: How data are scaled before they are compared with draws that are made by random signs.
    scale: FlipScale = FlipScale(1.0, 0.0)
    #: What a reader of the p-value must know.
    notes: tuple[str, ...] = ()
    #: Variance and fourth cumulant of the sums of independent cells.
    _variance: FloatArray
    _kurtosis: FloatArray

    def __init__(self, score: FloatArray, mass: FloatArray) -> None:
        """Cut ascending scores, with these weights, into cells."""
        self._start = _cell_starts(score, mass)
        self.mass = self._total(mass)
        self.score = _between(self._total(mass * score) / self.mass, score, self._start)

    def _total(self, values: FloatArray) -> FloatArray:
        """Return the sums over cells."""
        return values if len(self._start) == len(values) else np.asarray(np.add.reduceat(values, self._start))

    @abstractmethod
    def draws(self, n_resamples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield blocks of residuals, of shape (draws, n_cells), under the null hypothesis.

        There are `n_resamples` in all, or every possible one if these are fewer.
        """

    def moments(self, terms: FloatArray) -> tuple[float, float]:
        """Return mean and variance under the null hypothesis of the sum of squares of ``residual @ terms``."""
        covariance = np.einsum("ki,kj->ij", terms, terms * self._variance[:, np.newaxis])
        fourth = float(self._kurtosis @ np.square(terms).sum(axis=1) ** 2)
        return float(np.trace(covariance)), 2 * float(np.sum(covariance**2)) + fourth

    def bin_moments(self, start: NDArray[np.intp], scale: FloatArray) -> tuple[float, float]:
        """Return the moments of the squared residual sums of bins, times `scale`."""
        variance, kurtosis = np.add.reduceat([self._variance, self._kurtosis], start, axis=1)
        return float(variance @ scale), float((2 * variance**2 + kurtosis) @ scale**2)

    def bin_noise(self, start: NDArray[np.intp]) -> FloatArray:
        """Return by what the squared residual sums of bins are divided; it must not depend on the labels."""
        # Half a row keeps bins of scores near 0 and 1, where labels hardly vary, from deciding.
        return np.asarray(np.add.reduceat(self.information, start)) + 0.5

    def resolves(self, start: NDArray[np.intp] | None, count: int) -> bool:
        """Return whether bins from these cells on, or so many smooth terms, have enough independent units on average.

        Every row is one, and levels stop at six rows per bin.
        """
        return True


class LabelNull(Null):
    """Independent rows: labels are drawn again from the scores.

    Labels with the same score and weight are trials of one binomial.

    Parameters
    ----------
    score : ndarray
        Probabilities, in ascending order; the same score may occur with several weights.
    count, positives : ndarray
        Number of labels, whole numbers, and how many of them are 1.
    weight : ndarray, optional
        Sampling weight of each label; 1 by default.
    excess : float
        Largest relative excess of the variance of a binomial draw, where `score` is a mean over different scores.
    merge : bool
        Whether very many trials are merged into narrow cells first.
    """

    def __init__(
        self,
        score: FloatArray,
        count: FloatArray,
        positives: FloatArray,
        weight: FloatArray | None = None,
        *,
        excess: float = 0.0,
        merge: bool = True,
    ) -> None:
        if (
            merge
            and weight is None
            and len(score) > const.MOST_TRIALS
            and count.sum() > const.MOST_DRAWN_ROWS
        ):
            score, count, positives, added = merge_trials(score, count, positives)
            excess = max(excess, added)
        self.chance, self.count, self.excess = score, count, excess
        self._weight, each = None, np.ones(1)
        if weight is not None:
            total = count * weight
            self._weight = each = weight * total.sum() / float(np.sum(total * weight))
        mass, variance = count * each, score * (1 - score)
        super().__init__(score, mass)
        self.information = self._variance = self._total(mass * each * variance)
        self._kurtosis = self._total(mass * each**3 * variance * (1 - 6 * variance))
        self.expected = self._total(mass * score)
        self.residual = self.expected - self._total(each * positives)
        if excess > 0:
            size = "less than 0.001%" if excess < 1e-5 else f"up to {100 * excess:.2g}%"
            drawn = f"Labels were drawn for {len(self.score):,} cells of scores"
            self.notes = (f"{drawn}, with a variance too large by {size}.",)

    def draws(
        self, n_resamples: int, rng: np.random.Generator, chance: FloatArray | None = None
    ) -> Iterator[FloatArray]:
        """Yield blocks of residuals of labels drawn from the scores."""
        chance = self.chance if chance is None else chance
        rows = int(self.count.sum())
        if rows <= const.MOST_DRAWN_ROWS or self._weight is not None:
            return self._draw_rows(n_resamples, rows, rng, chance)
        return self._draw_trials(n_resamples, rng, chance)

    def _draw_rows(
        self, n_resamples: int, rows: int, rng: np.random.Generator, chance: FloatArray
    ) -> Iterator[FloatArray]:
        """Draw each label from a random byte, and from a further uniform number where the byte does not decide."""
        each = self.count.astype(np.intp)
        scaled = 256 * np.repeat(chance, each)
        weight = None if self._weight is None else np.repeat(self._weight, each)
        start = np.concatenate([[0], np.cumsum(each)[:-1]])[self._start]
        whole = np.minimum(np.floor(scaled), 255)
        rest, byte = scaled - whole, whole.astype(np.uint8)
        for size in _blocks(n_resamples, rows):
            drawn = rng.integers(0, 256, (size, rows), dtype=np.uint8)
            label = drawn < byte
            undecided = np.flatnonzero(drawn == byte)
            label.reshape(-1)[undecided] = rng.random(len(undecided)) < rest[undecided % rows]
            if weight is not None:
                sums = np.add.reduceat(label * weight, start, axis=1)
            elif len(start) == rows:
                sums = label
            else:
                sums = np.add.reduceat(label.view(np.uint8), start, axis=1, dtype=np.int32)
            yield self.expected - sums

    def _draw_trials(
        self, n_resamples: int, rng: np.random.Generator, chance: FloatArray
    ) -> Iterator[FloatArray]:
        for size in _blocks(n_resamples, len(self.count), const.BINOMIALS_AT_ONCE):
            drawn = draw_binomials(self.count, chance, size, rng)
            for some in np.array_split(drawn, drawn.nbytes // const.LABELS_AT_ONCE + 1):
                yield self.expected - np.add.reduceat(some, self._start, axis=1)


def merge_trials(
    score: FloatArray, count: FloatArray, positives: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Merge trials into a few thousand, each less than 1/512 wide and with less than 1/2048 of the mass.

    The last result is the largest relative excess of their variances.
    """
    rank = np.cumsum(count)
    edge = np.arange(const.TEST_CELLS) * (rank[-1] / const.TEST_CELLS)
    # Ranks ascend, so the edges are searched for: no pass over all trials for each of them.
    by_mass = np.searchsorted(rank, edge)
    by_mass += rank[by_mass] - count[by_mass] / 2 < edge
    by_score = np.searchsorted(score, np.arange(1, 513) / 512)
    above_zero = np.searchsorted(score, [0.0], side="right")
    start = np.unique(np.concatenate([by_mass, by_score, above_zero]))
    start = start[start < len(score)]

    def columns(rows: slice) -> list[FloatArray]:
        total = count[rows] * score[rows]
        return [count[rows], positives[rows], total, total * (1 - score[rows])]

    merged, positives, total, exact = sums_of_runs(start, len(score), columns)
    mean = _between(total / merged, score, start)
    return mean, merged, positives, variance_excess(merged * mean * (1 - mean), exact)


class GoldNull(Null):
    r"""A judge and gold labels: the gold labels are drawn again, as judge and score predict them under calibration.

    Few gold rows in which the judge was wrong have most of the noise, so that random signs would not be valid.
    Residuals of draws are :math:`\xi (f - m) - \frac{G}{\pi} \sqrt k (y^* - m)`, with :math:`y^*` a label of
    probability q, k the observed over the expected noise of gold labels, and :math:`\xi` a standard normal number.

    Parameters
    ----------
    score, weight : ndarray of shape (n,)
        Scores in ascending order, and weights.
    gold : Gold
        What is known of the rows.
    """

    binary = False

    def __init__(self, score: FloatArray, weight: FloatArray, gold: Gold) -> None:
        chance = gold.calibrated_chance(score, weight)
        value, mean = gold.at(score, chance)
        rows, judged = gold.rows, (score - mean) ** 2
        variance = judged.copy()
        variance[rows] += gold.noise(chance[rows], mean[rows]) / gold.pi**2
        super().__init__(score, weight)
        # To the number of rows with true labels that would be as informative.
        square = weight**2
        scale = float(weight.sum() * (square @ (score * (1 - score)))) / float(
            square.sum() * (square @ variance)
        )
        weight, square, self.mass = scale * weight, scale**2 * square, scale * self.mass
        noise = square * variance
        self.information = self._variance = self._total(noise)
        self._kurtosis = -2 * self._total(noise**2)
        self.residual = self._total(weight * (score - value))
        self._sd = np.sqrt(self._total(square * judged))
        # The gold rows, by cell.
        self._cell = np.searchsorted(self._start, rows, side="right") - 1
        self._chance, self._mean = chance[rows], mean[rows]
        self._weight = weight[rows] * (np.sqrt(gold.factor) / gold.pi)

    def draws(self, n_resamples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield blocks of residuals of gold labels that were drawn again."""
        cells, first = np.unique(self._cell, return_index=True)
        many = len(self._cell) > const.GOLD_PER_CELL * len(cells)
        centre, sd = np.zeros(len(self._sd)), self._sd
        if many:  # sums over the rows of a cell are nearly normal
            centre[cells] = np.add.reduceat(self._weight * (self._chance - self._mean), first)
            variance = np.add.reduceat(self._weight**2 * self._chance * (1 - self._chance), first)
            sd = sd.copy()
            sd[cells] = np.sqrt(sd[cells] ** 2 + variance)
        for size in _blocks(n_resamples, max(len(sd), 1 if many else len(self._cell))):
            residual = rng.standard_normal((size, len(sd)))
            residual *= sd
            residual -= centre
            if not many:
                label = rng.random((size, len(self._chance))) < self._chance
                residual[:, cells] -= np.add.reduceat((label - self._mean) * self._weight, first, axis=1)
            yield residual


class RowNull(Null):
    """Very many independent rows with random signs: sums over the rows of a cell are nearly normal.

    The data are scaled where residuals are skewed.

    Parameters
    ----------
    score, residual, weight : ndarray of shape (n,)
        Score, w (f - y) and w of each row, sorted by score; or sums over rows of the same cluster and score.
    cluster : ndarray of int, of shape (n,), optional
        Number of the cluster, from 0.
    binary : bool
        Whether labels are 0 and 1.
    scaled : bool
        Whether sums are scaled up to the variance of 0 and 1; soft labels may have less.
    """

    def __init__(
        self,
        score: FloatArray,
        residual: FloatArray,
        weight: FloatArray,
        cluster: NDArray[np.intp] | None = None,
        *,
        binary: bool = False,
        scaled: bool = True,
    ) -> None:
        super().__init__(score, weight)
        self.binary = binary
        if scaled:
            self.scale = flip_scale(score, residual, weight, cluster)
        square = residual**2
        self.information = self._total(weight * score * (1 - score))
        self.residual = self._total(residual) / self.scale.factor
        self._variance, self._kurtosis = self._total(square), -2 * self._total(square**2)

    def draws(self, n_resamples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield blocks of normal residuals."""
        sd = np.sqrt(self._variance)
        for size in _blocks(n_resamples, len(sd)):
            yield rng.standard_normal((size, len(sd))) * sd

    def bin_noise(self, start: NDArray[np.intp]) -> FloatArray:
        """Return the mass of the bins."""
        # Dividing by the bins' own variances would let skewed residuals near 0 and 1 decide.
        return np.asarray(np.add.reduceat(self.mass, start))


class ClusterNull(RowNull):
    """Rows in clusters: the sums of each cluster get random signs; parameters are those of `RowNull`.

    Beyond 8,192 clusters signs are those of 4,096 blocks of whole clusters.
    """

    def __init__(
        self,
        score: FloatArray,
        residual: FloatArray,
        weight: FloatArray,
        cluster: NDArray[np.intp],
        *,
        binary: bool = True,
        scaled: bool = True,
    ) -> None:
        super().__init__(score, residual, weight, cluster, binary=binary, scaled=scaled)
        cluster, self.n_clusters = in_blocks(cluster, int(cluster.max()) + 1)
        shape = self.n_clusters, len(self._start)
        cell = _numbers(self._start, len(score))
        self._sums = scipy.sparse.csr_array((residual, (cluster, cell)), shape=shape)
        if self.n_clusters < const.MIN_CLUSTERS:
            smallest = f"the smallest possible p-value is 1/{self.patterns}"
            few = f"There are only {self.n_clusters} clusters: {smallest}"
            self.notes = (f"{few}, and the test is approximate with so few.",)

    @cached_property
    def patterns(self) -> int:
        """Number of different sign patterns: a pattern and its opposite give the same sums of squares."""
        return 1 << (self.n_clusters - 1)

    def draws(self, n_resamples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Yield blocks of residuals with random signs for whole clusters, or with all patterns if these are few."""
        if self.patterns <= n_resamples + 1:
            yield self.all_draws()[1:]
            return
        for size in _blocks(n_resamples, max(self._sums.shape)):
            yield self.signed(_random_signs(size, self.n_clusters, rng))

    def signed(self, signs: FloatArray) -> FloatArray:
        """Return the residuals with given signs of the clusters, of shape (draws, n_clusters)."""
        return np.asarray(signs @ self._signed)

    @cached_property
    def _signed(self) -> FloatArray | scipy.sparse.csr_array:
        """The sums, dense if many of them are not 0."""
        return self._sums.toarray() if hardly_sparse(self._sums.nnz, self._sums.shape) else self._sums

    def all_draws(self) -> FloatArray:
        """Return the residuals for every pattern of signs that keeps that of the first cluster, the data first."""
        pattern = np.arange(self.patterns)[:, np.newaxis] >> np.arange(self.n_clusters - 1) & 1
        sign = np.concatenate([np.ones((self.patterns, 1)), 1.0 - 2 * pattern], axis=1)
        return self.signed(sign)

    def moments(self, terms: FloatArray) -> tuple[float, float]:
        """Return mean and variance over all patterns of signs."""
        return _sign_moments(scipy.sparse.csr_array(self._sums @ terms))

    def bin_moments(self, start: NDArray[np.intp], scale: FloatArray) -> tuple[float, float]:
        """Return mean and variance for bins over all patterns of signs."""
        sums = self._by_bin(start)
        sums.data *= np.sqrt(scale)[sums.indices]
        return _sign_moments(sums)

    def resolves(self, start: NDArray[np.intp] | None, count: int) -> bool:
        """Whether there are six clusters for each bin or term."""
        if start is None:
            return count == 1 or self.n_clusters >= const.ROWS_PER_BIN * count
        return bool(self._by_bin(start).nnz >= const.ROWS_PER_BIN * count)

    def _by_bin(self, start: NDArray[np.intp]) -> scipy.sparse.csr_array:
        """Return the residual sums of the clusters in bins of cells; those that are 0 are among its entries."""
        place = _numbers(start, len(self.mass))
        entries = self._sums.data.copy(), place[self._sums.indices], self._sums.indptr.copy()
        sums = scipy.sparse.csr_array(entries, shape=(self.n_clusters, len(start)))
        sums.sum_duplicates()
        return sums


def _random_signs(n_draws: int, n_clusters: int, rng: np.random.Generator) -> FloatArray:
    return np.asarray(rng.integers(0, 2, (n_draws, n_clusters)) * 2.0 - 1.0, dtype=np.float64)


def _sign_moments(sums: scipy.sparse.csr_array) -> tuple[float, float]:
    """Return mean and variance over random signs of the squared length of the signed sum of rows."""
    squares = np.asarray(sums.multiply(sums).sum(axis=1)).ravel()
    mean = float(squares.sum())
    # Products of clusters and products of bins have the same sum of squares: the fewer of them are computed.
    product = gram(sums.T.tocsr() if sums.shape[0] <= sums.shape[1] else sums)
    variance = 2 * (float(np.sum(product**2)) - float(squares @ squares))
    return mean, variance if variance > 1e-12 * mean**2 else 0.0


@dataclass(frozen=True, eq=False)
class JointNull:
    """Several classes of the same rows, which are resampled together.

    Attributes
    ----------
    nulls : sequence of Null
        The classes one by one.
    draws : callable
        Takes a number of draws and a generator, and yields the residuals of each class for blocks of draws.
    """

    nulls: Sequence[Null]
    draws: Callable[[int, np.random.Generator], Iterator[list[FloatArray]]]


def joint_labels(proba: FloatArray, truth: NDArray[np.bool_], weight: FloatArray | None = None) -> JointNull:
    """Return independent rows, for each of which one class is drawn from its probabilities.

    `proba` and `truth`, of shape (n, K), have the probabilities of all classes, whose rows sum to 1, and which class
    is the true one.
    """
    upper = np.cumsum(proba, axis=1)
    upper, nulls, cells, n = upper[:, :-1] / upper[:, -1:], [], [], len(proba)
    for score, label in zip(proba.T, truth.T, strict=True):
        order = np.argsort(score, kind="stable")
        rows = None if weight is None else weight[order]
        null = LabelNull(score[order], np.ones(n), label[order].astype(np.float64), rows, merge=False)
        cell = np.empty(n, dtype=np.intp)
        cell[order] = _numbers(null._start, n)
        nulls.append(null)
        cells.append(cell)
    sizes = [len(null.score) for null in nulls]
    split = np.cumsum(sizes)
    place_of_row, total = np.stack(cells) + (split - sizes)[:, np.newaxis], int(split[-1])
    scaled = None if weight is None else weight * weight.sum() / float(weight @ weight)

    def draws(n_resamples: int, rng: np.random.Generator) -> Iterator[list[FloatArray]]:
        for size in _blocks(n_resamples, max(n, total)):
            drawn = np.stack([(upper <= rng.random((n, 1))).sum(axis=1) for _ in range(size)])
            place = place_of_row[drawn, np.arange(n)] + total * np.arange(size)[:, np.newaxis]
            each = None if scaled is None else np.broadcast_to(scaled, place.shape).ravel()
            sums = np.bincount(place.ravel(), each, size * total).reshape(size, total)
            parts = np.split(sums, split[:-1], axis=1)
            yield [null.expected - part for null, part in zip(nulls, parts, strict=True)]

    return JointNull(nulls, draws)


def joint_clusters(nulls: Sequence[ClusterNull]) -> JointNull:
    """Return rows in clusters, whose sums have the same sign in all classes."""
    n_clusters, width = nulls[0].n_clusters, max(len(null.score) for null in nulls)

    def draws(n_resamples: int, rng: np.random.Generator) -> Iterator[list[FloatArray]]:
        for size in _blocks(n_resamples, max(width, n_clusters)):
            signs = _random_signs(size, n_clusters, rng)
            yield [null.signed(signs) for null in nulls]

    return JointNull(nulls, draws)


def _numbers(start: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    """Return for each of n values the number of its run; runs begin at `start`."""
    return np.repeat(np.arange(len(start)), np.diff(start, append=n))


def _between(mean: FloatArray, score: FloatArray, start: NDArray[np.intp]) -> FloatArray:
    """Return means of ascending scores in cells, kept within the range of these scores."""
    last = np.append(start[1:], len(score)) - 1
    return np.asarray(np.clip(mean, score[start], score[last]))


def _cell_starts(score: FloatArray, mass: FloatArray) -> NDArray[np.intp]:
    """Return where cells begin: at every distinct score, or if these are too many at every 1/2048 of the mass."""
    start = np.concatenate([[0], np.flatnonzero(score[1:] != score[:-1]) + 1])
    if len(start) <= const.TEST_CELLS:
        return start
    # Scores of exactly 0 and 1 are cells of their own: a residual there is impossible.
    group = np.add.reduceat(mass, start)
    place = np.floor(const.TEST_CELLS * (np.cumsum(group) - group / 2) / group.sum())
    certain = (score[start] > 0).astype(np.float64) + (score[start] == 1)
    return start[np.flatnonzero(np.diff(place, prepend=-1) + np.diff(certain, prepend=0))]


def _blocks(n_resamples: int, width: int, most: int = const.LABELS_AT_ONCE) -> Iterator[int]:
    size = max(1, most // width)
    for first in range(0, n_resamples, size):
        yield min(size, n_resamples - first)


def flip_scale(
    score: FloatArray,
    residual: FloatArray,
    weight: FloatArray,
    cluster: NDArray[np.intp] | None = None,
    known: str = "",
) -> FlipScale:
    """Return how residual sums with random signs must be scaled.

    Parameters
    ----------
    score, residual, weight : ndarray of shape (m,)
        Score, and w (f - y) and w, of rows or of sums over rows of the same cluster and score.
    cluster : ndarray of int, of shape (m,), optional
        Number of the cluster, from 0; by default every row is one.
    known : str
        Why all rows, of which these are a part, hold too little information; empty if they hold enough.

    Examples
    --------
    >>> score, cluster = np.full(100, 0.01), np.repeat(np.arange(20), 5)
    >>> scale = flip_scale(score, score, np.ones(100), cluster)  # no event
    >>> round(scale.factor, 1), scale.too_little
    (9.9, 'all labels are the same, which does not show how much clusters differ')
    """
    found = _side_scale(score, residual, weight, cluster, known, "all labels are the same")
    high = score > 0.5
    unlikely = np.where(high, 1 - score, score)
    sure = unlikely <= const.FLIP_UNLIKELY
    few = weight[sure].sum() < const.FLIP_SHARE * weight.sum()
    if few or high[sure].all() or not high[sure].any():
        return found
    # Neither label may be rare, but those that scores near 0 and near 1 make unlikely are.
    turned, none = np.where(high, -residual, residual), "no score makes its label unlikely"
    columns = unlikely[sure], turned[sure], weight[sure], None if cluster is None else cluster[sure]
    other = _side_scale(*columns, known, none)
    factor = max(found.factor, other.factor)
    return FlipScale(
        factor,
        found.deviation * (factor / found.factor),
        found.too_little or other.too_little,
        max(found.doubt, other.doubt),
        max(found.dependence, other.dependence),
    )


def _side_scale(
    score: FloatArray,
    residual: FloatArray,
    weight: FloatArray,
    cluster: NDArray[np.intp] | None,
    known: str,
    none: str,
) -> FlipScale:
    """Return how sums must be scaled if one of the labels is rare; `none` says that there is none of them."""
    columns = [weight, residual, weight * score * (1 - score)]
    if cluster is not None:
        columns = [np.bincount(cluster, values).astype(np.float64, copy=False) for values in columns]
        columns = [column[columns[0] > 0] for column in columns]
    size, sums, information = columns
    count, own, noise = len(sums), float(sums @ sums), float(information.sum())
    reason = known or _few(count)
    if not own > 0 or not noise > 0:  # nothing to scale: no residual, or none that the scores allow
        return FlipScale(1.0, math.sqrt(own), reason)
    total, expected, common = float(size.sum()), float(weight @ score), float(sums.sum())
    spread = expected * (total - expected)
    ratio = (expected - common) * (total - expected + common) / spread if spread > 0 else 0.0
    rest = sums - information * (common / noise)
    squares = float(rest @ rest)
    effective = squares**2 / float(np.sum(rest**4)) if squares > 1e-12 * own else float(count)
    needed = const.FLIP_FEWEST[0] + const.FLIP_FEWEST[1] / max(count, const.FLIP_USUAL)
    needed *= min(1.0, count / const.FLIP_USUAL)
    most = float(size @ information)
    if ratio <= 1e-9:
        reason = reason or f"{none}, which does not show how much clusters differ"
    elif effective < needed:
        about = counted(max(round(effective), 1), "cluster")
        reason = reason or f"about {about} of {count:,} have nearly all that shows how much clusters differ"
    power = const.FLIP_POWER[0] + const.FLIP_POWER[1] / min(count, const.FLIP_MOST)
    between = squares / min(max(ratio, 1e-9), 1.0) ** power * count / max(count - 1, 1)
    variance = max(most if reason else min(max(noise, between), most), own)
    doubt = max(1 / effective - 3 / (count + 2), 1 / count)
    factor, dependence = np.sqrt(variance / np.array([own, max(own, noise)]))
    return FlipScale(float(factor), math.sqrt(variance), reason, doubt, float(dependence))


def far_tail(pvalue: float, doubt: float) -> float:
    """Return a p-value that is used for many tests at once, with Student's t in place of the normal distribution."""
    if doubt <= 0 or not 0 < pvalue < 1:
        return pvalue
    return 2 * float(scipy.special.stdtr(1 / doubt, float(scipy.special.ndtri(pvalue / 2))))


def _few(count: int) -> str:
    if count >= const.FEWEST_SIGNS:
        return ""
    return f"with {counted(count, 'cluster')} no p-value can be below 1/{2 ** max(count - 1, 0)}"
