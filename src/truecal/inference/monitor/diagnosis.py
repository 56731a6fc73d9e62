"""What changed: the level, the slope, the shape, or a region of scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truecal._lib.text import counted, percent
from truecal._lib.types import FloatArray
from truecal.inference.monitor.alternatives import (
    LOG_PRIOR,
    N_CURVES,
    N_SHAPES,
    N_SLOPES,
    SHIFTS,
    SLOPES,
    node_edges,
)
from truecal.inference.monitor.batch import N_REGIONS
from truecal.results import Result

#: How near to the first or last alternative a mean slope is no more than a bound.
_AT_END = 0.02


@dataclass(frozen=True)
class Diagnosis(Result):
    """What changed.

    Attributes
    ----------
    change : {"level", "slope", "shape", "region", "certain"}
        What the evidence points to: all probabilities are too low or too high; too extreme or not extreme enough;
        another smooth curve; an error in a region of scores; or labels that contradict scores of exactly 0 or 1.
    share : float
        Share of the evidence that is due to this kind of change, given that there is one.
    low, high : float
        The scores concerned.
    gap : float
        Observed frequency less mean score of these scores since the change, or of all rows for certain failures.
    rows : float
        Rows with such scores since then; of clusters, each row is a part of a unit.
    slope : float or None
        For a change of slope, what it is now on the logit scale, averaged over the alternatives.
    failures : int
        Labels that contradict scores of exactly 0 or 1.
    """

    change: str
    share: float
    low: float
    high: float
    gap: float
    rows: float
    slope: float | None = None
    failures: int = 0

    def __str__(self) -> str:
        if self.change == "certain":
            return f"{counted(self.failures, 'label')} contradicted a score of exactly 0 or 1"
        direction = "above" if self.gap > 0 else "below"
        gap = f"the observed frequency is {percent(abs(self.gap))} {direction} the mean score"
        if self.change == "level":
            return f"the level changed: {gap}"
        if self.change == "region":
            return f"scores from {self.low:.3g} to {self.high:.3g} changed: {gap} there"
        if self.slope is not None:
            extreme = "too extreme" if self.slope < 1 else "not extreme enough"
            # The alternatives end there, and the slope may lie beyond, even below 0.
            beyond = " or less" if self.slope < SLOPES.min() + _AT_END else ""
            beyond = " or more" if self.slope > SLOPES.max() - _AT_END else beyond
            return f"the slope changed to about {self.slope:.2f}{beyond} (scores {extreme}), and {gap}"
        return f"the shape of the calibration curve changed: {gap}"


def diagnose(detector: FloatArray, sums: FloatArray, failures: int) -> Diagnosis:
    """Return what changed.

    Parameters
    ----------
    detector : ndarray of shape (N_ALTERNATIVES,)
        Logarithm of the evidence for each alternative, from any time on.
    sums : ndarray
        Sums of regions since the change, as `truecal.inference.monitor.change.region_sums` gives them.
    failures : int
        Labels that contradict scores of exactly 0 or 1.
    """
    weight = LOG_PRIOR + detector
    weight = np.exp(weight - weight.max())
    weight /= weight.sum()
    nodes = weight[N_CURVES:].reshape(-1, len(SHIFTS)).sum(axis=1)
    shares = {
        "level": nodes[0] + weight[N_SLOPES + N_SHAPES : N_CURVES].sum(),
        "slope": weight[:N_SLOPES].sum(),
        "shape": weight[N_SLOPES : N_SLOPES + N_SHAPES].sum(),
        "region": nodes[1:].sum(),
    }
    change = "certain" if failures else max(shares, key=lambda name: float(shares[name]))
    low, high = node_edges(1 + int(nodes[1:].argmax())) if change == "region" else (0.0, 1.0)
    rows, labels, scores = sums
    edges = [node_edges(N_REGIONS - 1 + k) for k in range(N_REGIONS)]
    inside = np.array([start < high and end > low for start, end in edges])
    n = float(rows[inside].sum())
    gap = float((labels - scores)[inside].sum()) / n if n else 0.0
    slope = float(weight[:N_SLOPES] @ SLOPES / shares["slope"]) if change == "slope" else None
    return Diagnosis(change, float(shares.get(change, 1.0)), low, high, gap, n, slope, failures)
