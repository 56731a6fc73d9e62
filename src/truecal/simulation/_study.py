"""Estimators on samples of populations whose error is known: draws by key in blocks, and the bias by construction.

bias_A(n) = mean over repetitions of ECE_A - TCE          (Roelofs et al. 2022, eq. 7)

Every repetition has a generator of its own, seeded by a key and the number of the repetition. Results therefore
do not depend on how the work is split, on the number of workers, or on which other estimators take part.
"""

from __future__ import annotations

import csv
import hashlib
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar, cast

import narwhals as nw
import numpy as np
from joblib import Parallel, delayed

import truecal
from truecal._lib.checks import as_generator, check_count, check_norm, require
from truecal._lib.files import exclusive, whole_file
from truecal._lib.numeric import keyed_generator
from truecal._lib.text import Progress
from truecal._lib.types import FloatArray, NormLike, RNGLike
from truecal.data.sample import Block, ScoreGroups
from truecal.estimators._registry import TRUE_ERROR, Choice, choose_estimators, list_estimators
from truecal.exceptions import InputError
from truecal.results import Estimates, Result
from truecal.simulation._population import Population
from truecal.simulation._scores import GRID

Outcome = TypeVar("Outcome")

#: Rows drawn at once: many repetitions of a small size, or few of a large one.
_BLOCK_ROWS = 1 << 18


def blocks_of(repetitions: range, n: int) -> Iterator[range]:
    """Split repetitions of samples of size `n` into blocks that are drawn at once."""
    step = max(1, _BLOCK_ROWS // n)
    return (repetitions[first : first + step] for first in range(0, len(repetitions), step))


def draw_blocks(
    population: Population, n: int, repetitions: range, *, seed: int, key: Sequence[int]
) -> Iterator[Block]:
    """Yield blocks of samples of size `n`; the spawn key of a sample is `key` and the number of its repetition."""
    for numbers in blocks_of(repetitions, n):
        generators = [keyed_generator(seed, *key, number) for number in numbers]
        yield Block.from_rows(*population.sample_many(n, generators))


def apply(
    choices: Sequence[Choice],
    samples: Iterable[ScoreGroups],
    norm: float,
    take: Callable[[Estimates], FloatArray],
) -> FloatArray:
    """Return what `take` finds in the estimates, of shape (estimators, ..., samples)."""
    return np.concatenate(
        [np.stack([take(choice.many(block, norm=norm)) for choice in choices]) for block in samples], axis=-1
    )


def draw_estimates(
    population: Population,
    name: str,
    n: int,
    repetitions: range,
    choices: Sequence[Choice],
    norm: float,
    seed: int,
) -> FloatArray:
    """Return estimates and numbers of bins, of shape (estimators, 2, repetitions); NaN where there are no bins."""
    key = zlib.crc32(name.encode()), n  # the name itself, not its position: other populations may come and go
    return apply(choices, draw_blocks(population, n, repetitions, seed=seed, key=key), norm, _values_and_bins)


def _values_and_bins(estimates: Estimates) -> FloatArray:
    n_bins = np.nan if estimates.n_bins is None else estimates.n_bins
    return np.stack(np.broadcast_arrays(estimates.value, n_bins))


def in_parallel(
    function: Callable[..., Outcome],
    jobs: Sequence[tuple[Any, ...]],
    *,
    name: str,
    costs: Sequence[float] | None = None,
    n_jobs: int = 1,
    progress: bool | None = None,
) -> Iterator[Outcome]:
    """Yield the outcome of ``function(*job)`` for each job, in order, with progress under `name` by relative cost."""
    costs = [1.0] * len(jobs) if costs is None else costs
    outcomes = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(function)(*job) for job in jobs)
    with Progress(name, total=sum(costs), show=progress) as bar:
        for cost, outcome in zip(costs, outcomes, strict=True):
            bar.advance(cost)
            yield outcome


class StudyRow(TypedDict):
    """One row of `Study.rows`, which describes the keys."""

    population: str
    n: int
    estimator: str
    norm: float
    repeats: int
    seed: int
    true_error: float | None
    mean: float
    bias: float | None
    bias_se: float | None
    sd: float
    rmse: float | None
    median_bias: float | None
    mean_bins: float | None
    fingerprint: str


