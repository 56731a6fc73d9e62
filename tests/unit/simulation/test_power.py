"""Power and miss rates of tests of calibration."""

import json
import math

import numpy as np
import pytest

import truecal
from truecal import power
from truecal.simulation import _power, miss_rates, population_with_error
from truecal.simulation._power import Simulator, detection


def overconfident(d=1.5):
    return truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(d))


# -- critical values -------------------------------------------------------------------------------------


def test_a_calibrated_twin_is_found_as_often_as_alpha_says():
    null = np.arange(1.0, 1000.0)
    found = detection(null, null, 0.05)
    assert found.critical_value == 950  # of 999 draws 49 are above; with the observed one, 50 of 1000
    assert found.share == pytest.approx(0.05, abs=0.001)


def test_ties_with_the_critical_value_do_not_reject():
    found = detection(np.ones(100), np.ones(100), 0.05)
    assert found.share == 0


def test_the_standard_error_covers_draws_and_critical_value():
    rng = np.random.default_rng(0)
    shares, errors = [], []
    for _ in range(300):
        found = detection(rng.normal(1.0, 1, 400), np.sort(rng.normal(0, 1, 400)), 0.05)
        shares.append(found.share)
        errors.append(found.standard_error)
    assert 0.9 < np.mean(errors) / np.std(shares) < 1.3


def test_sure_detection_still_has_a_standard_error():
    found = detection(np.full(100, 9.0), np.arange(100.0) / 100, 0.05)
    assert found.share == 1
    assert 0 < found.standard_error < 0.02


# -- power -----------------------------------------------------------------------------------------------


def test_power_is_fixed_by_a_seed_and_is_a_number():
    one, two = (power(overconfident(), 100, repeats=100, rng=4) for _ in range(2))
    assert one == two
    assert float(one) == one.value == 1 - one.miss_rate
    assert one != power(overconfident(), 100, repeats=100, rng=5)
    assert one.true_error == pytest.approx(overconfident().true_error())


def test_power_rises_with_rows_and_with_the_error():
    by_rows = [power(overconfident(), n, repeats=200, rng=0).value for n in (50, 200, 800)]
    by_error = [power(overconfident(d), 200, repeats=200, rng=0).value for d in (1.1, 1.4, 2)]
    assert by_rows == sorted(by_rows)
    assert by_error == sorted(by_error)
    assert by_rows[-1] == by_error[-1] == 1


def test_a_calibrated_population_is_found_as_often_as_alpha_says():
    found = power(overconfident(1.0), 200, repeats=1000, rng=0)
    assert abs(found.value - 0.05) < 4 * found.standard_error


@pytest.mark.parametrize("alternative", ["level", "slope", "steps"])
def test_the_multiscale_test_beats_the_sweep(alternative):
    population = population_with_error(0.05, alternative=alternative)
    ours, sweep = (
        power(population, 800, method=method, repeats=300, rng=0) for method in ("multiscale", "em_sweep")
    )
    assert ours.value > sweep.value


@pytest.mark.slow
def test_cells_give_the_power_of_drawn_rows(monkeypatch):
    populations = [overconfident(1.1), truecal.paper.population("resnet110_c10")]
    for population, n in zip(populations, (1500, 150), strict=True):
        simulator = Simulator.checked(
            ["em_sweep", "ew_bin", "ks", "multiscale"], alpha=0.05, norm=2, repeats=500, rng=1
        )
        found = []
        for rows in (1 << 13, 100):
            monkeypatch.setattr(_power, "_DRAWN_ROWS", rows)
            found.append(simulator.detections(population, n, simulator.null(population, n)))
        for drawn, cells in zip(*found, strict=True):
            assert abs(drawn.share - cells.share) < 4 * math.hypot(drawn.standard_error, cells.standard_error)


