"""Streams of predictions, and many monitors at once, for the benchmark of monitoring."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from truecal import CalibrationMonitor
from truecal._lib.types import FloatArray
from truecal.inference.monitor._evidence import (
    _FACTORS,
    _SQUARES,
    DEPTH,
    LOG_PRIOR,
    N_ALTERNATIVES,
    N_CELLS,
    N_CURVES,
    ON_MANY,
    SENSITIVITY,
    SHIFT_PRIOR,
    SHIFTS,
    Processes,
    _apply,
    cells_of,
    later_starts,
    log_later,
)

LEVEL, LOOK, ROWS = 0.05, 50, 10_000
_PRIOR = np.exp(LOG_PRIOR)
_FIRST_NODES = [(1 << depth) - 2 for depth in range(1, DEPTH + 1)]

SCORES: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "uniform": lambda rng, n: rng.random(n),
    "skewed, Beta(0.5, 10)": lambda rng, n: rng.beta(0.5, 10, n),
    "tied, tenths": lambda rng, n: rng.integers(1, 10, n) / 10,
    "extreme, Beta(0.1, 0.1)": lambda rng, n: rng.beta(0.1, 0.1, n),
}
#: Curves of one parameter, which is 0 for perfect calibration.
SHAPES: dict[str, Callable[[FloatArray, float], FloatArray]] = {
    "level": lambda p, size: expit(_logit(p) + size),
    "slope": lambda p, size: expit(math.exp(-size) * _logit(p)),
    "local": lambda p, size: np.where((p > 0.02) & (p < 0.2), np.minimum(p + size, 1), p),
}


def _logit(p: FloatArray) -> FloatArray:
    return np.asarray(logit(np.clip(p, 1e-300, 1 - 1e-16)))


def generator(*parts: object) -> np.random.Generator:
    """Return a random generator for a case."""
    return np.random.default_rng([19, zlib.crc32(repr(parts).encode())])


def size_at(scores: str, shape: str, error: float) -> float:
    """Return the parameter of a shape with which the root mean square error is `error`."""
    p = SCORES[scores](generator("scores", scores), 400_000)

    def excess(size: float) -> float:
        return math.sqrt(np.mean(np.square(SHAPES[shape](p, size) - p))) - error

    return float(brentq(excess, 0, 12 if shape != "local" else 0.98))


class Monitors:
    """Many monitors at once, with the arithmetic of `Processes` but not in logarithms.

    Parameters
    ----------
    streams : int
        Number of monitors.
    at_most : float or ndarray of shape (streams,)
        The error that the null hypothesis allows.
    detector : bool
        Whether to run the change detectors too.
    """

    def __init__(self, streams: int, at_most: float | FloatArray = 0.0, *, detector: bool = False) -> None:
        self.rows = 0
        self.at_most = np.broadcast_to(np.asarray(at_most, dtype=float), (streams,))[:, np.newaxis]
        self.tolerant = bool(self.at_most.any())
        self.mixed = np.tile(np.exp(Processes().mixed), (streams, 1))
        self.detector = np.zeros((streams, N_ALTERNATIVES)) if detector else None
        self.ratio = np.ones((streams, N_ALTERNATIVES))

    def add(self, p: FloatArray, y: FloatArray) -> None:
        """Take in a block of rows of each stream, of shape (streams, n)."""
        n = p.shape[1]
        with np.errstate(over="ignore"):
            factor = np.exp(self._gains(p, y))
            self.mixed += math.exp(log_later(self.rows, n))
            self.mixed *= factor
            if self.detector is not None:
                self.detector += n
                self.detector *= factor
            self.ratio *= factor
        self.rows += n

    def _gains(self, p: FloatArray, y: FloatArray) -> FloatArray:
        """Return what `weigh` gives, less what an allowed error can contribute."""
        streams, n = p.shape
        key = (np.arange(streams)[:, np.newaxis] * 3 * N_CELLS + cells_of(p)).ravel()
        keys = np.concatenate([key, key + N_CELLS, key + 2 * N_CELLS])
        values = np.concatenate([np.ones(len(key)), y.ravel(), p.ravel()])
        cells = np.bincount(keys, values, 3 * streams * N_CELLS).reshape(streams, 3, N_CELLS)
        gain = _apply(cells, _FACTORS)
        if self.tolerant:
            rate = self.at_most / SENSITIVITY
            gain -= rate / 2 * _apply(cells[:, :1], _SQUARES)
            gain -= n * self.at_most**2 / (2 * rate)
        return gain

    @property
    def evalues(self) -> FloatArray:
        """The e-values."""
        e = self.mixed @ _PRIOR + (1 - later_starts(self.rows)) / 2
        if self.tolerant:
            return np.asarray(e)
        nodes = self.ratio[:, N_CURVES:].reshape(len(e), -1, len(SHIFTS)) @ SHIFT_PRIOR
        depths = np.multiply.reduceat((1 + nodes[:, 1:]) / 2, _FIRST_NODES, axis=1)
        return np.asarray((1 - ON_MANY) * e + ON_MANY * depths.mean(axis=1))

    @property
    def detectors(self) -> FloatArray:
        """The e-detectors."""
        return np.asarray(self.detector @ _PRIOR)


def check() -> None:
    """Compare many monitors at once with the class, and fail if they differ."""
    rng = generator("check")
    for at_most in (None, 0.03):
        many, single = (
            Monitors(3, at_most or 0.0, detector=True),
            [CalibrationMonitor(at_most=at_most) for _ in range(3)],
        )
        for _ in range(30):
            p = rng.beta(0.5, 1, (3, LOOK))
            y = rng.random(p.shape) < np.minimum(p + 0.05, 1)
            many.add(p, y.astype(np.float64))
            looks = [monitor.update(*pair) for monitor, *pair in zip(single, y, p, strict=True)]
        pairs = [(look.log_evalue, look.log_detector) for look in looks if look is not None]
        np.testing.assert_allclose(np.log([many.evalues, many.detectors]).T, pairs, rtol=1e-9)
