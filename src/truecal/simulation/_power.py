"""Power of tests of calibration, and the miss rates of the paper's Figure 5."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truecal._lib.checks import as_generator, check_choice, check_count, check_fraction, check_norm
from truecal._lib.numeric import keyed_generator
from truecal._lib.types import FloatArray, NormLike, RNGLike
from truecal.data.sample import Sample, ScoreGroups
from truecal.estimators._registry import MULTISCALE, Choice, choose_estimators
from truecal.exceptions import InputError
from truecal.inference.calibration_test import method_names
from truecal.multiscale import LabelNull, Omnibus
from truecal.results import Result
from truecal.simulation._population import Population, population_with_error
from truecal.simulation._scores import ScoreDistribution
from truecal.simulation._study import apply, draw_blocks, in_parallel

#: Up to this number of rows every score is drawn. Beyond, blocks of scores give the same power at a fixed cost.
_DRAWN_ROWS = 1 << 13
#: Number of blocks by mass and by width: a block has at most 1/2048 of the scores and a width of at most 1/512.
_BLOCKS_BY_MASS, _BLOCKS_BY_WIDTH = 1 << 11, 1 << 9
#: Number of scores from which the blocks are made.
_BLOCK_DRAWS = 1 << 18

#: Data sets that share their scores, for the multiscale test.
_LABELS_PER_SCORES = 20

# Streams of random numbers, one for each purpose, so that none depends on how much another draws.
_NULL, _ALTERNATIVE, _SCORES = range(3)


@dataclass(frozen=True)
class Detection:
    """Share of data sets on which a statistic exceeds its critical value, and the error of this share."""

    share: float
    standard_error: float
    critical_value: float


class _Blocks(NamedTuple):
    """Scores rounded to blocks: their values, probabilities and chances of a positive label."""

    score: FloatArray
    mass: FloatArray
    chance: FloatArray

    def draw(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, NDArray[np.int64], FloatArray]:
        """Draw `n` scores, and return those that occur, their counts and their chances of a positive label."""
        count = rng.multinomial(n, self.mass)
        seen = count > 0
        return self.score[seen], count[seen], self.chance[seen]


@dataclass(frozen=True)
class Simulator:
    """Draws data sets, applies statistics to them, and compares these with the calibrated twin's.

    Every data set has a generator of its own, seeded by its purpose, its size and its number. Populations
    with the same scores therefore share the scores and the randomness of each data set, and differ by their curves.
    For the multiscale test (None) several data sets share their scores, which saves most of the time.
    """

    statistics: tuple[Choice | None, ...]
    alpha: float
    norm: float
    repeats: int
    seed: int

    @classmethod
    def checked(
        cls,
        methods: Iterable[str | Mapping[str, Any]],
        *,
        alpha: float,
        norm: NormLike,
        repeats: int,
        rng: RNGLike,
    ) -> Simulator:
        """Return a simulator for tests as users name them."""
        alpha = check_fraction("alpha", alpha)
        # With fewer, no draw of the calibrated twin lies above the critical value.
        repeats = check_count("repeats", repeats, at_least=math.ceil(1 / alpha))
        statistics = {_label(statistic): statistic for statistic in map(choose_method, methods)}
        seed = int(as_generator(rng).integers(2**63))
        return cls(tuple(statistics.values()), alpha, check_norm(norm), repeats, seed)

    @property
    def labels(self) -> list[str]:
        """Names of the tests, with their options."""
        return list(map(_label, self.statistics))

    def null(self, population: Population, n: int, repeats: int | None = None) -> FloatArray:
        """Return the statistics on data of the calibrated twin, of shape (statistics, repeats), sorted."""
        return np.sort(self._ranks(population.calibrated(), n, repeats or self.repeats, _NULL), axis=1)

    def detections(self, population: Population, n: int, null: FloatArray) -> list[Detection]:
        """Return for each statistic how often it exceeds its critical value, on as many data sets."""
        ranks = self._ranks(population, n, null.shape[1], _ALTERNATIVE)
        return [detection(with_error, twin, self.alpha) for with_error, twin in zip(ranks, null, strict=True)]

    def _ranks(self, population: Population, n: int, repeats: int, stream: int) -> FloatArray:
        blocks = None if n <= _DRAWN_ROWS else _blocks_of(population, self._generator(_SCORES))
        ranks = np.empty((len(self.statistics), repeats))
        choices = {row: choice for row, choice in enumerate(self.statistics) if choice is not None}
        if choices:
            samples = self._samples(population, blocks, n, repeats, stream)
            ranks[list(choices)] = apply(list(choices.values()), samples, self.norm, attrgetter("rank_value"))
        if None in self.statistics:
            ranks[self.statistics.index(None)] = self._multiscale(population, blocks, n, repeats, stream)
        return ranks

    def _samples(
        self, population: Population, blocks: _Blocks | None, n: int, repeats: int, stream: int
    ) -> Iterator[ScoreGroups]:
        """Yield data sets; of scores that are rounded to blocks they are binomials, whatever n is."""
        if blocks is None:
            yield from draw_blocks(population, n, range(repeats), seed=self.seed, key=(stream, n))
            return
        for number in range(repeats):
            rng = self._generator(stream, n, number)
            score, count, chance = blocks.draw(n, rng)
            yield Sample(
                score=score,
                count=count.astype(np.float64),
                positives=rng.binomial(count, chance).astype(np.float64),
                dtype=population.scores.output_dtype,
            )

    def _multiscale(
        self, population: Population, blocks: _Blocks | None, n: int, repeats: int, stream: int
    ) -> FloatArray:
        """Return the multiscale statistic on data sets that share scores in groups."""
        ranks: list[FloatArray] = []
        for number, first in enumerate(range(0, repeats, _LABELS_PER_SCORES)):
            score, count, chance = self._scores(population, blocks, n, number)
            shown = score.astype(population.scores.output_dtype).astype(np.float64)
            null = LabelNull(shown, count, np.zeros(len(count)))
            omnibus, rng = Omnibus(null), self._generator(stream, n, first)
            size = min(_LABELS_PER_SCORES, repeats - first)
            ranks.extend(omnibus.statistic(labels) for labels in null.draws(size, rng, chance))
        return np.concatenate(ranks)

    def _scores(
        self, population: Population, blocks: _Blocks | None, n: int, number: int
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return scores, their counts and their chances of a positive label."""
        rng = self._generator(_SCORES, n, number)
        if blocks is None:
            score, complement = population.draw(n, rng)
            order = np.argsort(score, kind="stable")
            return score[order], np.ones(n), population.curve(score[order], complement[order])
        score, count, chance = blocks.draw(n, rng)
        return score, count.astype(np.float64), chance

    def _generator(self, *key: int) -> np.random.Generator:
        return keyed_generator(self.seed, *key)


