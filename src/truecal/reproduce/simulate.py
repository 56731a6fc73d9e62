"""Simulations of the parts, whose results are kept in the work folder."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from truecal._lib.files import whole_file
from truecal._lib.types import FloatArray
from truecal.estimators._registry import choose_estimators
from truecal.reproduce.contract import Records, Settings
from truecal.simulation import Population, _draws, bias_study

Outcome = TypeVar("Outcome")


def run_study(
    settings: Settings,
    name: str,
    populations: Mapping[str, Population],
    *,
    estimators: Iterable[str | Mapping[str, Any]],
    sizes: Iterable[int],
    repeats: int,
    norm: float = 2,
) -> Records:
    """Return the rows of a bias study; an interrupted study is resumed.

    Parts that request the same study under the same name share it.
    """
    study = bias_study(
        populations,
        estimators=estimators,
        sizes=sizes,
        repeats=repeats,
        norm=norm,
        rng=settings.seed,
        n_jobs=settings.n_jobs,
        path=settings.work / f"{name}_{repeats}_repeats_seed_{settings.seed}.csv",
        progress=settings.progress,
    )
    return [{key: value for key, value in row.items() if key != "fingerprint"} for row in study.rows]


def draw_estimates(
    settings: Settings,
    name: str,
    population: Population,
    *,
    n: int,
    estimators: Sequence[str],
    repeats: int,
    norm: float = 2,
) -> dict[str, FloatArray]:
    """Return `repeats` estimates by each estimator, for parts that need the whole distribution."""
    path = settings.work / f"{name}_n{n}_{repeats}_repeats_seed_{settings.seed}.npz"
    if path.exists():
        with np.load(path) as kept:
            if set(estimators) <= set(kept.files):
                return {estimator: kept[estimator] for estimator in estimators}
    key = (zlib.crc32(name.encode()), n)
    choices = choose_estimators(estimators)
    jobs = [
        (population, n, block, choices, norm, settings.seed, key)
        for block in _draws.blocks_of(range(repeats), n)
    ]
    blocks = list(in_parallel(settings, name, _draws.draw_estimates, jobs))
    estimates = dict(zip(estimators, np.concatenate(blocks, axis=2)[:, 0], strict=True))
    with whole_file(path, "wb") as file:
        np.savez(file, **estimates)
    return estimates


def in_parallel(
    settings: Settings, name: str, function: Callable[..., Outcome], jobs: Sequence[tuple[Any, ...]]
) -> Iterator[Outcome]:
    """Yield the outcome of a function for each tuple of arguments, in order, with progress."""
    return _draws.in_parallel(function, jobs, name=name, n_jobs=settings.n_jobs, progress=settings.progress)


def rows_in_parallel(
    settings: Settings, name: str, function: Callable[..., Records], jobs: Sequence[tuple[Any, ...]]
) -> Records:
    """Return the rows of all jobs, in order; those of finished jobs are read from the work folder."""
    path = settings.work / f"{name}_seed_{settings.seed}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    lines = [line for line in lines if line.endswith("\n")]  # without one that was interrupted
    done: dict[str, Records] = dict(json.loads(line) for line in lines)
    missing = [job for job in jobs if repr(job) not in done]
    with path.open("w", encoding="utf-8") as file:
        file.writelines(lines)
        file.flush()
        for job, rows in zip(missing, in_parallel(settings, name, function, missing), strict=True):
            done[repr(job)] = rows
            file.write(json.dumps([repr(job), rows]) + "\n")
            file.flush()
    return [row for job in jobs for row in done[repr(job)]]
