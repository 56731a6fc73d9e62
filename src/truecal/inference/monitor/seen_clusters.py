"""Which clusters were counted: a cluster that comes back must not count a second time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from truecal.data.cluster_sums import Keys
from truecal.inference.monitor.state_file import decode, encode

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
        What `truecal.data.cluster_sums.cluster_keys` gave for the clusters that were counted, ascending.
    halvings : int
        One in ``2**halvings`` clusters counts.

    Examples
    --------
    >>> seen = SeenClusters()
    >>> seen.add(np.array([7, 3], dtype=np.uint64))
    >>> seen.may_count(np.array([3, 4, 7], dtype=np.uint64))
    array([False,  True, False])
    """

    keys: Keys = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    halvings: int = 0

    def __len__(self) -> int:
        return len(self.keys)

    def may_count(self, keys: Keys) -> NDArray[np.bool_]:
        """Return for each key whether its cluster may be counted now."""
        place = np.searchsorted(self.keys, keys)
        known = np.zeros(len(keys), dtype=np.bool_)
        inside = place < len(self.keys)
        known[inside] = self.keys[place[inside]] == keys[inside]
        return ~known & (keys <= self._limit)

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
        known = self.keys[self.keys <= self._limit]
        self.keys = known
        self.add(other.keys[other.keys <= self._limit])

    def n_shared(self, other: SeenClusters) -> int:
        """Return how many clusters both have counted, of those that are remembered."""
        return len(np.intersect1d(self.keys, other.keys, assume_unique=True))

    @property
    def _limit(self) -> np.uint64:
        return np.uint64(_LARGEST_KEY >> self.halvings)

    def to_state(self) -> dict[str, Any]:
        """Return the content as JSON can hold it."""
        return {"halvings": self.halvings, "keys": encode(self.keys)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return what `to_state` gave."""
        keys, halvings = decode(state["keys"], dtype="<u8"), state["halvings"]
        if not 0 <= halvings < 64 or (keys[1:] <= keys[:-1]).any():
            raise ValueError("clusters must be in order")
        return cls(keys, halvings)