COLUMNS = tuple(StudyRow.__annotations__)
_TEXT = ("population", "estimator", "fingerprint")
_WHOLE = ("n", "repeats", "seed")
_LARGEST_SIZE = 1_000_000_000
#: Scores by which populations are told apart.
_FINGERPRINT_DRAWS = 200


@dataclass(frozen=True)
class Study(Result):
    """Bias, standard deviation and error of estimators on populations with known truth.

    Attributes
    ----------
    rows : list of dict
        One for each population, size and estimator, with the keys

        - ``population``, ``n``, ``estimator``, ``norm``, ``repeats``, ``seed``: the settings;
        - ``true_error``: the true value of what is estimated, in most cases the true calibration error;
        - ``mean``: mean of the estimates; ``bias``: its difference from the true value;
        - ``bias_se``: Monte Carlo standard error of the bias, ``sd / sqrt(repeats)``;
        - ``sd``, ``rmse``: standard deviation of the estimates, and their root mean square error;
        - ``median_bias``: median of the estimates minus the true error;
        - ``mean_bins``: mean number of bins, None for estimators without bins;
        - ``fingerprint``: identifies the population, the estimator and the version of truecal.

        For an estimator of something else, ``true_error`` is its own estimand (`Population.true_value`); where that
        is not known, it and what follows from it are None.
    """

    rows: list[StudyRow]

    def to_frame(self, backend: Literal["polars", "pandas", "pyarrow"] = "polars") -> Any:
        """Return the rows as a data frame of the given library.

        Parameters
        ----------
        backend : {"polars", "pandas", "pyarrow"}
            The library, which must be installed.
        """
        require(backend, extra="app", purpose=f"A {backend} frame")
        columns = {name: [row.get(name) for row in self.rows] for name in COLUMNS}
        return nw.from_dict(columns, backend=backend).to_native()

    def to_csv(self, path: str | Path) -> None:
        """Write the rows to a CSV file, atomically.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        with whole_file(path, newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(self.rows)

    @classmethod
    def from_csv(cls, path: str | Path) -> Study:
        """Return the study in the file `path`, which `to_csv` or `bias_study` wrote."""
        path = Path(path)
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != COLUMNS:
                raise InputError(
                    f"{path} does not contain study results. Its columns are {reader.fieldnames}"
                )
            rows = []
            for row in reader:
                try:
                    rows.append({key: _parse(key, row[key]) for key in COLUMNS})
                except (TypeError, ValueError) as error:
                    raise _damaged(path, reader.line_num) from error
            if not path.read_bytes().endswith(b"\n"):  # the last number may have lost digits
                raise _damaged(path, reader.line_num)
            return cls(cast("list[StudyRow]", rows))

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
    norm: NormLike = 2,
    n_jobs: int = 1,
    path: str | Path | None = None,
    progress: bool | None = None,
    rng: RNGLike = None,
) -> Study:
    r"""Measure the bias, the standard deviation and the error of estimators where the truth is known.

    For each population and size n, draw `repeats` samples, apply every estimator to each of them, and compare
    with what it estimates, in most cases the true calibration error:

    .. math:: \widehat{\mathrm{Bias}}(n) = \frac 1m \sum_{i=1}^m \mathrm{ECE}_i - \mathrm{TCE}

    Parameters
    ----------
    populations : mapping of str to Population
        Populations to draw from, by name.
    estimators : iterable of str or mapping
        Names from `truecal.list_estimators`. A mapping such as ``{"estimator": "em_bin", "n_bins": 4}``
        sets options, and appears as ``"em_bin(n_bins=4)"``.
    sizes : iterable of int
        Sample sizes n.
    repeats : int
        Number of samples for each population and size.
    norm : float, "l1" or "l2"
        Order of the norm, of the true error and of the estimators.
    n_jobs : int
        Number of workers, as in joblib. Inside ``joblib.parallel_config("dask")`` or another backend the
        work goes to that cluster.
    path : str or Path, optional
        CSV file for the results. It is updated after each population and size, and is valid at any time. Rows
        that it already contains are not computed again; rows of another population, estimator or setting are
        an error.
    progress : bool, optional
        Whether to show progress; by default if standard error is a terminal.
    rng : seed or numpy.random.Generator, optional
        Random seed. Each repetition has its own child seed, identified by the name of the population, n and
        the number of the repetition.

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
    if max(sizes, default=0) > _LARGEST_SIZE:
        raise InputError(f"must be at most {_LARGEST_SIZE:,}. Got {max(sizes)} instead", argument="sizes")
    choices = choose_estimators(estimators)
    if not (populations and sizes and choices):
        raise InputError("bias_study needs at least one population, one size and one estimator")
    for choice in choices:
        if choice.spec.fixed_norm not in (None, norm):
            raise InputError(
                f"must be {choice.spec.fixed_norm:g} for {' or '.join(map(repr, choice.spec.aliases))}",
                argument="norm",
                remedy=f"For other norms name the estimator {choice.spec.name!r}.",
            )
    if path is None:
        return _Plan(populations, sizes, choices, repeats, norm, _seed(rng)).run([], None, n_jobs, progress)
    with exclusive(path):
        stored = Study.from_csv(path).rows if Path(path).exists() else []
        plan = _Plan(populations, sizes, choices, repeats, norm, _seed(rng, stored))
        return plan.run(stored, Path(path), n_jobs, progress)


