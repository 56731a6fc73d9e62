"""Samples have the claimed distribution; tolerances are Monte Carlo errors, seeds are fixed."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import betainc

from truecal import paper
from truecal.simulation import (
    AtomScores,
    BetaScores,
    EmpiricalScores,
    GLMCurve,
    LogisticCurve,
    MixtureScores,
    Population,
    PowerCurve,
    RoundedScores,
    StepCurve,
    UniformScores,
    with_atoms,
)

N = 100_000
SIGMAS = 4.5

DISTRIBUTIONS = [
    BetaScores(2.7752, 0.0478),
    BetaScores(0.05, 0.3),
    BetaScores(0.4, 1.5),
    BetaScores(30, 20),
    UniformScores(0.2, 0.9),
    AtomScores([0, 0.3, 1], [0.1, 0.2, 0.7]),
    EmpiricalScores(np.linspace(0, 1, 17) ** 2),
    with_atoms(BetaScores(2, 3), at_zero=0.1, at_one=0.2),
    MixtureScores([BetaScores(2, 0.1), UniformScores()], [0.7, 0.3]),
    RoundedScores(BetaScores(2, 0.1), decimals=2),
    RoundedScores(BetaScores(2, 0.1), dtype="float32"),
    RoundedScores(BetaScores(2, 0.1), dtype="float16"),
]

POPULATIONS = {name: paper.population(name) for name in paper.NAMES} | {
    "both ends": Population(BetaScores(0.1, 0.1), GLMCurve("logit", "logit", 0.3, 0.6)),
    "atoms": Population(with_atoms(UniformScores(), at_zero=0.2, at_one=0.3), LogisticCurve(10, -5)),
    "steps": Population(UniformScores(), StepCurve([0.2, 0.6], [0.1, 0.3, 0.8])),
    "float32": Population(
        RoundedScores(BetaScores(2.7752, 0.0478), dtype="float32"), GLMCurve("logflip", "logflip", -0.24, 0.3)
    ),
    "decimals": Population(RoundedScores(UniformScores(), decimals=1), PowerCurve(2)),
}


def assert_mean(values, expected):
    """The mean of independent values is within this many standard errors."""
    values = np.asarray(values, dtype=float)
    error = values.std() / np.sqrt(values.size)
    assert values.mean() == pytest.approx(expected, abs=SIGMAS * error + 1e-12)


@pytest.mark.parametrize("scores", DISTRIBUTIONS, ids=repr)
def test_scores_follow_their_distribution(scores):
    score, complement = scores.draw(N, np.random.default_rng(2024))
    for cut in (0.0, 0.25, 0.5, 0.88, 0.999, 1 - 1e-7):
        share = float(scores.cdf(cut))
        found = np.mean(score <= cut)
        assert found == pytest.approx(share, abs=SIGMAS * np.sqrt(share * (1 - share) / N) + 1e-12)
    assert_mean(score, scores.mean)
    assert_mean(complement**0.3, scores.expect(lambda c, t: t**0.3))
    assert_mean(score**0.3, scores.expect(lambda c, t: c**0.3))


@pytest.mark.parametrize("name", paper.NAMES)
def test_the_complement_is_right_where_the_score_says_one(name):
    """Among scores that round to 1, the complement still has its own distribution."""
    scores = paper.population(name).scores
    _, complement = scores.draw(N, np.random.default_rng(7))
    share = betainc(scores.b, scores.a, 2.0**-54)
    hidden = complement[complement < 2.0**-54]
    assert hidden.size / N == pytest.approx(share, abs=SIGMAS * np.sqrt(share * (1 - share) / N))
    assert stats.kstest(betainc(scores.b, scores.a, hidden) / share, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("name", POPULATIONS)
def test_true_error_is_the_mean_over_draws(name):
    population = POPULATIONS[name]
    score, complement = population.draw(N, np.random.default_rng(11))
    gap = np.abs(population.curve(score, complement) - score)
    for norm in (1, 2, 3):
        assert_mean(gap**norm, population.true_error(norm) ** norm)


@pytest.mark.parametrize("name", POPULATIONS)
def test_labels_follow_the_curve(name):
    """In each tenth of the scores, labels minus probabilities have mean 0."""
    population = POPULATIONS[name]
    y_true, y_proba = population.sample(N, rng=5)
    assert_mean(y_true, population.mean_label)
    # The curve at the complement that `sample` used, not at the score that it returns.
    score, complement = population.draw(N, np.random.default_rng(5))
    chance = population.curve(score, complement)
    for rows in np.array_split(np.argsort(y_proba, kind="stable"), 10):
        error = np.sqrt(np.sum(chance[rows] * (1 - chance[rows])))
        assert abs(np.sum(y_true[rows] - chance[rows])) <= SIGMAS * error + 1e-9


def test_labels_given_the_rounded_score():
    """To one decimal and with c^2: of all scores of 0.9, 81% have label 1."""
    y_true, y_proba = POPULATIONS["decimals"].sample(N, rng=8)
    for r in np.arange(11) / 10:
        rows = y_proba == r
        error = np.sqrt(r**2 * (1 - r**2) / rows.sum())
        assert y_true[rows].mean() == pytest.approx(r**2, abs=SIGMAS * error)


def test_no_correlation_between_scores_and_the_noise_of_labels():
    """The uniforms follow the scores in the same stream; they must not depend on them."""
    population = POPULATIONS["resnet110_SD_c100"]
    score, complement = population.draw(N, np.random.default_rng(5))
    y_true, _ = population.sample(N, rng=5)
    noise = y_true - population.curve(score, complement)
    for other in (score, np.roll(noise, 1)):
        correlation = np.corrcoef(noise, other)[0, 1]
        assert abs(correlation) < SIGMAS / np.sqrt(N)
