"""Files of a run: CSV, SVG and PNG of each part, a record of how they were made, and the summary."""

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
from truecal.reproduce.contract import EXTERNAL_NAMES, NAMES, Outcome, Part, Records, Settings
from truecal.reproduce.draw import save

COLUMNS = ("part", "where", "quantity", "source", "published", "reproduced", "error", "agrees", "note")


def write_outcome(part: Part, outcome: Outcome, settings: Settings, *, command: str, seconds: float) -> None:
    """Write all files of a part; the record is written last, when all of them exist."""
    written: list[Path] = []
    for suffix, rows in outcome.tables.items():
        path = settings.out / f"{_stem(part.name, suffix)}.csv"
        write_csv(path, rows)
        written.append(path)
    for suffix, figure in outcome.figures.items():
        written += save(figure, settings.out / _stem(part.name, suffix))
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


def is_finished(name: str, settings: Settings) -> bool:
    """Return whether all files of a part exist and were made with these settings by this version."""
    record = read_record(name, settings)
    if record is None or any(record.get(key) != value for key, value in _identity(settings).items()):
        return False
    return all((settings.out / file).exists() for file in record["files"])


def read_record(name: str, settings: Settings) -> dict[str, Any] | None:
    """Return the record of a part, or None if it is not finished."""
    path = _record_path(settings, name)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def write_summary(settings: Settings, command: str) -> Records:
    """Write ``comparison.csv`` and ``manifest.json`` over all finished parts, and return the comparisons."""
    records = [
        record for name in (*NAMES, *EXTERNAL_NAMES) if (record := read_record(name, settings)) is not None
    ]
    rows = [
        {"part": record["part"], "where": record["where"], **comparison}
        for record in records
        for comparison in record["comparisons"]
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
        "seconds": round(sum(record["seconds"] for record in records), 1),
        "parts": [{key: record[key] for key in kept} for record in records],
    }
    _write_json(settings.out / "manifest.json", manifest)
    return rows


def as_markdown(rows: Records) -> str:
    """Return the comparisons as a Markdown table, with numbered notes below it."""
    head = ["---", "orphan: true", "---", "", "# Every comparison", ""]
    lines = [*head, "| where | quantity | published | truecal | agrees |", "|---|---|---|---|---|"]
    notes: list[str] = []
    for row in rows:
        note = row["note"]
        if note and note not in notes:
            notes.append(note)
        mark = f" [{notes.index(note) + 1}]" if note else ""
        published = row["published"] + ("" if row["source"] == "paper" else f" ({row['source']})")
        agrees = {True: "yes", False: "**no**", None: ""}[row["agrees"]]
        lines.append(
            f"| {row['where']} | {row['quantity']} | {published} | {with_error(row)} | {agrees}{mark} |"
        )
    return "\n".join([*lines, "", *(f"{k}. {note}" for k, note in enumerate(notes, start=1))]) + "\n"


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


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]], columns: Iterable[str] = ()) -> None:
    """Write rows with six digits; columns are in order of first appearance."""
    rows = list(rows)
    names = list(columns) or list(dict.fromkeys(key for row in rows for key in row))
    with whole_file(path, newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: _text(value) for key, value in row.items()})


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


def _stem(name: str, suffix: str) -> str:
    return f"{name}_{suffix}" if suffix else name


def _text(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return f"{float(value):.6g}"
    return value
