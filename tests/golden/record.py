"""Make the record of what truecal does, and compare it with the one that is kept."""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import truecal
from golden import bad_input, calls, commands, signatures
from golden.cases import TOLERANCES, Case

FILE = Path(__file__).with_name("record.jsonl.gz")

#: Longer lists of numbers are kept as their length, sums, first and last values.
LONGEST = 8
#: Differences that are shown of one case.
MOST = 6

NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?")


def main() -> int:
    """Compare, or with --record write the record."""
    parser = argparse.ArgumentParser(prog="python -m golden", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the record instead of comparing with it")
    parser.add_argument("--kind", action="append", help="compare only cases of this kind; repeatable")
    parser.add_argument("--match", help="compare only cases whose name contains this")
    parser.add_argument("--file", type=Path, default=FILE, help="the record")
    parser.add_argument("--show", action="store_true", help="print what the cases give, and compare nothing")
    options = parser.parse_args()
    if options.record and (options.kind or options.match):
        parser.error("a record has all cases: --record takes neither --kind nor --match")
    started = time.perf_counter()
    cases = [case for case in all_cases() if chosen(case.kind, case.name, options)]
    if options.show:
        for line in map(outcome, cases):
            print(json.dumps(line, indent=1, ensure_ascii=False))
        return 0
    made = {(line["kind"], line["name"]): line for line in map(outcome, cases)}
    took = f"{len(made):,} cases in {time.perf_counter() - started:.0f} s"
    if options.record:
        write([versions(), *made.values()], options.file)
        print(f"{took}; wrote {options.file} ({options.file.stat().st_size / 1024:.0f} kB)")
        return 0
    about, *lines = read(options.file)
    kept = {
        (line["kind"], line["name"]): line for line in lines if chosen(line["kind"], line["name"], options)
    }
    differences = list(compare(kept, made))
    report(differences)
    if differences and about != versions():
        print(f"The record was made with other versions: {about}; here: {versions()}")
    print(f"{took}: {len(differences):,} differ from the record" if differences else f"{took}: as recorded")
    return 1 if differences else 0


def chosen(kind: str, name: str, options: argparse.Namespace) -> bool:
    return (not options.kind or kind in options.kind) and (not options.match or options.match in name)


def all_cases() -> list[Case]:
    """Return all cases, with the ones that change the process last."""
    cases = [*signatures.cases(), *calls.cases(), *bad_input.cases(), *commands.cases(), *calls.last_cases()]
    names = [(case.kind, case.name) for case in cases]
    twice = {name for name in names if names.count(name) > 1} if len(set(names)) < len(names) else set()
    if twice:
        raise ValueError(f"These cases have the same name: {sorted(twice)}")
    return cases


# Do one case


def outcome(case: Case) -> dict[str, Any]:
    """Return what a case gives: its result or error, and its warnings, as JSON keeps them."""
    line: dict[str, Any] = {"kind": case.kind, "name": case.name, "rule": case.rule}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            line["result"] = plain(case.run())
        except Exception as error:  # what a user would see
            line["error"] = {"type": type(error).__name__, "text": str(error)}
            for name in ("argument", "count", "first_row"):
                if hasattr(error, name):
                    line["error"][name] = plain(getattr(error, name))
    if caught:
        line["warnings"] = sorted({f"{one.category.__name__}: {one.message}" for one in caught})
    return dict(json.loads(json.dumps(line)))


def plain(value: Any) -> Any:
    """Return a value as plain objects, with long lists of numbers reduced to sums."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.floating):
        return rounded(float(value))
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    if isinstance(value, np.ndarray):
        # scalars of these arrays need no `plain` of their own
        shape = {"shape": list(value.shape)} if value.ndim > 1 else {}
        flat = value.reshape(-1).tolist()
        return {**shape, "values": plain_list(flat)} if shape else plain_list(flat)
    if isinstance(value, truecal.Sample):
        return {"type": type(value).__name__, **{name: plain(getattr(value, name)) for name in _SAMPLE}}
    if hasattr(value, "to_dict") and is_dataclass(value):
        return {"type": type(value).__name__, "text": str(value), **plain(value.to_dict())}
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return plain_list(list(value))
    if is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: getattr(value, one.name) for one in fields(value) if not one.name.startswith("_")}
        return {"type": type(value).__name__, **plain(parts)}
    return str(value)


_SAMPLE = ("n", "target", "score", "count", "positives", "dtype")


def plain_list(values: list[Any]) -> Any:
    """Return a list; numbers as sums if there are many, rows of a table as columns."""
    if len(values) <= LONGEST:
        return [plain(one) for one in values]
    if all(isinstance(one, dict) for one in values) and len({tuple(one) for one in values}) == 1:
        return {"rows": len(values), **{key: plain_list([one[key] for one in values]) for key in values[0]}}
    if all(isinstance(one, bool | int | float | None) for one in values):
        numbers = np.array([math.nan if one is None else float(one) for one in values])
        finite = np.where(np.isfinite(numbers), numbers, 0.0)
        mixed = float(finite @ (1 + np.arange(len(finite)) % 7))
        return {
            "length": len(values),
            "not finite": int(np.sum(~np.isfinite(numbers))),
            "sum": rounded(float(finite.sum())),
            "mixed": rounded(mixed),
            "absolute": rounded(float(np.abs(finite).sum())),
            "ends": [plain(one) for one in (*values[:2], *values[-2:])],
        }
    return [plain(one) for one in values]


def rounded(value: float) -> float | str:
    """Return a number with the digits that are compared."""
    return float(f"{value:.12g}") if math.isfinite(value) else str(value)


# Keep it


def write(lines: Iterable[dict[str, Any]], path: Path) -> None:
    """Write the record; the same lines give the same bytes."""
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def read(path: Path) -> list[dict[str, Any]]:
    """Return the lines of the record, with the versions that made it first."""
    if not path.exists():
        sys.exit(f"There is no record at {path}. Make it with: make golden-record")
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def versions() -> dict[str, str]:
    """Return the versions of packages on which values and texts depend."""
    names = ("numpy", "scipy", "polars", "click", "narwhals", "matplotlib", "scikit-learn")
    return {"python": sys.version.split()[0], **{name: metadata.version(name) for name in names}}


# Compare


Difference = tuple[str, str, list[tuple[str, Any, Any]]]


def compare(old: dict[Any, dict[str, Any]], new: dict[Any, dict[str, Any]]) -> Iterator[Difference]:
    """Yield kind, name, and the (place, old value, new value) of each case that differs."""
    for key in [*old, *(key for key in new if key not in old)]:
        if key not in new:
            found = [("", "a case of the record", "gone")]
        elif key not in old:
            found = [("", "not in the record", "new")]
        else:
            was, now = ({**line, "rule": None} for line in (old[key], new[key]))
            found = list(differ(was, now, Tolerance(new[key]["rule"])))
        if found:
            yield (*key, found)


class Tolerance:
    """How far two numbers may be apart, from the text of a rule."""

    def __init__(self, rule: str) -> None:
        base, _, pvalue = rule.partition(", p ")
        self.relative, self.pvalue = TOLERANCES[base], float(pvalue or 0)

    def same(self, old: float, new: float, place: str, scale: float = 0.0) -> bool:
        allowed = self.relative * max(abs(old), abs(new), scale) + self.relative / 100
        if "pvalue" in place:
            allowed = max(allowed, 1.000001 * self.pvalue)
        return abs(old - new) <= allowed


def differ(old: Any, new: Any, rule: Tolerance, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield what differs between two plain values."""
    if isinstance(old, dict) and isinstance(new, dict):
        scale = (
            min(float(one.get("absolute", 0)) for one in (old, new))
            if "mixed" in old and "mixed" in new
            else 0.0
        )
        for key in [*old, *(key for key in new if key not in old)]:
            inner = f"{place}.{key}".lstrip(".")
            if key not in old or key not in new:
                yield inner, old.get(key, "absent"), new.get(key, "absent")
            elif scale and key in ("sum", "mixed"):
                if not rule.same(old[key], new[key], inner, 7 * scale):
                    yield inner, old[key], new[key]
            else:
                yield from differ(old[key], new[key], rule, inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for position, pair in enumerate(zip(old, new, strict=True)):
            yield from differ(*pair, rule, f"{place}[{position}]")
    elif isinstance(old, float) and isinstance(new, float):
        if not rule.same(old, new, re.sub(r"(\[\d\])+$", "", place)):
            yield place, old, new
    elif isinstance(old, str) and isinstance(new, str):
        if not same_text(old, new, rule):
            yield place, old, new
    elif type(old) is not type(new) or old != new:
        yield place, old, new


def same_text(old: str, new: str, rule: Tolerance) -> bool:
    """Whether two texts agree but for one unit of the last digit of printed fractions, and one resample of p-values.

    Numbers printed with all their digits, as `repr` does, agree as numbers do.
    """
    if old == new:
        return True
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return False
    for a, b in zip(NUMBER.finditer(old), NUMBER.finditer(new), strict=True):
        unit = min(_unit(a[0]), _unit(b[0]))
        if unit:
            unit = max(unit, rule.relative * abs(_value(a[0])))
        allowed = max(unit, rule.pvalue) if unit and old[: a.start()].endswith("p = ") else unit
        if a[0] != b[0] and abs(_value(a[0]) - _value(b[0])) > 1.01 * allowed:
            return False
    return True


def _value(text: str) -> float:
    return float(text.replace(",", ""))


def _unit(text: str) -> float:
    """Return the unit of the last digit of a printed fraction; 0 for a whole number."""
    digits, _, exponent = text.lower().partition("e")
    decimals = len(digits.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - decimals) if decimals or exponent else 0.0


def report(differences: list[Difference]) -> None:
    """Print differences by kind."""
    for kind in dict.fromkeys(kind for kind, _, _ in differences):
        mine = [one for one in differences if one[0] == kind]
        print(f"\n{kind}: {len(mine)} of the cases differ")
        for _, name, found in mine:
            print(f"  {name}")
            for place, old, new in found[:MOST]:
                print(f"    {place or 'case'}:")
                print(f"      old {_short(old, new)}")
                print(f"      new {_short(new, old)}")
            if len(found) > MOST:
                print(f"    and {len(found) - MOST} more places")
    if differences:
        print()


def _short(value: Any, other: Any) -> str:
    """Return a value for a line; of long texts, where they begin to differ."""
    text, others = (
        one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in (value, other)
    )
    if max(len(text), len(others)) > 200:
        same = next(
            (k for k, (a, b) in enumerate(zip(text, others, strict=False)) if a != b),
            min(len(text), len(others)),
        )
        start = max(0, same - 60)
        text = (
            ("..." if start else "") + text[start : start + 200] + ("..." if len(text) > start + 200 else "")
        )
    return text.replace("\n", "\\n")
