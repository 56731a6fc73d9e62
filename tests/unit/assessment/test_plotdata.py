import json
import math

import numpy as np
import pytest
from scipy import stats

import truecal
from truecal.data import as_sample
from truecal.plotdata.histogram import SCALES, score_histogram, summarize_scores

SKEWED = truecal.paper.population("resnet110_c10")


def sample_of(scores, n, rng=0):
    return as_sample(*truecal.Population(scores, truecal.simulation.IdentityCurve()).sample(n, rng=rng))


def rounded(decimals, n=3000, scores=SKEWED.scores):
    y, p = truecal.Population(scores, truecal.simulation.IdentityCurve()).sample(n, rng=0)
    return as_sample(y, p.round(decimals))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    "sample",
    [
        sample_of(SKEWED.scores, 2000),
        sample_of(truecal.simulation.UniformScores(), 2000),
        sample_of(truecal.simulation.BetaScores(0.2, 0.3), 2000),
        rounded(2),
        rounded(6),
        as_sample([0, 1], [0.0, 1.0]),
        as_sample([0], [0.25]),
        as_sample([0, 1], np.array([0.25, 1e-30])),
        as_sample([0, 1], np.array([0.25, 0.9999999], dtype=np.float32)),
    ],
    ids=["skewed", "uniform", "both ends", "2 decimals", "6 decimals", "only ends", "one", "tiny", "float32"],
)
def test_everything_is_counted_once_and_edges_rise(sample, scale):
    histogram = score_histogram(sample, fit=truecal.simulation.BetaScores(2, 0.5), scale=scale)
    assert histogram.share.sum() + histogram.at_zero + histogram.at_one == pytest.approx(1)
    total = histogram.expected.sum() + histogram.expected_at_zero + histogram.expected_at_one
    assert total == pytest.approx(1)
    assert (histogram.width > 0).all()
    assert len(histogram.edges) == len(histogram.complement_edges) == len(histogram.share) + 1
    assert (np.diff(histogram.complement_edges) < 0).all()
    np.testing.assert_allclose(histogram.edges, 1 - histogram.complement_edges, atol=1e-15)
    json.dumps(histogram.to_dict(), allow_nan=False)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("decimals", [None, 2, 3, 6])
@pytest.mark.parametrize(
    "scores", [SKEWED.scores, truecal.simulation.BetaScores(0.5, 2), truecal.simulation.UniformScores()]
)
def test_shares_are_those_that_the_true_distribution_expects(scores, decimals, scale):
    """Chi-square over bins, rounded scores too: without care for rounding it would be in the hundreds."""
    n = 20_000
    y, p = truecal.Population(scores, truecal.simulation.IdentityCurve()).sample(n, rng=1)
    sample = as_sample(y, p if decimals is None else p.round(decimals))
    histogram = score_histogram(sample, fit=scores, scale=scale, n_bins=25)
    share = np.concatenate([[histogram.at_zero], histogram.share, [histogram.at_one]])
    expected = np.concatenate([[histogram.expected_at_zero], histogram.expected, [histogram.expected_at_one]])
    enough = expected * n >= 5
    chi_square = float(np.sum((share - expected)[enough] ** 2 / expected[enough]) * n)
    freedom = int(enough.sum())
    assert chi_square < freedom + 5 * math.sqrt(2 * freedom)


@pytest.mark.parametrize(("parts", "n_bins"), [(100, 40), (1000, 40), (12, 40), (97, 20)])
def test_bins_hold_the_same_number_of_possible_scores(parts, n_bins):
    score = np.arange(1, parts) / parts
    sample = as_sample(np.arange(parts - 1) % 2, score)
    histogram = score_histogram(sample, n_bins=n_bins)
    rows = np.round(histogram.share * (parts - 1)).astype(int)
    assert len(set(rows[:-1])) == 1  # the last may be smaller
    assert len(rows) <= n_bins


def test_scores_that_round_to_one_are_apart_from_those_below():
    scores = truecal.simulation.BetaScores(2.8, 0.05)
    sample = sample_of(scores, 20_000)
    histogram = score_histogram(sample, fit=scores, scale="complement")
    assert histogram.at_one == pytest.approx(histogram.expected_at_one, abs=0.012)
    assert histogram.expected_at_one == pytest.approx(stats.beta.cdf(2.0**-54, 0.05, 2.8))


@pytest.mark.parametrize("scale", SCALES)
def test_bins_are_equal_on_their_scale_where_nothing_is_rounded(scale):
    histogram = score_histogram(
        sample_of(truecal.simulation.UniformScores(0.01, 0.99), 500), scale=scale, n_bins=10
    )
    np.testing.assert_allclose(histogram.width, histogram.width[0], rtol=1e-6)


def test_weights_count():
    sample = as_sample([0, 1], [0.2, 0.8], sample_weight=[1, 3])
    histogram = score_histogram(sample, n_bins=2)
    assert histogram.share.tolist() == [0.25, 0.75]
    assert histogram.expected is None


def test_other_distributions_with_atoms():
    scores = truecal.simulation.with_atoms(truecal.simulation.UniformScores(), at_zero=0.1, at_one=0.3)
    histogram = score_histogram(sample_of(scores, 1000), fit=scores)
    assert histogram.expected_at_zero == pytest.approx(0.1)
    assert histogram.expected_at_one == pytest.approx(0.3)
    assert histogram.expected.sum() == pytest.approx(0.6)


def test_bad_parameters_get_the_standard_message():
    sample = sample_of(SKEWED.scores, 10)
    with pytest.raises(ValueError, match="scale must be one of 'linear', 'logit', 'complement'"):
        score_histogram(sample, scale="log")
    with pytest.raises(ValueError, match="n_bins must be a whole number"):
        score_histogram(sample, n_bins=0)


def test_the_summary_agrees_with_the_rows():
    y, p = np.array([0, 1, 1, 0, 1]), np.array([0.0, 0.4, 0.4, 0.7, 1.0])
    summary = summarize_scores(as_sample(y, p))
    assert (summary.mean_score, summary.observed_rate) == pytest.approx((p.mean(), y.mean()))
    assert (summary.at_zero, summary.at_one, summary.largest_tie, summary.distinct) == (0.2, 0.2, 0.4, 4)
    assert (summary.quantiles["min"], summary.quantiles["50%"], summary.quantiles["max"]) == (0, 0.4, 1)
