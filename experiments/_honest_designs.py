"""Rows for the gate that are more than labels and scores: weights, clusters, classes, top labels, cells."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

import truecal
from experiments._honest_populations import COVERED, FINER, Population, population
from truecal.data import as_sample
from truecal.data.sample import Sample
from truecal.multiscale import Limits, analyse

Array = NDArray[Any]


class Design:
    """A design whose error is known; this one has independent rows without weights.

    Parameters
    ----------
    scores, shape : str
        Names of the scores and of the family of curves.
    """

    def __init__(self, scores: Any, shape: Any) -> None:
        self.scores, self.shape = scores, shape

    def at(self, error: float) -> Population | None:
        """Return the population with this error."""
        return population(self.scores, self.shape, error)

    def limits(self, known: Any, rng: np.random.Generator, n: int) -> Limits:
        """Return the limits of one sample."""
        return analyse(as_sample(*known.draw(rng, n))).limits

    def coverage(self, known: Any, n: int) -> str:
        """Return whether the printed sentence covers the curve."""
        return known.coverage(n)


class Weighted(Design):
    """Lognormal weights, which do not depend on scores and labels.

    Parameters
    ----------
    scores, shape : str
        As of `Design`.
    sd : float
        Standard deviation of the logarithm.
    """

    def __init__(self, scores: Any, shape: Any, sd: float = 1.0) -> None:
        super().__init__(scores, shape)
        self.sd = sd

    def limits(self, known: Any, rng: np.random.Generator, n: int) -> Limits:
        label, score = known.draw(rng, n)
        return analyse(as_sample(label, score, sample_weight=rng.lognormal(0, self.sd, n))).limits

    def coverage(self, known: Any, n: int) -> str:
        return known.coverage(int(n * math.exp(-(self.sd**2))))  # effective rows


class Clustered(Design):
    """Clusters of equal size, with labels that a normal variable of the cluster moves.

    Parameters
    ----------
    scores, shape : str
        As of `Design`.
    size : int
        Rows of a cluster.
    icc : float
        Correlation of the latent normal variables of two rows of a cluster.
    shared : bool
        Whether all rows of a cluster have the same score.
    """

    def __init__(self, scores: Any, shape: Any, size: int, icc: float, *, shared: bool = False) -> None:
        super().__init__(scores, shape)
        self.size, self.icc, self.shared = size, icc, shared

    def limits(self, known: Any, rng: np.random.Generator, n: int) -> Limits:
        cluster = np.arange(n) // self.size
        n_clusters = int(cluster[-1]) + 1
        place = known.scores.draw(rng, n_clusters)[cluster] if self.shared else known.scores.draw(rng, n)
        latent = math.sqrt(self.icc) * rng.normal(size=n_clusters)[cluster]
        latent += math.sqrt(1 - self.icc) * rng.normal(size=n)
        label = (latent < scipy.special.ndtri(known.rate[place])).astype(np.int64)
        return analyse(as_sample(label, known.scores.value[place], clusters=cluster)).limits

    def coverage(self, known: Any, n: int) -> str:
        found = known.coverage(n)
        # Resolutions of clusters are lower; the rule counts clusters, which are what is independent.
        return found if not known.shape.each else known.coverage(n // self.size if self.shared else n)


class Cells(Design):
    """Rows that an engine has summarised into cells of scores."""

    def limits(self, known: Any, rng: np.random.Generator, n: int) -> Limits:
        import pandas

        label, score = known.draw(rng, n)
        table = pandas.DataFrame({"label": label, "score": score})
        sample = truecal.summarize(table, label="label", score="score")
        assert isinstance(sample, Sample)
        return analyse(sample).limits


class Classes:
    """K classes whose probabilities are off by amounts that depend on the class's own probability only.

    Parameters
    ----------
    n_classes : int
        K.
    kind : {"flat", "one", "types"}
        Probabilities are mixed with equal ones, or with one class; or each of 12 vectors has errors of its own.
    sharpness : float
        Concentration of the Dirichlet distribution of the vectors.
    multiclass : {"classwise", "top"}
        What is tested.
    """

    def __init__(
        self, n_classes: int, kind: str, sharpness: float = 0.5, multiclass: str = "classwise"
    ) -> None:
        self.n_classes, self.kind, self.multiclass = n_classes, kind, multiclass
        rng = np.random.default_rng([5, n_classes])
        rows = 12 if kind == "types" else 20_000
        self.vector = rng.dirichlet(np.full(n_classes, sharpness), rows)
        self.error = rng.dirichlet(np.full(n_classes, 0.5), rows)  # of types

    def at(self, error: float) -> Array | None:
        """Return the true probabilities of all vectors."""
        k = self.n_classes
        target: Array = np.full(k, 1 / k)
        if self.kind == "one":
            target = np.eye(k)[0]
        elif self.kind == "types":
            target = self.error
        gap = self.vector - target
        if self.multiclass == "top":
            top = self.vector.argmax(axis=1)
            gap = gap[np.arange(len(gap)), top]
        share = error / math.sqrt(float(np.mean(gap**2)))
        return None if share > 1 else (1 - share) * self.vector + share * target

    def limits(self, known: Array, rng: np.random.Generator, n: int) -> Limits:
        """Return the limits of one sample."""
        place = rng.integers(len(known), size=n)
        label = (rng.random(n)[:, np.newaxis] > np.cumsum(known[place], axis=1)).sum(axis=1)
        label = np.minimum(label, self.n_classes - 1)
        found = truecal.calibration_test(
            label, self.vector[place], at_most=0.5, multiclass=self.multiclass, labels=range(self.n_classes)
        ).limits
        assert found is not None
        return found

    def coverage(self, known: Array, n: int) -> str:
        """Return whether the printed sentence covers the curve."""
        return COVERED if self.kind != "types" or n >= 12 * 15 else FINER


def _clusters() -> dict[str, tuple[Any, int]]:
    found: dict[str, tuple[Any, int]] = {}
    for number, size, icc in (
        (15, 20, 0.3),
        (15, 100, 0.1),
        (20, 50, 0.2),
        (30, 30, 0.1),
        (60, 50, 0.05),
        (60, 50, 0.3),
    ):
        for scores, shape in (("u", "shift"), ("tree5", "rnd"), ("skew", "down"), ("rare1", "shift")):
            name = f"{number} x {size}, ICC {icc:g}: {scores}/{shape}"
            found[name] = Clustered(scores, shape, size, icc), number * size
    for number, size, icc in ((30, 20, 0.3), (200, 5, 0.3), (60, 50, 0.1)):
        name = f"{number} x {size}, ICC {icc:g}, one score each: central/slope"
        found[name] = Clustered("central", "slope", size, icc, shared=True), number * size
    for number, size in ((20, 10), (40, 20)):
        name = f"{number} x {size}, one score and one label each: sharp2/temp"
        found[name] = Clustered("sharp2", "temp", size, 1.0, shared=True), number * size
    return found


def designs() -> dict[str, tuple[Any, int]]:
    """Return the designs by name, with their number of rows."""
    found: dict[str, tuple[Any, int]] = {}
    for n in (300, 3000):
        for scores, shape in (
            ("u", "shift"),
            ("tree5", "rnd"),
            ("rare4", "shift"),
            ("iso20", "rnd"),
            ("skew", "high10"),
            ("grades7", "middle"),
        ):
            found[f"lognormal(1) weights: {scores}/{shape}, n = {n}"] = Weighted(scores, shape), n
    found |= _clusters()
    for k in (3, 5, 10, 20):
        for kind in ("flat", "one", "types"):
            for n in (300, 2000):
                found[f"{k} classes, {kind}, n = {n}"] = Classes(k, kind), n
    for k in (4, 10):
        found[f"top of {k} classes, flat, n = 1000"] = Classes(k, "flat", multiclass="top"), 1000
    for scores, shape in (("u", "high10"), ("credit", "bent"), ("tree5", "rnd"), ("votes100", "rnd")):
        found[f"cells: {scores}/{shape}, n = 2000"] = Cells(scores, shape), 2000
    return found
