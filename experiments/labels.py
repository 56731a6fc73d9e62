"""Labels that are not the truth: level, coverage, one-sided limits, length and power for all kinds.

Draws are made in parts of 20. If the environment variable TRUECAL_BENCHMARK_CACHE names a folder, finished parts are
kept there, and a run that was stopped continues where it was; use a new folder after a change of the package.
"""

from __future__ import annotations

import math
import os
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from joblib import Memory, Parallel, delayed

import truecal
from experiments._label_designs import DESIGNS, Drawn, Truth
from experiments._page import Page, markdown, seconds
from truecal import labels
from truecal.data.pseudo_labels import Censored
from truecal.data.question import ask

Row = dict[str, Any]

LEVEL, ALPHA = 0.95, 0.05
#: True l2 errors of the two halves of the table.
ERRORS = (0.0, 0.05)
_PART, _RESAMPLES = 20, 199
#: One draw in so many is also measured as if its labels were the truth.
_PLAIN = 4
#: Designs with more rows have a quarter of the draws.
_MANY_ROWS = 10_000
_cached = Memory(os.environ.get("TRUECAL_BENCHMARK_CACHE"), verbose=0).cache


def main(*, quick: bool = False, draws: int = 400, n_jobs: int = 1, finished: bool = False) -> Page:
    """Draw from each design, calibrated and not, and count."""
    names = sorted(DESIGNS, key=lambda name: DESIGNS[name].n > _MANY_ROWS)
    draws, size = (2, 2) if quick else (draws, _PART)
    parts = [
        (name, error, first, min(size, draws - first))
        for first in range(0, draws, size)
        for name in names
        for error in ERRORS
        if first < draws / (4 if DESIGNS[name].n > _MANY_ROWS else 1)
        and not (quick and DESIGNS[name].n > 1000)
    ]
    if finished:
        parts = [part for part in parts if count.check_call_in_cache(*part)]
    rows = merge(Parallel(n_jobs=n_jobs, batch_size=1)(delayed(count)(*part) for part in parts))
    times = [_speed(n) for n in ((20_000,) if quick else (10_000, 100_000, 1_000_000))]
    return Page(page(rows, times), {"": rows})


@_cached
def count(name: str, error: float, first: int, draws: int) -> Row:
    """Return counts over some draws of one design; those of several parts can be added."""
    design = DESIGNS[name]
    truth = Truth(design.scores, design.curve, error)
    row: Row = {"design": name, "kind": design.kind, "n": design.n, "error": error, "draws": draws}
    for number in range(first, first + draws):
        rng = np.random.default_rng([zlib.crc32(name.encode()), round(1000 * error), number])
        for key, value in _of(design.labels.draw(truth, rng, design.n), truth, number).items():
            row[key] = row.get(key, 0.0) + value
    return row


def _of(drawn: Drawn, truth: Truth, seed: int) -> dict[str, float]:
    """Return what one data set adds to the counts."""
    given: dict[str, Any] = {} if drawn.clusters is None else {"clusters": drawn.clusters}
    (sample,) = ask(drawn.seen, drawn.score, **given).samples
    found = truecal.estimate(sample)
    interval = truecal.confidence_interval(sample, confidence_level=LEVEL)
    test = truecal.calibration_test(sample, n_resamples=_RESAMPLES, rng=seed)
    counts = {
        "covered": float(truth.error in interval),
        "rejected": float(test.pvalue <= ALPHA),
        "length": interval.high - interval.low,
        "worth": float(found.effective_size or math.nan),
        "square": (found.value - truth.error) ** 2,
    }
    if truth.error:
        limit = truecal.calibration_test(sample, at_most=truth.error)
        counts["passed"] = float(limit.pvalue <= ALPHA)
        first = truecal.confidence_interval(sample, norm=1, confidence_level=LEVEL)
        counts["covered_l1"] = float(truth.l1 in first)
    if drawn.alone is not None:
        alone, between = truecal.estimate(*drawn.alone), truecal.confidence_interval(*drawn.alone)
        only = truecal.calibration_test(*drawn.alone, n_resamples=_RESAMPLES, rng=seed)
        counts["gold"] = float(len(drawn.alone[0]))
        counts["length_gold"] = between.high - between.low
        counts["covered_gold"] = float(truth.error in between)
        counts["rejected_gold"] = float(only.pvalue <= ALPHA)
        counts["square_gold"] = (alone.value - truth.error) ** 2
    if isinstance(drawn.seen, Censored):
        counts["censored"] = float(1 - drawn.seen.seen.mean())
    if seed % _PLAIN == 0:
        plain = truecal.confidence_interval(drawn.plain, drawn.score, confidence_level=LEVEL, **given)
        counts["covered_plain"] = _PLAIN * float(truth.error in plain)
    return counts


