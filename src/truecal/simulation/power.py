"""How often a test of calibration finds an error: its power, and the miss rates of the paper's Figure 5."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from joblib import Parallel, delayed
from scipy.optimize import brentq

from truecal._lib.checks import check_count, check_norm, check_real
from truecal._lib.types import RNGLike
from truecal.exceptions import InputError
from truecal.results import SCHEMA_VERSION
from truecal.simulation._draws import Simulator
from truecal.simulation.curves import PowerCurve
from truecal.simulation.population import Population
from truecal.simulation.scores._base import ScoreDistribution
from truecal.simulation.scores.uniform import UniformScores

#: The steepest curve c^d of the family. Only scores nearer to 1 than 10^-6 do not feel it.
_STEEPEST = 1e6


@dataclass(frozen=True)
class Power:
    """The power of a test of calibration, and how it was found.

    Attributes
    ----------
    value : float
        Share of data sets on which the test finds the error.
    standard_error : float
        Monte Carlo standard error of `value`, from the draws and from the critical value.
    n : int
        Number of rows of a data set.
    true_error : float
        The error that is there.
    alpha : float
        Level: share of data sets of a calibrated model on which the test raises a false alarm.
    critical_value : float
        The test rejects above this value of the estimate (of its `signed_square`, where it has one).
    estimator : str
        The statistic, with its options.
    norm : float
        The p of the true error.
    repeats : int
        Number of data sets drawn with the error, and as many without.

    Examples
    --------
    >>> import truecal
    >>> overconfident = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(1.5))
    >>> print(power(overconfident, 200, rng=0))
    A true error of 0.1091 is found on 86.5 % (± 1.5) of samples of 200 rows, at level 0.05 by em_sweep
    """

    value: float
    standard_error: float
    n: int
    true_error: float
    alpha: float
    critical_value: float
    estimator: str
    norm: float
    repeats: int

    @property
    def miss_rate(self) -> float:
        """Share of data sets on which the test does not find the error."""
        return 1 - self.value

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return (
            f"A true error of {self.true_error:.4f} is found on {100 * self.value:.1f} % "
            f"(± {100 * self.standard_error:.1f}) of samples of {self.n} rows, at level {self.alpha:g} by "
            f"{self.estimator}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the power as plain Python objects."""
        return {
            "schema_version": SCHEMA_VERSION,
            "power": self.value,
            "miss_rate": self.miss_rate,
            "standard_error": self.standard_error,
            "n": self.n,
            "true_error": self.true_error,
            "alpha": self.alpha,
            "critical_value": self.critical_value,
            "estimator": self.estimator,
            "norm": self.norm,
            "repeats": self.repeats,
        }


def power(
    population: Population,
    n: int,
    *,
    estimator: str | Mapping[str, Any] = "em_sweep",
    alpha: float = 0.05,
    norm: float = 2,
    repeats: int = 1000,
    rng: RNGLike = None,
) -> Power:
    r"""Return how often a test of level `alpha` finds the error of a population with `n` rows.

    The test rejects when the estimate exceeds the 1 - alpha quantile that it has on data of the calibrated
    twin, which has the same scores:

    .. math:: \text{power} = P\big(T > q_{1-\alpha}\big), \quad
              q_{1-\alpha} : P_{\text{calibrated}}\big(T > q_{1-\alpha}\big) = \alpha .

    Both probabilities are simulated. `calibration_test` finds its critical value from the scores at hand
    instead, and has the same power but for small samples.

    Above 8,192 rows the scores are rounded to some 2,500 cells, so that more rows take no more time.

    Parameters
    ----------
    population : Population
        Where the data come from.
    n : int
        Number of rows.
    estimator : str or mapping
        The statistic, one of `truecal.list_estimators`. A mapping such as
        ``{"estimator": "ew_bin", "n_bins": 10}`` sets options.
    alpha : float
        Level of the test.
    norm : float
        The p of the norm, in the estimator and in the true error.
    repeats : int
        Number of data sets, with and without the error.
    rng : seed or numpy.random.Generator, optional
        The same seed gives the same result, and the same data for all estimators.

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
    >>> result = power(overconfident, 100, estimator="ew_bin", repeats=500, rng=0)
    >>> round(result.value, 2), round(result.standard_error, 2)
    (0.23, 0.02)
    """
    simulator = Simulator.checked([estimator], alpha=alpha, norm=norm, repeats=repeats, rng=rng)
    n = check_count("n", n)
    return _powers(simulator, [population], n)[0][0]


