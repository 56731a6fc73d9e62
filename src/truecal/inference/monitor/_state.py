"""What a monitor remembers: its looks, the clusters that it counted, and the file that holds its state."""

from __future__ import annotations

import base64
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
from truecal._lib.text import p_equals
from truecal.data.clusters import Keys
from truecal.exceptions import InputError
from truecal.results import Result

_VERSION = 3


def encode(array: NDArray[Any]) -> str:
    """Return numbers of 64 bits as text, without loss."""
    return base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode("ascii")


def decode(text: str, *shape: int, dtype: str = "<f8") -> NDArray[Any]:
    """Return the numbers that `encode` wrote, or ValueError if they do not have the given shape."""
    array = np.frombuffer(base64.b64decode(text), dtype=dtype)
    array = array.astype(array.dtype.newbyteorder("="))
    return array.reshape(shape) if shape else array


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


def check_kinds(state: dict[str, Any], kinds: dict[str, Any]) -> dict[str, Any]:
    """Return the named values of a state, or raise TypeError if one has another type or is negative."""
    for name, kind in kinds.items():
        value = state[name]
        is_bool = isinstance(value, bool) and kind is not bool
        if is_bool or not isinstance(value, kind) or (isinstance(value, int | float) and value < 0):
            raise TypeError(f"{name} cannot be {value!r}")
    return {name: state[name] for name in kinds}


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
