"""Experiments that compare truecal with what a paper says: of other papers, and questions that the paper left open."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments._page import Page
from truecal._lib.types import FloatArray
from truecal.data import as_sample
from truecal.data.sample import Sample
from truecal.reproduce._contract import Outcome, Records, Settings, as_markdown
from truecal.reproduce._data import npz_arrays
from truecal.reproduce._studies import kept_in_parallel

Measure = Callable[[Settings], Outcome]


@dataclass(frozen=True)
class Experiment:
    """A function of `Settings` whose `Outcome` becomes a page; the runner calls it as it calls any other ``main``."""

    where: str
    title: str
    measure: Measure

    def __call__(
        self,
        *,
        quick: bool = False,
        n_jobs: int = 1,
        seed: int = 2022,
        logits: Path | None = None,
        data: Path | None = None,
    ) -> Page:
        """Run the experiment, with simulations kept in TRUECAL_BENCHMARK_CACHE if that names a folder."""
        with tempfile.TemporaryDirectory(prefix="truecal-") as temporary:
            kept = os.environ.get("TRUECAL_BENCHMARK_CACHE", temporary)
            return self.page(Settings(Path(kept), "quick" if quick else "full", seed, n_jobs, logits, data))

    def page(self, settings: Settings) -> Page:
        """Return the page: the figures, and every comparison with its Monte Carlo error."""
        outcome = self.measure(settings)
        name = self.measure.__module__.rpartition(".")[2]
        stems = [f"{name}_{suffix}" if suffix else name for suffix in outcome.figures]
        rows = [{"where": self.where, **asdict(comparison)} for comparison in outcome.comparisons]
        text = "\n\n".join(
            [f"# {self.title}", *(f"![{self.title}]({stem}.svg)" for stem in stems), as_markdown(rows)]
        )
        return Page(text, outcome.tables, outcome.figures, folder=name.partition("_")[0])


def experiment(where: str, title: str) -> Callable[[Measure], Experiment]:
    """Declare a function as an experiment, with the paper that it is about and a title."""
    return lambda measure: Experiment(where, title, measure)


def rows_in_parallel(
    settings: Settings, name: str, function: Callable[..., Records], jobs: Sequence[tuple[Any, ...]]
) -> Records:
    """Return the rows of all jobs, in order; those of finished jobs are read from the work folder."""
    return [row for rows in kept_in_parallel(settings, name, function, jobs) for row in rows]


def binary_sets(settings: Settings) -> dict[str, Sample]:
    """Return every set of probabilities of a positive class, by name."""
    files = npz_arrays(settings.data, "scores", "labels")
    return {path.stem: as_sample(label, score) for path, (score, label) in files}


def hit_sets(settings: Settings) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return (label, score) of every set of top-label scores with their hits, by name, in the order of its rows."""
    files = npz_arrays(settings.data, "confidence", "correct")
    return {path.stem: (correct.astype(np.float64), score) for path, (score, correct) in files}
