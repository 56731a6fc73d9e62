"""Reliability curves and their bands."""

import json
import math

import numpy as np
import pytest
from scipy import stats

import truecal
from truecal.data import as_sample
from truecal.estimators._binning import EqualMass, monotone_sweep
from truecal.inference.reliability import reliability_curve
from truecal.multiscale import Runs, clopper_pearson

UNIFORM = truecal.simulation.UniformScores()
SKEWED = truecal.paper.population("resnet110_c10")


def sample_of(population, n, rng=0, **options):
    return as_sample(*population.sample(n, rng=rng), **options)


def pooled(y, p):
    """Pool adjacent violators in the plainest Python: how often each row's score comes true."""
    blocks = [[float(np.mean(y[p == score])), float(np.sum(p == score))] for score in np.unique(p)]
    sizes = [1] * len(blocks)
    k = 0
    while k < len(blocks) - 1:
        if blocks[k][0] <= blocks[k + 1][0]:
            k += 1
            continue
        (a, m), (b, n) = blocks[k], blocks[k + 1]
        blocks[k : k + 2] = [[(a * m + b * n) / (m + n), m + n]]
        sizes[k : k + 2] = [sizes[k] + sizes[k + 1]]
        k = max(k - 1, 0)
    return np.repeat([value for value, _ in blocks], sizes)


@pytest.mark.parametrize("decimals", [1, 2, 8])
def test_isotonic_curve_pools_adjacent_violators(decimals):
    y, p = truecal.Population(UNIFORM, truecal.simulation.PowerCurve(2)).sample(200, rng=1)
    p = p.round(decimals)
    curve = reliability_curve(as_sample(y, p), band=False)
    np.testing.assert_array_equal(curve.score, np.unique(p))
    np.testing.assert_allclose(curve.label, pooled(y, p), atol=1e-12)


@pytest.mark.slow
def test_many_scores_are_seen_through_cells_without_changing_the_fit():
    sample = sample_of(SKEWED, 50_000)
    curve = reliability_curve(sample, band=False)
    assert 300 < len(curve.score) <= 515
    assert (np.diff(curve.score) >= 0).all()
    assert (np.diff(curve.label) >= -1e-12).all()
    full = pooled(*SKEWED.sample(50_000, rng=0))
    # At every cell the curve is the exact one somewhere in the cell, so it lies between neighbours of it.
    place = np.clip(np.searchsorted(sample.score, curve.score), 250, len(full) - 251)
    assert (curve.label >= full[place - 250] - 1e-12).all()
    assert (curve.label <= full[place + 250] + 1e-12).all()
    # Few scores are low, and these are not lumped together.
    distance = np.abs(sample.score[:100, np.newaxis] - curve.score).min(axis=1)
    assert distance.max() < 0.004


def test_bins_are_those_of_the_estimators():
    y, p = SKEWED.sample(3000, rng=0)
    sample = as_sample(y, p)
    for binning in ("em", "ew"):
        curve = reliability_curve(sample, n_bins=7, binning=binning, band=False)
        bins = truecal.estimate(y, p, estimator=f"{binning}_bin", n_bins=7).bins
        np.testing.assert_array_equal(curve.bins.mean_label, bins.mean_label)
        assert (curve.n_bins, curve.binning, curve.n, curve.target) == (7, binning, 3000, "P(y = 1)")
    assert reliability_curve(sample, n_bins="sweep", band=False).n_bins == monotone_sweep(EqualMass(sample))


def test_order_of_rows_does_not_matter():
    y, p = SKEWED.sample(500, rng=0)
    order = np.random.default_rng(0).permutation(500)
    one = reliability_curve(as_sample(y, p), n_resamples=20, rng=0)
    other = reliability_curve(as_sample(y[order], p[order]), n_resamples=20, rng=0)
    np.testing.assert_array_equal(one.label, other.label)
    np.testing.assert_array_equal(one.lower, other.lower)


def test_whole_weights_equal_repetition():
    y, p = truecal.Population(UNIFORM, truecal.simulation.PowerCurve(2)).sample(300, rng=0)
    weight = np.random.default_rng(1).integers(1, 4, 300)
    one = reliability_curve(as_sample(y, p, sample_weight=weight, weighting="counts"), n_resamples=20, rng=0)
    other = reliability_curve(as_sample(np.repeat(y, weight), np.repeat(p, weight)), n_resamples=20, rng=0)
    np.testing.assert_allclose(one.label, other.label)
    np.testing.assert_allclose(one.upper, other.upper)


def test_without_a_band():
    sample = as_sample([0, 1, 1], [0.2, 0.5, 0.9], sample_weight=[0.5, 1.5, 1])
    curve = reliability_curve(sample, band=False)
    assert curve.label.tolist() == [0, 1, 1]
    assert not curve.has_band
    assert np.isnan(curve.lower).all()
    assert np.isnan(curve.bins_upper).all()
    plain = json.loads(json.dumps(curve.to_dict(), allow_nan=False))
    assert plain["has_band"] is False
    assert plain["lower"] == [None, None, None]
    assert plain["bins_lower"][0] is None


