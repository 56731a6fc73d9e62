"""Rows in clusters: coverage of the interval, size and power of the test, with and without ``clusters=``."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit

import truecal
from benchmarks._tables import machine, markdown, write

LEVEL = 0.95
Array = NDArray[Any]
Row = dict[str, Any]


@dataclass(frozen=True)
class Design:
    """How rows depend on each other.

    Attributes
    ----------
    sizes : function of a Generator
        Draws the number of rows of each cluster.
    beta : pair of float
        Parameters of the beta distribution of the scores.
    icc : float
        One score for each cluster, whose chance is drawn around the curve with this intraclass correlation; 0 for
        a score for each row.
    sd : float
        Standard deviation of a random effect of the cluster on the logit, where each row has its own score.
    """

    sizes: Callable[[np.random.Generator], Array]
    beta: tuple[float, float] = (3.0, 2.0)
    icc: float = 0.0
    sd: float = 0.0

    def draw(self, rng: np.random.Generator, slope: float) -> tuple[Array, Array, Array]:
        """Return labels, scores and clusters; the observed frequency at a score is ``expit(slope * logit(score))``."""
        sizes = self.sizes(rng)
        cluster = np.repeat(np.arange(len(sizes)), sizes)
        if self.icc:
            score = rng.beta(*self.beta, len(sizes))
            curve, rest = expit(slope * logit(score)), (1 - self.icc) / self.icc
            chance = rng.beta(curve * rest, (1 - curve) * rest)[cluster]
            score = score[cluster]
        else:
            score = rng.beta(*self.beta, len(cluster))
            effect = rng.normal(0, 1, len(sizes))[cluster] * self.sd
            chance = expit(self._conditional(expit(slope * logit(score))) + effect)
        return (rng.random(len(cluster)) < chance).astype(int), score, cluster

    def _conditional(self, chance: Array) -> Array:
        """Return the logit to which effects are added, such that the mean over clusters is `chance`."""
        nodes, weight = np.polynomial.hermite_e.hermegauss(31)
        grid = np.linspace(-12, 12, 800)
        mean = expit(grid[:, np.newaxis] + self.sd * nodes) @ weight / weight.sum()
        return np.interp(chance, mean, grid)

    def true_error(self, slope: float) -> float:
        """Return the l2 error by quadrature over the scores."""
        grid = (np.arange(20_000) + 0.5) / 20_000
        density = grid ** (self.beta[0] - 1) * (1 - grid) ** (self.beta[1] - 1)
        return float(np.sqrt(np.average((grid - expit(slope * logit(grid))) ** 2, weights=density)))

    def slope_of(self, error: float) -> float:
        """Return the slope below 1 whose l2 error is `error`."""
        return 1.0 if error == 0 else float(brentq(lambda slope: self.true_error(slope) - error, 0.05, 1.0))


def _equal(n: int, size: int) -> Callable[[np.random.Generator], Array]:
    return lambda rng: np.full(n, size)


def _zipf(n: int, exponent: float, largest: int) -> Callable[[np.random.Generator], Array]:
    return lambda rng: np.minimum(rng.zipf(exponent, n), largest)


DESIGNS: dict[str, Design] = {
    "200 questions x 5, ICC 0.1": Design(_equal(200, 5), icc=0.1),
    "200 questions x 5, ICC 0.3": Design(_equal(200, 5), icc=0.3),
    "200 questions x 10, ICC 0.1": Design(_equal(200, 10), icc=0.1),
    "200 questions x 10, ICC 0.3": Design(_equal(200, 10), icc=0.3),
    "1,000 questions x 5, ICC 0.3": Design(_equal(1000, 5), icc=0.3),
    "200 patients x 5 visits": Design(_equal(200, 5), beta=(2, 3), sd=0.8),
    "200 patients x 20 visits": Design(_equal(200, 20), beta=(2, 3), sd=0.8),
    "20 hospitals x 500": Design(_equal(20, 500), beta=(2, 3), sd=0.4),
    "60 hospitals x 100": Design(_equal(60, 100), beta=(2, 3), sd=0.4),
    "400 questions, Zipf sizes, ICC 0.3": Design(_zipf(400, 2.0, 100), icc=0.3),
    "400 patients, Zipf sizes": Design(_zipf(400, 2.0, 100), beta=(2, 3), sd=0.8),
    "1,000 clusters of one row": Design(_equal(1000, 1), sd=0.0),
}
#: Label, design, and what fixes the slope: a true error, or the slope itself.
CASES: list[tuple[str, float, float]] = [
    *((name, error, design.slope_of(error)) for name, design in DESIGNS.items() for error in (0.0, 0.06)),
    *(
        (name, DESIGNS[name].true_error(0.7), 0.7)
        for name in (
            "200 questions x 5, ICC 0.1",
            "200 questions x 5, ICC 0.3",
            "1,000 questions x 5, ICC 0.3",
        )
    ),
]


def main(*, quick: bool = False, draws: int = 1000) -> None:
    """Draw, and count how often the interval contains the truth and the test rejects."""
    repeats = 10 if quick else draws
    rows = Parallel(n_jobs=2)(delayed(cell)(*case, repeats) for case in CASES)
    text = page(rows)
    print(text)
    if not quick:
        write("clusters", text, rows)


def cell(name: str, error: float, slope: float, repeats: int, first: int = 0) -> Row:
    """Return counts over draws `first` to ``first + repeats`` of one design; counts of several parts can be added."""
    design = DESIGNS[name]
    row: Row = {"design": name, "true_error": error, "slope": slope, "draws": repeats}
    counts = dict.fromkeys(("covered", "rejected", "above_0", "plain_covered", "plain_rejected"), 0)
    width = 0.0
    value = 0.0
    for number in range(first, first + repeats):
        rng = np.random.default_rng([17, zlib.crc32(f"{name} {slope:.6f}".encode()), number])
        label, score, cluster = design.draw(rng, slope)
        sample = truecal.Sample.from_predictions(label, score, clusters=cluster)
        found = truecal.estimate(sample, confidence_level=LEVEL)
        assert found.interval is not None
        counts["covered"] += _holds(error, found.interval)
        counts["above_0"] += found.interval.low > 0
        counts["rejected"] += truecal.calibration_test(sample, n_resamples=199, rng=rng).pvalue <= 1 - LEVEL
        width += found.interval.high - found.interval.low
        value += found.value
        plain = truecal.Sample.from_predictions(label, score)
        counts["plain_covered"] += _holds(error, truecal.confidence_interval(plain))
        counts["plain_rejected"] += (
            truecal.calibration_test(plain, n_resamples=199, rng=rng).pvalue <= 1 - LEVEL
        )
    return {**row, **counts, "width": width, "value": value}


def _holds(truth: float, interval: Any) -> bool:
    return bool(interval.low - 1e-9 <= truth <= interval.high + 1e-9)


def merge(rows: Sequence[Row]) -> list[Row]:
    """Add the counts of rows of the same design and truth."""
    found: dict[tuple[str, float], Row] = {}
    fixed = ("design", "true_error", "slope")
    for row in rows:
        key = (row["design"], row["slope"])
        seen = found.get(key)
        found[key] = (
            dict(row) if seen is None else {k: row[k] if k in fixed else seen[k] + row[k] for k in row}
        )
    return list(found.values())


def page(rows: Sequence[Row]) -> str:
    """Return the page of the documentation."""

    def share(row: Row, key: str) -> str:
        return f"{row[key] / row['draws']:.3f}"

    lines = [
        {
            "design": row["design"],
            "true error": f"{row['true_error']:.3f}",
            "mean estimate": f"{row['value'] / row['draws']:.3f}",
            "interval covers": share(row, "covered"),
            "width": f"{row['width'] / row['draws']:.3f}",
            "test rejects": share(row, "rejected"),
            "covers, rows as independent": share(row, "plain_covered"),
            "rejects, rows as independent": share(row, "plain_rejected"),
        }
        for row in rows
    ]
    draws = min(row["draws"] for row in rows)
    return f"""# Clusters

Nominal level {LEVEL:g}; {draws} draws of each design, 199 resamples for each test. A share of 0.95 (or 0.05) has a
Monte Carlo standard error of {(0.95 * 0.05 / draws) ** 0.5:.3f}. The last two columns treat the same rows as
independent, which is what leaving out `clusters=` does.
Made by `python benchmarks/run.py clusters` on {machine()}.

Questions have one score each; the chance of a correct answer is drawn from a beta distribution around the calibration
curve with the given intraclass correlation. Patients and hospitals have a score for each row and a normal random
effect on the logit (standard deviation 0.8 and 0.4) that averages to the calibration curve. The curve is a slope on
the logit: 1 for a true error of 0, the slope that gives 0.06, and 0.7 in the last rows, where "test rejects" is the
power. Zipf sizes have exponent 2 and are cut at 100 rows.

{markdown(lines)}
"""
