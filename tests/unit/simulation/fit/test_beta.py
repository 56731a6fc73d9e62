import numpy as np
import pytest
from scipy import stats
from scipy.special import betainc

from truecal.data.resolution import Resolution
from truecal.simulation.fit.beta import censor, fit_beta, fit_beta_as_paper, ks_distance, log_likelihood

FLOAT64 = np.dtype(np.float64)


def grouped(score):
    distinct, count = np.unique(score, return_counts=True)
    return distinct.astype(float), count.astype(float), score.dtype


def draws(a, b, n, dtype=np.float64, seed=0):
    return (1 - np.random.default_rng(seed).beta(b, a, n)).astype(dtype)


# -- the likelihood --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [(2.8, 0.05), (0.3, 0.2), (1.0, 1.0), (40.0, 7.0)])
@pytest.mark.parametrize("step", [2.0**-24, 0.01, 0.1])
@pytest.mark.parametrize("end", ["zero", "one"])
def test_a_cell_counts_with_its_probability(a, b, step, end):
    for multiple in (0, 1, 2, 4):
        score = np.array([multiple * step if end == "zero" else 1 - multiple * step])
        cell = censor(score, np.ones(1), Resolution(step, step))
        first, second = (a, b) if end == "zero" else (b, a)
        low, high = max(multiple - 0.5, 0) * step, (multiple + 0.5) * step
        expected = betainc(first, second, high) - betainc(first, second, low)
        assert np.exp(log_likelihood(cell, a, b)[0]) == pytest.approx(expected, rel=1e-6, abs=1e-300)


def test_probabilities_of_all_cells_sum_to_one():
    score = np.arange(11) / 10
    total = 0.0
    for one in score:
        cell = censor(np.array([one]), np.ones(1), Resolution(0.1, 0.1))
        total += np.exp(log_likelihood(cell, 1.3, 0.2)[0])
    assert total == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(("a", "b"), [(2.8, 0.05), (0.3, 0.2), (1.5, 6.0)])
def test_derivatives_are_those_of_the_value(a, b):
    score, count, _ = grouped(
        np.concatenate([draws(2.0, 0.1, 300, np.float32), [0.0, 0.0, 0.3]]).astype(np.float32)
    )
    scores = censor(score, count, Resolution(2.0**-149, 2.0**-24))
    _, gradient, hessian = log_likelihood(scores, a, b)
    for k, name in enumerate("ab"):
        h = 1e-5 * (a if name == "a" else b)
        up, down = np.array([a, b]), np.array([a, b])
        up[k] += h
        down[k] -= h
        value_up, gradient_up, _ = log_likelihood(scores, *up)
        value_down, gradient_down, _ = log_likelihood(scores, *down)
        assert (value_up - value_down) / (2 * h) == pytest.approx(gradient[k], rel=1e-5)
        assert (gradient_up - gradient_down) / (2 * h) == pytest.approx(hessian[k], rel=1e-5)


# -- the fit ---------------------------------------------------------------------------------------------


def test_without_rounded_scores_it_is_scipys_fit():
    score = np.sort(np.random.default_rng(5).beta(1.7, 0.9, 3000))
    fit = fit_beta(*grouped(score))
    a, b, _, _ = stats.beta.fit(score, floc=0, fscale=1)
    assert (fit.a, fit.b) == pytest.approx((a, b), rel=1e-6)
    assert fit.log_likelihood == pytest.approx(stats.beta.logpdf(score, a, b).sum())
    assert fit.converged
    assert fit.message == ""


def test_no_neighbouring_parameters_are_more_likely():
    score, count, dtype = grouped(draws(2.7752, 0.0478, 2000, np.float32))
    fit = fit_beta(score, count, dtype)
    assert fit.resolution is not None
    scores = censor(score, count, fit.resolution)
    for da in (-1e-3, 0, 1e-3):
        for db in (-1e-3, 0, 1e-3):
            assert log_likelihood(scores, fit.a * (1 + da), fit.b * (1 + db))[0] <= fit.log_likelihood + 1e-9


def test_taking_ones_as_points_is_far_off_where_the_cells_are_right():
    """DESIGN: clipping at 1 - 2^-53 gives (3.33, 0.059) where the truth is (2.77, 0.048)."""
    score, count, dtype = grouped(draws(2.7752, 0.0478, 100_000))
    fit = fit_beta(score, count, dtype)
    clipped = fit_beta(np.minimum(score, 1 - 2.0**-53)[:-1], count[:-1], dtype)
    assert fit.b == pytest.approx(0.0478, rel=0.02)
    assert fit_beta_as_paper(score, count).b == pytest.approx(0.0593, rel=0.02)
    assert clipped.b > 0.06


def test_mirrored_scores_swap_the_parameters():
    score = np.random.default_rng(2).beta(0.3, 1.4, 2000)
    score = score[score > 1e-9]  # so that 1 - score is exact enough
    fit, mirrored = fit_beta(*grouped(score)), fit_beta(*grouped(1 - score))
    assert (mirrored.b, mirrored.a) == pytest.approx((fit.a, fit.b), rel=1e-5)


