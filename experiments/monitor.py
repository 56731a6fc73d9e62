"""Guarantees and detection delays of `CalibrationMonitor`.

A full run takes about an hour of processor time. With TRUECAL_BENCHMARK_CACHE=FOLDER it can be interrupted and
continued; with ``--finished`` besides, the page is made of the blocks that are finished.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from experiments._monitor_delays import AFTER, CURVES, RUN_LENGTH, WEEK, delays
from experiments._monitor_delays import CHANGE as LATE
from experiments._monitor_guarantees import (
    CHANGE,
    CLUSTER,
    EPSILON,
    GROUPS,
    REFERENCE_ROWS,
    RUN_LENGTHS,
    WRONG,
    change_points,
    cluster_alarms,
    covered,
    false_alarms,
    group_alarms,
    run_lengths,
)
from experiments._monitor_streams import LEVEL, LOOK, ROWS, SCORES, SHAPES, check
from experiments._page import Page, markdown
from truecal import CalibrationMonitor

_BLOCK = 50

#: A row of the table: part, case, number of streams, and what else belongs there.
Row = dict[str, Any]
Job = tuple[Callable[..., Any], tuple[Any, ...]]


def _blocks(streams: int) -> Iterator[tuple[int, int]]:
    for first in range(0, streams, _BLOCK):
        yield first, min(_BLOCK, streams - first)


def plan(streams: int) -> dict[tuple[Any, ...], list[Job]]:
    """Return the blocks of each case; fewer streams where each has a monitor of its own, which takes longer."""
    cases: dict[tuple[Any, ...], list[Job]] = {}

    def add(function: Callable[..., Any], *case: Any, number: int) -> None:
        jobs = [(function, (*case, *block)) for block in _blocks(number)]
        cases[(function.__name__, *case)] = jobs

    for scores in SCORES:
        add(false_alarms, "perfect", scores, "none", number=streams)
        for shape in SHAPES:
            add(false_alarms, "at_most", scores, shape, number=-(-streams // 3))
        add(false_alarms, "reference", scores, "slope", number=streams)
        add(cluster_alarms, scores, number=streams // 25)
        for length in RUN_LENGTHS:
            add(run_lengths, scores, length, 0.0, number=streams // 10)
        add(run_lengths, scores, RUN_LENGTHS[0], EPSILON, number=streams // 10)
    add(group_alarms, number=streams // 10)
    for shape in SHAPES:
        for before in (0.0, 0.03):
            add(change_points, shape, before, number=streams // 50)
    for scores, shape, error in _COVERED:
        add(covered, scores, shape, error, number=streams // 40)
    for change in (0, LATE):
        for name in CURVES:
            cases["delays", name, change] = [(delays, (name, change, max(streams // 100, 20)))]
    return cases


def _is_cached(function: Any, arguments: tuple[Any, ...]) -> bool:
    return bool(function.check_call_in_cache(*arguments))


#: Cases of the confidence sequences: scores, shape, root mean square error.
_COVERED = [
    ("uniform", "level", 0.0),
    ("uniform", "slope", 0.05),
    ("tied, tenths", "level", 0.05),
    ("skewed, Beta(0.5, 10)", "local", 0.03),
    ("extreme, Beta(0.1, 0.1)", "slope", 0.05),
]


def main(*, quick: bool = False, draws: int | None = None, finished: bool = False) -> Page:
    """Simulate streams, or use only those that earlier runs finished."""
    streams = draws or (100 if quick else 10_000)
    check()
    cases = plan(streams)
    if finished:
        cases = {case: [job for job in jobs if _is_cached(*job)] for case, jobs in cases.items()}
    jobs = [delayed(function)(*arguments) for blocks in cases.values() for function, arguments in blocks]
    results = iter(Parallel(n_jobs=1 if quick else 2)(jobs))
    rows: list[Row] = []
    for case, blocks in cases.items():
        if blocks:
            size = sum(arguments[-1] for _, arguments in blocks)
            rows += _ROWS_OF[case[0]](case, [next(results) for _ in blocks], size)
    page = _page(rows, streams, finished)
    return Page(page, {"": rows})


def _share(part: str, case: str, count: float, streams: int, **more: Any) -> Row:
    share = count / streams
    likely = (count + 1) / (streams + 2)  # so that no share has an error of 0
    error = math.sqrt(likely * (1 - likely) / streams)
    return {"part": part, "case": case, "streams": streams, "share": share, "standard_error": error, **more}


def _alarm_rows(case: tuple[Any, ...], blocks: list[int], n: int) -> list[Row]:
    _, null, scores, shape = case
    return [_share(null, scores, sum(blocks), n, shape=shape)]


def _cluster_rows(case: tuple[Any, ...], blocks: list[tuple[int, int]], n: int) -> list[Row]:
    named, ignored = np.sum(blocks, axis=0).tolist()
    return [_share("clusters", case[1], named, n), _share("clusters ignored", case[1], ignored, n)]


def _group_rows(case: tuple[Any, ...], blocks: list[tuple[float, ...]], n: int) -> list[Row]:
    names = ("family-wise error", "false discoveries at the first", "false discoveries at the end", "power")
    totals = np.sum(blocks, axis=0).tolist()
    return [_share("groups", name, total, n) for name, total in zip(names, totals, strict=True)]


def _length_rows(case: tuple[Any, ...], blocks: list[list[float]], n: int) -> list[Row]:
    _, scores, length, at_most = case
    values = np.concatenate(blocks)
    return [
        {
            "part": "run length",
            "case": scores,
            "streams": len(values),
            "length": length,
            "at_most": at_most,
            "mean": float(values.mean()),
            "standard_error": float(values.std(ddof=1) / math.sqrt(len(values))),
            "share": float(np.mean(values == 10 * length)),
        }
    ]


def _change_rows(case: tuple[Any, ...], blocks: list[Any], n: int) -> list[Row]:
    _, shape, before = case
    found = np.concatenate(blocks)
    found = found[found[:, 0] > CHANGE]  # without false alarms, and streams without an alarm
    rows = []
    for when, (low, row, high) in (("alarm", found[:, 1:4].T), ("end", found[:, 4:].T)):
        inside = int(((low <= CHANGE) & (high >= CHANGE)).sum())
        more = {"when": when, "before": before, "median": float(np.median(np.abs(row - CHANGE)))}
        rows.append(
            _share("change point", shape, inside, len(row), **more, width=float(np.median(high - low)))
        )
    return rows


def _covered_rows(case: tuple[Any, ...], blocks: list[Any], n: int) -> list[Row]:
    _, scores, shape, error = case
    *wrong, high = np.sum(blocks, axis=0).tolist()
    names = ("level", "error, lower end", "error, upper end")
    common = {"shape": shape, "error": error, "high": high / n}
    return [
        _share("coverage", scores, count, n, bound=name, **common)
        for name, count in zip(names, wrong, strict=True)
    ]


def _delay_rows(case: tuple[Any, ...], blocks: list[Any], n: int) -> list[Row]:
    _, name, change = case
    return [
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
        for method, values in blocks[0].items()
    ]


_ROWS_OF: dict[str, Callable[..., list[Row]]] = {
    "false_alarms": _alarm_rows,
    "cluster_alarms": _cluster_rows,
    "group_alarms": _group_rows,
    "run_lengths": _length_rows,
    "change_points": _change_rows,
    "covered": _covered_rows,
    "delays": _delay_rows,
}


def _percent(row: Row) -> str:
    return f"{100 * row['share']:.2f}% ± {100 * row['standard_error']:.2f}%"


def _counted(row: Row) -> str:
    return f"{_percent(row)} ({row['streams']:,})"


def _by_scores(rows: list[Row], columns: dict[str, Callable[[Row], bool]]) -> str:
    """Return a table with a line for each kind of scores."""
    lines = []
    for scores in SCORES:
        line: Row = {"scores": scores}
        for name, belongs in columns.items():
            line[name] = next(_counted(row) for row in rows if row["case"] == scores and belongs(row))
        lines.append(line)
    return markdown(lines)


def _delay_tables(rows: list[dict[str, object]]) -> str:
    tables = []
    for change in (0, LATE):
        lines = []
        for case in CURVES:
            found = {
                str(row["method"]): row for row in rows if row["case"] == case and row["change"] == change
            }
            if not found:
                continue
            line: dict[str, object] = {"change": case}
            for method, row in found.items():
                shown = f"{row['median']:,.0f}"
                line[method] = f"{shown} (none)" if row["median"] == AFTER else shown
            valid = [float(found[name]["median"]) for name in ("weekly tests", "probcal") if name in found]  # type: ignore[arg-type]
            line["truecal / best other"] = f"{float(found['truecal']['median']) / min(valid):.2f}"  # type: ignore[arg-type]
            lines.append(line)
        title = "from the first row" if change == 0 else f"after {change:,} calibrated rows"
        tables.append(f"### Error {title}\n\n{markdown(lines)}\n")
    return "\n".join(tables)


def _speed() -> str:
    """Return the processor time of `update` on 1,000 rows, the median and the smallest of many."""
    rng, monitor, times = np.random.default_rng(0), CalibrationMonitor(), []
    for _ in range(200):
        p = rng.random(1000)
        y = rng.random(1000) < p
        start = time.process_time()
        monitor.update(y, p)
        times.append(1e3 * (time.process_time() - start))
    return f"{np.median(times):.2f} ms (median), {min(times):.2f} ms (smallest)"


def _page(rows: list[Row], streams: int, finished: bool) -> str:
    part = {
        name: [row for row in rows if row["part"] == name] for name in dict.fromkeys(r["part"] for r in rows)
    }
    nulls = {"perfectly calibrated": lambda row: row["part"] == "perfect"}
    nulls |= {
        f"at most {EPSILON:g}, {shape}": lambda row, shape=shape: (
            row["part"] == "at_most" and row["shape"] == shape
        )
        for shape in SHAPES
    }
    nulls["no worse than a reference"] = lambda row: row["part"] == "reference"
    clusters = {name: lambda row, name=name: row["part"] == name for name in ("clusters", "clusters ignored")}
    lengths = [
        {
            "scores": row["case"],
            "null hypothesis": f"at most {row['at_most']:g}" if row["at_most"] else "perfect",
            "asked for": f"{row['length']:,}",
            "mean rows to a false alarm": f"{row['mean']:,.0f} ± {row['standard_error']:,.0f} ({row['streams']:,})",
            "none within 10 times that": f"{100 * row['share']:.0f}%",
        }
        for row in part["run length"]
    ]
    changes = [
        {
            "change": row["case"],
            "error before": f"{row['before']:g}",
            "looked at": f"at the {row['when']}",
            "contains the change": _counted(row),
            "median width": f"{row['width']:,.0f} rows",
            "median distance of the estimate": f"{row['median']:,.0f} rows",
        }
        for row in part["change point"]
    ]
    bounds = [
        {
            "scores": row["case"],
            "error": f"{row['error']:g} ({row['shape']})" if row["error"] else "0",
            "bound": row["bound"],
            "ever wrong": _counted(row),
            "upper end after the last row": f"{row['high']:.3f}" if "upper" in row["bound"] else "",
        }
        for row in part["coverage"]
    ]
    groups = [{"": row["case"], "share": _counted(row)} for row in part["groups"]]
    count = next(int(row["streams"]) for row in part["delay"] if row["method"] == "truecal")
    stopped = "\nThe run was stopped early, so that there are fewer streams than planned." if finished else ""
    return f"""# Monitoring: guarantees and delays