def test_a_billion_rows_take_no_longer():
    population = population_with_error(0.0001)
    assert power(population, 10**9, method="ks", repeats=40, rng=0).value == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_atoms_stay_what_they_are_in_blocks(dtype):
    values = np.array([0.1, 0.3, 0.3, 0.7, 0.7, 0.7, 1.0], dtype=dtype)
    population = truecal.Population(
        truecal.simulation.EmpiricalScores(values), truecal.simulation.IdentityCurve()
    )
    simulator = Simulator.checked(["ew_bin"], alpha=0.05, norm=2, repeats=20, rng=1)
    blocks = _power._blocks_of(population, np.random.default_rng(1))
    sample = next(simulator._samples(population, blocks, 10**6, 1, 0))
    assert sample.dtype == dtype
    np.testing.assert_array_equal(sample.score, np.unique(values).astype(float))
    assert sample.n == 10**6
    assert sample.positives[-1] == sample.count[-1]
    np.testing.assert_allclose(sample.count / sample.n, np.array([1, 2, 3, 1]) / 7, atol=0.005)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"alpha": 0}, "alpha must be a number strictly between 0 and 1"),
        ({"repeats": 19}, "repeats must be a whole number >= 20"),
        ({"n": 0}, "n must be a whole number >= 1"),
        ({"method": "sweep"}, "method must be one of"),
        ({"method": {"method": "em_bin", "bins": 4}}, "bins is not an option of em_bin"),
    ],
)
def test_wrong_parameters_of_power_are_refused(wrong, says):
    with pytest.raises(ValueError, match=says):
        power(**{"population": overconfident(), "n": 10, **wrong})


# -- miss rates ------------------------------------------------------------------------------------------


def test_rows_do_not_depend_on_what_else_is_asked_for():
    table = miss_rates([0.05, 0.1], [50, 100], repeats=60, rng=2)
    alone = miss_rates([0.1], [100], methods=["em_sweep"], repeats=60, rng=2)
    assert len(table.rows) == 8
    assert table.rows[-1] == alone.rows[0]
    direct = power(population_with_error(0.1), 100, method="em_sweep", repeats=60, rng=2)
    assert direct == alone.rows[0]


def test_rows_are_ordered_by_error_size_and_estimator_and_can_be_selected():
    table = miss_rates([0.05, 0.1], [50, 100], repeats=40, rng=2)
    keys = [(round(row.true_error, 6), row.n, row.method) for row in table.rows]
    assert keys == [(e, n, s) for e in (0.05, 0.1) for n in (50, 100) for s in ("ew_bin", "em_sweep")]
    chosen = table.select(method="ew_bin", true_error=0.1)
    assert [(row.n, row.method) for row in chosen.rows] == [(50, "ew_bin"), (100, "ew_bin")]


def test_miss_rates_become_json_and_print():
    table = miss_rates([0.1], [50], methods=[{"method": "em_bin", "n_bins": 5}], repeats=40, rng=2)
    plain = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert plain["rows"][0]["miss_rate"] == table.rows[0].miss_rate
    assert plain["rows"][0]["method"] == "em_bin(n_bins=5)"
    assert "em_bin(n_bins=5)" in str(table)


def test_workers_change_nothing():
    one, two = (miss_rates([0.1], [50, 60], repeats=40, rng=2, n_jobs=jobs) for jobs in (1, 2))
    assert one == two


@pytest.mark.parametrize("empty", ["true_errors", "sizes", "methods"])
def test_nothing_to_do_is_refused(empty):
    given = {"true_errors": [0.1], "sizes": [50], "methods": ["ks"], empty: []}
    with pytest.raises(ValueError, match="at least one true error, one size and one method"):
        miss_rates(**given)


SQUARE = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))


def test_the_share_above_the_critical_value():
    null = np.arange(99.0)  # the 95th of 99 is exceeded by 5 in 100
    result = detection(np.array([0.0, 93.0, 94.0, 95.0]), null, 0.05)
    assert result.critical_value == 94
    assert result.share == 0.25
    assert result.standard_error > 0


def test_statistics_are_reproducible_and_the_calibrated_population_is_rarely_detected():
    simulator = Simulator.checked(["em_bin"], alpha=0.05, norm=2, repeats=200, rng=1)
    null = simulator.null(SQUARE, 300)
    assert (np.diff(null) >= 0).all()
    np.testing.assert_array_equal(null, simulator.null(SQUARE, 300))
    (calibrated,) = simulator.detections(SQUARE.calibrated(), 300, null)
    (miscalibrated,) = simulator.detections(SQUARE, 300, null)
    assert calibrated.share < 0.05 + 4.5 * np.sqrt(2 * 0.05 * 0.95 / 200)
    assert miscalibrated.share > 0.9


def test_too_few_repetitions_for_the_level_are_refused():
    with pytest.raises(ValueError, match="repeats must be a whole number >= 20"):
        Simulator.checked(["em_bin"], alpha=0.05, norm=2, repeats=19, rng=1)
