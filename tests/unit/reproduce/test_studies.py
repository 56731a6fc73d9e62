"""Simulations whose results are kept, summaries of studies, and integrals over populations."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import truecal
from truecal.data.sample import Block
from truecal.reproduce._studies import (
    draw_estimates,
    mean_absolute_bias,
    pick,
    quantile_grid,
    run_study,
    with_kde_without_root,
)
from truecal.reproduce.main_study import bias_by_image_set
from truecal.simulation import bias_study

QUICKEST = "appendix_d"

SQUARE = truecal.Population(truecal.simulation.BetaScores(1, 1), truecal.simulation.PowerCurve(2))


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_workers(settings, tmp_path):
    population = truecal.Population(truecal.simulation.BetaScores(2, 1), truecal.simulation.PowerCurve(2))
    options = {"n": 2**17, "estimators": ["ks"], "repeats": 5}  # three blocks
    one = draw_estimates(settings, "one", population, **options)["ks"]
    two = draw_estimates(replace(settings, out=tmp_path / "two", n_jobs=2), "one", population, **options)[
        "ks"
    ]
    np.testing.assert_array_equal(one, two)
    assert len(np.unique(one)) == 5


def test_estimates_and_studies_in_the_work_folder_are_not_drawn_again(settings, monkeypatch):
    population = truecal.Population(truecal.simulation.BetaScores(2, 1), truecal.simulation.PowerCurve(2))
    first = draw_estimates(settings, "kept", population, n=50, estimators=["ks", "em_bin"], repeats=3)
    rows = run_study(settings, "kept", {"a": population}, estimators=["em_bin"], sizes=[50], repeats=3)
    monkeypatch.setattr(truecal.Population, "sample_many", None)
    again = draw_estimates(settings, "kept", population, n=50, estimators=["ks", "em_bin"], repeats=3)
    np.testing.assert_array_equal(first["ks"], again["ks"])
    assert (
        run_study(settings, "kept", {"a": population}, estimators=["em_bin"], sizes=[50], repeats=3) == rows
    )


@pytest.mark.slow
def test_means_over_the_quantile_grid_are_integrals():
    for name in truecal.paper.NAMES:
        population = truecal.paper.population(name)
        score, complement, truth = quantile_grid(population, 100_000)
        assert math.sqrt(np.mean((score - truth) ** 2)) == pytest.approx(population.true_error(), abs=2e-5)
        assert (complement > 0).all()


def test_kde_without_its_root_is_the_mean_of_squares():
    study = bias_study({"a": SQUARE}, estimators=["kde"], sizes=[100], repeats=30, rng=4).rows
    row = with_kde_without_root(study)[-1]
    generators = [np.random.default_rng(k) for k in range(300)]
    values = [
        truecal.estimate(s, estimator="kde").value
        for s in Block.from_rows(*SQUARE.sample_many(100, generators))
    ]
    squares = np.square(values)
    error = math.hypot(row["bias_se"], squares.std() / math.sqrt(300))
    assert row["mean"] == pytest.approx(squares.mean(), abs=4 * error)
    assert row["sd"] == pytest.approx(squares.std(), rel=0.5)


def test_rows_are_picked_and_averaged():
    rows = [
        {"population": "a_c10", "n": 1, "estimator": "e", "bias": -0.1, "bias_se": 0.3},
        {"population": "b_c10", "n": 1, "estimator": "e", "bias": 0.3, "bias_se": 0.4},
    ]
    assert list(pick(rows, population="a_c10")) == rows[:1]
    (mean,) = bias_by_image_set(rows)
    assert (mean["image_set"], mean["bias"], mean["bias_se"]) == (
        "CIFAR-10",
        pytest.approx(0.1),
        pytest.approx(0.25),
    )
    assert mean_absolute_bias(rows, "e") == pytest.approx((0.2, 0.25))
