"""The posterior against enumeration, and the null distribution of the evidence."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2

from truecal.data.sample import Sample
from truecal.multiscale._error import analyse
from truecal.multiscale._evidence import Blocks, Posterior, contributions, weigh


def make(support, freedom, size=None):
    """Return blocks with this evidence; what they add to the squared error does not matter."""
    support, freedom = np.atleast_1d(support, freedom)
    size = freedom if size is None else np.atleast_1d(size)
    zero = np.zeros(support.shape)
    return Blocks(zero, zero, support.astype(float), freedom.astype(float), size.astype(float), [])


def enumerate_chain(blocks):
    """Return the evidence and the probability of each block by adding up all configurations."""
    factor = np.exp(blocks.log_bayes_factor)
    total, inside = 0.0, np.zeros(len(factor))
    for beta, *levels in itertools.product([0, 1], repeat=len(factor) - 1):
        weight = factor[0] * (factor[1] if beta else 1.0) / 2
        before = None
        for level, size, gain in zip(levels, blocks.size[2:], factor[2:], strict=True):
            enter = 0.5 if before in (None, 1) else 1 / (1 + max(size, 1))
            weight *= enter * gain if level else 1 - enter
            before = level
        total += weight
        inside += weight * np.array([1, beta, *levels])
    return total, inside / total


def test_the_posterior_is_that_of_all_configurations():
    rng = np.random.default_rng(0)
    for _ in range(20):
        freedom = rng.uniform(1, 30, 6)
        support = freedom + rng.normal(0, 2, 6) * np.sqrt(2 * freedom) + rng.choice([0, 10], 6)
        blocks = make(support, freedom)
        evidence, probability = enumerate_chain(blocks)
        posterior = weigh(blocks)
        probability[1] = max(probability[1:])  # levels stand on the beta curve
        assert posterior.log_evidence == pytest.approx(math.log(evidence))
        assert posterior.probability == pytest.approx(probability)


def test_a_bayes_factor_has_mean_one_under_the_null():
    for freedom in (1.0, 5.0, 40.0):
        mean, _ = quad(
            lambda s, d=freedom: math.exp(make(s, d).log_bayes_factor[0]) * chi2.pdf(s, d),
            0,
            900,
            limit=500,
        )
        assert mean == pytest.approx(1, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("decimals", [None, 1])
def test_the_p_value_of_a_calibrated_model_is_nearly_uniform_in_its_tail(draw, decimals):
    pvalue = np.array([analyse(draw(300, seed=seed, decimals=decimals)).pvalue for seed in range(600)])
    for alpha in (0.05, 0.1):
        assert np.mean(pvalue <= alpha) <= alpha + 3.5 * math.sqrt(alpha * (1 - alpha) / 600) + 0.01


def test_error_is_found(draw):
    assert analyse(draw(1000, lambda p: p**1.5)).pvalue < 1e-4
    assert analyse(draw(400, lambda p: 1 - p)).pvalue < 1e-20


def test_bins_without_noise_lower_the_evidence_by_one_standard_deviation_at_most():
    # The second is as far above its mean as the first.
    equal, idle, silent = make([20, 14, 5], [16, 10, 1], [16, 16, 16]).log_bayes_factor
    g = 4 / math.sqrt(16)
    step = g / (2 * (1 + g))
    assert equal - idle == pytest.approx(step * math.sqrt(32))
    assert idle == pytest.approx(silent)


def test_noise_that_the_fit_has_taken_out_is_no_evidence():
    """Variances that are differences of nearly equal numbers once gave a calibrated sample p = 4e-11."""
    count = np.array([6, 10, 11, 9, 10, 18, 10, 4, 6, 7, 9])
    positives = np.array([0, 1, 2, 1, 3, 8, 5, 4, 6, 4, 9])
    core = analyse(
        Sample(score=np.arange(11) / 10, count=count.astype(float), positives=positives.astype(float))
    )
    assert (core.squared.blocks.freedom[2:] <= 1.5 * core.squared.blocks.size[2:] + 1e-9).all()
    assert core.pvalue > 0.05


def test_a_level_without_evidence_holds_at_most_half_of_the_one_before():
    increment = np.array([4.0, 0.0, 8.0, 3.0, 1.0, 5.0, -1.0])
    probability = np.array([1.0, 0.5, 1.0, 0.0, 0.0, 0.5, 0.0])
    blocks = Blocks(increment, increment, increment, increment, increment, [])
    found = contributions(blocks, Posterior(probability, 0.0))
    # 3 is less than half of 8; 1 is less than half of 3; half of 5, and half of half of 1; nothing for a negative one
    assert found == pytest.approx([4, 0, 8, 3, 1, 2.75, 0])
