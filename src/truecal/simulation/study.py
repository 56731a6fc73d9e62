"""The bias-by-construction study: estimators on draws from populations whose error is known.

    bias_A(n) = mean over repetitions of ECE_A - TCE          (Roelofs et al. 2022, eq. 7)

Every repetition has a generator of its own, seeded by population, size and number, so that results do not
depend on how work is split, on the number of workers, or on which other estimators take part.
"""

from __future__ import annotations

import csv
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import numpy as np
from joblib import Parallel, delayed

from truecal._lib.checks import as_generator, check_count, check_norm, require
from truecal._lib.files import whole_file
from truecal._lib.progress import Progress
from truecal._lib.types import FloatArray, RNGLike
from truecal.data.sample import Sample
from truecal.estimators._registry import TRUE_ERROR, EstimatorSpec, get_estimator
from truecal.simulation.population import Population

#: Rows that one job draws at once: many repetitions of a small size, few of a large one.
_BLOCK_ROWS = 1 << 18

_TEXT = ("population", "estimator")
_WHOLE = ("n", "repeats", "seed")
COLUMNS = (
    "population", "n", "estimator", "norm", "repeats", "seed",
    "true_error", "mean", "bias", "bias_se", "sd", "rmse", "median_bias", "mean_bins",
)  # fmt: skip


