"""Power of tests of calibration, and the miss rates of the paper's Figure 5."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

from joblib import Parallel, delayed

from truecal._lib.checks import check_count
from truecal._lib.types import RNGLike
from truecal.estimators._registry import DEFAULT_TEST
from truecal.exceptions import InputError
from truecal.results import Result
from truecal.simulation._draws import Simulator
from truecal.simulation._scores import ScoreDistribution
from truecal.simulation.alternatives import population_with_error
from truecal.simulation.population import Population


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
    Power 87.4% (± 1.8) against a true error of 0.1091 with 200 rows (multiscale test, level 0.05)
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
    method: str | Mapping[str, Any] = DEFAULT_TEST,
    alpha: float = 0.05,
    norm: float = 2,
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
    norm : float
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
    norm: float = 2,
    repeats: int = 1000,
    rng: RNGLike = None,
    n_jobs: int = 1,
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
    norm : float
        Order of the norm, of estimators and of the true error.
    repeats : int
        Number of data sets, with and without the error.
    rng : seed or numpy.random.Generator, optional
        Random seed.
    n_jobs : int
        Number of workers, as in joblib. Results do not depend on it.

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
    by_size = Parallel(n_jobs=n_jobs)(delayed(_powers)(simulator, populations, n) for n in sizes)
    by_error = zip(*by_size, strict=True)
    return MissRates(tuple(row for rows in by_error for row in chain.from_iterable(rows)))


def _powers(simulator: Simulator, populations: Sequence[Population], n: int) -> list[list[Power]]:
    """Return the power of each test on each population; all have the same calibrated twin."""
    null = simulator.null(populations[0], n)
    return [
        [
            Power(
                value=found.share,
                standard_error=found.standard_error,
                n=n,
                true_error=population.true_error(simulator.norm),
                alpha=simulator.alpha,
                critical_value=found.critical_value,
                method=label,
                norm=simulator.norm,
                repeats=simulator.repeats,
            )
            for label, found in zip(simulator.labels, simulator.detections(population, n, null), strict=True)
        ]
        for population in populations
    ]
