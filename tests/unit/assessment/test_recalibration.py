import numpy as np
import pytest
from scipy.special import expit

import truecal
from truecal.assessment.recalibration import MOST_TRAINING_ROWS, advise_recalibration, training_rows
from truecal.data import as_sample
from truecal.recalibration.selection import select_recalibrator


def sample_of(n, curve, rng):
    p = rng.random(n)
    return as_sample(rng.random(n) < curve(p), p)


def test_a_gain_that_is_shown_is_advised_and_is_real():
    population = truecal.paper.population("resnet110_c100")
    rng = np.random.default_rng(0)
    rows = training_rows(as_sample(*population.sample(3000, rng=0)), None, None, rng)
    advice = advise_recalibration(rows, confidence_level=0.95, rng=rng)
    assert not advice.leave_alone
    chosen = advice.selection[advice.chosen]
    assert f"by {-chosen.difference:.4f}" in advice.advice
    y, p = population.sample(5000, rng=1)
    before, after = (
        truecal.calibration_error(y, p),
        truecal.calibration_error(y, advice.selection.transform(p)),
    )
    assert after < before / 2
    namespace = {"p_validation": p, "y_validation": y, "p_new": p}
    exec(advice.code, namespace)
    assert namespace["p_recalibrated"].shape == p.shape


def test_a_gain_that_is_not_shown_is_not_advised():
    rng = np.random.default_rng(1)
    sample = sample_of(60, lambda p: p**1.1, rng)
    advice = advise_recalibration(training_rows(sample, None, None, rng), confidence_level=0.95, rng=rng)
    assert advice.leave_alone
    assert advice.selection.chosen == "identity"
    np.testing.assert_array_equal(advice.selection.transform([0.3, 0.4]), [0.3, 0.4])


def test_all_rows_of_a_large_sample_take_part():
    rng = np.random.default_rng(2)
    n = 4 * MOST_TRAINING_ROWS
    p = expit(rng.normal(0, 12, n))  # many scores are extreme, and some failures cost a log loss above 20
    y = (rng.random(n) < p**0.2).astype(int)
    rows = training_rows(as_sample(y, p), None, None, rng)
    advice = advise_recalibration(rows, confidence_level=0.95, rng=rng)
    assert advice.n_rows == advice.selection.n == n
    assert (
        f"5-fold cross-validation, 40,000 rows, with scores merged into {len(rows.arguments['y_true']):,}"
        in (advice.advice)
    )
    whole = select_recalibrator(y, p, n_resamples=10, rng=0)
    assert advice.chosen == whole.chosen
    assert advice.selection["identity"].criterion == pytest.approx(whole["identity"].criterion, abs=2e-4)
    assert advice.selection[whole.chosen].criterion == pytest.approx(whole[whole.chosen].criterion, abs=2e-4)
    grid = np.linspace(0.001, 0.999, 99)
    assert advice.selection.transform(grid) == pytest.approx(whole.transform(grid), abs=1e-4)


def test_a_few_scores_of_many_rows_are_not_merged():
    rng = np.random.default_rng(4)
    p = rng.random(3 * MOST_TRAINING_ROWS).round(2)
    sample = as_sample(rng.random(len(p)) < p, p)
    rows = training_rows(sample, None, None, rng)
    assert rows.arguments["y_true"] is sample
    assert rows.about == "30,000 rows"


def test_of_many_rows_in_clusters_some_are_drawn_without_replacement():
    rng = np.random.default_rng(5)
    n = 2 * MOST_TRAINING_ROWS
    p = rng.random(n)
    sample = as_sample((rng.random(n) < p).astype(int), p, clusters=np.arange(n) // 4)
    rows = training_rows(sample, None, None, rng)
    assert (rows.n, rows.about) == (MOST_TRAINING_ROWS, "10,000 of the 20,000 rows")
    assert len(np.unique(rows.arguments["y_proba"])) == MOST_TRAINING_ROWS
    assert rows.arguments["y_true"].mean() == pytest.approx(0.5, abs=4 * 0.5 / MOST_TRAINING_ROWS**0.5)
    assert advise_recalibration(rows, confidence_level=0.95, rng=rng).n_rows == MOST_TRAINING_ROWS


def test_rows_of_a_top_label_have_all_classes():
    rng = np.random.default_rng(3)
    proba = rng.dirichlet([1, 1, 1], 50)
    label = rng.integers(0, 3, 50)
    rows = training_rows(as_sample(label, proba), label, proba, rng, sample_weight=np.full(50, 2))
    assert rows.arguments["y_proba"].shape == (100, 3)
    assert sorted(rows.arguments["y_true"].tolist()) == sorted(np.repeat(label, 2).tolist())


@pytest.mark.parametrize("clustered", [False, True])
def test_of_many_rows_with_several_classes_some_are_drawn(clustered):
    rng = np.random.default_rng(6)
    n = MOST_TRAINING_ROWS + 500
    proba = rng.dirichlet([1, 1, 1], n)
    label = rng.integers(0, 3, n)
    reading = {"clusters": np.arange(n) // 300} if clustered else {}
    rows = training_rows(as_sample(label, proba, **reading), label, proba, rng, **reading)
    drawn = rows.arguments["clusters"]
    if clustered:
        assert MOST_TRAINING_ROWS - 300 <= rows.n <= MOST_TRAINING_ROWS
        assert set(np.bincount(drawn)[np.unique(drawn)]) == {300}
    else:
        assert rows.n == MOST_TRAINING_ROWS
    assert rows.about == f"{rows.n:,} of the 10,500 rows"
