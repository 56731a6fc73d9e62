"""What a run leaves behind: CSV, SVG and PNG of each part, a note of how they were made, and the summary."""

from __future__ import annotations

import csv
import json
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import truecal
from truecal._lib.files import whole_file, write_text
from truecal.reproduce.contract import NAMES, Outcome, Part, Rows, Settings
from truecal.reproduce.draw import save

COLUMNS = ("part", "where", "quantity", "source", "theirs", "ours", "error", "within", "why")


def write_outcome(part: Part, outcome: Outcome, settings: Settings, *, command: str, seconds: float) -> None:
    """Write all files of a part; the note comes last, so that it stands for all of them."""
    written: list[Path] = []
    for suffix, rows in outcome.tables.items():
        path = settings.out / f"{_stem(part.name, suffix)}.csv"
        write_csv(path, rows)
        written.append(path)
    for suffix, figure in outcome.figures.items():
        written += save(figure, settings.out / _stem(part.name, suffix))
    note = {
        "part": part.name,
        "where": part.where,
        "title": part.title,
        **_identity(settings),
        "command": command,
        "seconds": round(seconds, 1),
        "files": [path.name for path in written],
        "comparisons": [asdict(comparison) for comparison in outcome.comparisons],
    }
    _write_json(_note_path(settings, part.name), note)


def is_finished(name: str, settings: Settings) -> bool:
    """Say whether all files of a part are there, made with these settings by this version."""
    note = read_note(name, settings)
    if note is None or any(note.get(key) != value for key, value in _identity(settings).items()):
        return False
    return all((settings.out / file).exists() for file in note["files"])


def read_note(name: str, settings: Settings) -> dict[str, Any] | None:
    """Return what was noted of a part, or None if it was not finished."""
    path = _note_path(settings, name)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def write_summary(settings: Settings, command: str) -> Rows:
    """Write ``comparison.csv`` and ``manifest.json`` over all finished parts, and return the comparisons."""
    notes = [note for name in NAMES if (note := read_note(name, settings)) is not None]
    rows = [
        {"part": note["part"], "where": note["where"], **comparison}
        for note in notes
        for comparison in note["comparisons"]
    ]
    write_csv(settings.out / "comparison.csv", rows, COLUMNS)
    write_text(settings.out / "comparison.md", as_markdown(rows))
    kept = ("part", "title", "effort", "seed", "version", "command", "seconds", "files")
    manifest = {
        "command": command,
        "version": truecal.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "processors": os.cpu_count(),
        "seconds": round(sum(note["seconds"] for note in notes), 1),
        "parts": [{key: note[key] for key in kept} for note in notes],
    }
    _write_json(settings.out / "manifest.json", manifest)
    return rows


def as_markdown(rows: Rows) -> str:
    """Return the comparisons as a Markdown table; what is said about them stands below it, by number."""
    head = ["---", "orphan: true", "---", "", "# Every comparison with the paper", ""]
    lines = [*head, "| where | quantity | says | truecal | agrees |", "|---|---|---|---|---|"]
    notes: list[str] = []
    for row in rows:
        why = row["why"]
        if why and why not in notes:
            notes.append(why)
        mark = f" [{notes.index(why) + 1}]" if why else ""
        says = row["theirs"] + ("" if row["source"] == "paper" else f" ({row['source']})")
        agrees = {True: "yes", False: "**no**", None: ""}[row["within"]]
        lines.append(f"| {row['where']} | {row['quantity']} | {says} | {with_error(row)} | {agrees}{mark} |")
    return "\n".join([*lines, "", *(f"{k}. {why}" for k, why in enumerate(notes, start=1))]) + "\n"


def with_error(row: Mapping[str, Any]) -> str:
    """Return what came out, with its standard error.

    Examples
    --------
    >>> with_error({"ours": "6.71", "error": 0.0132}), with_error({"ours": "5 or 8", "error": None})
    ('6.71 ± 0.013', '5 or 8')
    """
    ours, error = str(row["ours"]), row["error"]
    if error is None:
        return ours
    number = ours.replace(".", "", 1).replace("-", "", 1).isdigit()
    return f"{ours} ± {error:.2g}" if number else f"{ours} (se at most {error:.2g})"


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]], columns: Iterable[str] = ()) -> None:
    """Write rows with six digits; the columns are those that any row has, in order of appearance."""
    rows = list(rows)
    names = list(columns) or list(dict.fromkeys(key for row in rows for key in row))
    with whole_file(path, newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: _text(value) for key, value in row.items()})


def _identity(settings: Settings) -> dict[str, Any]:
    """Return what a result depends on; the number of workers is not part of it."""
    return {
        "effort": settings.effort,
        "seed": settings.seed,
        "version": truecal.__version__,
        "logits": settings.logits and settings.logits.name,
        "data": settings.data and settings.data.name,
    }


def _note_path(settings: Settings, name: str) -> Path:
    return settings.out / f"{name}.json"


def _write_json(path: Path, content: Any) -> None:
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _stem(name: str, suffix: str) -> str:
    return f"{name}_{suffix}" if suffix else name


def _text(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}"
    return value
