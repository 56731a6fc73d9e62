import numpy as np
import pytest
from scipy import stats

import truecal
from truecal.assessment.sections import (
    MOST_ROWS,
    SMALL_GROUP,
    advise_recalibration,
    assess_groups,
    plan_rows,
    training_rows,
)
from truecal.data import as_sample


def sample_of(n, curve, rng):
    p = rng.random(n)
    return as_sample(rng.random(n) < curve(p), p)


def look(samples, rng, **options):
    names = [str(k) for k in range(len(samples))]
    options = {"confidence_level": 0.95, "n_resamples": 199, **options}
    return assess_groups(
        samples, names, [(name,) for name in names], ("group",), estimator="multiscale", rng=rng, **options
    )


# --- Groups ----------------------------------------------------------------------------------------


def test_many_bad_groups_are_all_found():
    # Holm's correction of 60 p-values of at least 1/200 could reject none of them.
    rng = np.random.default_rng(0)
    groups = look([sample_of(150, lambda p: p**4, rng) for _ in range(60)], rng)
    assert len(groups.miscalibrated) == groups.n_hypotheses == 60
    assert {row.adjusted_pvalue for row in groups.rows} == {1 / 200}


def test_adjusted_pvalues_are_at_least_the_single_ones_and_intervals_agree():
    rng = np.random.default_rng(1)
    curves = [lambda p: p, lambda p: p**2, lambda p: p**1.3, lambda p: p]
    groups = look([sample_of(300, curve, rng) for curve in curves], rng)
    for row in groups.rows:
        assert row.adjusted_pvalue >= row.pvalue - 0.05  # both are resampled
        assert row.miscalibrated == (row.adjusted_pvalue <= 0.05)
        assert (row.interval.low == 0) or row.miscalibrated
    assert groups["1"].miscalibrated


def test_groups_print_as_a_table():
    rng = np.random.default_rng(1)
    groups = look([sample_of(400, curve, rng) for curve in (lambda p: p, lambda p: p**3)], rng)
    lines = str(groups).splitlines()
    assert lines[0].split("  ")[0] == "group"
    assert "95% interval" in lines[0]
    row = groups["1"]
    assert f"{row.interval.low:.4f} to {row.interval.high:.4f}" in lines[2]
    assert "Miscalibrated: 1" in lines
    assert lines[-1].startswith("Test of no difference between groups: p ")
    assert "(97.5%)" in str(row.estimate)


def test_small_groups_are_marked():
    rng = np.random.default_rng(2)
    groups = look(
        [sample_of(SMALL_GROUP - 1, lambda p: p, rng), sample_of(SMALL_GROUP, lambda p: p, rng)], rng
    )
    assert [row.small for row in groups.rows] == [True, False]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_familywise_error_rate_is_that_of_the_level():
    rng = np.random.default_rng(3)
    repeats = 400
    found = [
        bool(look([sample_of(n, lambda p: p, rng) for n in (30, 60, 120)], rng, n_resamples=99).miscalibrated)
        for _ in range(repeats)
    ]
    error = np.sqrt(0.05 * 0.95 / repeats)
    assert abs(np.mean(found) - 0.05) < 4 * error


# --- Recalibration ---------------------------------------------------------------------------------


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
    n = 2 * MOST_ROWS
    sample = sample_of(n, lambda p: p, rng)
    rows = training_rows(sample, None, None, rng)
    assert rows.label.mean() == pytest.approx(0.5, abs=4 * 0.5 / MOST_ROWS**0.5)
    assert (len(rows.label), rows.total) == (MOST_ROWS, n)
    assert len(np.unique(rows.score)) == MOST_ROWS


def test_rows_of_a_top_label_have_all_classes():
    rng = np.random.default_rng(3)
    proba = rng.dirichlet([1, 1, 1], 50)
    label = rng.integers(0, 3, 50)
    rows = training_rows(as_sample(label, proba), label, proba, rng, sample_weight=np.full(50, 2))
    assert rows.score.shape == (100, 3)
    assert sorted(rows.label.tolist()) == sorted(np.repeat(label, 2).tolist())


# --- Rows needed -----------------------------------------------------------------------------------


def test_the_plan_scales_with_the_inverse_square_of_the_error():
    plan = plan_rows(sample_of(5000, lambda p: p, np.random.default_rng(0)), (0.01, 0.02))
    assert plan[0].level_shift / plan[1].level_shift == pytest.approx(4, rel=0.05)
    assert plan[0].slope / plan[1].slope == pytest.approx(4, rel=0.15)


def test_the_planned_rows_have_the_planned_power_for_the_score_test():
    rng = np.random.default_rng(1)
    (plan,) = plan_rows(sample_of(20_000, lambda p: p, rng), (0.1,))
    repeats, found = 1000, 0
    shift = 0.5532  # shifts uniform scores by 10 points in the l2 norm
    grid = (np.arange(100_000) + 0.5) / 100_000
    moved = 1 / (1 + np.exp(-np.log(grid / (1 - grid)) - shift))
    assert np.sqrt(np.mean((moved - grid) ** 2)) == pytest.approx(0.1, abs=5e-4)
    for _ in range(repeats):
        f = rng.random(plan.level_shift)
        x = np.column_stack([np.ones_like(f), np.log(f / (1 - f))])
        y = rng.random(len(f)) < 1 / (1 + np.exp(-x[:, 1] - shift))
        u, v = x.T @ (y - f), (x.T * (f * (1 - f))) @ x
        found += u @ np.linalg.solve(v, u) > stats.chi2.ppf(0.95, 2)
    # The noncentral chi-square takes the variance of the null hypothesis, which is a little too large here.
    assert found / repeats == pytest.approx(0.95, abs=0.03)


def test_certain_scores_have_no_plan():
    assert plan_rows(as_sample([0, 1], [0.0, 1.0])) == ()