def merge(parts: Sequence[Row]) -> list[Row]:
    """Return one row for each design and error: rates and means over all draws."""
    keys = ("design", "kind", "n", "error")
    total: dict[tuple[Any, ...], Row] = {}
    for part in parts:
        row = total.setdefault(tuple(part[key] for key in keys), dict.fromkeys(part, 0.0))
        row |= {key: part[key] if key in keys else row.get(key, 0.0) + value for key, value in part.items()}
    rows = []
    for row in total.values():
        draws = int(row["draws"])
        means = {key: value / draws for key, value in row.items() if key not in (*keys, "draws")}
        for key in ("square", "square_gold"):
            if key in means:
                means[key.replace("square", "rmse")] = means.pop(key) ** 0.5
        rows.append(
            {**{key: row[key] for key in keys}, "draws": draws, **{k: round(v, 5) for k, v in means.items()}}
        )
    return _with_same_keys(sorted(rows, key=lambda row: (list(DESIGNS).index(row["design"]), row["error"])))


def _with_same_keys(rows: list[Row]) -> list[Row]:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    return [{key: row.get(key, "") for key in keys} for row in rows]


def _speed(n: int) -> Row:
    """Return the times of estimate, interval and test for judged and for ordinary labels."""
    rng = np.random.default_rng(0)
    p = rng.beta(3, 1.5, n)
    y = (rng.random(n) < p).astype(int)
    judge = np.where(y == 1, rng.random(n) < 0.95, rng.random(n) < 0.1).astype(int)
    gold = np.where(rng.random(n) < 0.1, y, np.nan)
    times: dict[str, list[float]] = {"plain": [], "judged": []}
    for _ in range(3):
        for name, seen in (("plain", y), ("judged", None)):
            start = time.process_time()
            truth = labels.judged(judge, gold) if seen is None else seen
            truecal.estimate(truth, p, confidence_level=LEVEL)
            truecal.calibration_test(truth, p, rng=0)
            times[name].append(time.process_time() - start)
    best = {name: min(each) for name, each in times.items()}
    return {
        "rows": f"{n:,}",
        "ordinary labels": seconds(best["plain"]),
        "judged": seconds(best["judged"]),
        "ratio": f"{best['judged'] / best['plain']:.1f}",
    }


def _rate(value: Any) -> str:
    return "" if value == "" else f"{value:.3f}"


