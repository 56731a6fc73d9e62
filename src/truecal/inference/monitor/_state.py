r"""What a monitor remembers, and what it concludes from that: looks, clusters, state files; what changed, and when.

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

import hashlib
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from truecal._lib.files import write_text
from truecal._lib.text import counted, level, p_equals, percent
from truecal._lib.types import FloatArray
from truecal.data.clusters import Keys
from truecal.exceptions import InputError
from truecal.inference.monitor._evidence import (
    LOG_PRIOR,
    N_CURVES,
    N_REGIONS,
    N_SHAPES,
    N_SLOPES,
    SHIFTS,
    SLOPES,
    Processes,
    check_kinds,
    decode,
    encode,
    log_sum_exp,
    node_edges,
)
from truecal.results import Result

_VERSION = 3


def write_state(path: str | Path, kind: str, content: dict[str, Any]) -> None:
    """Write a state file: JSON with a checksum, whole or not at all."""
    body = {"truecal": kind, "version": _VERSION, **content}
    text = json.dumps({**body, "checksum": _checksum(body)}, allow_nan=False, indent=1)
    write_text(path, text + "\n")


def read_state(path: str | Path, kind: str) -> dict[str, Any]:
    """Return the content of a state file, or refuse one that was changed, cut off or written by something else."""
    if not Path(path).is_file() and Path(path).exists():  # a device may never end
        raise InputError(f"{path} is not a regular file, and cannot hold the state")
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    try:
        body = json.loads(text)
        given = body.pop("checksum")
        expected = _checksum(body)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise InputError(f"{path} is not a state file of truecal, or it is incomplete") from None
    if given != expected:
        raise InputError(
            f"{path} was changed after truecal wrote it: its checksum does not match",
            remedy="Restore the file from a backup, or start again without it.",
        )
    if body.get("truecal") != kind or body.get("version") != _VERSION:
        holds = f"{body.get('truecal')!r}, version {body.get('version')}"
        raise InputError(f"{path} holds {holds}; expected {kind!r}, version {_VERSION}")
    return dict(body)


@contextmanager
def restoring(path: str | Path) -> Iterator[None]:
    """Reject a state with a valid checksum but impossible content."""
    try:
        yield
    except (ValueError, KeyError, AttributeError, TypeError, IndexError, OverflowError) as error:
        raise InputError(
            f"{path} holds a state that contradicts itself ({type(error).__name__}: {error})",
            remedy="Restore the file from a backup, or start again without it.",
        ) from error


def _checksum(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(frozen=True)
class Look(Result):
    """What the monitor knew after a batch.

    Attributes
    ----------
    rows : float
        Rows so far.
    time : object
        Time of the latest row of the batch, if times were given.
    log_evalue, log_detector : float
        Natural logarithms of the e-value and of the e-detector.
    pvalue : float
        Anytime-valid p-value.
    alarm, change_alarm : bool
        Whether there has been an alarm so far, and a change has been detected.
    gap, gap_low, gap_high : float
        Observed frequency less mean score of all rows so far, with a confidence sequence.
    error_low, error_high : float
        Confidence sequence for the root mean square calibration error of all rows so far. The upper end holds for
        errors that do not cancel within one of eight regions of scores.
    batch_rows, batch_gap : float
        Rows of the batch, and its observed frequency less its mean score.
    """

    _derived: ClassVar[tuple[str, ...]] = ("evalue",)

    rows: float
    time: Any
    log_evalue: float
    log_detector: float
    pvalue: float
    alarm: bool
    change_alarm: bool
    gap: float
    gap_low: float
    gap_high: float
    error_low: float
    error_high: float
    batch_rows: float
    batch_gap: float

    @property
    def evalue(self) -> float:
        """The e-value; infinite where a label contradicted a score of exactly 0 or 1."""
        return exp_or_infinity(self.log_evalue)

    def __str__(self) -> str:
        when = "" if self.time is None else f"{self.time}: "
        state = "ALARM" if self.alarm else "CHANGE" if self.change_alarm else "no alarm"
        return (
            f"{when}{self.rows:,.10g} rows, e-value {self.evalue:.3g}, {p_equals(self.pvalue)}, "
            f"observed less predicted {100 * self.gap:+.2f}% ({100 * self.gap_low:+.2f}% to "
            f"{100 * self.gap_high:+.2f}%), {state}"
        )


#: Fields of a look that are numbers, in the order of a state file.
_LOOK_NUMBERS = tuple(item.name for item in fields(Look) if item.name != "time")


def exp_or_infinity(value: float) -> float:
    """Return exp(value), which is infinite where it would overflow."""
    return math.exp(value) if value < 709 else math.inf


#: Looks that are kept; beyond that, every second one is dropped.
_MOST = 256


@dataclass
class History:
    """Equally spaced looks, and the last one.

    Attributes
    ----------
    kept : list of Look
        The first look, and others at a distance of `every` windows.
    every : int
        A power of 2.
    last : Look, optional
        The last look.
    """

    kept: list[Look] = field(default_factory=list)
    every: int = 1
    last: Look | None = None

    def add(self, look: Look, window: int) -> None:
        """Add the look after a window; the first window is number 0."""
        self.last = look
        if window % self.every == 0:
            self.kept.append(look)
        if len(self.kept) > _MOST:
            self.kept, self.every = self.kept[::2], 2 * self.every

    @property
    def looks(self) -> tuple[Look, ...]:
        """The looks so far; long histories are thinned to every second, fourth, ... look, and the last."""
        if self.last is None or (self.kept and self.kept[-1] is self.last):
            return tuple(self.kept)
        return (*self.kept, self.last)

    def to_state(self) -> dict[str, Any]:
        """Return the content as JSON-compatible objects."""
        looks = self.looks
        return {
            "every": self.every,
            "kept": len(self.kept),
            "times": [look.time for look in looks],
            "numbers": encode(
                np.array([[float(getattr(look, name)) for name in _LOOK_NUMBERS] for look in looks])
            ),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return the history that `to_state` gave."""
        check_kinds(state, {"kept": int, "every": int, "times": list})
        looks = []
        numbers = decode(state["numbers"], -1, len(_LOOK_NUMBERS)).tolist()
        for row, time in zip(numbers, state["times"], strict=True):
            values = dict(zip(_LOOK_NUMBERS, row, strict=True))
            values |= {name: bool(values[name]) for name in ("alarm", "change_alarm")}
            looks.append(Look(time=time, **values))
        return cls(looks[: state["kept"]], state["every"], looks[-1] if looks else None)