@dataclass(frozen=True)
class MissRates:
    """Miss rates for several errors, sizes and estimators: the paper's Figure 5 as a table.

    Attributes
    ----------
    rows : tuple of Power
        One for each true error, size and estimator, in this order.
    """

    rows: tuple[Power, ...]

    def select(self, *, estimator: str | None = None, true_error: float | None = None) -> MissRates:
        """Return the rows of one estimator, of one error, or of both.

        Parameters
        ----------
        estimator : str, optional
            The statistic, as it is called in the rows; by default all.
        true_error : float, optional
            The error, to six digits; by default all.
        """
        return MissRates(
            tuple(
                row
                for row in self.rows
                if (estimator is None or row.estimator == estimator)
                and (true_error is None or math.isclose(row.true_error, true_error, rel_tol=1e-6))
            )
        )

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one plain dictionary for each row."""
        return [row.to_dict() for row in self.rows]

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain Python objects."""
        return {"schema_version": SCHEMA_VERSION, "rows": self.to_rows()}

    def __str__(self) -> str:
        width = max(len(row.estimator) for row in self.rows)
        lines = [f"true error         n  {'estimator':<{width}}  miss rate    ± se"]
        lines += [
            f"{row.true_error:10.4f} {row.n:9d}  {row.estimator:<{width}}  "
            f"{row.miss_rate:9.3f} {row.standard_error:7.3f}"
            for row in self.rows
        ]
        return "\n".join(lines)


def miss_rates(
    true_errors: Iterable[float],
    sizes: Iterable[int],
    *,
    estimators: Iterable[str | Mapping[str, Any]] = ("ew_bin", "em_sweep"),
    scores: ScoreDistribution | None = None,
    alpha: float = 0.05,
    norm: float = 2,
    repeats: int = 1000,
    rng: RNGLike = None,
    n_jobs: int = 1,
) -> MissRates:
    """Return how often tests miss errors of given sizes, in samples of given sizes.

    The populations are those of `population_with_error`. Every estimator sees the same data, and a row does
    not depend on which others are asked for.

    Parameters
    ----------
    true_errors : iterable of float
        The errors that are there.
    sizes : iterable of int
        Numbers of rows.
    estimators : iterable of str or mapping
        The statistics; by default the two of the paper's Figure 5.
    scores : ScoreDistribution, optional
        Distribution of the scores; by default uniform, which is Beta(1, 1).
    alpha, norm, repeats, rng
        As for `power`.
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
    true error         n  estimator  miss rate    ± se
        0.1000       200  ew_bin         0.60  0.06
        0.1000       200  em_sweep       0.23  0.04
    """
    simulator = Simulator.checked(estimators, alpha=alpha, norm=norm, repeats=repeats, rng=rng)
    sizes = [check_count("sizes", n) for n in sizes]
    populations = [population_with_error(error, scores, norm) for error in true_errors]
    if not (simulator.statistics and sizes and populations):
        raise InputError("miss_rates needs at least one true error, one size and one estimator.")
    by_size = Parallel(n_jobs=n_jobs)(delayed(_powers)(simulator, populations, n) for n in sizes)
    by_error = zip(*by_size, strict=True)
    return MissRates(tuple(row for rows in by_error for row in chain.from_iterable(rows)))


def _powers(simulator: Simulator, populations: Sequence[Population], n: int) -> list[list[Power]]:
    """Return the power of each statistic on each population; all have the same calibrated twin."""
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
                estimator=statistic.label,
                norm=simulator.norm,
                repeats=simulator.repeats,
            )
            for statistic, found in zip(
                simulator.statistics, simulator.detections(population, n, null), strict=True
            )
        ]
        for population in populations
    ]


def population_with_error(
    true_error: float, scores: ScoreDistribution | None = None, norm: float = 2
) -> Population:
    r"""Return the over-confident population with calibration curve c^d, d >= 1, that has this true error.

    .. math:: \mathrm{TCE}_p(d) = \big(E\,|C - C^d|^p\big)^{1/p}

    grows with d, from 0 at d = 1.

    Parameters
    ----------
    true_error : float
        The error to have, a fraction.
    scores : ScoreDistribution, optional
        Distribution of the scores; by default uniform, which is Beta(1, 1).
    norm : float
        The p of the norm.

    Returns
    -------
    Population

    Raises
    ------
    ValueError
        If no curve of the family has that error on these scores, with the greatest one that there is.

    Examples
    --------
    >>> population = population_with_error(0.1)
    >>> round(population.curve.d, 4), round(population.true_error(), 6)
    (1.4491, 0.1)
    """
    scores = UniformScores() if scores is None else scores
    greatest = greatest_error(scores, norm)
    wanted = check_real("true_error", true_error, at_least=0)
    if wanted > greatest:
        raise InputError(
            f"true_error must lie between 0 and {greatest:.4g}, the greatest that a curve c^d gives on these "
            f"scores. Got {true_error!r} instead."
        )

    def surplus(log_d: float) -> float:
        return Population(scores, PowerCurve(math.exp(log_d))).true_error(norm) - wanted

    if surplus(0.0) >= 0:
        return Population(scores, PowerCurve(1.0))
    log_d = float(brentq(surplus, 0.0, math.log(_STEEPEST), xtol=1e-12, rtol=1e-12))
    return Population(scores, PowerCurve(math.exp(log_d)))


def greatest_error(scores: ScoreDistribution, norm: float) -> float:
    """Return the greatest true error that `population_with_error` can give."""
    return Population(scores, PowerCurve(_STEEPEST)).true_error(check_norm(norm))
