"""Every part of the reproduction, with very few repetitions: its files, and the truths it relies on."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest

from truecal.reproduce import NAMES, load_part, run


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_part_leaves_tables_figures_and_comparisons(settings, data, name):
    if name in ("fig3", "table1", "table2", "table3", "table4"):
        settings = replace(settings, data=data)
    rows = run(settings, [name])
    part = load_part(name)
    assert part.name == name
    assert part.where
    assert rows
    assert {row["part"] for row in rows} == {name}
    tables = list(settings.out.glob(f"{name}*.csv"))
    assert tables
    for table in tables:
        with table.open(newline="") as file:
            lines = list(csv.reader(file))
        assert len(lines) > 1
        assert {len(line) for line in lines} == {len(lines[0])}
    svg, png = sorted(settings.out.glob(f"{name}*.svg")), sorted(settings.out.glob(f"{name}*.png"))
    assert [path.stem for path in svg] == [path.stem for path in png]
    assert svg


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fig3", "table1", "table2", "table3", "table4"])
def test_parts_on_real_sets_run_without_them(settings, name):
    assert run(settings, [name])