#: Clusters that are remembered: 8 MB in memory, 11 MB in a state file.
MOST_CLUSTERS = 1 << 20
_LARGEST_KEY = 2**64 - 1


@dataclass(eq=False)
class SeenClusters:
    """Keys of the clusters that were counted, a bounded number of them.

    The rows of a cluster may depend on each other in any way, so those of a later batch say nothing that could be
    multiplied with what those of an earlier one said: only the first batch of a cluster counts. Where there are more
    clusters than can be remembered, those with the larger half of the keys no longer count, whether new or not, and
    their keys are dropped; then those with the larger half of the rest, and so on. Keys are hashes of names, which are
    known before any label, so that leaving out clusters by their keys keeps the guarantee.

    Attributes
    ----------
    keys : ndarray of uint64
        What `truecal.data.clusters.cluster_keys` gave for the clusters that were counted, ascending.
    halvings : int
        One in ``2**halvings`` clusters counts.
    """

    keys: Keys = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    halvings: int = 0

    def __len__(self) -> int:
        return len(self.keys)

    def may_count(self, keys: Keys) -> NDArray[np.bool_]:
        """Return for each key whether its cluster may be counted now."""
        is_new = np.searchsorted(self.keys, keys, "right") == np.searchsorted(self.keys, keys)
        return np.asarray(is_new & (keys <= self._limit))

    def add(self, keys: Keys) -> None:
        """Remember clusters that were counted, all of them new."""
        new = np.sort(keys)
        self.keys = np.insert(self.keys, np.searchsorted(self.keys, new), new)
        while len(self.keys) > MOST_CLUSTERS:
            self.halvings += 1
            self.keys = self.keys[self.keys <= self._limit]

    def merge(self, other: SeenClusters) -> None:
        """Remember the clusters of another monitor too, none of which this one has."""
        self.halvings = max(self.halvings, other.halvings)
        self.keys = self.keys[self.keys <= self._limit]
        self.add(other.keys[other.keys <= self._limit])

    def n_shared(self, other: SeenClusters) -> int:
        """Return how many clusters both have counted, of those that are remembered."""
        return len(np.intersect1d(self.keys, other.keys, assume_unique=True))

    @property
    def _limit(self) -> np.uint64:
        return np.uint64(_LARGEST_KEY >> self.halvings)

    def to_state(self) -> dict[str, Any]:
        """Return the content as JSON-compatible objects."""
        return {"halvings": self.halvings, "keys": encode(self.keys)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return what `to_state` gave."""
        keys, halvings = decode(state["keys"], dtype="<u8"), state["halvings"]
        if not 0 <= halvings < 64 or (keys[1:] <= keys[:-1]).any():
            raise ValueError("clusters must be in order")
        return cls(keys, halvings)


# --- Changes ---------------------------------------------------------------------------------------------

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
