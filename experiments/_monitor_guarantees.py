"""What the monitor guarantees, simulated: false alarms, run lengths, and coverage.

Each function is one block of streams, and returns sums over them. Blocks are kept on disk if the environment variable
TRUECAL_BENCHMARK_CACHE names a folder, so that an interrupted run can be continued.
"""

from __future__ import annotations

import math
import os

import numpy as np
from joblib import Memory

from experiments._monitor_streams import LEVEL, LOOK, ROWS, SCORES, SHAPES, Monitors, generator, size_at
from truecal import CalibrationMonitor, confidence_interval
from truecal._lib.types import FloatArray
from truecal.inference._test_result import e_benjamini_hochberg

EPSILON, REFERENCE_ROWS, CLUSTER = 0.05, 2_000, 5
GROUPS, WRONG = 20, 5
RUN_LENGTHS = (500, 2_000)
CHANGE, AFTER = 5_025, 4_975

cached = Memory(os.environ.get("TRUECAL_BENCHMARK_CACHE"), verbose=0).cache


def _labels(rng: np.random.Generator, truth: FloatArray) -> FloatArray:
    return (rng.random(truth.shape) < truth).astype(np.float64)


@cached
def false_alarms(null: str, scores: str, shape: str, first: int, streams: int) -> int:
    """Return the number of streams with an alarm, for streams at the boundary of a null hypothesis."""
    rng = generator("alarms", null, scores, shape, first)
    size = 0.0 if null == "perfect" else size_at(scores, shape, EPSILON)
    at_most: float | FloatArray = {"perfect": 0.0, "at_most": EPSILON}.get(null, 0.0)
    limit = 1 / LEVEL
    if null == "reference":
        limit, bounds = 2 / LEVEL, []
        for _ in range(streams):
            p = SCORES[scores](rng, REFERENCE_ROWS)
            y = _labels(rng, SHAPES[shape](p, size))
            bounds.append(confidence_interval(y, p, norm=2, confidence_level=1 - LEVEL).high)
        at_most = np.maximum(bounds, 1e-9)
    monitors, alarm = Monitors(streams, at_most), np.zeros(streams, dtype=bool)
    while monitors.rows < ROWS:
        p = SCORES[scores](rng, streams * LOOK).reshape(streams, LOOK)
        monitors.add(p, _labels(rng, SHAPES[shape](p, size) if size else p))
        alarm |= monitors.evalues >= limit
    return int(alarm.sum())


