import numpy as np
import pytest

import truecal
from truecal.data import as_sample
from truecal.data.cells import Cells


def test_finds_a_known_error_in_every_norm():
    population = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
    y, p = population.sample(200_000, rng=0)
    for norm in (1, 1.5, 2, 3):
        got = truecal.calibration_error(y, p, estimator="multiscale", norm=norm)
        assert got == pytest.approx(population.true_error(norm), rel=0.03)


def test_finds_an_error_that_does_not_rise_where_the_sweep_cannot():
    population = truecal.Population(
        truecal.simulation.UniformScores(), truecal.simulation.LogisticCurve(-8, 4)
    )
    y, p = population.sample(20_000, rng=0)
    got = truecal.calibration_error(y, p, estimator="multiscale")
    assert got == pytest.approx(population.true_error(), rel=0.05)


def test_says_near_nothing_of_a_calibrated_model():
    population = truecal.paper.population("resnet110_c100", calibrated=True)
    values = [
        truecal.calibration_error(*population.sample(2000, rng=seed), estimator="multiscale")
        for seed in range(40)
    ]
    assert np.median(values) < 0.002
    assert np.mean(values) < 0.008


def test_the_signed_square_goes_below_zero():
    population = truecal.paper.population("resnet152_imgnet", calibrated=True)
    squares = [
        truecal.estimate(*population.sample(500, rng=seed), estimator="multiscale").signed_square
        for seed in range(30)
    ]
    assert min(squares) < 0 < max(squares)
    y, p = population.sample(500, rng=0)
    assert truecal.estimate(y, p, estimator="multiscale", norm=1).signed_square is None


def test_cells_and_rows_agree():
    sample = as_sample(*truecal.paper.population("densenet40_c10").sample(100_000, rng=0))
    rows, cells = (
        truecal.calibration_error(one, estimator="multiscale") for one in (sample, Cells.from_sample(sample))
    )
    assert cells == pytest.approx(rows, abs=1e-4)


@pytest.mark.slow
def test_has_less_bias_than_sweep_and_debias_in_both_regimes():
    """Two populations of each regime, n = 800; the whole comparison is the leaderboard in the docs."""
    names = ["resnet110_c10", "densenet161_imgnet"]
    populations = {name: truecal.paper.population(name) for name in names}
    populations |= {f"{name} calibrated": truecal.paper.population(name, calibrated=True) for name in names}
    study = truecal.bias_study(
        populations, estimators=["multiscale", "em_sweep", "em_debias"], sizes=[800], repeats=150, rng=3
    )
    for calibrated in (False, True):
        total = {"multiscale": 0.0, "em_sweep": 0.0, "em_debias": 0.0}
        for row in study.rows:
            if row["population"].endswith("calibrated") is calibrated:
                total[row["estimator"]] += abs(row["bias"])
        assert total["multiscale"] < total["em_sweep"]
        assert total["multiscale"] < total["em_debias"]
