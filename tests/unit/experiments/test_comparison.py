"""Experiments that compare truecal with papers: their pages, and the truths and statistics that they rely on."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from experiments.__main__ import experiments
from experiments._comparison import binary_sets, rows_in_parallel
from experiments._page import write_page
from experiments.external_debiasing import known_l1_error, squared_errors
from experiments.external_interval import sun_interval
from experiments.external_lp import CURVES, SIZES, THEIRS
from experiments.external_test import bumps, tcal_statistics
from experiments.open_measures import truths

import truecal
from truecal.data.sample import Block

SQUARE = truecal.Population(truecal.simulation.BetaScores(1, 1), truecal.simulation.PowerCurve(2))

NAMES = [name for name in experiments() if name.startswith(("external_", "open_"))]
#: Experiments that another test runs, with other papers' files.
WITH_FILES = ("external_lp", "external_test")


def make_page(name, settings, folder):
    """Run an experiment, write its page, and return the text."""
    page = import_module(f"experiments.{name}").main.page(settings)
    return write_page(name, page, f"python -m experiments {name}", folder).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITH_FILES])
def test_a_page_has_comparisons_tables_and_figures(settings, data, tmp_path, name):
    if name == "open_binary":
        settings = replace(settings, data=data)
    text = make_page(name, settings, tmp_path)
    assert f"Made by `python -m experiments {name}` on 2" in text
    assert f"]({name}.svg)" in text
    assert len(text.partition("|---|")[2].splitlines()) > 1
    tables = list(tmp_path.glob(f"{name}*.csv"))
    assert tables
    for table in tables:
        with table.open(newline="") as file:
            lines = list(csv.reader(file))
        assert len(lines) > 1
        assert {len(line) for line in lines} == {len(lines[0])}
    svg, png = sorted(tmp_path.glob(f"{name}*.svg")), sorted(tmp_path.glob(f"{name}*.png"))
    assert [path.stem for path in svg] == [path.stem for path in png]
    assert svg


@pytest.mark.slow
def test_binary_classifiers_without_data(settings, tmp_path):
    assert "mean absolute bias (%), binary" in make_page("open_binary", settings, tmp_path)


def test_sets_of_a_positive_class_are_found(settings, data):
    sets = binary_sets(replace(settings, data=data))
    assert {name: sample.n for name, sample in sets.items()} == {"binary": 1500}


def double(value: int) -> list[dict[str, int]]:
    """Return one row."""
    return [{"value": 2 * value}]


def test_rows_of_finished_jobs_are_kept(settings):
    assert rows_in_parallel(settings, "doubles", double, [(1,), (2,)]) == [{"value": 2}, {"value": 4}]
    (path,) = settings.work.glob("doubles*.jsonl")
    path.write_text(path.read_text().replace('"value": 4', '"value": 5') + "[torn")
    jobs = [(2,), (3,), (1,)]
    assert rows_in_parallel(settings, "doubles", double, jobs) == [{"value": 5}, {"value": 6}, {"value": 2}]
    assert "torn" not in path.read_text()


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
    (sample,) = Block.from_rows(*population.sample_many(400_000, [np.random.default_rng(2)]))
    for name in ("ks", "em_mce"):
        value = truecal.estimate(sample, estimator=name).value
        assert value == pytest.approx(found[name], abs=0.004)
    assert math.sqrt(truecal.estimate(sample, estimator="skce").value) == pytest.approx(
        found["kce"], abs=0.004
    )


def test_calibrated_populations_have_truths_of_zero():
    assert max(truths(SQUARE.calibrated()).values()) == pytest.approx(0, abs=1e-12)


def their_results(folder, method, rmse):
    """Write a file of Berta et al.'s layout with one method, which has the same RMSE everywhere."""
    head = "curve,n,method,truth,draws,bias,rmse,bias_clipped,rmse_clipped,seconds"
    rows = [f"{curve},{n},{method},0.1,10,0.01,{rmse},0.01,{rmse},2.5" for curve in CURVES for n in SIZES]
    (folder / THEIRS).write_text("\n".join([head, *rows, f"another,200,{method},0,10,9,9,9,9,9"]) + "\n")


@pytest.mark.slow
def test_other_papers_files_are_compared_if_they_are_there(settings, tmp_path):
    their_results(tmp_path, "Theirs", 0.5)
    y_true, y_proba = truecal.paper.population("resnet110_c100").sample(600, rng=0)
    np.savez(tmp_path / "tcal_scores.npz", confidence=y_proba, correct=y_true)
    settings = replace(settings, data=tmp_path)
    pages = {name: make_page(name, settings, tmp_path / "out") for name in WITH_FILES}
    assert "best of theirs, Theirs: 50.00" in pages["external_lp"]
    with (tmp_path / "out" / "external_lp_summary.csv").open(newline="") as file:
        (theirs,) = (row for row in csv.DictReader(file) if row["source"] == "Berta et al.")
    assert theirs["multiscale_has_smaller_rmse"] == theirs["settings"]
    (scores,) = (line for line in pages["external_test"].splitlines() if "tcal_scores" in line)
    assert "rejects" in scores
    assert scores.split(" | ")[3].startswith("yes")


def test_curves_of_other_papers_have_their_true_errors():
    scores = truecal.simulation.BetaScores(0.5, 0.5)
    found = [truecal.Population(scores, curve).true_error(norm=1) for curve in CURVES.values()]
    # Those of Berta et al. are means over 100,000 draws.
    assert found == pytest.approx([0, 0.0188, 0.1371, 0.1308, 0.0400], abs=1.5e-3)
    assert SIZES[:3] == (200, 264, 350)
    assert SIZES[-1] == 10_000
    # Lee et al. give 0.0098 rho m^-s, the norm of a bump; bumps cover half of the scores.
    assert bumps(40, 0.6, 100.0).true_error() == pytest.approx(0.0098 * 100 * 40**-0.6 / 2**0.5, rel=0.01)


def test_statistics_of_other_papers_by_their_definitions():
    y_true, y_proba = SQUARE.sample(300, rng=4)
    by_hand = 0.0
    for k in range(7):
        gap = (y_true - y_proba)[np.floor(7 * y_proba) == k]
        by_hand += sum(a * b for i, a in enumerate(gap) for j, b in enumerate(gap) if i != j) / len(gap)
    assert tcal_statistics(y_true, y_proba, [7, 11])[0] == pytest.approx(by_hand / 300)
    place = (4 * y_proba).astype(int)
    plug_in, debiased = squared_errors(y_true, place, np.array([0.1, 0.3, 0.6, 0.9]))
    assert debiased < plug_in
    mean = np.array([y_true[place == k].mean() for k in range(4)])
    share = np.bincount(place) / 300
    assert plug_in == pytest.approx(share @ (mean - [0.1, 0.3, 0.6, 0.9]) ** 2)
    assert known_l1_error(y_proba, y_proba) == 0


def test_suns_interval_covers_a_large_error_at_its_level():
    truth, repeats = SQUARE.true_error(), 400
    ends = [sun_interval(*SQUARE.sample(1000, rng=seed)) for seed in range(repeats)]
    share = np.mean([low <= truth <= high for low, high in ends])
    assert share == pytest.approx(0.9, abs=4 * math.sqrt(0.09 / repeats))
    low, high = sun_interval(*SQUARE.calibrated().sample(1000, rng=1))
    assert low == 0 < high < 0.1