@cached
def cluster_alarms(scores: str, first: int, streams: int) -> tuple[int, int]:
    """Return the numbers of streams with an alarm, with clusters and with rows that are taken as independent.

    The labels of a cluster follow from one random number, and its scores differ.
    """
    rng = generator("clusters", scores, first)
    named, ignored = 0, np.zeros(streams, dtype=bool)
    monitors, single = Monitors(streams), [CalibrationMonitor(LEVEL) for _ in range(streams)]
    clusters = np.repeat(np.arange(LOOK // CLUSTER), CLUSTER)
    while monitors.rows < ROWS:
        p = SCORES[scores](rng, streams * LOOK).reshape(streams, LOOK)
        y = (np.repeat(rng.random((streams, LOOK // CLUSTER)), CLUSTER, axis=1) < p).astype(np.float64)
        monitors.add(p, y)
        ignored |= monitors.evalues >= 1 / LEVEL
        for monitor, label, score in zip(single, y, p, strict=True):
            monitor.update(label, score, clusters=clusters)
    named = sum(monitor.alarm for monitor in single)
    return named, int(ignored.sum())


@cached
def group_alarms(first: int, families: int) -> tuple[int, float, float, float]:
    """Return families with a false alarm, and sums of false discovery proportions and of the power of e-BH.

    All groups are calibrated for the first. For e-BH the slope is 0.7 in some of them; it is looked at at the end, and
    at the first look with a discovery.
    """
    rng = generator("groups", first)
    family, proportions = np.zeros(families, dtype=bool), np.full(families, np.nan)
    null, mixed = Monitors(families * GROUPS), Monitors(families * GROUPS)
    wrong = np.tile(np.arange(GROUPS) < WRONG, families)
    flags = np.zeros((families, GROUPS), dtype=bool)
    while null.rows < 4 * LOOK * 10:
        p = rng.random((families * GROUPS, LOOK))
        null.add(p, _labels(rng, p))
        alarm = null.evalues >= (GROUPS + 1) / LEVEL
        family |= alarm.reshape(families, GROUPS).any(axis=1)
        truth = np.where(wrong[:, np.newaxis], SHAPES["slope"](p, -math.log(0.7)), p)
        mixed.add(p, _labels(rng, truth))
        logs = np.log(mixed.evalues).reshape(families, GROUPS)
        flags = np.stack([e_benjamini_hochberg(one, LEVEL) for one in logs])
        new = np.isnan(proportions) & flags.any(axis=1)
        proportions[new] = flags[new, WRONG:].sum(axis=1) / flags[new].sum(axis=1)
    last = flags[:, WRONG:].sum(axis=1) / np.maximum(flags.sum(axis=1), 1)
    power = flags[:, :WRONG].mean(axis=1).sum()
    return int(family.sum()), float(np.nansum(proportions)), float(last.sum()), float(power)


@cached
def run_lengths(scores: str, length: int, at_most: float, first: int, streams: int) -> list[float]:
    """Return rows to the first alarm of the change detector, cut off at 10 times the length asked for."""
    rng = generator("run lengths", scores, length, at_most, first)
    size = size_at(scores, "slope", at_most) if at_most else 0.0
    monitors, found = Monitors(streams, at_most, detector=True), np.full(streams, np.inf)
    while monitors.rows < 10 * length and np.isinf(found).any():
        p = SCORES[scores](rng, streams * LOOK).reshape(streams, LOOK)
        monitors.add(p, _labels(rng, SHAPES["slope"](p, size) if size else p))
        found = np.where(np.isinf(found) & (monitors.detectors >= length), monitors.rows, found)
    return np.minimum(found, 10 * length).tolist()


@cached
def change_points(shape: str, before: float, first: int, streams: int) -> FloatArray:
    """Return, of each stream, the rows at the alarm, and the change point then and at the end: low, estimate, high.

    The change comes in the middle of a batch. Before it there is an error of the slope, which the monitor tolerates.
    """
    rng = generator("change", shape, before, first)
    earlier = size_at("uniform", "slope", before) if before else 0.0
    later = size_at("uniform", shape, 0.1 if before else 0.06)
    found = np.full((streams, 7), np.nan)
    for row in found:
        monitor = CalibrationMonitor(LEVEL, at_most=EPSILON if before else None)
        p = rng.random(CHANGE + AFTER)
        truth = np.concatenate([SHAPES["slope"](p[:CHANGE], earlier), SHAPES[shape](p[CHANGE:], later)])
        y = _labels(rng, truth)
        for start in range(0, len(p), LOOK):
            look = monitor.update(y[start : start + LOOK], p[start : start + LOOK])
            change = monitor.change if look is not None and look.alarm and np.isnan(row[0]) else None
            if change is not None:
                row[:4] = start + LOOK, change.low, change.row, change.high
        if monitor.change is not None:
            row[4:] = monitor.change.low, monitor.change.row, monitor.change.high
    return found


@cached
def covered(scores: str, shape: str, error: float, first: int, streams: int) -> FloatArray:
    """Return the streams in which a bound was ever wrong: of the level, of the error from below, and from above.

    The last number is the sum over streams of the last upper bound.
    """
    rng = generator("covered", scores, shape, error, first)
    size = size_at(scores, shape, error) if error else 0.0
    wrong = np.zeros((streams, 4))
    for row in wrong:
        monitor, gap, square, n = CalibrationMonitor(LEVEL), 0.0, 0.0, 0
        while n < ROWS:
            p = SCORES[scores](rng, LOOK)
            truth = SHAPES[shape](p, size) if size else p
            look = monitor.update(_labels(rng, truth), p)
            assert look is not None
            n += LOOK
            gap += float((truth - p).sum())
            square += float(np.square(truth - p).sum())
            row[0] = max(row[0], not look.gap_low <= gap / n <= look.gap_high)
            row[1] = max(row[1], look.error_low > math.sqrt(square / n) + 1e-12)
            row[2] = max(row[2], look.error_high < math.sqrt(square / n) - 1e-12)
            row[3] = look.error_high
    return np.asarray(wrong.sum(axis=0))
