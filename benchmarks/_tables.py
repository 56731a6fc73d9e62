"""Tables for people (Markdown) and for programs (CSV)."""

from __future__ import annotations

import csv
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[1] / "docs" / "benchmarks"


def markdown(rows: Sequence[Mapping[str, object]]) -> str:
    """Lay out rows that share their keys as a Markdown table."""
    header = list(rows[0])
    lines = [header, ["---"] * len(header), *([str(row[key]) for key in header] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write(name: str, page: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Write ``docs/benchmarks/<name>.md`` and the numbers behind it, ``<name>.csv``."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.md").write_text(page)
    with (FOLDER / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for row in rows for key in row)))
        writer.writeheader()
        writer.writerows(rows)
    print(f"Wrote {FOLDER / name}.md and .csv")


def machine() -> str:
    """Describe what the numbers were measured on, and how busy it was: times on a busy machine say little."""
    return (
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, load {os.getloadavg()[0]:.1f}; "
        f"Python {platform.python_version()}, NumPy {np.__version__}"
    )


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def power(n: int) -> str:
    """Write 10000 as 10^4, and 20000 as 2·10^4."""
    exponent = len(str(n)) - 1
    lead, rest = divmod(n, 10**exponent)
    if rest:
        return str(n)
    return f"10^{exponent}" if lead == 1 else f"{lead}·10^{exponent}"


def seconds(value: float) -> str:
    """Write a duration with two or three digits and a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e6:.3g} µs"
