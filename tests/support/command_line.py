"""A command line to call, and predictions to call it on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner, Result

import truecal
from truecal.cli import main


def run(*arguments: Any, code: int | tuple[int, ...] = 0, stdin: bytes | None = None) -> Result:
    """Call a command, check its exit code, and return what it said."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in (code if isinstance(code, tuple) else (code,)), result.stderr
    return result


def refuse(*arguments: Any, stdin: bytes | None = None) -> str:
    """Call a command that must refuse, and return the one line that it says."""
    result = run(*arguments, code=2, stdin=stdin)
    assert result.stdout == ""
    assert result.stderr.startswith("truecal: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def spread(n: int, power: float = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and evenly spread scores that come true with the frequency score ** power."""
    i = np.arange(1, n + 1, dtype=np.float64)
    score, level = (0.5 + i * 0.7548776662466927) % 1.0, (0.5 + i * 0.5698402909980532) % 1.0
    return (level < score**power).astype(np.int64), score


def _columns() -> dict[str, Any]:
    label, score = spread(600)
    region = np.array(["north", "south", "east"])[np.arange(600) % 3]
    return {"label": label, "score": score, "weight": np.arange(600) % 3 + 1, "region": region}


#: Labels, scores, weights and groups.
COLUMNS = _columns()


def write_csv(path: Path, columns: dict[str, Any] = COLUMNS) -> Path:
    """Write columns to a file."""
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def value_of(result: Result) -> float:
    """Return the value that ``truecal measure --format json`` gave."""
    return float(json.loads(result.stdout)["value"])


def recommended(label: object, score: object, **options: object) -> float:
    """Return what ``truecal measure`` gives first."""
    return truecal.calibration_error(label, score, **options)
