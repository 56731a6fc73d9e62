"""Detection delays of the monitor, beside probcal's monitor, weekly tests and an oracle.

probcal is optional: ``pip install --target DIR --no-deps probcal``, and put DIR on PYTHONPATH.
"""

from __future__ import annotations

import importlib.util
import zlib
from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit, logit
from scipy.stats import chi2

from experiments._monitor_guarantees import cached
from experiments._monitor_streams import LEVEL, LOOK, ROWS, Monitors
from truecal._lib.types import FloatArray

WEEK, CHANGE, AFTER = 350, 5_000, 6_000
#: With this average run length a false alarm within ROWS has a probability of about LEVEL.
RUN_LENGTH = ROWS / LEVEL

Curve = Callable[[FloatArray], FloatArray]

CURVES: dict[str, Curve] = {
    "level, + 5 points": lambda p: np.clip(p + 0.05, 0, 1),
    "slope 0.7": lambda p: expit(0.7 * logit(p)),
    "local, - 20 points in 0.6 to 0.7": lambda p: np.where((p > 0.6) & (p < 0.7), p - 0.2, p),
}


def _ratio(p: FloatArray, y: FloatArray, curve: Curve) -> FloatArray:
    q, p = (np.clip(part, 1e-9, 1 - 1e-9) for part in (curve(p), p))
    return np.sum(y * np.log(q / p) + (1 - y) * np.log((1 - q) / (1 - p)), axis=1)


@cached
def oracle_limits(streams: int) -> dict[str, float]:
    """Return the limits that a CUSUM of the true likelihood ratio exceeds in LEVEL of null streams."""
    rng = np.random.default_rng([19, 7])
    at, top = np.zeros((len(CURVES), 5 * streams)), np.zeros((len(CURVES), 5 * streams))
    for _ in range((CHANGE + AFTER) // LOOK):
        p = rng.random((5 * streams, LOOK))
        y = (rng.random(p.shape) < p).astype(np.float64)
        at = np.maximum(at + [_ratio(p, y, curve) for curve in CURVES.values()], 0)
        top = np.maximum(top, at)
    return dict(zip(CURVES, np.quantile(top, 1 - LEVEL, axis=1).tolist(), strict=True))


@cached
def delays(name: str, change: int, streams: int) -> dict[str, FloatArray]:
    """Return the rows from the change to the alarm, AFTER if there is none; at most 0 for a false alarm."""
    rng = np.random.default_rng([19, zlib.crc32(name.encode()), change])
    curve, limit = CURVES[name], oracle_limits(streams)[name]
    end = change + AFTER
    p = rng.random((streams, end))
    truth = p.copy()
    truth[:, change:] = curve(p[:, change:])
    y = (rng.random(p.shape) < truth).astype(np.float64)
    first = {
        method: np.full(streams, end) for method in ("truecal", "truecal change detector", "oracle CUSUM")
    }
    monitors, at = Monitors(streams, detector=True), np.zeros(streams)
    for start in range(0, end, LOOK):
        rows = slice(start, start + LOOK)
        monitors.add(p[:, rows], y[:, rows])
        at = np.maximum(at + _ratio(p[:, rows], y[:, rows], curve), 0)
        alarms = {
            "truecal": monitors.evalues >= 1 / LEVEL,
            "truecal change detector": monitors.detectors >= RUN_LENGTH,
            "oracle CUSUM": at >= limit,
        }
        for method, alarm in alarms.items():
            first[method] = np.where(alarm & (first[method] == end), start + LOOK, first[method])
    first["weekly tests"] = np.array([_weekly(*pair, end) for pair in zip(p, y, strict=True)])
    if importlib.util.find_spec("probcal") is not None:
        few = slice(0, min(streams, 12))
        pairs = zip(p[few], y[few], strict=True)
        first["probcal"] = np.array(Parallel(n_jobs=2)(delayed(_probcal)(*pair, end) for pair in pairs))
    return {method: (rows - change).astype(np.float64) for method, rows in first.items()}


def _weekly(p: FloatArray, y: FloatArray, end: int) -> int:
    """Return the rows to the first rejection: two tests a week, Bonferroni over all weeks and both tests."""
    weeks = end // WEEK
    for week in range(weeks):
        rows = slice(week * WEEK, (week + 1) * WEEK)
        if min(_weak_test(p[rows], y[rows]), _bin_test(p[rows], y[rows])) <= LEVEL / (2 * weeks):
            return (week + 1) * WEEK
    return end


def _weak_test(p: FloatArray, y: FloatArray) -> float:
    """Return the p-value of the score test of intercept and slope."""
    x = np.stack([np.ones_like(p), logit(np.clip(p, 1e-9, 1 - 1e-9))])
    u, information = x @ (y - p), (x * (p * (1 - p))) @ x.T
    return float(chi2.sf(u @ np.linalg.solve(information, u), 2))


def _bin_test(p: FloatArray, y: FloatArray) -> float:
    """Return the p-value of the sum of squares over ten equal-width bins."""
    k = np.minimum((10 * p).astype(int), 9)
    gap, variance = np.bincount(k, y - p, 10), np.bincount(k, p * (1 - p), 10)
    filled = variance > 0
    return float(chi2.sf(np.sum(gap[filled] ** 2 / variance[filled]), filled.sum()))


def _probcal(p: FloatArray, y: FloatArray, end: int) -> int:
    from probcal.monitor import CalibrationMonitor

    monitor = CalibrationMonitor(alpha=LEVEL, delta_ci_grid=(-1.0, 1.0, 2))
    for start in range(0, end, LOOK):
        if monitor.update(y[start : start + LOOK], p[start : start + LOOK]).alarm:
            return start + LOOK
    return end
