"""The gate and both ends of the interval: false passes at the true error, coverage, length.

A run starts from the rows of the table in the docs, if a probe shows that the package still gives the same, and from
those of earlier runs that were stopped: finished cells are lines of ``honest_rows.jsonl`` in the folder that the
environment variable TRUECAL_BENCHMARK_CACHE names, else in the folder for temporary files. Cells that are known are not
run again, whatever the number of their draws.
"""

from __future__ import annotations

import ast
import csv
import json
import math
import os
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from joblib import Parallel, delayed

from experiments._honest_designs import Design, designs
from experiments._honest_populations import (
    COVERED,
    FINER,
    NARROW,
    SPARSE,
    Scores,
    Shape,
    atoms,
    beta,
    logit_normal,
    mixed,
)
from experiments._page import FOLDER, Page, markdown
from experiments.external_interval import sun_interval
from truecal.data import as_sample
from truecal.data.sample import Sample
from truecal.multiscale import Limits, UpperLimit, analyse, noncentrality
from truecal.simulation.suites import suite

Row = dict[str, Any]
Cell = Sequence[Any]

SIZES = (50, 200, 1000, 5000, 20_000, 50_000)
#: Limits that people use; the smallest that a calibrated model may pass is tested on the tuning populations.
LIMITS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
#: Error in units of the upper 95% limit of calibrated samples.
FACTORS = (0.9, 1.5)
#: Rates that must not be exceeded by more than two standard errors, for the gates at 5% and 1%.
ALLOWED = {"at_5": 0.06, "at_1": 0.015}
SUITES = ("A", "B", "C1", "C2", "D1", "D2")
SUITE_SIZES = (200, 1000, 5000)
SEARCH = 200  # settings of the random search, of either kind
#: Cells that are run again to see whether the table in the docs still holds.
PROBED = 12

TUNING = {
    "u": "shift slope add sub temp high10 high3",
    "skew": "shift slope sub high10 high3",
    "net": "shift temp sub high10",
    "rare1": "shift slope add high10",
    "tail10": "shift sub high10 high3",
    "mixsub": "shift sub high10",
    "tree5": "shift rnd add",
    "verbal": "shift sub temp rnd",
    "rare4": "shift rnd add",
    "iso10": "rnd slope",
    "iso20": "rnd shift",
    "iso100": "rnd slope",
    "isorare30": "rnd shift",
    "votes20": "rnd temp",
    "votes100": "rnd shift slope",
}
SET_ASIDE = {
    "permille": "shift down high10",
    "percent": "shift bent high5",
    "grades7": "rnd first last lightest shift",
    "central": "power sharp jump",
    "ushape": "slope sharp one_wave",
    "ends": "ends slope",
    "deciles12": "alternating middle rnd",
    "top4": "temp sub cap",
    "votes50": "rnd slope",
    "digits3": "slope two_waves",
    "saturated": "temp sub",
    "two_groups": "sub shift high10",
    "uneven30": "rnd lightest",
    "stated4": "rnd first last",
    "rare2": "first last shift",
    "u": "jump two_waves cap low",
}
WEAK = {
    "u": "four_steps stairs8 high10 high5 high3",
    "credit": "bent",
    "skew": "high10 high3",
    "net": "high10",
    "digits2": "rnd middle",
    "ten_rows30": "rnd middle alternating",
}
CALIBRATED = (
    ("uniform scores", "u", 3000, 0.05),
    ("uniform scores", "u", 25_000, 0.02),
    ("seven grades, 5% events", "grades_5", 5000, 0.02),
)