#: One population, by name, at one size.
_Task = tuple[str, int]


@dataclass(frozen=True)
class _Plan:
    """The checked arguments of a study."""

    populations: Mapping[str, Population]
    sizes: Sequence[int]
    choices: Sequence[Choice]
    repeats: int
    norm: float
    seed: int

    def run(self, stored: Sequence[StudyRow], path: Path | None, n_jobs: int, progress: bool | None) -> Study:
        """Compute the rows that are not stored yet, and write the file after each population and size."""
        truths = {name: population.true_error(self.norm) for name, population in self.populations.items()}
        behaviours = {name: behaviour(self.populations[name], truth) for name, truth in truths.items()}
        prints = {
            (name, choice.label): fingerprint(numbers, choice)
            for name, numbers in behaviours.items()
            for choice in self.choices
        }
        self._check_stored(path, stored, truths, prints)
        rows = {(row["population"], row["n"], row["estimator"]): row for row in stored}
        missing = {
            (name, n): [choice for choice in self.choices if (name, n, choice.label) not in rows]
            for name in self.populations
            for n in self.sizes
        }
        for (name, n), values in self._estimates(missing, n_jobs, progress):
            for choice, (estimates, bins) in zip(missing[name, n], values, strict=True):
                truth, key = self._truth(choice, name, truths), (name, n, choice.label)
                rows[key] = self._row(*key, truth, estimates, bins, prints[name, choice.label])
            if path is not None:
                Study(list(rows.values())).to_csv(path)
        return Study([rows[name, n, choice.label] for name, n in missing for choice in self.choices])

    def _estimates(
        self, missing: Mapping[_Task, list[Choice]], n_jobs: int, progress: bool | None
    ) -> Iterator[tuple[_Task, FloatArray]]:
        """Yield estimates and numbers of bins of each task, of shape (estimators, 2, repeats)."""
        blocks = [
            ((name, n), block)
            for (name, n), choices in missing.items()
            if choices
            for block in blocks_of(range(self.repeats), n)
        ]
        outcomes = in_parallel(
            draw_estimates,
            [
                (self.populations[name], name, n, block, missing[name, n], self.norm, self.seed)
                for (name, n), block in blocks
            ],
            name="study",
            costs=[len(block) * (n + 500.0) for (_, n), block in blocks],  # small samples have a fixed cost
            n_jobs=n_jobs,
            progress=progress,
        )
        for task, pairs in groupby(zip(blocks, outcomes, strict=True), key=lambda pair: pair[0][0]):
            yield task, np.concatenate([values for _, values in pairs], axis=-1)

    def _check_stored(
        self,
        path: Path | None,
        stored: Sequence[StudyRow],
        truths: Mapping[str, float],
        prints: Mapping[tuple[str, str], str],
    ) -> None:
        """Refuse to mix results with those of other settings, populations or versions."""
        of_the_error = {spec.name for spec in list_estimators() if spec.estimand == TRUE_ERROR}
        for row in stored:
            for key in ("norm", "repeats", "seed"):
                if row[key] != getattr(self, key):
                    raise InputError(
                        f"{path} contains results for {key} = {row[key]}, not {getattr(self, key)}. Use another file"
                    )
            name, label = row["population"], row["estimator"]
            truth = row["true_error"] if label.partition("(")[0] in of_the_error else None
            if truth is not None and not math.isclose(truths.get(name, truth), truth, abs_tol=1e-9):
                raise InputError(
                    f"{path} contains results for another population called {name!r}: its true error is "
                    f"{truth:.6g}, not {truths[name]:.6g}. Use another file or another name"
                )
            if prints.get((name, label), row["fingerprint"]) != row["fingerprint"]:
                raise InputError(
                    f"{path} contains results of {label} for another population called {name!r}, or of another "
                    f"version of truecal. Use another file"
                )

    def _truth(self, choice: Choice, name: str, truths: Mapping[str, float]) -> float | None:
        """Return the value of what an estimator estimates, in most cases the true error; None if it is not known."""
        if choice.spec.estimand == TRUE_ERROR:
            return truths[name]
        return self.populations[name].true_value(choice.spec.name, norm=self.norm, **choice.options)

    def _row(
        self,
        population: str,
        n: int,
        estimator: str,
        truth: float | None,
        estimates: FloatArray,
        bins: FloatArray,
        fingerprint: str,
    ) -> StudyRow:
        mean = float(estimates.mean())
        sd = float(estimates.std(ddof=1)) if len(estimates) > 1 else math.nan
        return {
            "population": population,
            "n": n,
            "estimator": estimator,
            "norm": self.norm,
            "repeats": self.repeats,
            "seed": self.seed,
            "true_error": truth,
            "mean": mean,
            "bias": None if truth is None else mean - truth,
            "bias_se": sd / math.sqrt(len(estimates)),
            "sd": sd,
            "rmse": None if truth is None else float(np.sqrt(np.mean((estimates - truth) ** 2))),
            "median_bias": None if truth is None else float(np.median(estimates)) - truth,
            "mean_bins": None if np.isnan(bins).any() else float(bins.mean()),
            "fingerprint": fingerprint,
        }


