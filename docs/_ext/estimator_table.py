"""The table of estimators, from the registry, and their measured bias, from the leaderboard."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import fmean
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from truecal.estimators._registry import TRUE_ERROR, EstimatorSpec, list_estimators

#: Suites in the order of the columns, with their headings.
SUITES = {"A": "A: miscalibrated", "B": "B: calibrated", "C1": "C1: other shapes", "C2": "C2: held out"}


class EstimatorTable(SphinxDirective):
    """``{estimator-table}`` describes every estimator; ``{estimator-table} bias`` gives their measured bias."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        board = Path(self.env.srcdir, "benchmarks", "leaderboard.csv")
        self.env.note_dependency(str(board))
        lines = _bias(board) if self.arguments == ["bias"] else _description()
        self.state.nested_parse(StringList(lines, "registry"), self.content_offset, node := nodes.container())
        return node.children


def _description() -> list[str]:
    # The gallery registers an estimator of its own.
    specs = [spec for spec in list_estimators() if spec.function.__module__.startswith("truecal.")]
    head = ["name", "what it does", "estimates", "norms", "options", "reference"]
    rows = [
        [
            " ".join(f"`{name}`" for name in (spec.name, *spec.aliases)),
            spec.summary.rstrip(".") + ("" if spec.weights else "; whole-number weights only"),
            "TCE" if spec.estimand == TRUE_ERROR else spec.estimand,
            spec.norms,
            _options(spec),
            spec.reference,
        ]
        for spec in specs
    ]
    return _table([head, *rows])


def _table(rows: list[list[str]]) -> list[str]:
    """Return a Markdown table, the first row being its head."""
    lines = ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows]
    return [lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]


def _options(spec: EstimatorSpec) -> str:
    return ", ".join(f"`{name}={value!r}`" for name, value in spec.options.items()) or "none"


def _bias(board: Path) -> list[str]:
    """Return mean absolute bias and mean RMSE of each estimator in each suite, the smallest bias first."""
    if not board.exists():
        return ["The leaderboard has not been made yet: `docs/benchmarks/leaderboard.csv` is missing."]
    with board.open(newline="") as file:
        means = {
            (row["estimator"], row["suite"]): (100 * float(row["absolute_bias"]), 100 * float(row["rmse"]))
            for row in csv.DictReader(file)
        }
    suites = [name for name in SUITES if any(place == name for _, place in means)]

    def mean_bias(name: str) -> float:
        return fmean(means[name, place][0] for place in suites if (name, place) in means)

    def cell(name: str, place: str) -> str:
        return "{:.2f} / {:.2f}".format(*means[name, place]) if (name, place) in means else ""

    names = sorted({name for name, _ in means}, key=mean_bias)
    rows = [[f"`{name}`", *(cell(name, place) for place in suites)] for name in names]
    return _table([["estimator", *(SUITES[place] for place in suites)], *rows])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("estimator-table", EstimatorTable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