def main(*, quick: bool = False, draws: int = 200, finished: bool = False) -> Page:
    """Run all cells that are not known yet, or use only those that are, and write the page."""
    cells = every = _cells()
    if quick:
        cells = cells[:: max(len(cells) // 40, 1)]
    known = {} if quick else _known()
    if finished:
        cells = [cell for cell in cells if _key(cell) in known]
    rows = _run(cells, 4 if quick else draws, known, None if quick else _rows_file())
    measured = () if quick else (rounded_limits(), cost())
    return Page(report(rows, len(cells) / len(every), *measured), {"": rows})


def _cells() -> list[Cell]:
    """Return what is to be measured: a function, its arguments, but the draws."""
    found: list[Cell] = []
    for n in SIZES:
        found += [("tuning", a, b, n) for a, each in TUNING.items() for b in each.split()]
    for name, table in (("set aside", SET_ASIDE), ("weak spots", WEAK)):
        for n in SIZES:
            found += [
                (name, a, b, n, factor)
                for a, each in table.items()
                for b in each.split()
                for factor in FACTORS
            ]
    found += [("design", name, factor) for name in designs() for factor in FACTORS]
    found += [(kind, seed) for kind in ("search, few scores", "search, continuous") for seed in range(SEARCH)]
    found += [("suite", name, key, n) for name in SUITES for key in suite(name) for n in SUITE_SIZES]
    found += [("calibrated", *each) for each in CALIBRATED]
    found += [
        ("length", a, n) for a in ("u", "skew", "net", "rare1", "tree5", "iso20", "votes100") for n in SIZES
    ]
    return found


def _rows_file() -> Path:
    return Path(os.environ.get("TRUECAL_BENCHMARK_CACHE", tempfile.gettempdir())) / "honest_rows.jsonl"


def _key(cell: Sequence[Any]) -> str:
    return json.dumps(cell)


def _known() -> dict[str, Row]:
    """Return the rows of the table in the docs, if they are still right, and of earlier runs."""
    known = {_key(row["cell"]): row for row in _read_table(FOLDER / "honest.csv")}
    if (changed := _changed(known)) is not None:
        print(f"The table in the docs was made by other code: {changed}. All of its cells are run again.")
        known = {}
    if _rows_file().exists():
        found = map(json.loads, _rows_file().read_text(encoding="utf-8").splitlines())
        known |= {_key(row["cell"]): row for row in found}
    return known


def _read_table(path: Path) -> list[Row]:
    """Return the rows of a CSV file that an earlier run wrote, with their types."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as lines:
        return [
            {name: _value(name, text) for name, text in row.items() if text} for row in csv.DictReader(lines)
        ]


def _value(name: str, text: str) -> Any:
    if name in ("part", "population", "curve", "suite", "before"):
        return text
    return ast.literal_eval(text)


def _changed(known: Mapping[str, Row]) -> str | None:
    """Return which of some cells has a rate that moved by more than its Monte Carlo error; None if none has."""
    quick = [key for key, row in known.items() if "at_5" in row and row["n"] <= 1000]
    for key in sorted(quick, key=_order)[:PROBED]:
        old, new = known[key], _measure(known[key]["cell"], known[key]["draws"])
        for rate in ("at_5", "at_1"):
            if abs(new[rate] - old[rate]) > _error(old[rate], old["draws"]):
                return f"{rate} of {key} is {new[rate]:.3f}, and was {old[rate]:.3f}"
    return None


def _order(key: str) -> int:
    """Return the place of a cell in a random order, so that a part of a run is a fair sample."""
    return zlib.crc32(key.encode())


def _run(cells: Sequence[Cell], draws: int, known: dict[str, Row], file: Path | None) -> list[Row]:
    """Return the rows of all cells; those that are not known are added to the file one by one."""
    missing = sorted((cell for cell in cells if _key(cell) not in known), key=lambda cell: _order(_key(cell)))
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
    made: Iterable[Row] = Parallel(
        n_jobs=int(os.environ.get("TRUECAL_BENCHMARK_JOBS", "2")), return_as="generator"
    )(delayed(_measure)(cell, draws) for cell in missing)
    for row in made:
        known[_key(row["cell"])] = row
        if file is not None:
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row) + "\n")
    return [row for cell in cells if (row := known[_key(cell)])["draws"]]


def _measure(cell: Cell, draws: int) -> Row:
    """Return the row of one cell; without draws if the family has no curve with the error."""
    kind, *rest = cell
    row = {"cell": list(cell), "part": kind, "draws": draws}
    return {**row, **(MEASURES[kind](*rest, draws) or {"draws": 0})}


# --- False passes ----------------------------------------------------------------------------------


def _generator(*key: Any) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def _calibrated_limit(design: Any, n: int, *key: Any) -> float:
    """Return the mean upper 95% limit of five calibrated samples."""
    model = design.at(0.0)
    found = [
        design.limits(model, _generator("calibrated", *key, n, r), n).above.limit(0.05) for r in range(5)
    ]
    return float(np.mean(found))


def _false_passes(design: Any, n: int, error: float, repeats: int, *key: Any) -> Row | None:
    """Return how often samples pass at their own error."""
    known = design.at(error)
    if known is None:
        return None
    found = [design.limits(known, _generator(*key, n, r), n) for r in range(repeats)]
    pvalue = np.array([limits.at_most(error) for limits in found])
    return {
        "n": n,
        "error": error,
        "intervals": int(np.median([len(limits.above) for limits in found])),
        "curve": design.coverage(known, n),
        "at_5": float(np.mean(pvalue <= 0.05)),
        "at_1": float(np.mean(pvalue <= 0.01)),
    }


def _tuning(scores: str, shape: str, n: int, repeats: int) -> Row | None:
    design = Design(scores, shape)
    least = 0.8 * _calibrated_limit(design, n, scores)
    error = next((limit for limit in LIMITS if limit >= least), None)
    if error is None:
        return None
    row = _false_passes(design, n, error, repeats, scores, shape)
    return row and {"population": f"{scores}/{shape}", **row}


def _by_factor(scores: str, shape: str, n: int, factor: float, repeats: int) -> Row | None:
    design = Design(scores, shape)
    error = factor * _calibrated_limit(design, n, scores)
    row = _false_passes(design, n, error, repeats, scores, shape, factor)
    return row and {"population": f"{scores}/{shape}", "factor": factor, **row}


def _design(name: str, factor: float, repeats: int) -> Row | None:
    design, n = designs()[name]
    error = factor * _calibrated_limit(design, n, name)
    row = _false_passes(design, n, error, repeats, name, factor)
    return row and {"population": name, "factor": factor, **row}


# --- Random search ---------------------------------------------------------------------------------


def _few_scores(seed: int, repeats: int) -> Row | None:
    """Return a random setting of 1 to 30 scores with at least 10 expected rows each."""
    rng = _generator("few scores", seed)
    n = round(math.exp(rng.uniform(math.log(50), math.log(5000))))
    most = int(max(min(30, n / 10, 7 * n**0.4), 1))
    k = int(rng.integers(1, most + 1))
    kind = rng.choice(["rare", "mid", "ends", "all"])
    value = {
        "rare": lambda: 10 ** rng.uniform(-3.5, -1, k),
        "mid": lambda: rng.uniform(0.05, 0.95, k),
        "ends": lambda: np.concatenate([[0.0, 1.0], rng.random(k)])[:k],
        "all": lambda: rng.beta(0.4, 0.8, k),
    }[str(kind)]()
    value = np.unique(np.round(value, 5))
    least = 10 / n
    mass = least + (1 - least * len(value)) * rng.dirichlet(np.full(len(value), rng.choice([0.3, 1.0, 10.0])))
    where = str(rng.choice(["one", "two", "all", "noisiest", "lightest"]))
    chosen = {
        "one": lambda: rng.choice(len(value), 1),
        "two": lambda: rng.choice(len(value), min(2, len(value)), replace=False),
        "all": lambda: np.arange(len(value)),
        "noisiest": lambda: np.array([int(np.argmax(value * (1 - value) / mass))]),
        "lightest": lambda: np.array([int(np.argmin(mass))]),
    }[where]()
    size = np.zeros(len(value))
    towards_half = rng.random() < 0.5
    signs = np.where(value[chosen] < 0.5, 1.0, -1.0) if towards_half else rng.choice([-1.0, 1.0], len(chosen))
    size[chosen] = signs * rng.uniform(0.3, 1, len(chosen))
    shape = Shape(lambda f, u, a: f + a * size, 20, each=True)
    factor = float(rng.uniform(0.6, 2))
    design = Design(atoms(value, mass), shape)
    error = factor * _calibrated_limit(design, n, "few", seed)
    row = _false_passes(design, n, error, repeats, "few", seed)
    name = f"{len(value)} scores ({kind}), error in {where}"
    return row and {"population": name, "factor": factor, **row}


def _continuous(seed: int, repeats: int) -> Row | None:
    """Return a random setting of continuous scores: one or two jumps, or a smooth bend."""
    rng = _generator("continuous", seed)
    n = round(math.exp(rng.uniform(math.log(50), math.log(20_000))))
    if rng.random() < 0.5:
        a, b = np.exp(rng.uniform(math.log(0.15), math.log(5), 2))
        scores, name = mixed((1, beta(a, b))), f"beta({a:.2g}, {b:.2g})"
    else:
        mean, sd = rng.uniform(-5, 3), rng.uniform(0.5, 2)
        scores, name = mixed((1, logit_normal(mean, sd))), f"logit-normal({mean:.2g}, {sd:.2g})"
    kind = str(rng.choice(["jump", "bump", "wave", "curve"]))
    sign = float(rng.choice([-1.0, 1.0]))
    shape, name = _random_shape(rng, kind, sign, scores, name)
    factor = float(rng.uniform(0.6, 2))
    design = Design(scores, shape)
    error = factor * _calibrated_limit(design, n, "continuous", seed)
    row = _false_passes(design, n, error, repeats, "continuous", seed)
    return row and {"population": name, "factor": factor, **row}


def _random_shape(
    rng: np.random.Generator, kind: str, sign: float, scores: Scores, name: str
) -> tuple[Shape, str]:
    if kind == "jump":
        at, other = float(rng.uniform(0.03, 0.97)), float(rng.uniform(-1, 1) * rng.integers(2))
        shape = Shape(lambda f, u, a: f + sign * a * np.where(u < at, other, 1.0), jumps=(at,))
        return shape, f"{name}, jump at {at:.2f}"
    if kind == "bump":
        low = float(rng.uniform(0, 0.9))
        high = float(min(low + rng.uniform(0.03, 0.5), 0.99))
        shape = Shape(lambda f, u, a: f + sign * a * ((u >= low) & (u < high)), jumps=(low, high))
        return shape, f"{name}, bump at {low:.2f} to {high:.2f}"
    if kind == "wave":
        waves, phase = float(rng.uniform(0.3, 3)), float(rng.uniform(0, 2 * np.pi))
        shape = Shape(lambda f, u, a: f + a * np.sin(2 * np.pi * waves * u + phase), waves=waves)
        return shape, f"{name}, {waves:.1f} waves"
    power = float(np.exp(rng.uniform(math.log(0.3), math.log(3))))
    shape = Shape(lambda f, u, a: f + sign * a * (f * (1 - f)) ** power, 50)
    return shape, f"{name}, bend of power {power:.2g}"


# --- Coverage and length ---------------------------------------------------------------------------


def _suite(name: str, key: str, n: int, repeats: int) -> Row:
    population = suite(name)[key]
    truth, efficient = population.true_error(), population.efficiency_limit(n)
    ends, sun, upper, value = [], [], [], []
    for r in range(repeats):
        label, score = population.sample(n, rng=_generator("suite", key, n, r))
        limits = analyse(as_sample(label, score)).limits
        ends.append(limits.interval(0.95))
        sun.append(sun_interval(label, score, 0.95))
        upper.append(limits.upper(0.05))
        value.append(limits.error)
    low, high = np.array(ends).T
    sun_low, sun_high = np.array(sun).T
    return {
        "population": key,
        "suite": name,
        "n": n,
        "truth": truth,
        "intervals": len(limits.above),
        "every_score": limits.above.every_score,
        "covered": float(np.mean((low <= truth + 1e-9) & (truth <= high + 1e-9))),
        "low_above": float(np.mean(low > truth + 1e-9)),
        "high_below": float(np.mean(high < truth - 1e-9)),
        "upper_below": float(np.mean(np.array(upper) < truth - 1e-9)),
        "outside": float(np.mean((np.array(value) < low) | (np.array(value) > high))),
        "length": float(np.mean(high - low)),
        "sun_covered": float(np.mean((sun_low <= truth + 1e-9) & (truth <= sun_high + 1e-9))),
        "sun_length": float(np.mean(sun_high - sun_low)),
        "excess": float((np.mean(upper) - truth) / (1.645 * efficient)) if truth >= 0.05 else None,
    }


def gaussian_limit(limit: UpperLimit, tail: float) -> float:
    """Return the upper limit of normal labels with the known mean variance, in the same intervals."""
    noise = float(
        limit.share @ (np.maximum(limit.score * (1 - limit.score) - limit.within, 0.0) / limit.rows)
    )
    scale = noise / len(limit)
    return math.sqrt(scale * noncentrality(float(limit.share @ limit.gap**2) / scale, len(limit), tail))


def _length(scores: str, n: int, repeats: int) -> Row:
    model = Design(scores, "shift").at(0.0)
    assert model is not None
    repeats = min(repeats, 200)
    found = []
    for r in range(repeats):
        label, score = model.draw(_generator("length", scores, n, r), n)
        limits = analyse(as_sample(label, score)).limits
        found.append(
            [limits.upper(0.05), gaussian_limit(limits.above, 0.05), sun_interval(label, score, 0.9)[1]]
        )
    upper, gauss, sun = np.mean(found, axis=0)
    return {
        "draws": repeats,
        "population": scores,
        "n": n,
        "intervals": len(limits.above),
        "upper": upper,
        "upper_se": float(np.std(np.array(found)[:, 0]) / math.sqrt(repeats)),
        "to_gauss": upper / gauss,
        "to_sun": upper / sun,
    }


_GRADES_5 = atoms([0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3], [0.2, 0.2, 0.2, 0.15, 0.12, 0.08, 0.05])


def _passes(name: str, scores: str, n: int, bound: float, repeats: int) -> Row:
    model = Design(_GRADES_5 if scores == "grades_5" else scores, "shift").at(0.0)
    assert model is not None
    passed = [
        analyse(as_sample(*model.draw(_generator("passes", scores, n, r), n))).limits.at_most(bound) <= 0.05
        for r in range(repeats)
    ]
    return {"population": name, "n": n, "error": bound, "passed": float(np.mean(passed))}


def one_score() -> list[Row]:
    """Return the limits of one score beside those of Clopper and Pearson, over all numbers of events."""
    rows = []
    for n in (20, 100, 1000):
        for f in (0.0, 0.001, 0.01, 0.1, 0.5, 1.0):
            ratio = []
            for k in range(0, n + 1, max(n // 200, 1)):
                high = scipy.stats.beta.ppf(0.95, k + 1, n - k) if k < n else 1.0
                low = scipy.stats.beta.ppf(0.05, k, n - k + 1) if k > 0 else 0.0
                sample = Sample(
                    score=np.array([f]), count=np.array([float(n)]), positives=np.array([float(k)])
                )
                ratio.append(analyse(sample).limits.upper(0.05) / max(high - f, f - low))
            rows.append(
                {"n": n, "score": f, "smallest ratio": f"{min(ratio):.4f}", "largest": f"{max(ratio):.4f}"}
            )
    return rows


MEASURES: dict[str, Callable[..., Row | None]] = {
    "tuning": _tuning,
    "set aside": _by_factor,
    "weak spots": _by_factor,
    "design": _design,
    "search, few scores": _few_scores,
    "search, continuous": _continuous,
    "suite": _suite,
    "calibrated": _passes,
    "length": _length,
}


# --- The page --------------------------------------------------------------------------------------


def _error(rate: float, draws: int) -> float:
    """Return the standard error of a rate, with one more success and failure."""
    share = (rate * draws + 1) / (draws + 2)
    return math.sqrt(share * (1 - share) / draws)


def _over(row: Row) -> bool:
    return any(
        row[key] > most + 2 * math.sqrt(most * (1 - most) / row["draws"]) for key, most in ALLOWED.items()
    )


def _summary(rows: list[Row], by: str) -> list[Row]:
    """Return one line for each value of a column: mean and worst rates of the cells that are covered."""
    lines = []
    for value in dict.fromkeys(row[by] for row in rows):
        part = [row for row in rows if row[by] == value and row["curve"] == COVERED]
        if not part:
            continue
        line: Row = {by: value, "cells": len(part)}
        for key, title in (("at_5", "5%"), ("at_1", "1%")):
            mean = float(np.mean([row[key] for row in part]))
            error = math.sqrt(sum(_error(row[key], row["draws"]) ** 2 for row in part)) / len(part)
            worst = max(part, key=lambda row: row[key])
            line[f"{title}: mean"] = f"{mean:.4f} ± {error:.4f}"
            line[f"{title}: worst"] = (
                f"{worst[key]:.3f} ± {_error(worst[key], worst['draws']):.3f} ({_name(worst, by)})"
            )
        line["above .06 or .015 by 2 s.e."] = sum(map(_over, part))
        lines.append(line)
    return lines


def _name(row: Row, by: str = "") -> str:
    name = str(row["population"])
    return name if by == "n" or "n = " in name else f"{name}, n = {row['n']:,}"


def _listed(rows: list[Row]) -> str:
    lines = [
        {
            "population": _name(row),
            "intervals": row["intervals"],
            "error": f"{row['error']:.4f}",
            "times U": f"{row['factor']:.2f}" if "factor" in row else "",
            "curve": row["curve"],
            "5%": f"{row['at_5']:.3f} ± {_error(row['at_5'], row['draws']):.3f}",
            "1%": f"{row['at_1']:.3f} ± {_error(row['at_1'], row['draws']):.3f}",
        }
        for row in rows
    ]
    return markdown(lines) if lines else "None."


def report(
    rows: list[Row], share: float = 1.0, rounding: Sequence[Row] = (), cost: Sequence[Row] = ()
) -> str:
    """Return the page for all cells, or for a random share of them."""
    part = "" if share == 1 else f"\nSo far {share:.0%} of the cells have been run, in a random order.\n"
    parts = {name: [row for row in rows if row["part"] == name] for name in MEASURES}
    gate = [row for row in rows if "at_5" in row]
    over = [row for row in gate if row["curve"] == COVERED and _over(row)]
    searches = parts["search, few scores"] + parts["search, continuous"]
    outside = [row for row in gate if row["curve"] != COVERED and row["part"] != "weak spots"]
    outside.sort(key=lambda row: -row["at_5"])
    narrow = [row for row in outside if row["curve"] == NARROW]
    sparse = [row for row in gate if row["curve"] == SPARSE]
    finer = [row for row in outside if row["curve"] == FINER]
    worst = [row for row in gate if row["curve"] == COVERED]
    worst.sort(key=lambda row: -row["at_5"])
    return f"""# The gate and the upper limit

How often `calibration_test(at_most=eps)` passes a model whose error is exactly eps, at the levels 5% and 1%: at most
{ALLOWED["at_5"]:g} and {ALLOWED["at_1"]:g} are aimed at. {_draws(gate)}
{part}
A curve is *covered* by a rule on n, scores and curve. Covered is any error at each of up to
min(n/10, 7 n^0.4) scores with 10 expected rows each; and for other scores every smooth curve, with waves or steps
that span four intervals or more, and jumps of which no interval holds two. Apart are listed: errors *{NARROW}*, where a
piece between two jumps, or between a jump and the end, holds no whole interval; errors *{SPARSE}*, where nine tenths of
the squared error lie in fewer rows than the interval with most of it has, or in fewer than 10; and what is *{FINER}*.
Two parts of the rule are younger than some results. That steps of stairs count as waves was added after first results
of stairs8 and four_steps; both are under "Weak spots" with all their rates. Errors in too few rows were covered before
mixsub/sub (.130 at 5%, 0 at 1%) and two_groups/sub (.085, 0) with 50 rows were seen; all {len(sparse)} are listed, of
which {sum(map(_over, sparse))} are above the aim.
{_older(rows)}
Covered cells: {len(worst)}. Above the aim by more than two standard errors: {len(over)}.

{_listed(over)}

## Tuning populations

The error is the smallest of {", ".join(f"{limit:g}" for limit in LIMITS)} that is at least 0.8 times the upper limit of
calibrated samples.

{_table(_summary(parts["tuning"], "n"))}

## Populations set aside

They were defined before any result on them was seen, but grades7 and central, which also occur among the designs
with weights and clusters below. The error is {FACTORS[0]:g} and {FACTORS[1]:g} times the upper 95% limit U
of calibrated samples.

{_table(_summary(parts["set aside"], "n"))}

## Weights, clusters, classes, top labels, cells

{_listed(sorted(parts["design"], key=lambda row: -row["at_5"])[:25])}

The 25 cells with most false passes, of {len(parts["design"])}.

{_table(_summary(parts["design"], "part"))}

## Random search

{SEARCH} settings of 1 to 30 scores with at least 10 expected rows each (rare, in the middle, 0 and 1; error in one,
two, all, the noisiest or the lightest score), and {SEARCH} of continuous scores (one jump, a bump, waves, a bend);
error 0.6 to 2 times U.

{_table(_summary(searches, "part"))}

The ten settings with most false passes:

{_listed(sorted((row for row in searches if row["curve"] == COVERED), key=lambda row: -row["at_5"])[:10])}

## Weak spots

The allowance for jumps inside intervals was last changed after a look at four_steps, stairs8 and steps and stairs of
suites C1, C2 and D1: their rates are no independent check of it.

{_listed(sorted(parts["weak spots"], key=lambda row: (row["population"], row["n"])))}

## Not covered: in too few rows

The rows with the error are so few that a sample may hold less than half of them: with mixsub/sub and 50 rows, 90% of
the squared error lie in 5 expected rows, and nearly all samples that pass have 3 or fewer. Given the scores of the
sample, with the error weighted by them, 3% pass. A score that may not appear cannot be guarded against.

{_listed(sparse)}

## Not covered: less than an interval

{_listed(narrow[:20])}

The worst {min(len(narrow), 20)} of {len(narrow)}; {sum(map(_over, narrow))} are above the aim.

## Not covered: finer than the resolution

{_listed(finer[:20])}

The worst {min(len(finer), 20)} of {len(finer)}; {sum(map(_over, finer))} are above the aim.

## Coverage of the 95% interval, and its length

"U below" is the share of one-sided 95% limits below the truth. "excess" is U - truth over 1.645 times the efficiency
limit, where the truth is at least 5%. Sun et al. is the interval of `truecal.reproduce`, with 50 bins of equal width.
Much of suite D is finer than the resolution.

{_table(_suites(parts["suite"]))}

Populations with a coverage below 0.94:

{_table(_low(parts["suite"]))}

## Length for calibrated models

Mean upper 95% limit, over the limit for normal labels of known variance in the same intervals (noncentral chi-square),
and over the upper end of Sun et al.'s 90% interval.

{_table(_lengths(parts["length"]))}

## Calibrated models that pass

{_table(_passing(parts["calibrated"]))}

## Rounded scores

How limits at 5% and estimates of the same {4 * len(ROUNDED) * 8} samples move if scores are rounded: uniform scores
without and with an error of .05, skewed scores without, those of a net with .04 and of a top label with .05; 300,
1,000, 5,000 and 20,000 rows. Estimates are those above half a point. Edges of intervals move with the scores, and with
them what falls into an interval; scores that become 0 are one interval.

{_table(rounding)}

## Cost

Processor time beyond the estimate, best of {COST_REPEATS} calls with one thread.

{_table(cost)}

## One score: the limits of Clopper and Pearson

Ratio of the limit to max(upper limit - score, score - lower limit), over all numbers of events.

{markdown(one_score())}
"""


def _older(rows: list[Row]) -> str:
    """Return which rows are older than a change of the package, and which were run again after it.

    Rows that were kept over a change have the name of it as `before`; those run again for it have their first rate as
    `first_5`.
    """
    kept = Counter(row["before"] for row in rows if "before" in row)
    again = [f"{_name(row)} {row['first_5']:.3f}, now {row['at_5']:.3f}" for row in rows if "first_5" in row]
    said = [f"{count:,} cells were run before {change}." for change, count in kept.items()]
    if kept:
        said.append("That can only lengthen limits: for the same error their rates are upper bounds.")
    if again:
        chosen = (
            "Chosen because their rates at 5% were high, or because they have steps, these were run again"
        )
        said.append(f"{chosen}: {'; '.join(again)}.")
    return "\n" + "\n".join(said) + "\n" if said else ""


def _draws(rows: list[Row]) -> str:
    """Return how many draws the cells have, and the Monte Carlo errors that follow."""
    said = []
    for draws, count in sorted(Counter(row["draws"] for row in rows).items(), reverse=True):
        errors = f"{math.sqrt(0.0475 / draws):.3f} at 5%, {math.sqrt(0.0099 / draws):.3f} at 1%"
        said.append(f"{count:,} cells have {draws:,} draws (Monte Carlo standard error {errors})")
    return "; ".join(said) + "."


#: Scores, shapes and errors of samples whose scores are rounded.
ROUNDED = (
    ("u", "shift", 0.0),
    ("u", "shift", 0.05),
    ("skew", "slope", 0.0),
    ("net", "temp", 0.04),
    ("top4", "temp", 0.05),
)
COST_REPEATS = 9


def rounded_limits(repeats: int = 8) -> list[Row]:
    """Return by how much limits and estimates move if scores are rounded."""
    moved: dict[int, list[tuple[float, float]]] = {3: [], 4: [], 6: []}
    for scores, shape, error in ROUNDED:
        model = Design(scores, shape).at(error)
        assert model is not None
        for n in (300, 1000, 5000, 20_000):
            for r in range(repeats):
                label, score = model.draw(np.random.default_rng([n, r, 5]), n)
                exact = analyse(as_sample(label, score)).limits
                for decimals, each in moved.items():
                    limits = analyse(as_sample(label, np.round(score, decimals))).limits
                    change = limits.error / exact.error - 1 if exact.error > 0.005 else np.nan
                    each.append((limits.upper(0.05) / exact.upper(0.05) - 1, change))
    lines = []
    for decimals, each in moved.items():
        limit, estimate = np.abs(np.array(each)).T
        estimate = estimate[np.isfinite(estimate)]
        line: Row = {"decimals": decimals}
        for name, change in (("limit", limit), ("estimate", estimate)):
            line[f"{name}: median"] = f"{np.median(change):.1%}"
            line[f"{name}: largest"] = f"{change.max():.0%}"
            line[f"{name}: above 15%"] = f"{np.mean(change > 0.15):.1%}"
        lines.append(line)
    return lines


def cost() -> list[Row]:
    """Return the processor time of a gate and of an interval."""
    rng = np.random.default_rng(1)
    samples = {
        "uniform, 1,000 rows": rng.random(1000),
        "5 scores, 1,000 rows": rng.choice([0.03, 0.12, 0.31, 0.58, 0.86], 1000),
        "7 scores, 1,000 rows": rng.choice([0.03, 0.12, 0.2, 0.31, 0.58, 0.7, 0.86], 1000),
        "uniform, 100 rows": rng.random(100),
        "uniform, 10^6 rows": rng.random(10**6),
        "1,001 scores, 10^6 rows": rng.integers(0, 1001, 10**6) / 1000,
    }
    lines = []
    for name, score in samples.items():
        limits = analyse(as_sample((rng.random(len(score)) < score).astype(int), score)).limits
        bound = 1.02 * limits.upper(0.05)

        def best(call: Callable[[Limits], Any], limits: Limits = limits) -> str:
            found = []
            for _ in range(COST_REPEATS):
                new = replace(limits, above=replace(limits.above))  # without what was computed before
                start = time.process_time()
                call(new)
                found.append(time.process_time() - start)
            return f"{1000 * min(found):.2f} ms"

        gate = best(lambda new, bound=bound: new.at_most(bound))
        interval = best(lambda new: new.interval(0.95))
        lines.append({"sample": name, "intervals": len(limits.above), "gate": gate, "interval": interval})
    return lines


def _table(lines: Sequence[Row]) -> str:
    return markdown(lines) if lines else "No cells."


def _suites(rows: list[Row]) -> list[Row]:
    lines = []
    for name in SUITES:
        for n in SUITE_SIZES:
            part = [row for row in rows if row["suite"] == name and row["n"] == n]
            if not part:
                continue
            excess = [row["excess"] for row in part if row.get("excess") is not None]

            def mean(key: str, part: list[Row] = part) -> float:
                return float(np.mean([row[key] for row in part]))

            error = math.sqrt(sum(_error(row["covered"], row["draws"]) ** 2 for row in part)) / len(part)
            lines.append(
                {
                    "suite": name,
                    "n": n,
                    "cells": len(part),
                    "covered": f"{mean('covered'):.3f} ± {error:.3f}",
                    "lowest": f"{min(row['covered'] for row in part):.3f}",
                    "low above": f"{mean('low_above'):.3f}",
                    "high below": f"{mean('high_below'):.3f}",
                    "U below": f"{mean('upper_below'):.3f}",
                    "value outside": f"{mean('outside'):.4f}",
                    "length": f"{mean('length'):.4f}",
                    "length / Sun": f"{np.mean([row['length'] / row['sun_length'] for row in part]):.2f}",
                    "Sun covered": f"{mean('sun_covered'):.3f}",
                    "excess": f"{np.mean(excess):.2f}" if excess else "",
                }
            )
    return lines


def _low(rows: list[Row]) -> list[Row]:
    found = sorted((row for row in rows if row["covered"] < 0.94), key=lambda row: row["covered"])
    return [
        {
            "suite": row["suite"],
            "population": _name(row),
            "intervals": row["intervals"],
            "truth": f"{row['truth']:.4f}",
            "covered": f"{row['covered']:.3f} ± {_error(row['covered'], row['draws']):.3f}",
            "low above": f"{row['low_above']:.3f}",
            "high below": f"{row['high_below']:.3f}",
        }
        for row in found
    ]


def _lengths(rows: list[Row]) -> list[Row]:
    return [
        {
            "scores": row["population"],
            "n": f"{row['n']:,}",
            "intervals": row["intervals"],
            "U": f"{row['upper']:.4f} ± {row['upper_se']:.4f}",
            "U / normal": f"{row['to_gauss']:.2f}",
            "U / Sun": f"{row['to_sun']:.2f}",
        }
        for row in rows
    ]


def _passing(rows: list[Row]) -> list[Row]:
    return [
        {
            "model": row["population"],
            "n": f"{row['n']:,}",
            "eps": row["error"],
            "passed": f"{row['passed']:.3f} ± {_error(row['passed'], row['draws']):.3f}",
        }
        for row in rows
    ]
