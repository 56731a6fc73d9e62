"""Whether to recalibrate, and how many rows to collect."""

import numpy as np
import pytest
from scipy import stats

import truecal
from truecal.assessment._next_steps import advise_recalibration, plan_rows, recalibration_rows
from truecal.data import as_sample
from truecal.estimators._binning import thinned
from truecal.recalibration.selection import select_recalibrator


def advise(y, p, **reading):
    sample = as_sample(y, p, **reading)
    rows = recalibration_rows(sample, y, p, **reading)
    return advise_recalibration(sample, rows, confidence_level=0.95, rng=np.random.default_rng(0))


def test_the_advice_helps_on_new_rows():
    population = truecal.paper.population("resnet110_c100")
    advice = advise(*population.sample(3000, rng=0))
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


def test_without_evidence_the_model_is_left_alone():
    rng = np.random.default_rng(1)
    p = rng.random(60)
    advice = advise((rng.random(60) < p**1.1).astype(int), p)
    assert advice.leave_alone
    assert advice.selection.chosen == "identity"
    np.testing.assert_array_equal(advice.selection.transform([0.3, 0.4]), [0.3, 0.4])


def test_too_few_rows_for_folds_are_no_error():
    assert "could not be compared" in advise([0, 1, 1], [0.1, 0.9, 0.2]).advice


def bad_classes(n, k, rng):
    logit = rng.normal(size=(n, k))
    label = (logit + rng.gumbel(size=(n, k))).argmax(axis=1)
    proba = np.exp(3 * logit)
    return label, proba / proba.sum(axis=1, keepdims=True)


def bad_rows(n, rng):
    p = rng.random(n)
    return (rng.random(n) < p**2).astype(int), p


ROUTES = {
    "rows": lambda rng: (*bad_rows(800, rng), {}),
    "rounded": lambda rng: (*(np.round(part, 2) for part in bad_rows(800, rng)), {}),
    "float32": lambda rng: (*(part.astype(np.float32) for part in bad_rows(800, rng)), {}),
    "many rows": lambda rng: (*bad_rows(12_000, rng), {}),
    "clusters": lambda rng: (*bad_rows(800, rng), {"clusters": rng.integers(0, 60, 800)}),
    "many clusters": lambda rng: (*bad_rows(12_000, rng), {"clusters": rng.integers(0, 600, 12_000)}),
    "text": lambda rng: (
        np.array(["no", "yes"])[(rows := bad_rows(800, rng))[0]],
        rows[1],
        {"pos_label": "yes"},
    ),
    "counts": lambda rng: (
        *bad_rows(400, rng),
        {"sample_weight": rng.integers(0, 4, 400), "weighting": "counts"},
    ),
    "classes": lambda rng: (*bad_classes(600, 3, rng), {}),
    "many rows with classes": lambda rng: (*bad_classes(10_500, 3, rng), {}),
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("route", ROUTES)
def test_every_route_makes_the_same_choice_from_the_same_folds(route, seed):
    y, p, reading = ROUTES[route](np.random.default_rng(seed))
    small = {"n_resamples": 99, "rng": seed}
    assessed = truecal.assess(y, p, **reading, **small).recalibration
    selected = select_recalibrator(y, p, **reading, rng=seed)
    assert assessed.chosen == selected.chosen != "identity"
    assert assessed.selection.to_dict() == selected.to_dict()
    assert assessed.candidates == selected.candidates
    if not route.endswith("classes"):
        sample = truecal.Sample.from_predictions(y, p, **reading)
        assert truecal.assess(sample, **small).recalibration.candidates == selected.candidates
        assert select_recalibrator(sample, rng=seed).candidates == selected.candidates
        np.testing.assert_allclose(
            select_recalibrator(sample, rng=seed).transform(p), selected.transform(p), rtol=1e-6
        )


def test_a_generator_is_a_seed_too():
    y, p = bad_rows(500, np.random.default_rng(2))
    assessed = truecal.assess(y, p, n_resamples=99, rng=np.random.default_rng(3)).recalibration
    assert assessed.candidates == select_recalibrator(y, p, rng=np.random.default_rng(3)).candidates


def calibrated(n, rng):
    p = rng.random(n)
    return as_sample(rng.random(n) < p, p)


def test_the_plan_scales_with_the_inverse_square_of_the_error():
    plan = plan_rows(calibrated(5000, np.random.default_rng(0)))[:2]
    assert plan[0].level_shift / plan[1].level_shift == pytest.approx(4, rel=0.05)
    assert plan[0].slope / plan[1].slope == pytest.approx(4, rel=0.15)


def test_the_planned_rows_have_the_planned_power_for_the_score_test():
    rng = np.random.default_rng(1)
    plan = plan_rows(calibrated(20_000, rng))[-1]
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


def test_thinned_scores_keep_rows_labels_and_the_ends():
    rng = np.random.default_rng(3)
    score = np.concatenate(
        [[0.0, 5e-324, 1e-300, 1e-17, 1 - 1e-16, 1.0], 1 / (1 + np.exp(rng.normal(0, 9, 9000)))]
    )
    sample = as_sample(rng.random(len(score)) < score, score)
    blocks = thinned(sample, most=300)
    assert 300 <= len(blocks) < 600
    assert blocks.n == sample.n
    assert blocks.positives.sum() == sample.positives.sum()
    assert blocks.count @ blocks.score == pytest.approx(sample.count @ sample.score)
    assert blocks.score[[0, 1, 2, -1]].tolist() == [0.0, 5e-324, 1e-300, 1.0]
    inner = np.log(sample.score[1:-1]) - np.log1p(-sample.score[1:-1])
    start = (np.cumsum(blocks.count)[:-2] - 1).astype(int)
    width = np.maximum.reduceat(inner, start) - np.minimum.reduceat(inner, start)
    assert width.max() <= 0.25
    assert blocks.count.max() <= 31
    assert thinned(blocks, most=300) is blocks
