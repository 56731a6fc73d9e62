"""The results that are kept in docs/reproduction, against an independent simulation beside the project.

Agreement within four joint standard errors is expected: 1,000 repeats of each, 500 for n > 3,200 there.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

KEPT = Path(__file__).parents[2] / "docs" / "reproduction"


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        pytest.skip(
            f"no {path.name}: run truecal reproduce --out docs/reproduction, or see tests/conftest.py"
        )
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(("name", "calibrated"), [("fig4", "0"), ("fig6", "1")])
def test_bias_agrees_with_the_independent_simulation(shared, name, calibrated):
    ours = {
        (row["population"], row["n"], row["estimator"]): row for row in read(KEPT / f"{name}_populations.csv")
    }
    reference = [
        row for row in read(shared / "reference" / "bias_reference.csv") if row["calibrated"] == calibrated
    ]
    assert len(reference) == 490
    off = []
    for row in reference:
        mine = ours[row["population"], row["n"], row["estimator"]]
        assert float(mine["true_error"]) == pytest.approx(float(row["true_error"]), abs=2e-6)
        error = math.hypot(float(row["bias_se"]), float(mine["bias_se"]))
        off.append(abs(float(row["bias"]) - float(mine["bias"])) / error)
    assert max(off) < 4
    assert sum(distance > 2 for distance in off) < 0.1 * len(off)


def test_every_part_is_kept_with_its_files():
    rows = read(KEPT / "comparison.csv")
    from truecal.reproduce import NAMES

    assert {row["part"] for row in rows} == set(NAMES)
    for name in NAMES:
        assert (KEPT / f"{name}.json").exists()
        assert list(KEPT.glob(f"{name}*.svg"))
        assert list(KEPT.glob(f"{name}*.png"))
        assert list(KEPT.glob(f"{name}*.csv"))
