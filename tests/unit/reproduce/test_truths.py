"""Known truths that the parts rely on, against closed forms and against the paper's own draws."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest
from scipy.special import expit, logit

import truecal
from truecal.data.sample import Sample
from truecal.recalibration import HistogramBinning, IdentityCalibration, TemperatureScaling
from truecal.reproduce.fig1 import CALIBRATED
from truecal.reproduce.open_measures import truths
from truecal.reproduce.populations import quantile_grid, with_kde_without_root
from truecal.reproduce.printed_tables import table2, table3, table4
from truecal.reproduce.published_draws import draw, seeds, walk
from truecal.reproduce.recalibration import true_error_after
from truecal.simulation.study import bias_study

SQUARE = truecal.Population(truecal.simulation.BetaScores(1, 1), truecal.simulation.PowerCurve(2))


def test_printed_tables_are_the_populations_of_the_library():
    assert tuple(table2()) == tuple(table3()) == tuple(table4()) == truecal.paper.NAMES
    for name in truecal.paper.NAMES:
        population = truecal.paper.population(name)
        assert table2()[name] == (population.scores.a, population.scores.b)
        best = next(model for model in table3()[name] if model.selected)
        curve = population.curve
        assert (best.link, best.transform, best.b0, best.b1) == (
            curve.link,
            curve.transform,
            curve.b0,
            curve.b1,
        )
        assert len(table3()[name]) == 12
        assert best.aic == min(model.aic for model in table3()[name])


@pytest.mark.slow
def test_means_over_the_quantile_grid_are_integrals():
    for name in truecal.paper.NAMES:
        population = truecal.paper.population(name)
        score, complement, truth = quantile_grid(population, 100_000)
        assert math.sqrt(np.mean((score - truth) ** 2)) == pytest.approx(population.true_error(), abs=2e-5)
        assert (complement > 0).all()


def test_true_error_after_no_recalibration_is_the_true_error():
    y, p = SQUARE.sample(10, rng=0)
    assert true_error_after(IdentityCalibration().fit(p, y), SQUARE) == pytest.approx(
        math.sqrt(1 / 30), abs=1e-4
    )


def test_true_error_after_one_bin_is_its_distance_from_the_base_rate():
    y, p = SQUARE.sample(200, rng=0)
    error = true_error_after(HistogramBinning(n_bins=1).fit(p, y), SQUARE)
    assert error == pytest.approx(abs(y.mean() - 1 / 3), abs=1e-4)


def test_true_error_after_temperature_is_the_integral_over_the_mapped_scores():
    y, p = SQUARE.sample(500, rng=1)
    scaling = TemperatureScaling(input="probabilities").fit(p, y)
    score = (np.arange(200_000) + 0.5) / 200_000
    gap = expit(logit(score) / scaling.temperature_) - score**2
    assert true_error_after(scaling, SQUARE) == pytest.approx(math.sqrt(np.mean(gap**2)), abs=1e-4)


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


def test_the_published_seeds_repeat_and_a_smaller_sample_is_the_beginning_of_a_larger_one():
    found, start = walk()
    assert (len(found), start) == (4744, 3442)
    assert found[:2] == list(islice(seeds(), 2))
    population = truecal.paper.population("resnet110_c10")
    label, score = draw(population, found[1], 200)
    again, _ = draw(population, found[1], 100)
    np.testing.assert_array_equal(again, label[:100])
    assert 0.8 < score.mean() < 1


def test_the_published_second_sample_is_the_one_of_its_figure():
    """plot_intro_ece_distribution.py of google-research/caltrain marks 5.08 %."""
    label, score = draw(CALIBRATED, walk()[0][1], 200)
    assert 100 * truecal.calibration_error(label, score, estimator="ew_bin") == pytest.approx(5.08, abs=0.005)


def test_kde_without_its_root_is_the_mean_of_squares():
    study = bias_study({"a": SQUARE}, estimators=["kde"], sizes=[100], repeats=30, rng=4).rows
    row = with_kde_without_root(study)[-1]
    generators = [np.random.default_rng(k) for k in range(300)]
    values = [
        truecal.estimate(s, estimator="kde").value
        for s in Sample.from_blocks(*SQUARE.sample_many(100, generators))
    ]
    squares = np.square(values)
    error = math.hypot(row["bias_se"], squares.std() / math.sqrt(300))
    assert row["mean"] == pytest.approx(squares.mean(), abs=4 * error)
    assert row["sd"] == pytest.approx(squares.std(), rel=0.5)