All levels are {100 * LEVEL:g}%. Shares are given with their standard errors, and in brackets the number of
streams.{stopped}

## False alarms

Share of streams of {ROWS:,} rows, looked at after every {LOOK}, in which `CalibrationMonitor` ever raised an alarm, at
the boundary of each null hypothesis. The guarantee is at most {100 * LEVEL:g}%, for a stream of any length; within
{ROWS:,} rows only part of it is used.

{_by_scores(rows, nulls)}

At most {EPSILON:g}: the root mean square error is exactly {EPSILON:g}, as a shift of the logit, as a slope,
or as a shift of the probabilities of scores from 0.02 to 0.2. Reference:
{REFERENCE_ROWS:,} earlier rows of each stream, with the same slope, whose error is {EPSILON:g}.

### Clusters

The {CLUSTER} labels of a cluster follow from one random number, so that each is calibrated and they are as dependent as
can be.

{_by_scores(rows, clusters)}

### Groups

Families of {GROUPS} groups of 2,000 rows each. Family-wise error: all groups are calibrated, and each has an equal
share of alpha. False discoveries with e-BH: {WRONG} groups have a slope of 0.7; looked at when the first group is
flagged, and after the last row.

{markdown(groups)}

## Run length of the change detector

Mean number of rows to a false alarm, which must be at least the number asked for. Streams without one are counted
with 10 times that number, which makes the mean too small.

{markdown(lengths)}

## Change point

Share of 95% intervals that contain the change, which comes after {CHANGE:,} rows, in the middle of a batch, in
streams with uniform scores and an alarm after the change. The error after the change is 0.06; with an error before,
which is a slope that the monitor tolerates (`at_most={EPSILON:g}`), it is 0.1.

{markdown(changes)}

## Confidence sequences

Share of streams of {ROWS:,} rows in which a 95% bound was wrong at any of the looks.

{markdown(bounds)}

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
  {LATE + AFTER:,} rows. Shown as a bound, and not a competitor.
- **weekly tests**: a score test of intercept and slope, and a chi-squared test of ten bins, on each {WEEK} rows, with
  Bonferroni's correction over all weeks and both tests.
- **probcal**: `probcal.monitor.CalibrationMonitor`, its defaults except for a coarse grid of its confidence sequence,
  which is not used here.

{_delay_tables(part["delay"])}
The last column divides truecal's median by that of the better of weekly tests and probcal.

## Time

`update` with 1,000 rows takes {_speed()} of processor time.
"""