@dataclass(frozen=True)
class Study:
    """Bias, spread and error of estimators on populations with known truth.

    Attributes
    ----------
    rows : list of dict
        One for each population, size and estimator, with the keys

        - ``population``, ``n``, ``estimator``, ``norm``, ``repeats``, ``seed``: what was done;
        - ``true_error``: the truth; ``mean``: of the estimates; ``bias``: their difference;
        - ``bias_se``: Monte Carlo standard error of the bias, ``sd / sqrt(repeats)``;
        - ``sd``, ``rmse``: spread of the estimates, and their root mean square distance from the truth;
        - ``median_bias``: median of the estimates less the truth;
        - ``mean_bins``: mean number of bins, None where there are none.

        Where an estimator has another estimand than the true calibration error, ``true_error`` and what
        follows from it are None.
    """

    rows: list[dict[str, Any]]

    def to_frame(self, backend: Literal["polars", "pandas", "pyarrow"] = "polars") -> Any:
        """Return the rows as a data frame of the given library.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow"}
            The library, which must be installed.
        """
        require(backend, extra="app", purpose=f"A {backend} frame")
        columns = {name: [row[name] for row in self.rows] for name in COLUMNS}
        return nw.from_dict(columns, backend=backend).to_native()

    def to_csv(self, path: str | Path) -> None:
        """Write the rows to a file, whole or not at all.

        Parameters
        ----------
        path : str or Path
            The file, a CSV.
        """
        with whole_file(path, newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(self.rows)

    @classmethod
    def from_csv(cls, path: str | Path) -> Study:
        """Read a file that `to_csv` or `bias_study` wrote.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Study
        """
        path = Path(path)
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != COLUMNS:
                raise ValueError(f"{path} holds no study results: its columns are {reader.fieldnames}.")
            return cls([{key: _parse(key, text) for key, text in row.items()} for row in reader])

    def __str__(self) -> str:
        head = ["population", "n", "estimator", "truth", "mean", "bias", "± se", "sd", "rmse"]
        body = [
            [row["population"], str(row["n"]), row["estimator"]]
            + [_show(row[key]) for key in ("true_error", "mean", "bias", "bias_se", "sd", "rmse")]
            for row in self.rows
        ]
        widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
        lines = [
            "  ".join(
                text.ljust(width) if name in _TEXT else text.rjust(width)
                for name, text, width in zip(head, line, widths, strict=True)
            )
            for line in [head, *body]
        ]
        return "\n".join(lines)


def bias_study(
    populations: Mapping[str, Population],
    *,
    estimators: Iterable[str | Mapping[str, Any]],
    sizes: Iterable[int],
    repeats: int = 1000,
    norm: float = 2,
    rng: RNGLike = None,
    n_jobs: int = 1,
    path: str | Path | None = None,
    progress: bool | None = None,
) -> Study:
    r"""Measure the bias, the spread and the error of estimators where the truth is known.

    For each population and size n, draw `repeats` samples, apply every estimator to every one of them,
    and compare with the true calibration error:

    .. math:: \widehat{\mathrm{Bias}}(n) = \frac 1m \sum_{i=1}^m \mathrm{ECE}_i - \mathrm{TCE}

    Parameters
    ----------
    populations : mapping of str to Population
        What to draw from, by name.
    estimators : iterable of str or mapping
        Names from `truecal.list_estimators`. A mapping such as ``{"estimator": "em_bin", "n_bins": 4}``
        sets options, and appears as ``"em_bin(n_bins=4)"``.
    sizes : iterable of int
        Sample sizes n.
    repeats : int
        Number of samples of each.
    norm : float
        The p of the norm, in the truth and in the estimators.
    rng : int, Generator or None
        Seed. One child of it seeds each repetition, by the name of the population, n, and its number.
    n_jobs : int
        Number of workers, as in joblib. Inside ``joblib.parallel_config("dask")`` or another backend the
        work goes to that cluster.
    path : str or Path, optional
        File for the results, a CSV. It is brought up to date after each population and size, and is valid
        whenever the run is killed. What is in it already, for the same seed, is not computed again.
    progress : bool, optional
        Whether to show progress; by default if standard error is a terminal.

    Returns
    -------
    Study

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), AISTATS, section 4.

    Examples
    --------
    >>> import truecal
    >>> calibrated = truecal.Population(truecal.simulation.BetaScores(2.8, 0.05), truecal.simulation.IdentityCurve())
    >>> study = truecal.bias_study(
    ...     {"calibrated": calibrated}, estimators=["ew_bin", "em_debias"], sizes=[200], repeats=200, rng=0
    ... )
    >>> for row in study.rows:
    ...     print(row["estimator"], f"{row['bias']:.3f}")
    ew_bin 0.068
    em_debias 0.010
    """
    norm = check_norm(norm)
    repeats = check_count("repeats", repeats)
    sizes = [check_count("sizes", n) for n in sizes]
    choices = choose_estimators(estimators)
    if not (populations and sizes and choices):
        raise ValueError("bias_study needs at least one population, one size and one estimator.")
    known = _known_rows(path)
    seed = _seed(rng, known)
    truths = {name: population.true_error(norm) for name, population in populations.items()}
    settings = {"norm": norm, "repeats": repeats, "seed": seed}
    _refuse_other_study(path, known, truths, settings)

    cells = [_Cell(name, n, population) for name, population in populations.items() for n in sizes]
    finished = {(row["population"], row["n"], row["estimator"]): row for row in known}

    def missing(cell: _Cell) -> list[Choice]:
        return [choice for choice in choices if (cell.name, cell.n, choice.label) not in finished]

    jobs = [
        _Job(cell, tuple(missing(cell)), first, min(first + cell.block, repeats))
        for cell in cells
        if missing(cell)
        for first in range(0, repeats, cell.block)
    ]
    with Progress("study", total=sum(job.cost for job in jobs), show=progress) as bar:
        outcomes = _run(jobs, n_jobs, norm, seed, bar)
        for cell, blocks in groupby(outcomes, key=lambda outcome: outcome[0].cell):
            done = list(blocks)
            values = np.concatenate([block for _, block in done], axis=2)
            for choice, (estimates, bins) in zip(done[0][0].choices, values, strict=True):
                truth = truths[cell.name] if choice.spec.estimand == TRUE_ERROR else None
                finished[cell.name, cell.n, choice.label] = {
                    "population": cell.name,
                    "n": cell.n,
                    "estimator": choice.label,
                    **settings,
                    **_summary(truth, estimates, bins),
                }
            if path is not None:
                Study(list(finished.values())).to_csv(path)
    return Study([finished[cell.name, cell.n, choice.label] for cell in cells for choice in choices])


# --- What is to be done ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """An estimator with its options, under the name that appears in the results."""

    label: str
    spec: EstimatorSpec
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Cell:
    """One population at one size."""

    name: str
    n: int
    population: Population

    @property
    def block(self) -> int:
        """How many repetitions one job draws."""
        return max(1, _BLOCK_ROWS // self.n)


@dataclass(frozen=True)
class _Job:
    """Repetitions `first` to `end` of a cell."""

    cell: _Cell
    choices: tuple[Choice, ...]
    first: int
    end: int

    @property
    def cost(self) -> float:
        return (self.end - self.first) * (self.cell.n + 500.0)  # a repetition costs some even if it is small


def choose_estimators(estimators: Iterable[str | Mapping[str, Any]]) -> list[Choice]:
    """Return the estimators that names, and mappings of a name and options, stand for."""
    if isinstance(estimators, str | Mapping):
        raise ValueError(f"estimators must be a list of names or mappings. Got {estimators!r} instead.")
    choices: dict[str, Choice] = {}
    for item in estimators:
        options = {} if isinstance(item, str) else dict(item)
        name = item if isinstance(item, str) else options.pop("estimator", None)
        spec = get_estimator(name)
        spec.check_options(options)
        told = ", ".join(f"{key}={value!r}" for key, value in options.items())
        label = f"{spec.name}({told})" if told else spec.name
        choices[label] = Choice(label, spec, options)
    return list(choices.values())


def _seed(rng: RNGLike, known: Sequence[Mapping[str, Any]]) -> int:
    """Return one whole number that stands for `rng`; None goes on with the seed of the results file."""
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool):
        return int(rng)
    if rng is None and known:
        return int(known[0]["seed"])
    return int(as_generator(rng).integers(2**63))


def _known_rows(path: str | Path | None) -> list[dict[str, Any]]:
    return Study.from_csv(path).rows if path is not None and Path(path).exists() else []


def _refuse_other_study(
    path: str | Path | None,
    known: Sequence[Mapping[str, Any]],
    truths: Mapping[str, float],
    settings: Mapping[str, Any],
) -> None:
    """Refuse to mix results with those of other settings, or of other populations of the same name."""
    for row in known:
        for key, value in settings.items():
            if row[key] != value:
                raise ValueError(
                    f"{path} holds results for {key} = {row[key]}, not {value}. Use another file."
                )
        truth = truths.get(row["population"], row["true_error"])
        if row["true_error"] is not None and not math.isclose(truth, row["true_error"], abs_tol=1e-9):
            raise ValueError(
                f"{path} holds results for another population called {row['population']!r}: its true error "
                f"is {row['true_error']:.6g}, not {truth:.6g}. Use another file or another name."
            )


# --- Doing it --------------------------------------------------------------------------------------


def _run(
    jobs: Sequence[_Job], n_jobs: int, norm: float, seed: int, bar: Progress
) -> Iterator[tuple[_Job, FloatArray]]:
    """Yield each job with its values, in order, as they come in."""
    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    for job, values in zip(jobs, parallel(delayed(_do)(job, norm, seed) for job in jobs), strict=True):
        bar.advance(job.cost)
        yield job, values


def _do(job: _Job, norm: float, seed: int) -> FloatArray:
    """Return estimates and numbers of bins, of shape (estimators, 2, repetitions)."""
    repetitions = range(job.first, job.end)
    generators = [_generator(seed, job.cell, repetition) for repetition in repetitions]
    label, score = job.cell.population.sample_many(job.cell.n, generators)
    values = np.full((len(job.choices), 2, len(repetitions)), np.nan)
    for place, sample in enumerate(Sample.from_blocks(label, score)):
        for row, choice in enumerate(job.choices):
            estimate = choice.spec(sample, norm=norm, **choice.options)
            values[row, 0, place] = estimate.value
            if estimate.n_bins is not None:
                values[row, 1, place] = estimate.n_bins
    return values


def _generator(seed: int, cell: _Cell, repetition: int) -> np.random.Generator:
    # The name itself, not its place in the mapping: other populations may come and go.
    key = (zlib.crc32(cell.name.encode()), cell.n, repetition)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def _summary(truth: float | None, estimates: FloatArray, bins: FloatArray) -> dict[str, Any]:
    mean = float(estimates.mean())
    sd = float(estimates.std(ddof=1)) if len(estimates) > 1 else math.nan
    return {
        "true_error": truth,
        "mean": mean,
        "bias": None if truth is None else mean - truth,
        "bias_se": sd / math.sqrt(len(estimates)),
        "sd": sd,
        "rmse": None if truth is None else float(np.sqrt(np.mean((estimates - truth) ** 2))),
        "median_bias": None if truth is None else float(np.median(estimates)) - truth,
        "mean_bins": None if np.isnan(bins).any() else float(bins.mean()),
    }


def _parse(key: str, text: str) -> Any:
    if key in _TEXT:
        return text
    if text == "":
        return None
    return int(text) if key in _WHOLE else float(text)


def _show(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
