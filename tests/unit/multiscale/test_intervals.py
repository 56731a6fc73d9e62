"""Limits: inversion, agreement with equivalence, the value inside, the bound for any curve."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ncx2

from truecal.multiscale._error import analyse
from truecal.multiscale._limits import below, noncentrality

CURVES = [lambda p: p, lambda p: p**1.1, lambda p: 1 - p, lambda p: np.where(p < 0.5, 0.25, 0.75)]


def test_the_distribution_is_scipys():
    for statistic, freedom, shift in [(3, 2, 1), (150, 120, 20), (1900, 100, 1700)]:
        assert below(statistic, freedom, shift) == pytest.approx(
            ncx2.cdf(statistic, freedom, shift), abs=1e-6
        )
    assert below(5200, 200, 5000) == pytest.approx(ncx2.cdf(5200, 200, 5000), abs=1e-4)


def test_the_noncentrality_inverts_the_distribution():
    shift = noncentrality(30.0, 5.0, 0.2)
    assert below(30.0, 5.0, shift) == pytest.approx(0.2)
    assert noncentrality(1.0, 5.0, 0.5) == 0


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("n", [30, 300, 3000])
@pytest.mark.parametrize("norm", [1, 2])
def test_the_value_lies_inside_and_ends_are_possible(draw, curve, n, norm):
    for seed in range(5):
        core = analyse(draw(n, curve, seed=seed))
        for level in (0.2, 0.8, 0.95, 0.999):
            low, high = core.limits_for(norm).interval(level)
            assert 0 <= low <= core.error(norm) <= high <= core.largest(norm) + 1e-12


@pytest.mark.parametrize("norm", [1, 2])
def test_equivalence_agrees_with_the_upper_limit(draw, norm):
    for seed, curve in enumerate(CURVES):
        limits = analyse(draw(500, curve, seed=seed)).limits_for(norm)
        for alpha in (0.01, 0.05, 0.3):
            upper = limits.upper(alpha)
            assert limits.at_most(upper) <= alpha
            assert limits.at_most(upper - 1e-6) > alpha
    assert limits.at_most(1.0) == 0


def test_both_ends_have_half_of_the_error_probability(draw):
    for curve in CURVES:
        limits = analyse(draw(1000, curve)).limits
        assert limits.interval(0.9) == (limits.lower(0.05), limits.upper(0.05))


def test_a_lower_limit_is_positive_only_with_evidence(draw):
    limits = analyse(draw(1000, lambda p: p**1.5)).limits
    assert limits.lower(0.025) > 0
    for tail in (0.025, 0.1):
        assert replace(limits, pvalue=0.51 * tail).lower(tail) == 0
        assert replace(limits, pvalue=0.49 * tail).lower(tail) == limits.lower(tail)


def test_a_small_p_value_of_less_agrees_with_the_lower_limit(draw):
    for seed in range(4):
        limits = analyse(draw(500, lambda p: p**1.3, seed=seed)).limits
        for alpha in (0.01, 0.05, 0.3):
            lower = limits.lower(alpha)
            assert limits.at_least(lower + 1e-6) > alpha
            assert lower == 0 or limits.at_least(lower - 1e-6) <= alpha


def test_the_lower_limit_for_any_curve_stays_below_the_truth(draw):
    truth = 0.1 / np.sqrt(2)

    def curve(p):
        return np.clip(p + 0.1 * np.sin(20 * np.pi * p), 0, 1)

    limits = np.array([analyse(draw(3000, curve, seed=seed)).lower_limit(0.05) for seed in range(60)])
    assert np.mean(limits > truth) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)
    assert np.median(limits) > 0.01


def test_few_clusters_exclude_nothing(draw):
    limits = analyse(draw(1000, lambda p: p**2, clusters=np.arange(1000) % 5)).limits
    assert limits.interval(0.95) == (0.0, limits.largest)
    assert limits.at_most(0.5) == 1
    assert limits.at_most(1.0) == 0
    assert analyse(draw(1000, lambda p: p**2, clusters=np.arange(1000) % 50)).limits.interval(0.95)[0] > 0
