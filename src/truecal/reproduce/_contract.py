"""The interface of the parts: settings in; tables, figures and comparisons out; and the files that they become."""

from __future__ import annotations

import csv
import json
import math
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import scipy

import truecal
from truecal._lib.files import whole_file, write_text
from truecal.reproduce._draw import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Rows of a table, by column name.
Records = list[dict[str, Any]]
Value = TypeVar("Value")

#: Numbers agree if they differ by at most this many joint standard errors.
STANDARD_ERRORS = 3.0


@dataclass(frozen=True)
class Settings:
    """Settings of a run.

    Attributes
    ----------
    out : Path
        Folder for results. Intermediate results are in its subfolder ``work``.
    effort : {"full", "quick", "tiny"}
        Number of repetitions: as in the paper, enough for a rough picture, or very few, for tests.
    seed : int
        Random seed.
    n_jobs : int
        Number of workers.
    logits, data : Path or None
        Folders of logit files (with a calibration and a test split), and of sets of predictions or results of
        other papers.
    progress : bool or None
        Whether to show progress; by default if standard error is a terminal.
    """

    out: Path
    effort: Literal["full", "quick", "tiny"] = "full"
    seed: int = 2022
    n_jobs: int = 1
    logits: Path | None = None
    data: Path | None = None
    progress: bool | None = None

    def of(self, full: Value, quick: Value, tiny: Value) -> Value:
        """Return the value for the effort."""
        return {"full": full, "quick": quick, "tiny": tiny}[self.effort]

    @property
    def work(self) -> Path:
        """The folder for intermediate results."""
        folder = self.out / "work"
        folder.mkdir(parents=True, exist_ok=True)
        return folder


@dataclass(frozen=True)
class PaperComparison:
    """A number or claim of the paper beside the result of the reproduction.

    Attributes
    ----------
    quantity : str
        Quantity that is compared, with its unit.
    published, reproduced : str
        Value or statement of the paper, and the result here.
    agrees : bool or None
        Whether they agree within error; None where the paper has nothing to compare with.
    error : float or None
        Standard error of `reproduced`.
    note : str
        Explanation of a difference, or another remark.
    """

    quantity: str
    published: str
    reproduced: str
    agrees: bool | None
    error: float | None = None
    note: str = ""