def test_weight_is_repetition_and_its_scale_does_not_matter():
    score = np.array([0.1234, 0.5, 0.777, 0.9, 1.0])
    count = np.array([2.0, 1.0, 3.0, 1.0, 2.0])
    one, ten = fit_beta(score, count, FLOAT64), fit_beta(score, 10 * count, FLOAT64)
    assert (one.a, one.b) == pytest.approx((ten.a, ten.b), rel=1e-6)
    assert one.information_se is not None
    assert ten.information_se is not None
    assert one.information_se[0] == pytest.approx(ten.information_se[0] * np.sqrt(10), rel=1e-5)


@pytest.mark.parametrize("decimals", [1, 2, 3])
def test_rounded_decimals_are_cells_of_their_own_width(decimals):
    score, count, dtype = grouped(draws(2.7752, 0.0478, 50_000).round(decimals))
    fit = fit_beta(score, count, dtype)
    assert fit.information_se is not None
    assert abs(fit.a - 2.7752) < 4 * fit.information_se[0]
    assert abs(fit.b - 0.0478) < 4 * fit.information_se[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_that_underflow_to_zero(dtype):
    score = np.random.default_rng(4).beta(0.03, 2.0, 20_000).astype(dtype)
    assert (score == 0).any() == (dtype is np.float32)
    fit = fit_beta(*grouped(score))
    assert fit.information_se is not None
    assert abs(fit.a - 0.03) < 4 * fit.information_se[0]


@pytest.mark.parametrize(("a", "b"), [(10, 1e6), (1e5, 1e5), (1e-2, 3e-2), (1e4, 0.02)])
def test_extreme_parameters(a, b):
    rng = np.random.default_rng(8)
    fit = fit_beta(*grouped(rng.beta(a, b, 4000) if b > 1 else 1 - rng.beta(b, a, 4000)))
    assert fit.converged, fit.message
    assert (fit.a, fit.b) == pytest.approx((a, b), rel=0.15)


@pytest.mark.parametrize(
    ("score", "count", "words"),
    [
        ([0.7], [1], "all scores equal 0.7"),
        ([0.3], [100], "all scores equal 0.3"),
        ([1.0], [50], "exactly 0 or 1"),
        ([0.0], [50], "exactly 0 or 1"),
        ([0.0, 1.0], [30, 70], "exactly 0 or 1"),
        ([0.3, 0.3 + 1e-9], [1, 1], "no maximum"),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fit_without_a_maximum_says_so(score, count, words, dtype):
    fit = fit_beta(np.array(score), np.array(count, dtype=float), np.dtype(dtype))
    assert not fit.converged
    assert words in fit.message
    assert fit.information_se is None
    assert 0 < fit.a <= 1.0001e8
    assert 0 < fit.b <= 1.0001e8


# -- the paper's recipe ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [(2.0, 0.4), (0.5, 0.5), (30.0, 2.0)])
def test_the_recipe_finds_the_point_likelihoods_maximum(a, b):
    score = np.sort(np.random.default_rng(6).beta(a, b, 2000))
    fit = fit_beta_as_paper(*grouped(score)[:2])
    expected_a, expected_b, _, _ = stats.beta.fit(score - 1e-16, floc=0, fscale=1)
    assert fit.a == pytest.approx(expected_a, abs=2e-5)
    assert fit.b == pytest.approx(expected_b, abs=2e-5)
    assert fit.converged


def test_the_shift_moves_one_to_the_float_below_it():
    assert 1.0 - 1e-16 == 1 - 2.0**-53


def test_the_recipe_refuses_scores_of_zero():
    with pytest.raises(ValueError, match="after which 2 scores are not positive"):
        fit_beta_as_paper(np.array([0.0, 0.5, 1.0]), np.array([2.0, 1.0, 1.0]))


def test_the_recipe_says_that_its_ranges_end():
    score = np.sort(np.random.default_rng(0).beta(1e4, 1e4, 500))
    fit = fit_beta_as_paper(score, np.ones(500))
    assert not fit.converged
    assert "bounds" in fit.message


# -- goodness of fit -------------------------------------------------------------------------------------


def test_ks_distance_is_scipys_for_scores_without_rounding():
    score = np.sort(np.random.default_rng(0).beta(2.0, 3.0, 500))
    expected = stats.kstest(score, stats.beta(2.2, 3.0).cdf).statistic
    assert ks_distance(score, np.ones(500), FLOAT64, 2.2, 3.0) == pytest.approx(expected)


def test_ks_distance_over_many_groups_is_nearly_exact():
    score = np.sort(np.random.default_rng(0).beta(2.0, 3.0, 30_000))
    expected = stats.kstest(score, stats.beta(2.1, 3.0).cdf).statistic
    assert ks_distance(score, np.ones(30_000), FLOAT64, 2.1, 3.0) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_atom_that_rounding_makes_is_no_misfit(dtype):
    score, count, dtype = grouped(draws(2.7752, 0.0478, 20_000, dtype))
    assert count[-1] > 3000
    assert ks_distance(score, count, dtype, 2.7752, 0.0478) < 1.95 / np.sqrt(20_000)  # level 0.001