def _label(choice: Choice | None) -> str:
    return MULTISCALE if choice is None else choice.label


def choose_method(method: str | Mapping[str, Any]) -> Choice | None:
    """Return the estimator that is a test statistic, with its options; None for the multiscale test."""
    options = {"method": method} if isinstance(method, str) else dict(method)
    name = options.pop("method", None)
    if name == MULTISCALE and not options:
        return None
    check_choice("method", name, method_names())
    return choose_estimators([{"estimator": name, **options}])[0]


def _blocks_of(population: Population, rng: np.random.Generator) -> _Blocks:
    """Return blocks that are small in mass and width."""
    score, complement = population.draw(_BLOCK_DRAWS, rng)
    order = np.lexsort((-complement, score))
    score, complement = score[order], complement[order]
    by_mass = np.arange(_BLOCK_DRAWS) * _BLOCKS_BY_MASS // _BLOCK_DRAWS
    by_width = np.floor(score * _BLOCKS_BY_WIDTH)
    start = np.flatnonzero(np.diff(by_mass, prepend=-1) + np.diff(by_width, prepend=-1))
    size = np.diff(start, append=_BLOCK_DRAWS)
    # Its middle score stands for a block: an atom keeps its value, and a calibrated model stays calibrated.
    middle = start + size // 2
    chance = population.curve(score[middle], complement[middle])
    # Scores that the model's own type cannot tell apart are one group.
    shown = score[middle].astype(population.scores.output_dtype).astype(np.float64)
    distinct, group = np.unique(shown, return_inverse=True)
    mass = np.bincount(group, size)
    return _Blocks(distinct, mass / _BLOCK_DRAWS, np.clip(np.bincount(group, size * chance) / mass, 0.0, 1.0))


