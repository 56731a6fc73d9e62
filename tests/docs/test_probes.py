"""Evidence pages were made by code that still gives the rows of their probes."""

from __future__ import annotations

import csv
import math
import time

import pytest
from experiments.__main__ import experiments
from experiments._probes import PROBES, STALE, TIMES, probe

from support.snippets import ROOT

#: Experiments whose page was made.
WITH_PAGE = [name for name in experiments() if list((ROOT / "docs").glob(f"*/{name}.md"))]


def kept_probe(name: str) -> list[dict[str, str]]:
    """Return the rows of the file; none if there is no file."""
    rows: list[dict[str, str]] = []
    for path in (ROOT / "docs").glob(f"*/{name}_probe.csv"):
        with path.open(newline="") as file:
            rows += csv.DictReader(file)
    return rows


def same(kept: str, today: object) -> bool:
    if isinstance(today, float):
        value = float(kept or "nan")
        return math.isclose(value, today, rel_tol=2e-5, abs_tol=1e-9) or (
            math.isnan(value) and math.isnan(today)
        )
    return kept == ("" if today is None else str(today))


@pytest.mark.parametrize("name", [name for name in WITH_PAGE if name not in TIMES])
def test_a_probe_gives_the_rows_that_are_kept(name: str) -> None:
    kept, began = kept_probe(name), time.process_time()
    found = probe(name)
    assert time.process_time() - began < 10  # two seconds on a quiet machine
    different = [
        {key: (kept_row[key], value) for key, value in row.items() if not same(kept_row[key], value)}
        for row, kept_row in zip(found, kept, strict=False)
    ]
    current = len(found) == len(kept) and not any(different)
    if name in STALE:
        assert not current, f"{name} was run again: take it out of STALE"
    else:
        assert current, f"other code made {name}: run python -m experiments {name} again. {different}"


def test_every_evidence_page_has_a_probe_or_times() -> None:
    assert set(WITH_PAGE) <= {*PROBES, *TIMES}
