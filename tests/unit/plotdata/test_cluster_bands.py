import numpy as np
import pytest

import truecal
from truecal.plotdata.cluster_bands import bin_clusters
from truecal.plotdata.reliability import reliability_curve


def questions(n, size, rng, icc=0.3):
    p, rest = rng.beta(3, 2, n), (1 - icc) / icc
    who = np.repeat(np.arange(n), size)
    return (rng.random(n * size) < rng.beta(p * rest, (1 - p) * rest)[who]).astype(int), p[who], who


def test_clusters_of_one_row_agree_with_independent_rows():
    y, p = truecal.paper.population("resnet110_c10").calibrated().sample(3000, rng=0)
    alone = reliability_curve(y, p, clusters=np.arange(3000), n_bins=6, rng=0)
    plain = reliability_curve(y, p, n_bins=6, rng=0)
    np.testing.assert_allclose(alone.interval_lower, plain.interval_lower, atol=0.005)
    np.testing.assert_allclose(alone.bins_lower, plain.bins_lower, atol=0.03)
    np.testing.assert_allclose(alone.label, plain.label)
    assert alone.n_clusters == 3000


def test_copies_of_rows_add_nothing():
    y, p = truecal.paper.population("resnet110_c10").sample(2000, rng=0)
    once = reliability_curve(y, p, clusters=np.arange(2000), n_bins=5, rng=0)
    copies = reliability_curve(
        np.repeat(y, 4), np.repeat(p, 4), clusters=np.repeat(np.arange(2000), 4), n_bins=5, rng=0
    )
    np.testing.assert_allclose(copies.interval_lower, once.interval_lower, atol=1e-9)
    np.testing.assert_allclose(copies.bins_upper, once.bins_upper, atol=1e-3)


def test_bands_and_intervals_hold():
    inside, covered, naive, draws = 0.0, 0.0, 0.0, 40
    for seed in range(draws):
        y, p, who = questions(200, 5, np.random.default_rng(seed))
        curve = reliability_curve(y, p, clusters=who, n_bins=8, n_resamples=200, rng=seed)
        label, score = curve.bins.mean_label, curve.bins.mean_score  # the truth is the score
        inside += ((curve.bins_lower <= label) & (label <= curve.bins_upper)).mean() / draws
        covered += ((curve.interval_lower <= score) & (score <= curve.interval_upper)).mean() / draws
        plain = reliability_curve(y, p, n_bins=8, band=False)
        naive += ((plain.interval_lower <= score) & (score <= plain.interval_upper)).mean() / draws
    # 320 nearly independent bins: a standard error of 0.012.
    assert 0.95 - 4 * 0.012 < inside < 0.99
    assert covered > 0.95 - 3 * 0.012
    assert naive < 0.9


def test_a_bin_with_one_cluster_and_bins_that_agree():
    sample = truecal.Sample.from_predictions(
        [1, 0, 1, 1, 1, 1, 0, 1], [0.1, 0.1, 0.8, 0.8, 0.8, 0.8, 0.9, 0.9], clusters=[1, 1, 1, 2, 3, 4, 5, 6]
    )
    bins = bin_clusters(sample, sample.clusters, np.array([0, 1, 2]))
    assert bins.effective.tolist() == [0, 4, 1]
    curve = reliability_curve(sample, n_bins=3, band=True)
    assert not curve.has_band
    assert (curve.interval_lower[0], curve.interval_upper[0]) == (0, 1)


def test_unequal_weights_need_no_whole_numbers_for_a_band():
    y, p, who = questions(50, 4, np.random.default_rng(0))
    weight = np.random.default_rng(1).uniform(0.5, 1.5, len(y))
    curve = reliability_curve(y, p, clusters=who, sample_weight=weight, rng=0)
    assert curve.has_band
    with pytest.raises(truecal.InputError, match="fractional"):
        reliability_curve(y, p, sample_weight=weight)
