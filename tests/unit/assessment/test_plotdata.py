"""Histograms of scores, and the error against the number of bins."""

import json
import math

import numpy as np
import pytest
from scipy import stats

import truecal
from truecal.assessment._plotdata import (
    SCALES,
    bin_counts,
    bin_counts_of_study,
    score_histogram,
    summarize_scores,
)
from truecal.data import as_sample

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


def test_bad_parameters_of_a_histogram_get_the_standard_message():
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


SQUARE = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))


@pytest.mark.parametrize("binning", ["em", "ew"])
@pytest.mark.parametrize("norm", [1, 2])
def test_values_are_those_of_the_estimators(binning, norm):
    y, p = SQUARE.sample(500, rng=0)
    curve = bin_counts(as_sample(y, p), binning=binning, norm=norm, n_bins=[16, 1, 4, 4], true_error=0.5)
    assert curve.n_bins.tolist() == [1, 4, 16]
    for b, value in zip(curve.n_bins, curve.value, strict=True):
        estimator = f"{binning}_bin"
        expected = truecal.calibration_error(y, p, estimator=estimator, norm=norm, n_bins=int(b))
        assert value == pytest.approx(expected, rel=1e-14)
    sweep = truecal.estimate(y, p, estimator=f"{binning}_sweep", norm=norm)
    assert (curve.sweep_bins, curve.sweep_value) == (sweep.n_bins, sweep.value)
    assert (curve.true_error, curve.norm, curve.n, curve.target) == (0.5, norm, 500, "P(y = 1)")
    assert not curve.value_se.any()
    json.dumps(curve.to_dict(), allow_nan=False)


def test_by_default_the_choice_of_the_sweep_is_well_inside():
    curve = bin_counts(as_sample(*SQUARE.sample(2000, rng=0)))
    assert curve.n_bins[0] == 1
    assert curve.n_bins[-1] >= 2 * curve.sweep_bins
    assert len(curve.n_bins) <= 48


def test_one_row():
    curve = bin_counts(as_sample([1], [0.4]))
    assert curve.value == pytest.approx(np.full(len(curve.value), 0.6))


@pytest.fixture(scope="module")
def study():
    choices = [{"estimator": name, "n_bins": b} for name in ("em_bin", "ew_bin") for b in (8, 2)]
    return truecal.bias_study(
        {"square": SQUARE, "calibrated": SQUARE.calibrated()},
        estimators=[*choices, "em_sweep", "em_bin"],
        sizes=[100, 200],
        repeats=10,
        rng=0,
    )


def test_means_of_a_study(study):
    curve = bin_counts_of_study(study, population="square", n=200)
    rows = {row["estimator"]: row for row in study.rows if row["population"] == "square" and row["n"] == 200}
    assert curve.n_bins.tolist() == [2, 8]
    assert curve.value.tolist() == [rows[f"em_bin(n_bins={b})"]["mean"] for b in (2, 8)]
    assert curve.value_se.tolist() == [rows[f"em_bin(n_bins={b})"]["bias_se"] for b in (2, 8)]
    assert curve.sweep_bins == rows["em_sweep"]["mean_bins"]
    assert curve.true_error == SQUARE.true_error()
    assert (curve.target, curve.n) == ("square", 200)


def test_a_study_without_the_sweep(study):
    curve = bin_counts_of_study(study, population="calibrated", n=100, binning="ew")
    assert curve.n_bins.tolist() == [2, 8]
    assert math.isnan(curve.sweep_bins)
    assert curve.true_error == 0


def test_what_is_not_in_the_study_is_refused(study):
    with pytest.raises(ValueError, match=r"population must be one of 'square', 'calibrated'\. Got None"):
        bin_counts_of_study(study)
    with pytest.raises(ValueError, match=r"n must be one of 100, 200\. Got 7 instead"):
        bin_counts_of_study(study, population="square", n=7)
    other = truecal.bias_study({"square": SQUARE}, estimators=["em_bin"], sizes=[50], repeats=2, rng=0)
    with pytest.raises(ValueError, match=r"The study has no em_bin with given numbers of bins.*'n_bins': b"):
        bin_counts_of_study(other)


def test_bad_parameters_get_the_standard_message():
    sample = as_sample([1, 0], [0.4, 0.2])
    with pytest.raises(ValueError, match="binning must be one of 'em', 'ew'"):
        bin_counts(sample, binning="mass")
    with pytest.raises(ValueError, match="n_bins must be a whole number"):
        bin_counts(sample, n_bins=[1, 2.5])
    with pytest.raises(ValueError, match="norm must be a finite number"):
        bin_counts(sample, norm=0)
