"""The pages that experiments make: text, tables and figures, and how they were made."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truecal._lib.files import write_text
from truecal.reproduce._contract import write_files

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOCS = Path(__file__).parents[1] / "docs"
#: Folder of the pages that do not name another one.
FOLDER = DOCS / "benchmarks"


@dataclass(frozen=True, eq=False)
class Page:
    """What an experiment found.

    The text begins with a title and says which errors its numbers have. Keys of `tables` and `figures` are appended to
    the name of the experiment; `folder` is inside docs.
    """

    text: str
    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    figures: Mapping[str, Figure] = field(default_factory=dict)
    folder: str = FOLDER.name


def with_origin(text: str, command: str) -> str:
    """Return the text of a page with the command, the date, the versions and the machine below its title."""
    title, _, rest = text.partition("\n")
    day = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    made = f"Made by `{command}` on {day} with {versions()}{commit()}; {machine()}."
    return f"{title}\n\n{made}\n{rest}"


def write_page(name: str, page: Page, command: str, folder: Path | None = None) -> Path:
    """Write ``<name>.md``, its tables as CSV and its figures as SVG and PNG, and return the path of the page."""
    path = (folder or DOCS / page.folder) / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_files(path.with_suffix(""), page.tables, page.figures)
    write_text(path, with_origin(page.text, command))
    return path


def versions() -> str:
    """Return the versions of truecal, of Python and of the libraries that were used."""
    used = {"truecal": "truecal", "NumPy": "numpy", "SciPy": "scipy", "Polars": "polars"}
    found = [f"{name} {sys.modules[key].__version__}" for name, key in used.items() if key in sys.modules]
    return ", ".join([*found, f"Python {platform.python_version()}"])


def commit() -> str:
    """Return the commit for information, or nothing outside a clone."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    found = subprocess.run(command, cwd=DOCS, capture_output=True, text=True, check=False).stdout.strip()
    return f", commit {found}" if found else ""


def machine() -> str:
    """Describe the machine and how busy it was: times on a busy machine say little."""
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, load {os.getloadavg()[0]:.1f}"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def markdown(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows that share their keys as a Markdown table."""
    header = list(rows[0])
    lines = [header, ["---"] * len(header), *([str(row[key]) for key in header] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def power(n: int) -> str:
    """Return 10000 as 10^4, and 20000 as 2·10^4."""
    exponent = len(str(n)) - 1
    lead, rest = divmod(n, 10**exponent)
    if rest:
        return str(n)
    return f"10^{exponent}" if lead == 1 else f"{lead}·10^{exponent}"


def seconds(value: float) -> str:
    """Return a duration with two or three digits and a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e6:.3g} µs"