def detection(ranks: FloatArray, null: FloatArray, alpha: float) -> Detection:
    """Compare statistics with those of the calibrated twin, which are sorted."""
    repeats = len(null)
    position = math.ceil((1 - alpha) * (repeats + 1)) - 1

    def share_above(position: int) -> float:
        critical = null[min(max(position, 0), repeats - 1)]
        return float(np.mean(ranks > critical + 1e-12 * abs(critical)))

    share = share_above(position)
    # The draws are binomial. So is the position of the true critical value among the sorted draws of the twin:
    # it is moved by one standard deviation in both directions.
    smoothed = (share * repeats + 0.5) / (repeats + 1)
    shift = math.ceil(math.sqrt(repeats * alpha * (1 - alpha)))
    by_critical = (share_above(position - shift) - share_above(position + shift)) / 2
    error = math.hypot(math.sqrt(smoothed * (1 - smoothed) / repeats), by_critical)
    return Detection(share, error, float(null[min(position, repeats - 1)]))


@dataclass(frozen=True)
class Power(Result):
    """Power of a test of calibration.

    Attributes
    ----------
    value : float
        Share of data sets on which the test rejects calibration.
    standard_error : float
        Monte Carlo standard error of `value`, from the draws and from the critical value.
    n : int
        Number of rows of a data set.
    true_error : float
        True calibration error of the population.
    alpha : float
        Significance level of the test.
    critical_value : float
        The test rejects above this value of the statistic (of the `signed_square` of debiased estimators).
    method : str
        The test: ``"multiscale"`` or the estimator that is its statistic, with its options.
    norm : float
        Order of the norm of the true error.
    repeats : int
        Number of data sets drawn with the error, and as many without.

    Examples
    --------
    >>> import truecal
    >>> overconfident = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(1.5))
    >>> print(power(overconfident, 200, rng=0))
    Power 87.5% (± 1.6) against a true error of 0.1091 with 200 rows (multiscale test, level 0.05)
    """

    _derived: ClassVar[tuple[str, ...]] = ("power", "miss_rate")
    _omitted: ClassVar[tuple[str, ...]] = ("value",)

    value: float
    standard_error: float
    n: int
    true_error: float
    alpha: float
    critical_value: float
    method: str
    norm: float
    repeats: int

    @property
    def power(self) -> float:
        """The same as `value`."""
        return self.value

    @property
    def miss_rate(self) -> float:
        """Share of data sets on which the test does not reject."""
        return 1 - self.value

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return (
            f"Power {100 * self.value:.1f}% (± {100 * self.standard_error:.1f}) against a true error of "
            f"{self.true_error:.4f} with {self.n:,} rows ({self.method} test, level {self.alpha:g})"
        )


def power(
    population: Population,
    n: int,
    *,
    method: str | Mapping[str, Any] = MULTISCALE,
    alpha: float = 0.05,
    norm: NormLike = 2,
    repeats: int = 1000,
    rng: RNGLike = None,
) -> Power:
    r"""Return the power of a test of calibration on samples of `n` rows of a population.

    The test rejects when its statistic T exceeds the 1 - alpha quantile that it has on data of the calibrated
    twin, which has the same scores:

    .. math:: \text{power} = P\big(T > q_{1-\alpha}\big), \quad
              q_{1-\alpha} : P_{\text{calibrated}}\big(T > q_{1-\alpha}\big) = \alpha .

    Both probabilities are simulated. `calibration_test` finds its critical value from the scores at hand
    instead, and has nearly the same power.

    Above 8,192 rows the scores are rounded to some 2,500 blocks, so that more rows take no more time.

    Parameters
    ----------
    population : Population
        Distribution of the data.
    n : int
        Number of rows.
    method : str or mapping
        The test: ``"multiscale"`` or one of `truecal.list_estimators`. A mapping such as
        ``{"method": "ew_bin", "n_bins": 10}`` sets options.
    alpha : float
        Significance level of the test.
    norm : float, "l1" or "l2"
        Order of the norm, of an estimator and of the true error.
    repeats : int
        Number of data sets, with and without the error.
    rng : seed or numpy.random.Generator, optional
        Random seed. With the same seed all estimators see the same data.

    Returns
    -------
    Power

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), AISTATS, section 7.2.

    Examples
    --------
    >>> import truecal
    >>> overconfident = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(1.5))
    >>> result = power(overconfident, 100, method="ew_bin", repeats=500, rng=0)
    >>> round(result.value, 2), round(result.standard_error, 2)
    (0.23, 0.02)
    """
    simulator = Simulator.checked([method], alpha=alpha, norm=norm, repeats=repeats, rng=rng)
    n = check_count("n", n)
    return _powers(simulator, [population], n)[0][0]