def page(rows: list[Row], speed: list[Row]) -> str:
    """Return the page."""
    draws = min(row["draws"] for row in rows)
    errors = [f"{(rate * (1 - rate) / draws) ** 0.5:.3f}" for rate in (0.05, 0.95)]
    by = {(row["design"], row["error"]): row for row in rows}
    table = []
    for name in dict.fromkeys(row["design"] for row in rows):
        null, off = by.get((name, 0.0)), by.get((name, ERRORS[1]))
        if null is None or off is None:
            continue
        table.append(
            {
                "labels": f"{null['kind']}: {name}",
                "n": f"{null['n']:,}",
                "worth": "" if math.isnan(null["worth"]) else f"{null['worth']:,.0f}",
                "level": _rate(null["rejected"]),
                "coverage at 0": _rate(null["covered"]),
                "coverage at 0.05": _rate(off["covered"]),
                "l1 at 0.05": _rate(off["covered_l1"]),
                "false pass": _rate(off["passed"]),
                "power": _rate(off["rejected"]),
                "length": f"{null['length']:.3f}, {off['length']:.3f}",
                "as truth: coverage": f"{_rate(null['covered_plain'])}, {_rate(off['covered_plain'])}",
            }
        )
    gold = [
        {
            "labels": row["design"],
            "error": f"{row['error']:g}",
            "gold": f"{row['gold']:,.0f}",
            "worth": f"{row['worth']:,.0f}",
            "length / gold only": f"{row['length'] / row['length_gold']:.2f}",
            "RMSE / gold only": f"{row['rmse'] / row['rmse_gold']:.2f}" if row["rmse_gold"] else "",
            "rejects": _rate(row["rejected"]),
            "gold only rejects": _rate(row["rejected_gold"]),
            "gold only covers": _rate(row["covered_gold"]),
        }
        for row in rows
        if row["gold"] != ""
    ]
    summary = [_summary(rows, kind) for kind in dict.fromkeys(row["kind"] for row in rows)]
    censored = [row["censored"] for row in rows if row.get("censored", "") != ""]
    lost = f" {min(censored):.0%} to {max(censored):.0%} of rows are censored." if censored else ""
    so_far = f" {len(table)} of {len(DESIGNS)} designs so far." if len(table) < len(DESIGNS) else ""
    return f"""# Labels that are not the truth

{draws} data sets or more in each cell; the standard error of a rate of 0.05 or 0.95 is {errors[0]}. Tests use
{_RESAMPLES} resamples. The designs are in `experiments/_label_designs.py`. Two choices of the judge's
model (its ridge, and variances over all rows) were made on other designs, but after the first 20 to 40 data sets of
these had been seen; no other constant was chosen on them. Each is drawn calibrated and with a true l2 error of
{ERRORS[1]:g}. *Level* is the share of calibrated data sets that the test rejects at {ALPHA:g}, *power* that of
miscalibrated ones; *false pass* the share in which a one-sided {LEVEL:.0%} upper limit is below the true error of
{ERRORS[1]:g}; *worth* the number of true labels that would be as
informative; *as truth* the coverage if the judge's labels, the majority of annotators, the wrong labels or censored
rows without an event are taken for the truth.{lost}{so_far}

## All designs of a kind together

Rates ± two standard errors; in brackets the worst design.

{markdown(summary)}

## All designs

{markdown(table)}

## Judge and gold labels against gold labels alone

{markdown(gold)}

## Time

Processor time of estimate, interval and test with 999 resamples, the best of three.

{markdown(speed)}
"""


def _summary(rows: list[Row], kind: str) -> Row:
    """Return rates of all designs of a kind together, each with its standard error and the worst design."""
    null = [row for row in rows if row["kind"] == kind and row["error"] == 0]
    off = [row for row in rows if row["kind"] == kind and row["error"] > 0]
    return {
        "labels": kind,
        "designs": len(null),
        "level": _pooled(null, "rejected", max),
        "coverage at 0": _pooled(null, "covered", min),
        f"coverage at {ERRORS[1]:g}": _pooled(off, "covered", min),
        f"l1 at {ERRORS[1]:g}": _pooled(off, "covered_l1", min),
        "false pass": _pooled(off, "passed", max),
    }


def _pooled(rows: list[Row], key: str, worst: Callable[[list[float]], float]) -> str:
    """Return the rate over all draws, two standard errors, and the worst design."""
    draws = np.array([row["draws"] for row in rows])
    rates = np.array([row[key] for row in rows])
    rate = float(draws @ rates / draws.sum())
    error = (rate * (1 - rate) / draws.sum()) ** 0.5
    return f"{rate:.3f} ± {2 * error:.3f} ({worst(rates.tolist()):.3f})"
