import numpy as np
import pytest
from scipy import stats

from truecal.assessment.plan import plan_rows
from truecal.data import as_sample
from truecal.estimators._binning import thinned


def calibrated(n, rng):
    p = rng.random(n)
    return as_sample(rng.random(n) < p, p)


def test_the_plan_scales_with_the_inverse_square_of_the_error():
    plan = plan_rows(calibrated(5000, np.random.default_rng(0)), (0.01, 0.02))
    assert plan[0].level_shift / plan[1].level_shift == pytest.approx(4, rel=0.05)
    assert plan[0].slope / plan[1].slope == pytest.approx(4, rel=0.15)


def test_the_planned_rows_have_the_planned_power_for_the_score_test():
    rng = np.random.default_rng(1)
    (plan,) = plan_rows(calibrated(20_000, rng), (0.1,))
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
