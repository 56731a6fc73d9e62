"""Evidence pages were made by code that still gives the rows of their probes."""

from __future__ import annotations

import csv
import math
import time

import pytest
from experiments.__main__ import experiments
from experiments._probes import PROBES, TIMES, probe

from support.snippets import ROOT

#: Experiments whose page was made.
WITH_PAGE = [name for name in experiments() if list((ROOT / "docs").glob(f"*/{name}.md"))]


def kept_probe(name: str) -> list[dict[str, str]]:
    (path,) = (ROOT / "docs").glob(f"*/{name}_probe.csv")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def same(kept: str, today: object) -> bool:
    if isinstance(today, float):
        return math.isclose(float(kept or "nan"), today, rel_tol=2e-5, abs_tol=1e-9) or (
            not kept and math.isnan(today)
        )
    return kept == ("" if today is None else str(today))


@pytest.mark.parametrize("name", [name for name in WITH_PAGE if name not in TIMES])
def test_a_probe_gives_the_rows_that_are_kept(name: str) -> None:
    kept, began = kept_probe(name), time.process_time()
    found = probe(name)
    assert len(found) == len(kept)
    for row, kept_row in zip(found, kept, strict=True):
        different = {
            key: (kept_row[key], value) for key, value in row.items() if not same(kept_row[key], value)
        }
        assert not different, f"{name} was made by other code: run python -m experiments {name} again"
    assert time.process_time() - began < 10  # two seconds on a quiet machine


def test_every_evidence_page_has_a_probe_or_times() -> None:
    assert set(WITH_PAGE) <= {*PROBES, *TIMES}
