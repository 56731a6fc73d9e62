r"""What changed, and when: the change point with a confidence set, and the diagnosis.

Sums of the evidence are kept at a bounded number of past times. A change at time t to alternative j is refused if

- the rows before t show a change already: the mixture over earlier starts and all alternatives, less what an allowed
  error can contribute, reaches :math:`2 / \alpha`; or
- the rows after t are much better explained by a later start: with :math:`L_j(t)` the likelihood ratio of alternative
  j over the rows after t,

  .. math:: \sum_{s \ge t} v_{s-t} \sum_k w_k L_k(s) \ge \frac2\alpha \max_j L_j(t) .

Under a change at t to one of the alternatives both have probability at most :math:`\alpha / 2`, by the inequalities of
Markov and Ville, whenever one looks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from truecal._lib.text import counted, level, percent
from truecal._lib.types import FloatArray
from truecal.inference.monitor._evidence import (
    LOG_PRIOR,
    N_CURVES,
    N_REGIONS,
    N_SHAPES,
    N_SLOPES,
    SHIFTS,
    SLOPES,
    Processes,
    log_sum_exp,
    node_edges,
)
from truecal.inference.monitor._state import check_kinds, decode, encode
from truecal.results import Result

#: Checkpoints are kept at ages of 2^k windows, so many for each k.
_PER_OCTAVE = 8
_WIDTH = len(SHIFTS)
_NODE = N_CURVES + (N_REGIONS - 1) * _WIDTH
#: The alternatives of a checkpoint: curves, the level, and shifts in the regions.
KEPT = np.concatenate([np.arange(N_CURVES + _WIDTH), np.arange(_NODE, _NODE + N_REGIONS * _WIDTH)])
_PRIOR: FloatArray = LOG_PRIOR[KEPT] - log_sum_exp(LOG_PRIOR[KEPT])


def kept_evidence(processes: Processes) -> FloatArray:
    """Return the sums of the evidence for `KEPT`: less what an allowed error (if any) can contribute, and in full."""
    sums = [processes.gain, processes.total] if processes.at_most else [processes.total]
    return np.stack(sums)[:, KEPT]


@dataclass(frozen=True)
class ChangePoint(Result):
    """When a change began.

    Attributes
    ----------
    row : float
        Rows before the change, estimated.
    low, high : float
        Ends of the confidence interval, in rows.
    time, low_time, high_time : object
        The same as times, where batches have them: the end of the batch before.
    level : float
        Probability that such an interval contains the true change, whenever one looks, if the predictions were
        calibrated before it and follow one of the alternatives after it.
    """

    row: float
    low: float
    high: float
    level: float
    time: Any = None
    low_time: Any = None
    high_time: Any = None

    def __str__(self) -> str:
        if self.time is None:
            return f"after row {self.row:,.10g} ({level(self.level)}: {self.low:,.10g} to {self.high:,.10g})"
        return f"{self.time} ({level(self.level)}: {self.low_time} to {self.high_time})"

    @property
    def sentence(self) -> str:
        """When the change began, as a sentence; an error that may have been there from the start is not a change."""
        if self.low > 0:
            return f"The change began {'about ' if self.time is not None else ''}{self}."
        by = f"row {self.high:,.10g}" if self.high_time is None else self.high_time
        return f"The error has been there from the start, or began by {by}."


@dataclass(eq=False)
class Checkpoints:
    """Sums of the evidence at past times; close together for recent ones, and a bounded number.

    Attributes
    ----------
    window : list of int
        Number of batches before each checkpoint.
    rows : list of float
        Number of rows before it.
    time : list
        The time of the batch that begins there, or None.
    evidence : list of ndarray of shape (1 or 2, len(KEPT))
        What `kept_evidence` gave for all rows before it.
    sums : list of ndarray of shape (3, N_REGIONS)
        Sums by region, as in `Batch`, of all rows before it.
    """

    window: list[int] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)
    time: list[Any] = field(default_factory=list)
    evidence: list[FloatArray] = field(default_factory=list)
    sums: list[FloatArray] = field(default_factory=list)

    def add(self, window: int, rows: float, time: Any, evidence: FloatArray, sums: FloatArray) -> None:
        """Add a checkpoint, and drop those that are no longer needed."""
        lists: tuple[list[Any], ...] = (self.window, self.rows, self.time, self.evidence, self.sums)
        for values, value in zip(lists, (window, rows, time, evidence, sums), strict=True):
            values.append(value)
        if window % _PER_OCTAVE:
            return
        kept = [index for index, past in enumerate(self.window) if past % _step(window - past) == 0]
        for values in lists:
            values[:] = [values[index] for index in kept]

    def to_state(self) -> dict[str, Any]:
        """Return the content as JSON-compatible objects."""
        return {
            "windows": list(self.window),
            "rows": list(self.rows),
            "times": list(self.time),
            "evidence": encode(np.array(self.evidence)),
            "sums": encode(np.array(self.sums)),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the checkpoints that `to_state` gave."""
        check_kinds(state, {"windows": list, "rows": list, "times": list})
        table, n = decode(state["evidence"], -1, len(KEPT)), len(state["rows"])
        evidence = np.split(table, n) if n else []
        sums = decode(state["sums"], n, 3, N_REGIONS)
        if not n == len(state["windows"]) == len(state["times"]):
            raise ValueError("checkpoints must all have windows, rows and times")
        return cls(state["windows"], state["rows"], state["times"], evidence, list(sums))

    def locate(self, evidence: FloatArray, rows: float, time: Any, alpha: float) -> tuple[ChangePoint, int]:
        """Return the change point and the index of its checkpoint, from the evidence, rows and time now."""
        past, window = np.array(self.evidence), np.array(self.window)
        since = evidence - past
        mixture, best = log_sum_exp(since[:, -1] + _PRIOR), since[:, -1].max(axis=1)
        needed = math.log(2 / alpha)
        possible = []
        for t in range(len(past)):
            distance = window[t:] - window[t]
            later = float(log_sum_exp(mixture[t:] - np.log((distance + 1.0) * (distance + 2.0))))
            earlier = -math.inf
            if t:
                before = log_sum_exp((past[t, 0] - past[:t, 0] + _PRIOR).ravel())
                earlier = float(before) - math.log(max(window[t] - window[0], 1))
            if later - best[t] < needed and earlier < needed:
                possible.append(t)
        start = int(log_sum_exp(since[:, 0] + _PRIOR).argmax())
        first, last = (min(possible), max(possible)) if possible else (0, len(past) - 1)
        # The change may lie between two checkpoints, so the interval goes on to the next on either side.
        low, high = max(first - 1, 0), last + 1
        ends, times = [*self.rows, rows], [*self.time, time]
        dates = (times[start], times[low], times[high]) if times[start] is not None else ()
        return ChangePoint(ends[start], ends[low], ends[high], 1 - alpha, *dates), start


def _step(age: int) -> int:
    """Return the distance of checkpoints of an age, in windows: a power of 2."""
    return 1 << max((age // _PER_OCTAVE).bit_length() - 1, 0)


#: A mean slope this close to that of the first or last alternative is reported as a bound.
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
    """Return what changed, from the log e-detector of each alternative and the sums of regions since the change."""
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
