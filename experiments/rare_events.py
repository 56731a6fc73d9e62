"""Rows in clusters with rare events: level of the test, and family-wise level of groups and of the audit."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import ndtr

import truecal
from experiments._page import Page, markdown

Array = NDArray[Any]
Row = dict[str, Any]

ALPHA, RESAMPLES = 0.05, 199


@dataclass(frozen=True)
class Design:
    """Calibrated predictions of rows in clusters of equal size.

    Attributes
    ----------
    effects : {"copula", "beta"}
        Scores of rows and normal effects of clusters (a Gaussian copula of the labels), or one score for each cluster
        and its chance drawn from a beta distribution around it.
    mean, shape : float
        Mean of the scores, and the parameter of their beta distribution on the side of the rare class.
    clusters, rows : int
        Numbers of clusters and of rows.
    icc : float
        Correlation of the normal variables behind two labels of a cluster, or of the two labels themselves.
    nested : bool
        Whether groups are made of whole clusters.
    """

    effects: str
    mean: float
    clusters: int
    rows: int
    icc: float
    shape: float = 2.0
    nested: bool = False

    def draw(self, rng: np.random.Generator, scale: float = 1.0) -> tuple[Array, Array, Array]:
        """Return labels, scores and clusters; `scale` multiplies the scores once labels are drawn."""
        who = np.arange(self.rows) % self.clusters
        rare = min(self.mean, 1 - self.mean)
        other = self.shape / rare - self.shape
        parameters = (self.shape, other) if self.mean <= 0.5 else (other, self.shape)
        if self.effects == "beta":
            score = rng.beta(*parameters, self.clusters)
            rest = (1 - self.icc) / self.icc
            label = rng.random(self.rows) < rng.beta(score * rest, (1 - score) * rest)[who]
            score = score[who]
        else:
            score = rng.beta(*parameters, self.rows)
            common, own = rng.normal(size=self.clusters)[who], rng.normal(size=self.rows)
            label = ndtr(math.sqrt(self.icc) * common + math.sqrt(1 - self.icc) * own) < score
        return label.astype(int), np.clip(scale * score, 0, 1), who

    def groups(self, rng: np.random.Generator, who: Array) -> Array:
        """Return three groups of random rows, or of whole clusters."""
        return rng.permutation(self.clusters)[who] % 3 if self.nested else rng.integers(0, 3, self.rows)


DESIGNS: list[Design] = [
    Design("copula", 0.002, 50, 1000, 0.1),
    Design("copula", 0.002, 60, 20_000, 0.1),
    Design("beta", 0.005, 40, 20_000, 0.3),
    Design("copula", 0.01, 20, 100, 0.0),
    Design("copula", 0.01, 15, 3000, 0.2, shape=0.5),
    Design("beta", 0.02, 30, 4000, 0.1),
    Design("copula", 0.05, 15, 20_000, 0.2),
    Design("copula", 0.05, 20, 1000, 0.3),
    Design("copula", 0.05, 45, 3000, 0.1, nested=True),
    Design("beta", 0.05, 40, 2000, 0.05),
    Design("copula", 0.2, 15, 20_000, 0.3),
    Design("beta", 0.5, 30, 1000, 0.3, shape=1.0, nested=True),
    Design("copula", 0.8, 30, 2000, 0.1, nested=True),
    Design("beta", 0.9, 45, 3000, 0.3, shape=1.0, nested=True),
    Design("copula", 0.99, 30, 400, 0.1),
    Design("copula", 0.998, 30, 8000, 0.05),
]
#: Designs whose scores are multiplied by something, for the power of the test.
OFF: list[tuple[Design, float]] = [
    (Design(effects, 0.05, 40, 2000, 0.05), scale) for effects in ("copula", "beta") for scale in (0.5, 2.0)
]


def main(*, quick: bool = False, draws: int = 400) -> Page:
    """Draw calibrated samples, and count what is rejected."""
    draws = 5 if quick else draws
    cases = [*((design, 1.0) for design in DESIGNS), *OFF]
    rows = Parallel(n_jobs=2, batch_size=1)(delayed(count)(*case, draws) for case in cases)
    text = page(rows)
    return Page(text, {"": rows})


def count(design: Design, scale: float, draws: int) -> Row:
    """Return how often a design is rejected, and how much of it is tested."""
    names = "test", "tested", "groups", "groups_tested", "audit", "audit_tested"
    counts: dict[str, float] = dict.fromkeys(names, 0)
    for number in range(draws):
        rng = np.random.default_rng([29, zlib.crc32(f"{design} {scale}".encode()), number])
        label, score, who = design.draw(rng, scale)
        common = {"clusters": who, "n_resamples": RESAMPLES, "rng": rng}
        test = truecal.calibration_test(label, score, **common)
        counts["test"] += test.pvalue <= ALPHA
        counts["tested"] += test.tested
        if scale != 1:
            continue
        by = design.groups(rng, who)
        groups = truecal.assess(label, score, by=by, recalibration=False, **common).groups
        assert groups is not None
        counts["groups"] += bool(groups.miscalibrated)
        counts["groups_tested"] += np.mean([row.tested for row in groups.rows])
        features = {"a": by, "b": rng.integers(0, 3, design.rows), "c": rng.normal(size=design.rows)}
        audit = truecal.audit(label, score, features, min_rows=min(50, design.rows // 10), **common)
        counts["audit"] += bool(audit.found) or audit.off
        counts["audit_tested"] += np.mean([segment.tested for segment in audit.segments])
    return {**vars(design), "scale": scale, "draws": draws, **counts}


def page(rows: Sequence[Row]) -> str:
    """Return the page of the documentation."""

    def line(row: Row, names: Sequence[str]) -> Row:
        shared = {
            "effects": row["effects"],
            "mean score": f"{row['mean'] * row['scale']:g}",
            "clusters": row["clusters"],
            "rows": f"{row['rows']:,}",
            "ICC": f"{row['icc']:g}",
        }
        return shared | {TITLES[name]: f"{row[name] / row['draws']:.3f}" for name in names}

    draws = min(row["draws"] for row in rows)
    level = [
        line(row, list(TITLES)) | {"groups are": "whole clusters" if row["nested"] else "random rows"}
        for row in rows
        if row["scale"] == 1
    ]
    off = [line(row, ["test", "tested"]) for row in rows if row["scale"] != 1]
    return f"""# Clusters with rare events

Shares of {draws} draws of each design at a nominal level of {ALPHA:g}, with {RESAMPLES} resamples. A share of 0.05
has a Monte Carlo standard error of {(0.05 * 0.95 / draws) ** 0.5:.3f}.

All models are calibrated. "copula": each row has a score, and labels depend through a normal effect of their cluster.
"beta": each cluster has one score, and its chance is drawn from a beta distribution around it. The share for three
groups, and for the audit of the segments of three features, is that of draws in which any is reported. "Tested" is the
share of draws, groups or segments whose clusters hold enough information for a test; the others have a p-value of 1.
Some designs are among those on which the constants of the method were chosen.

{markdown(level)}

## Power

5% events in 40 clusters of 50 rows, with scores of half and of twice the risk.

{markdown(off)}
"""


TITLES = {
    "test": "test rejects",
    "tested": "tested",
    "groups": "any group",
    "groups_tested": "groups tested",
    "audit": "any segment",
    "audit_tested": "segments tested",
}