@pytest.mark.parametrize("case", ["lognormal", "fewer negatives"])
def test_bands_with_sampling_weights_hold(case):
    """The band contains the binned curve of a calibrated model; intervals contain its rate."""
    inside, covered, naive, draws = 0.0, 0.0, 0.0, 40
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        p = rng.random(3000)
        y = (rng.random(3000) < p).astype(int)
        weight = rng.lognormal(0, 1, 3000)
        if case == "fewer negatives":
            kept = (y == 1) | (rng.random(3000) < 0.2)
            y, p = y[kept], p[kept]
            weight = np.where(y == 1, 1.0, 5.0)
        curve = reliability_curve(y, p, sample_weight=weight, n_bins=8, n_resamples=200, rng=seed)
        label, score = curve.bins.mean_label, curve.bins.mean_score
        inside += ((curve.bins_lower <= label) & (label <= curve.bins_upper)).mean() / draws
        covered += ((curve.interval_lower <= score) & (score <= curve.interval_upper)).mean() / draws
        counted = reliability_curve(
            y, p, sample_weight=np.ceil(weight), weighting="counts", n_bins=8, band=False
        )
        score = counted.bins.mean_score
        naive += ((counted.interval_lower <= score) & (score <= counted.interval_upper)).mean() / draws
    # 320 nearly independent bins: a standard error of 0.012.
    assert 0.95 - 4 * 0.012 < inside < 0.99
    assert 0.95 - 4 * 0.012 < covered < 0.99
    assert naive < 0.9


def test_plain_dictionary():
    curve = reliability_curve(sample_of(SKEWED, 200), n_bins=3, n_resamples=9, rng=0)
    plain = json.loads(json.dumps(curve.to_dict(), allow_nan=False))
    assert plain["score"] == curve.score.tolist()
    assert plain["bins"]["gap"] == curve.bins.gap.tolist()
    assert [row["bins_upper"] for row in curve.bin_rows()] == curve.bins_upper.tolist()
    assert (plain["confidence_level"], plain["n_bins"], plain["binning"], plain["n"]) == (0.95, 3, "em", 200)


def test_arrays_and_samples_are_accepted_alike():
    y, p = SKEWED.sample(300, rng=0)
    one = reliability_curve(y, p, n_resamples=9, rng=0)
    assert one.to_dict() == reliability_curve(as_sample(y, p), n_resamples=9, rng=0).to_dict()


@pytest.mark.parametrize(("positives", "count"), [(0, 10), (3, 10), (10, 10), (1, 1), (40, 1000)])
def test_bin_intervals_are_those_of_scipy(positives, count):
    low, high = clopper_pearson(np.array([float(positives)]), np.array([float(count)]), 0.025)
    expected = stats.binomtest(positives, count).proportion_ci(0.95, method="exact")
    assert low[0] == pytest.approx(expected.low, abs=1e-10)
    assert high[0] == pytest.approx(expected.high, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    "population", [truecal.Population(UNIFORM, truecal.simulation.IdentityCurve()), SKEWED.calibrated()]
)
def test_band_holds_the_curve_of_a_calibrated_model_as_often_as_it_says(population):
    """At fixed scores, over data sets; at least the level, and with scores that are not too discrete about it."""
    repeats, level, places = 300, 0.8, np.array([0.5, 0.7, 0.9])
    inside = np.zeros((repeats, len(places)))
    for row in range(repeats):
        curve = reliability_curve(
            sample_of(population, 300, rng=row), confidence_level=level, n_resamples=100, rng=row + 1000
        )
        low, label, high = (
            np.interp(places, curve.score, c) for c in (curve.lower, curve.label, curve.upper)
        )
        inside[row] = (low <= label + 1e-12) & (label <= high + 1e-12)
    error = math.sqrt(level * (1 - level) / repeats)
    # 100 resamples and interpolation between scores move the level by a few percent.
    assert (inside.mean(axis=0) > level - 4 * error - 0.03).all()
    assert (inside.mean(axis=0) < level + 4 * error + 0.1).all()


def test_a_higher_level_is_a_wider_band():
    sample = sample_of(SKEWED, 500)
    narrow, wide = (
        reliability_curve(sample, confidence_level=level, n_resamples=99, rng=0) for level in (0.5, 0.95)
    )
    assert (wide.lower <= narrow.lower).all()
    assert (wide.upper >= narrow.upper).all()
    assert (wide.bins_upper > narrow.bins_upper).any()


@pytest.mark.parametrize(("y", "p"), [([1], [0.3]), ([0, 1], [0.5, 0.5]), ([1, 0], [1.0, 0.0])])
def test_very_little_data(y, p):
    curve = reliability_curve(as_sample(y, p), n_resamples=5, rng=0)
    assert (curve.lower <= curve.upper).all()
    assert curve.bins.count.sum() == len(y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bins": 0}, "n_bins must be a whole number >= 1"),
        ({"n_bins": "swep"}, "n_bins must be a whole number >= 1"),
        ({"binning": "equal"}, "binning must be one of 'em', 'ew'"),
        ({"confidence_level": 90}, "confidence_level must be a number strictly between 0 and 1"),
        ({"n_resamples": 0}, "n_resamples must be a whole number >= 1"),
        ({"rng": "seed"}, "rng must be None, a seed"),
    ],
)
def test_bad_parameters_get_the_standard_message(options, message):
    with pytest.raises(ValueError, match=message):
        reliability_curve(sample_of(SKEWED, 20), **options)


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
    runs = Runs(sample, np.array([0, 1, 2]))
    np.testing.assert_allclose(runs.positives + runs.negatives, [0, 4, 1])
    curve = reliability_curve(sample, n_bins=3, band=True)
    assert not curve.has_band
    assert (curve.interval_lower[0], curve.interval_upper[0]) == (0, 1)


def test_unequal_weights_need_no_whole_numbers_for_a_band():
    y, p, who = questions(50, 4, np.random.default_rng(0))
    weight = np.random.default_rng(1).uniform(0.5, 1.5, len(y))
    curve = reliability_curve(y, p, clusters=who, sample_weight=weight, rng=0)
    assert curve.has_band
    assert reliability_curve(y, p, sample_weight=weight, rng=0).has_band