def behaviour(population: Population, true_error: float) -> bytes:
    """Return numbers that identify a population, whose curve may be a function that cannot be compared.

    They are scores drawn with a fixed seed, point masses, the distribution function, and the curve there and on a grid
    that is dense near 0 and 1.
    """
    score, complement = population.draw(_FINGERPRINT_DRAWS, np.random.default_rng(0))
    numbers = np.concatenate(
        [
            [true_error, population.scores.mean],
            score,
            population.curve(score, complement),
            population.curve(*GRID),
            population.scores.cdf(GRID[0]),
            *population.scores.point_masses,
        ]
    )
    return numbers.astype(np.float32).tobytes()  # other processors may round the last digits differently


def fingerprint(behaviour: bytes, choice: Choice) -> str:
    """Return a short hash of a population's behaviour, an estimator with its options, and the version of truecal."""
    options = {**choice.spec.options, **choice.options}
    text = f"{choice.spec.name} {sorted(options.items())!r} {truecal.__version__}"
    return hashlib.sha256(behaviour + text.encode()).hexdigest()[:16]


def _seed(rng: RNGLike, stored: Sequence[StudyRow] = ()) -> int:
    """Return a seed for `rng`; None continues with the seed of the stored rows."""
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool):
        as_generator(rng)  # refuses a negative one
        return int(rng)
    if rng is None and stored:
        return int(stored[0]["seed"])
    return int(as_generator(rng).integers(2**63))


def _damaged(path: Path, line: int) -> InputError:
    return InputError(
        f"{path}: line {line} is cut off or damaged", remedy="Remove it; its results are then computed again."
    )


def _parse(key: str, text: str | None) -> Any:
    if text is None:
        raise TypeError("a field is missing")
    if key in _TEXT:
        return text
    if text == "":
        return None
    return int(text) if key in _WHOLE else float(text)


def _show(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
