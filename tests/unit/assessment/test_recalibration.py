import numpy as np
import pytest

import truecal
from truecal.assessment.recalibration import MOST_TRAINING_ROWS, advise_recalibration, training_rows
from truecal.data import as_sample


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


def test_rows_of_a_large_sample_are_drawn_without_replacement():
    rng = np.random.default_rng(2)
    n = 2 * MOST_TRAINING_ROWS
    sample = sample_of(n, lambda p: p, rng)
    rows = training_rows(sample, None, None, rng)
    assert rows.label.mean() == pytest.approx(0.5, abs=4 * 0.5 / MOST_TRAINING_ROWS**0.5)
    assert (len(rows.label), rows.total) == (MOST_TRAINING_ROWS, n)
    assert len(np.unique(rows.score)) == MOST_TRAINING_ROWS


def test_rows_of_a_top_label_have_all_classes():
    rng = np.random.default_rng(3)
    proba = rng.dirichlet([1, 1, 1], 50)
    label = rng.integers(0, 3, 50)
    rows = training_rows(as_sample(label, proba), label, proba, rng, sample_weight=np.full(50, 2))
    assert rows.score.shape == (100, 3)
    assert sorted(rows.label.tolist()) == sorted(np.repeat(label, 2).tolist())