def compare_with_paper(
    quantity: str,
    published: float,
    reproduced: float,
    error: float,
    *,
    published_error: float = 0.0,
    digits: int = 2,
    note: str = "",
) -> PaperComparison:
    """Compare two numbers; they agree within `STANDARD_ERRORS` joint standard errors.

    Examples
    --------
    >>> compare_with_paper("mean (%)", 6.69, 6.681, 0.002, published_error=0.013).agrees
    True
    """
    joint = math.hypot(error, published_error)
    return PaperComparison(
        quantity=quantity,
        published=f"{published:.{digits}f}",
        reproduced=f"{reproduced:.{digits}f}",
        agrees=bool(abs(published - reproduced) <= STANDARD_ERRORS * joint),
        error=float(error),
        note=note,
    )


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of a part.

    Attributes
    ----------
    tables : mapping of str to rows
        Tables of numbers; keys are appended to the name of the part, ``""`` for its main CSV.
    figures : mapping of str to Figure
        Figures, named in the same way.
    comparisons : sequence of PaperComparison
        Records of the table of comparisons.
    """

    tables: Mapping[str, Records]
    figures: Mapping[str, Figure]
    comparisons: Sequence[PaperComparison] = field(default_factory=tuple)


@dataclass(frozen=True)
class Part:
    """A figure or table of the paper, and the function that reproduces it."""

    name: str
    where: str
    title: str
    run: Callable[[Settings], Outcome]


def part(where: str, title: str) -> Callable[[Callable[[Settings], Outcome]], Part]:
    """Declare a function as a part, with its place in the paper and its title."""

    def make(function: Callable[[Settings], Outcome]) -> Part:
        return Part(function.__name__, where, title, function)

    return make


#: Columns of the table of comparisons, after the part and its place in the paper.
_COLUMNS = ("quantity", "published", "reproduced", "error", "agrees", "note")
_COMPARISON_HEAD = "---\norphan: true\n---\n\n# Every comparison\n\n"


def write_outcome(part: Part, outcome: Outcome, settings: Settings, *, command: str, seconds: float) -> None:
    """Write all files of a part; the record is written last, when all of them exist."""
    written = write_files(settings.out / part.name, outcome.tables, outcome.figures)
    record = {
        "part": part.name,
        "where": part.where,
        "title": part.title,
        **_identity(settings),
        "command": command,
        "seconds": round(seconds, 1),
        "files": [path.name for path in written],
        "comparisons": [asdict(comparison) for comparison in outcome.comparisons],
    }
    _write_json(_record_path(settings, part.name), record)


def write_files(
    path: Path, tables: Mapping[str, Iterable[Mapping[str, Any]]], figures: Mapping[str, Figure]
) -> list[Path]:
    """Write tables as CSV and figures as SVG and PNG; their keys are appended to the path."""

    def stem(suffix: str) -> Path:
        return path.with_name(f"{path.name}_{suffix}" if suffix else path.name)

    written: list[Path] = []
    for suffix, rows in tables.items():
        written.append(stem(suffix).with_name(f"{stem(suffix).name}.csv"))
        write_csv(written[-1], rows)
    for suffix, figure in figures.items():
        written += save(figure, stem(suffix))
    return written


def is_finished(name: str, settings: Settings) -> bool:
    """Return whether all files of a part exist and were made with these settings by this version."""
    record = _read_record(name, settings)
    if record is None or any(record.get(key) != value for key, value in _identity(settings).items()):
        return False
    return all((settings.out / file).exists() for file in record["files"])


def _read_record(name: str, settings: Settings) -> dict[str, Any] | None:
    """Return the record of a part, or None if it is not finished."""
    path = _record_path(settings, name)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def write_summary(names: Iterable[str], settings: Settings, command: str) -> Records:
    """Write ``comparison.csv`` and ``manifest.json`` over the parts that are finished, and return the comparisons."""
    records = [record for name in names if (record := _read_record(name, settings)) is not None]
    rows = [
        {"part": record["part"], "where": record["where"], **{name: comparison[name] for name in _COLUMNS}}
        for record in records
        for comparison in record["comparisons"]
    ]
    write_csv(settings.out / "comparison.csv", rows)
    write_text(settings.out / "comparison.md", _COMPARISON_HEAD + as_markdown(rows))
    kept = ("part", "title", "effort", "seed", "version", "command", "seconds", "files")
    manifest = {
        "command": command,
        "version": truecal.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "processors": os.cpu_count(),
        "seconds": round(sum(record["seconds"] for record in records), 1),
        "parts": [{key: record[key] for key in kept} for record in records],
    }
    _write_json(settings.out / "manifest.json", manifest)
    return rows


def as_markdown(rows: Records) -> str:
    """Return the comparisons as Markdown: a table for each place in the paper, with its notes below."""
    groups: dict[str, Records] = {}
    for row in rows:
        groups.setdefault(row["where"], []).append(row)
    return "\n\n".join(f"## {where}\n\n{_table(group)}" for where, group in groups.items()) + "\n"


def _table(rows: Records) -> str:
    lines = ["| quantity | paper | here | agrees |", "|---|---|---|---|"]
    notes = list(dict.fromkeys(row["note"] for row in rows if row["note"]))
    for row in rows:
        mark = f" [{notes.index(row['note']) + 1}]" if row["note"] else ""
        agrees = {True: "yes", False: "**no**", None: ""}[row["agrees"]]
        lines.append(f"| {row['quantity']} | {row['published']} | {with_error(row)} | {agrees}{mark} |")
    if notes:
        lines += ["", *(f"{k}. {note}" for k, note in enumerate(notes, start=1))]
    return "\n".join(lines)


def with_error(row: Mapping[str, Any]) -> str:
    """Return the result with its standard error.

    Examples
    --------
    >>> with_error({"reproduced": "6.71", "error": 0.0132}), with_error({"reproduced": "5 or 8", "error": None})
    ('6.71 ± 0.013', '5 or 8')
    """
    ours, error = str(row["reproduced"]), row["error"]
    if error is None:
        return ours
    number = ours.replace(".", "", 1).replace("-", "", 1).isdigit()
    return f"{ours} ± {error:.2g}" if number else f"{ours} (se at most {error:.2g})"


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows with six digits; columns are in order of first appearance."""
    rows = list(rows)
    names = list(dict.fromkeys(key for row in rows for key in row))
    with whole_file(path, newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        for row in rows:
            six_digits = {
                key: f"{value:.6g}" for key, value in row.items() if isinstance(value, float | np.floating)
            }
            writer.writerow({**row, **six_digits})


def _identity(settings: Settings) -> dict[str, Any]:
    """Return the settings that a result depends on."""
    return {
        "effort": settings.effort,
        "seed": settings.seed,
        "version": truecal.__version__,
        "logits": settings.logits and settings.logits.name,
        "data": settings.data and settings.data.name,
    }


def _record_path(settings: Settings, name: str) -> Path:
    return settings.out / f"{name}.json"


def _write_json(path: Path, content: Any) -> None:
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