@dataclass(frozen=True)
class MissRates(Result):
    """Miss rates for several errors, sizes and tests: the paper's Figure 5 as a table.

    Attributes
    ----------
    rows : tuple of Power
        One for each true error, size and test, in this order.
    """

    rows: tuple[Power, ...]

    def select(self, *, method: str | None = None, true_error: float | None = None) -> MissRates:
        """Return the rows of one test, of one error, or of both.

        Parameters
        ----------
        method : str, optional
            Name of the test in the rows; by default all.
        true_error : float, optional
            The error, to six digits; by default all.
        """
        return MissRates(
            tuple(
                row
                for row in self.rows
                if (method is None or row.method == method)
                and (true_error is None or math.isclose(row.true_error, true_error, rel_tol=1e-6))
            )
        )

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one plain dictionary for each row."""
        return [row.to_dict() for row in self.rows]

    def __str__(self) -> str:
        width = max(6, *(len(row.method) for row in self.rows))
        lines = [f"true error         n  {'method':<{width}}  miss rate    ± se"]
        lines += [
            f"{row.true_error:10.4f} {row.n:9d}  {row.method:<{width}}  {row.miss_rate:9.3f} {row.standard_error:7.3f}"
            for row in self.rows
        ]
        return "\n".join(lines)


def miss_rates(
    true_errors: Iterable[float],
    sizes: Iterable[int],
    *,
    methods: Iterable[str | Mapping[str, Any]] = ("ew_bin", "em_sweep"),
    scores: ScoreDistribution | None = None,
    alternative: str = "power",
    alpha: float = 0.05,
    norm: NormLike = 2,
    repeats: int = 1000,
    n_jobs: int = 1,
    rng: RNGLike = None,
) -> MissRates:
    """Return how often tests miss errors of given sizes, in samples of given sizes.

    The populations are those of `population_with_error`. All estimators see the same data, and a row does
    not depend on the other rows.

    Parameters
    ----------
    true_errors : iterable of float
        True errors.
    sizes : iterable of int
        Numbers of rows.
    methods : iterable of str or mapping
        The tests; by default the two of the paper's Figure 5.
    scores : ScoreDistribution, optional
        Distribution of the scores; by default uniform, which is Beta(1, 1).
    alternative : str
        Family of calibration curves, as for `population_with_error`.
    alpha : float
        Significance level of the tests.
    norm : float, "l1" or "l2"
        Order of the norm, of estimators and of the true error.
    repeats : int
        Number of data sets, with and without the error.
    n_jobs : int
        Number of workers, as in joblib. Results do not depend on it.
    rng : seed or numpy.random.Generator, optional
        Random seed.

    Returns
    -------
    MissRates

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), AISTATS, section 7.2 and Figure 5.

    Examples
    --------
    >>> print(miss_rates([0.1], [200], repeats=400, rng=0))
    true error         n  method    miss rate    ± se
        0.1000       200  ew_bin         0.60  0.06
        0.1000       200  em_sweep       0.23  0.04
    """
    simulator = Simulator.checked(methods, alpha=alpha, norm=norm, repeats=repeats, rng=rng)
    sizes = [check_count("sizes", n) for n in sizes]
    populations = [
        population_with_error(error, scores, norm, alternative=alternative) for error in true_errors
    ]
    if not (simulator.statistics and sizes and populations):
        raise InputError("miss_rates needs at least one true error, one size and one method")
    jobs = [(simulator, populations, n) for n in sizes]
    by_size = in_parallel(_powers, jobs, name="miss rates", n_jobs=n_jobs, progress=False)
    by_error = zip(*by_size, strict=True)
    return MissRates(tuple(row for rows in by_error for row in chain.from_iterable(rows)))


def _powers(simulator: Simulator, populations: Sequence[Population], n: int) -> list[list[Power]]:
    """Return the power of each test on each population; all have the same calibrated twin."""
    null = simulator.null(populations[0], n)
    return [
        [
            Power(
                value=detected.share,
                standard_error=detected.standard_error,
                n=n,
                true_error=population.true_error(simulator.norm),
                alpha=simulator.alpha,
                critical_value=detected.critical_value,
                method=label,
                norm=simulator.norm,
                repeats=simulator.repeats,
            )
            for label, detected in zip(
                simulator.labels, simulator.detections(population, n, null), strict=True
            )
        ]
        for population in populations
    ]
