"""False alarms and detection delays of `CalibrationMonitor`, beside probcal's monitor, weekly tests and an oracle.

probcal is optional: ``pip install --target DIR --no-deps probcal``, and put DIR on PYTHONPATH.
"""

from __future__ import annotations

import importlib.util
import math
import zlib
from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit, logit
from scipy.stats import chi2

from benchmarks._tables import machine, markdown, write
from truecal._lib.types import FloatArray
from truecal.inference.monitor.alternatives import (
    LOG_PRIOR,
    N_ALTERNATIVES,
    N_LEAVES,
    SHIFTS,
    curve_terms,
    leaves,
    log_sum_exp,
    shift_terms,
    sum_nodes,
)
from truecal.inference.monitor.processes import Processes, log_evalues, log_later

LEVEL, LOOK, WEEK = 0.05, 50, 350
ROWS, CHANGE, AFTER = 10_000, 5_000, 6_000
#: With this average run length a false alarm within ROWS has a probability of about LEVEL.
RUN_LENGTH = ROWS / LEVEL
_BLOCK = 250

Curve = Callable[[FloatArray], FloatArray]

SCORES: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "uniform": lambda rng, n: rng.random(n),
    "skewed, Beta(0.5, 10)": lambda rng, n: rng.beta(0.5, 10, n),
    "tied, tenths": lambda rng, n: rng.integers(1, 10, n) / 10,
    "extreme, Beta(0.1, 0.1)": lambda rng, n: rng.beta(0.1, 0.1, n),
}
CURVES: dict[str, Curve] = {
    "level, + 5 points": lambda p: np.clip(p + 0.05, 0, 1),
    "slope 0.7": lambda p: expit(0.7 * logit(p)),
    "local, - 20 points in 0.6 to 0.7": lambda p: np.where((p > 0.6) & (p < 0.7), p - 0.2, p),
}


def main(*, quick: bool = False, draws: int | None = None) -> None:
    streams = draws or (500 if quick else 10_000)
    few = 20 if quick else 100
    jobs = [
        delayed(_false_alarms)(name, first, min(_BLOCK, streams - first))
        for name in SCORES
        for first in range(0, streams, _BLOCK)
    ]
    blocks = Parallel(n_jobs=1 if quick else 2)(jobs)
    rows: list[dict[str, object]] = []
    for name in SCORES:
        alarms = sum(count for one, count in blocks if one == name)
        share = alarms / streams
        error = math.sqrt(max(share, 1 / streams) * (1 - share) / streams)
        rows.append(
            {
                "part": "false alarms",
                "case": name,
                "streams": streams,
                "share": share,
                "standard_error": error,
            }
        )
    delays = []
    for change in (0, CHANGE):
        limit = _oracle_limits(few)
        for name, curve in CURVES.items():
            found = _delays(name, curve, change, few, limit[name])
            for method, values in found.items():
                delays.append(
                    {
                        "part": "delay",
                        "case": name,
                        "change": change,
                        "method": method,
                        "streams": len(values),
                        "median": float(np.median(values)),
                        "mean": float(values.mean()),
                        "standard_error": float(values.std(ddof=1) / math.sqrt(len(values))),
                        "early": float(np.mean(values <= 0)),
                    }
                )
    page = _page(rows, delays, streams)
    print(page) if quick else write("monitor", page, rows + delays)


def _gains(p: FloatArray, y: FloatArray) -> FloatArray:
    """Return the log-likelihood ratios of a block of rows of many streams, of shape (streams, alternatives)."""
    streams, size = p.shape
    score, label = p.ravel(), y.ravel()
    log_r, mean, _ = curve_terms(score)
    shape = (streams, size, log_r.shape[1])
    curves = np.einsum("ij,ijk->ik", y, log_r.reshape(shape)) - np.log(
        np.multiply.reduce(mean.reshape(shape), axis=1)
    )
    mean, _ = shift_terms(score)
    key = np.repeat(np.arange(streams), size) * N_LEAVES + leaves(score)
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    table = np.zeros((streams * N_LEAVES, len(SHIFTS)))
    positives = np.add.reduceat(label[order], first)
    table[key[first]] = np.multiply.outer(positives, SHIFTS) - np.log(
        np.multiply.reduceat(mean[order], first)
    )
    return np.concatenate(
        [curves, sum_nodes(table.reshape(streams, N_LEAVES, -1)).reshape(streams, -1)], axis=1
    )


class _Monitors:
    """Many monitors at once, with the same recursions as `Processes`."""

    def __init__(self, streams: int) -> None:
        start = Processes()
        self.rows = 0
        self.mixed = np.tile(start.mixed, (streams, 1))
        self.total = np.zeros((streams, N_ALTERNATIVES))

    def add(self, p: FloatArray, y: FloatArray) -> FloatArray:
        """Take in a block of rows and return the gains of the alternatives."""
        gain = _gains(p, y)
        self.mixed = np.logaddexp(self.mixed, log_later(self.rows, p.shape[1])) + gain
        self.total += gain
        self.rows += p.shape[1]
        return gain

    def log_evalues(self) -> FloatArray:
        """Return the logarithms of the e-values."""
        return log_evalues(self.mixed, self.rows, self.total)


def _false_alarms(name: str, first: int, streams: int) -> tuple[str, int]:
    rng = np.random.default_rng([19, zlib.crc32(name.encode()), first])
    monitors, alarm = _Monitors(streams), np.zeros(streams, dtype=bool)
    while monitors.rows < ROWS:
        p = SCORES[name](rng, streams * LOOK).reshape(streams, LOOK)
        monitors.add(p, (rng.random(p.shape) < p).astype(np.float64))
        alarm |= monitors.log_evalues() >= -math.log(LEVEL)
    return name, int(alarm.sum())


