import numpy as np
import pytest

from support.draws import drawn
from truecal.inference._test_result import (
    adjusted_pvalues,
    adjusted_together,
    corrected_by_holm,
    e_benjamini_hochberg,
)
from truecal.inference.calibration_test import calibration_test


def test_one_hypothesis_has_its_own_pvalue():
    null = np.arange(99.0)
    assert adjusted_pvalues(np.array([94.5]), null[np.newaxis]) == pytest.approx([0.05])


def test_the_formula_of_westfall_and_young():
    rng = np.random.default_rng(0)
    null = rng.normal(size=(4, 199))
    statistic = np.array([0.3, 2.9, 1.1, 2.0])
    pooled = np.column_stack([statistic, null])
    low, middle, high = np.quantile(pooled, [0.25, 0.5, 0.75], axis=1)
    scaled = (pooled - middle[:, None]) / (high - low)[:, None]
    order = np.argsort(-scaled[:, 0])
    expected, worst = np.empty(4), 0.0
    for k, which in enumerate(order):
        rest = scaled[order[k:], 1:].max(axis=0)
        worst = max(worst, (1 + np.sum(rest >= scaled[which, 0])) / 200)
        expected[which] = worst
    np.testing.assert_allclose(adjusted_pvalues(statistic, null), expected)


def test_the_family_wise_error_rate_is_exact():
    rng = np.random.default_rng(1)
    repeats = 2000
    scale = np.array([[1.0], [10.0], [0.1], [1.0], [3.0]])
    draws = rng.chisquare(2, (repeats, 5, 40)) * scale
    found = [adjusted_pvalues(draw[:, 0], draw[:, 1:]).min() <= 0.05 for draw in draws]
    assert np.mean(found) == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / repeats))


def test_infinite_and_constant_statistics():
    null = np.array([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0]])
    assert adjusted_pvalues(np.array([np.inf, 5.0]), null).tolist() == [0.25, 1.0]


def test_groups_are_corrected_beyond_the_number_of_resamples():
    rng = np.random.default_rng(0)
    p = np.full(100, 0.01)
    tests = [calibration_test((rng.random(100) < p).astype(int), p, rng=i) for i in range(50)]
    tests.append(calibration_test(np.ones(100, dtype=int), p, rng=50))
    adjusted = [test.adjusted_pvalue for test in corrected_by_holm(tests)]
    assert adjusted[-1] < 0.01
    assert min(adjusted[:-1]) > 0.05


def test_groups_adjusted_together_do_not_need_many_resamples():
    y, p = drawn(400, d=3)
    tests = [calibration_test(y, p, n_resamples=49, rng=0)] * 60
    assert max(test.adjusted_pvalue for test in adjusted_together(tests)) <= 0.05
    assert adjusted_together([]) == ()


def test_p_values_of_equivalence_are_not_adjusted():
    tests = [calibration_test(*drawn(400), at_most=0.5)] * 2
    assert [test.adjusted_pvalue for test in adjusted_together(tests)] == [None, None]


def test_false_discovery_rate_from_evalues():
    found = e_benjamini_hochberg(np.array([np.inf, np.log(21.0), 0.0, -np.inf]), 0.1)
    assert found.tolist() == [True, True, False, False]
    assert not e_benjamini_hochberg(np.zeros(3), 0.05).any()
    assert e_benjamini_hochberg(np.log([20.0]), 0.05).tolist() == [True]
