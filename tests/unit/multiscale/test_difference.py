"""Two models: size for equal errors, power for different ones, agreement of interval and p-value."""

import numpy as np
import pytest

from truecal.data.question import Rows
from truecal.data.sample import Sample
from truecal.multiscale._combine import difference
from truecal.multiscale._error import analyse


def compare(label, a, b, **options):
    rows = Rows(label, a, None, "P(y = 1)"), Rows(label, b, None, "P(y = 1)")
    return difference(*(analyse(one.group()) for one in rows), rows, **options)


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 1500])
def test_equal_errors_are_rarely_told_apart(n):
    rng = np.random.default_rng(n)
    rejected = 0
    for _ in range(100):
        mu = rng.random(n)
        label = (rng.random(n) < mu).astype(int)
        rejected += compare(label, mu**1.3, 1 - (1 - mu) ** 1.3).pvalue <= 0.05
    assert rejected <= 12


def test_different_errors_are_told_apart():
    rng = np.random.default_rng(1)
    mu = rng.random(3000)
    label = (rng.random(3000) < mu).astype(int)
    found = compare(label, mu**1.5, mu)
    assert found.pvalue < 0.01
    assert found.interval(0.95)[0] > 0


@pytest.mark.parametrize("norm", [1, 2])
def test_interval_and_p_value_agree_and_the_difference_lies_inside(norm):
    rng = np.random.default_rng(2)
    for power in (1.0, 1.2, 1.5, 2.0):
        mu = rng.random(400)
        label = (rng.random(400) < mu).astype(int)
        found = compare(label, mu**power, mu, norm=norm)
        for level in (0.5, 0.9, 0.99):
            low, high = found.interval(level)
            assert low <= found.reported <= high
            assert (low > 0 or high < 0) == (found.pvalue < 1 - level)


def test_a_model_equals_itself():
    rng = np.random.default_rng(3)
    mu = rng.random(500)
    label = (rng.random(500) < mu).astype(int)
    assert compare(label, mu**1.4, mu**1.4).pvalue == 1.0


def test_swapping_changes_the_sign():
    rng = np.random.default_rng(4)
    mu = rng.random(500)
    label = (rng.random(500) < mu).astype(int)
    one, other = compare(label, mu**1.6, mu), compare(label, mu, mu**1.6)
    assert other.value == pytest.approx(-one.value)
    assert other.interval(0.9) == pytest.approx(tuple(-end for end in reversed(one.interval(0.9))))


def test_models_that_order_rows_alike_are_compared_by_brier_scores():
    rng = np.random.default_rng(5)
    mu = rng.random(300)
    label = (rng.random(300) < mu).astype(int)
    same = compare(label, mu**1.5, mu)
    assert same.brier is not None
    assert same.brier[0] == pytest.approx(np.mean((mu**1.5 - label) ** 2 - (mu - label) ** 2))
    assert compare(label, mu**1.5, 0.9 * mu + 0.1 * rng.random(300)).brier is None
    assert compare(label, mu**1.5, np.round(mu, 1)).brier is None
    assert compare(label, mu**1.5, mu, norm=1).brier is None


def test_a_recalibrated_model_is_often_told_apart_in_few_rows():
    rng = np.random.default_rng(6)
    found = 0
    for _ in range(100):
        mu = rng.random(200)
        label = (rng.random(200) < mu).astype(int)
        sharp = 1 / (1 + ((1 - mu) / mu) ** 1.6056)  # an error of 0.075
        found += compare(label, sharp, mu).pvalue <= 0.05
    assert found >= 10


def test_noise_that_both_curves_share_does_not_count_as_correlation():
    # Opposite waves have errors of correlation near -1: on the same rows their difference varies more than on others.
    ratios = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        mu = rng.random(4000)
        label = (rng.random(4000) < mu).astype(float)
        wave = 0.32 * np.sin(4 * np.pi * mu) * mu * (1 - mu)
        scores = (mu + wave, mu - wave)
        models = [analyse(Sample.from_rows(label, score)) for score in scores]
        paired = compare(label, *scores)
        ratios.append(paired.sd / difference(*models).sd)
    assert 1.27 < np.mean(ratios) < 1.41
