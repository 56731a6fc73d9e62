"""A command line to call, and one set of predictions in many kinds of files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from truecal.cli import main

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """`run("measure", path, code=0)`: call a command, check its exit code, and return what it said."""

    def call(*arguments: Any, code: int = 0, stdin: bytes | None = None) -> Result:
        result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.stderr
        return result

    return call


@pytest.fixture
def refuse(run: Run) -> Callable[..., str]:
    """`refuse("measure", path)`: call a command that must refuse, and return the one line that it says."""

    def call(*arguments: Any, stdin: bytes | None = None) -> str:
        result = run(*arguments, code=2, stdin=stdin)
        assert result.stdout == ""
        assert result.stderr.startswith("truecal: ")
        assert result.stderr.count("\n") == 1
        return result.stderr

    return call


@pytest.fixture(scope="session")
def columns(golden: Any) -> dict[str, Any]:
    """Labels, scores, weights and groups."""
    y, p = golden(600)
    region = np.array(["north", "south", "east"])[np.arange(600) % 3]
    return {"label": y, "score": p, "weight": np.arange(600) % 3 + 1, "region": region}


@pytest.fixture(scope="session")
def folder(columns: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the predictions as ``plain.csv``."""
    folder = tmp_path_factory.mktemp("predictions")
    write_csv(folder / "plain.csv", columns)
    return folder


@pytest.fixture(scope="session")
def plain(folder: Path) -> Path:
    return folder / "plain.csv"


def write_csv(path: Path, columns: dict[str, Any], separator: str = ",") -> Path:
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    lines = [separator.join(columns), *(separator.join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def value_of(result: Result) -> float:
    """Return the value that ``truecal measure --format json`` gave."""
    return float(json.loads(result.stdout)["value"])