def _ratio(p: FloatArray, y: FloatArray, curve: Curve) -> FloatArray:
    q, p = (np.clip(part, 1e-9, 1 - 1e-9) for part in (curve(p), p))
    return np.sum(y * np.log(q / p) + (1 - y) * np.log((1 - q) / (1 - p)), axis=1)


def _oracle_limits(streams: int) -> dict[str, float]:
    """Return the limits that a CUSUM of the true likelihood ratio exceeds in LEVEL of null streams."""
    rng = np.random.default_rng([19, 7])
    at, top = np.zeros((len(CURVES), 5 * streams)), np.zeros((len(CURVES), 5 * streams))
    for _ in range((CHANGE + AFTER) // LOOK):
        p = rng.random((5 * streams, LOOK))
        y = (rng.random(p.shape) < p).astype(np.float64)
        at = np.maximum(at + [_ratio(p, y, curve) for curve in CURVES.values()], 0)
        top = np.maximum(top, at)
    return dict(zip(CURVES, np.quantile(top, 1 - LEVEL, axis=1).tolist(), strict=True))


def _delays(name: str, curve: Curve, change: int, streams: int, limit: float) -> dict[str, FloatArray]:
    """Return the rows from the change to the alarm, AFTER if there is none; at most 0 for a false alarm."""
    rng = np.random.default_rng([19, zlib.crc32(name.encode()), change])
    end = change + AFTER
    p = rng.random((streams, end))
    truth = p.copy()
    truth[:, change:] = curve(p[:, change:])
    y = (rng.random(p.shape) < truth).astype(np.float64)
    first = {
        method: np.full(streams, end) for method in ("truecal", "truecal change detector", "oracle CUSUM")
    }
    monitors, at = _Monitors(streams), np.zeros(streams)
    detector = np.full((streams, N_ALTERNATIVES), -np.inf)
    for start in range(0, end, LOOK):
        rows = slice(start, start + LOOK)
        gain = monitors.add(p[:, rows], y[:, rows])
        detector = np.logaddexp(detector, math.log(LOOK)) + gain
        at = np.maximum(at + _ratio(p[:, rows], y[:, rows], curve), 0)
        alarms = {
            "truecal": monitors.log_evalues() >= -math.log(LEVEL),
            "truecal change detector": log_sum_exp(LOG_PRIOR + detector) >= math.log(RUN_LENGTH),
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


def _page(rows: list[dict[str, object]], delays: list[dict[str, object]], streams: int) -> str:
    alarms = [
        {
            "scores": row["case"],
            "false alarms": f"{100 * row['share']:.2f}%",  # type: ignore[operator]
            "standard error": f"{100 * row['standard_error']:.2f}%",  # type: ignore[operator]
        }
        for row in rows
    ]
    tables = []
    for change in (0, CHANGE):
        lines = []
        for case in CURVES:
            found = {
                str(row["method"]): row for row in delays if row["case"] == case and row["change"] == change
            }
            line: dict[str, object] = {"change": case}
            for method, row in found.items():
                shown = f"{row['median']:,.0f}"
                line[method] = f"{shown} (none)" if row["median"] == AFTER else shown
            valid = [float(found[name]["median"]) for name in ("weekly tests", "probcal") if name in found]  # type: ignore[arg-type]
            line["truecal / best other"] = f"{float(found['truecal']['median']) / min(valid):.2f}"  # type: ignore[arg-type]
            lines.append(line)
        title = "from the first row" if change == 0 else f"after {change:,} calibrated rows"
        tables.append(f"### Error {title}\n\n{markdown(lines)}\n")
    count = next(int(row["streams"]) for row in delays if row["method"] == "truecal")  # type: ignore[call-overload]
    return f"""# Monitoring: false alarms and delays

Made by `python benchmarks/run.py monitor --draws {streams}` on {machine()}.

## False alarms

Share of calibrated streams of {ROWS:,} rows, looked at after every {LOOK}, in which
`CalibrationMonitor(alpha={LEVEL:g})` ever raised an alarm; {streams:,} streams for each kind of scores. The guarantee
is at most {100 * LEVEL:g}%, for a stream of any length; within {ROWS:,} rows only part of it is used.

{markdown(alarms)}

## Delays

Median number of rows from the beginning of the error to the alarm, in {count} streams with uniform scores, looked at
after every {LOOK} rows. probcal ran on the first 12 of them. "none" means that more than half of the streams had no
alarm within {AFTER:,} rows.

The weights of the monitor's alternatives were chosen while looking at simulations of these same kinds of error, on
other streams, so these delays are not an independent comparison.

- **truecal**: `CalibrationMonitor`, false alarms at most {100 * LEVEL:g}% for ever.
- **truecal change detector**: average run length {RUN_LENGTH:,.0f} rows, which is about {100 * LEVEL:g}% false alarms
  in {ROWS:,} rows.
- **oracle CUSUM**: knows the error that will come; its limit is set by simulation to {100 * LEVEL:g}% false alarms in
  {CHANGE + AFTER:,} rows. Shown as a bound, and not a competitor.
- **weekly tests**: a score test of intercept and slope, and a chi-squared test of ten bins, on each {WEEK} rows, with
  Bonferroni's correction over all weeks and both tests.
- **probcal**: `probcal.monitor.CalibrationMonitor`, its defaults except for a coarse grid of its confidence sequence,
  which is not used here.

{chr(10).join(tables)}
The last column divides truecal's median by that of the better of weekly tests and probcal.
"""
