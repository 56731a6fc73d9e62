import numpy as np
import pytest

import truecal
from truecal.data import read
from truecal.data.sample import Sample
from truecal.estimators._curves import average_curves


def sample_of(name, n, seed, *, calibrated=False):
    return read(*truecal.paper.population(name, calibrated=calibrated).sample(n, rng=seed))[0]


def test_weights_are_weights_and_candidates_follow_the_size():
    for n, candidates in ((10, 2), (30, 3), (100, 5), (1000, 7)):
        curves = average_curves(sample_of("resnet152_imgnet", n, 0))
        assert len(curves.weight) == len(curves.square) == len(curves.gap) == candidates
        assert curves.weight.sum() == pytest.approx(1)
        assert (curves.weight >= 0).all()


def test_the_logistic_candidate_is_the_fitted_one():
    """Against scikit-learn's logistic regression in the logit of the score, without penalty."""
    linear = pytest.importorskip("sklearn.linear_model")
    population = truecal.Population(
        truecal.simulation.BetaScores(2, 2), truecal.simulation.GLMCurve("logit", "logit", 0.4, 0.6)
    )
    y, p = population.sample(200, rng=0)
    curves = average_curves(*read(y, p))
    logit = np.log(p / (1 - p)).reshape(-1, 1)
    fitted = linear.LogisticRegression(C=1e12).fit(logit, y).predict_proba(logit)[:, 1]
    gap = (p - fitted)[np.argsort(p)]
    # The pull of a quarter of a row towards the identity is all that is between them.
    np.testing.assert_allclose(curves.gap[0], gap, atol=0.003)


def test_evidence_tells_calibrated_from_miscalibrated():
    for seed in range(5):
        assert average_curves(sample_of("resnet110_c100", 2000, seed)).evidence > 100
        assert average_curves(sample_of("resnet110_c100", 2000, seed, calibrated=True)).evidence < 10


def test_the_square_is_nearly_unbiased_when_calibrated():
    squares = []
    for seed in range(200):
        curves = average_curves(sample_of("resnet152_imgnet", 400, seed, calibrated=True))
        squares.append(curves.mean(curves.square))
    error = np.std(squares) / np.sqrt(len(squares))
    # Averaging by evidence leaves a little: candidates that happen to see error weigh more.
    assert abs(np.mean(squares)) < 4 * error + 2e-4


def test_moments_and_shape():
    curves = average_curves(sample_of("resnet110_c100", 3000, 1))
    assert curves.shape(2) == 1
    assert 0 < curves.shape(1) < curves.shape(1.5) < 1 < curves.shape(3)
    direct = sum(
        w * np.average(gap**2, weights=curves.count) for w, gap in zip(curves.weight, curves.gap, strict=True)
    )
    assert curves.moment(2) == pytest.approx(direct)


@pytest.mark.parametrize(
    ("score", "count", "positives"),
    [
        ([0.3], [1], [1]),
        ([0.3], [50], [0]),
        ([0.0], [10], [10]),
        ([1.0], [10], [3]),
        ([0.0, 1.0], [5, 5], [0, 5]),
        ([0.0, 1.0], [5, 5], [5, 0]),
        ([0.0, 0.5, 1.0], [100, 1, 100], [50, 1, 50]),
        ([1e-300, 0.5], [20, 20], [0, 20]),
        ([0.2, 0.8], [0.25, 0.5], [0.25, 0.1]),
    ],
)
def test_odd_samples_are_finite(score, count, positives):
    sample = Sample(*(np.array(part, dtype=float) for part in (score, count, positives)))
    curves = average_curves(sample)
    for part in (curves.weight, curves.square, curves.variance, curves.own_variance, curves.null_variance):
        assert np.isfinite(part).all()
    assert np.isfinite(curves.evidence)


def test_scores_of_zero_and_one_that_came_true_are_no_evidence():
    rng = np.random.default_rng(0)
    score = np.round(rng.random(20_000), 1)
    (sample,) = read(rng.random(20_000) < score, score)
    inner = (sample.score > 0) & (sample.score < 1)
    rest = Sample(sample.score[inner], sample.count[inner], sample.positives[inner])
    assert average_curves(sample).evidence == pytest.approx(average_curves(rest).evidence, abs=4)
    assert average_curves(sample).error(2) < 0.01


def test_bins_that_ties_make_the_same_are_counted_once():
    (sample,) = read([0, 1, 1, 0] * 500, [0.2, 0.9, 0.6, 0.4] * 500)
    assert len(average_curves(sample).weight) == 3  # logistic, beta, and one bin for each score
