"""Every part of the reproduction, with very few repetitions: its files, and the truths it relies on."""

from __future__ import annotations

import csv
import math
from dataclasses import replace

import numpy as np
import pytest

import truecal
from truecal.data.sample import Sample
from truecal.reproduce import NAMES, load_part, run
from truecal.reproduce.open_measures import truths

SQUARE = truecal.Population(truecal.simulation.BetaScores(1, 1), truecal.simulation.PowerCurve(2))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_part_leaves_tables_figures_and_comparisons(settings, data, name):
    if name in ("fig3", "table1", "table2", "table3", "table4", "open_binary"):
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
@pytest.mark.parametrize("name", ["fig3", "table1", "table2", "table3", "table4", "open_binary"])
def test_parts_on_real_sets_run_without_them(settings, name):
    assert run(settings, [name])


def test_truths_of_other_measures_have_closed_forms():
    found = truths(SQUARE)
    assert found["ks"] == pytest.approx(1 / 6, abs=1e-5)  # the mean of c - c^2
    assert found["mce"] == pytest.approx(1 / 4, abs=1e-6)
    middle = (7 / 15 + 8 / 15) / 2  # the bin around 1/2; its mean gap, less by the variance in it
    assert found["ew_mce"] == pytest.approx(middle - middle**2 - (1 / 15) ** 2 / 12, abs=1e-5)
    assert found["em_mce"] == pytest.approx(found["ew_mce"], abs=1e-5)
    # A double sum over a coarse grid, without the running sum.
    score = (np.arange(2000) + 0.5) / 2000
    gap = score - score**2
    kernel = np.exp(-np.abs(score[:, np.newaxis] - score) / 0.2)
    assert found["kce"] == pytest.approx(math.sqrt(gap @ kernel @ gap) / 2000, abs=1e-4)


def test_estimates_of_other_measures_approach_their_truths():
    population = truecal.paper.population("resnet110_c100")
    found = truths(population)
    (sample,) = Sample.from_blocks(*population.sample_many(400_000, [np.random.default_rng(2)]))
    for name in ("ks", "em_mce"):
        value = truecal.estimate(sample, estimator=name).value
        assert value == pytest.approx(found[name], abs=0.004)
    assert math.sqrt(truecal.estimate(sample, estimator="skce").value) == pytest.approx(
        found["kce"], abs=0.004
    )


def test_calibrated_populations_have_truths_of_zero():
    assert max(truths(SQUARE.calibrated()).values()) == pytest.approx(0, abs=1e-12)
