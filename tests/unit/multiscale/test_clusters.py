"""Sums of clusters in nested bins, by loops."""

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest

from truecal.data.sample import Sample
from truecal.multiscale._curves import fit_curves
from truecal.multiscale._error import analyse
from truecal.multiscale._levels import null_variance, sums_by_cluster
from truecal.multiscale._units import enough_clusters, in_blocks, inflation, make_units


@pytest.fixture(scope="module")
def levels():
    rng = np.random.default_rng(0)
    score, cluster = rng.random(2000), np.arange(2000) // 4
    label = (rng.random(2000) < score**1.3).astype(int)
    units = make_units(Sample.from_rows(label, score, clusters=cluster))
    return units, sums_by_cluster(units, fit_curves(units)[-1])


def test_bins_are_nested_and_keep_their_sums(levels):
    _, found = levels
    assert len(found[0].weight2) == 4
    for coarse, fine in itertools.pairwise(found):
        assert len(fine.weight2) == 2 * len(coarse.weight2)
        assert coarse.error.sum() == pytest.approx(fine.error.sum())
        assert coarse.covariance.sum() == pytest.approx(fine.covariance.sum())


def test_squares_are_sums_over_clusters(levels):
    units, found = levels
    table, level = units.clusters, found[0]
    bins = units.bin[0, table.unit] >> (units.depth - 2)
    residual2, weight2 = np.zeros(4), np.zeros(4)
    for k in range(4):
        for c in range(table.n_clusters):
            here = (bins == k) & (table.cluster == c)
            residual2[k] += table.residual[here].sum() ** 2
            weight2[k] += table.weight[here].sum() ** 2
    assert level.residual2 == pytest.approx(residual2)
    assert level.weight2 == pytest.approx(weight2)


def test_the_variance_of_the_first_level_is_the_double_sum(levels):
    units, found = levels
    level, factor, size = found[0], np.array([1.0, 2.0, 0.5, 1.5]), 100.0
    error = np.asarray(level.error - level.scores @ level.slope.T).T
    products = (error.T * factor) @ error
    own = float(np.sum(np.diag(products) ** 2))
    total = float(np.sum(products**2)) * units.clusters.variance_factor**2
    assert null_variance(level, factor, None, np.empty(0), size) == pytest.approx(2 * (total - own) / size**2)


def test_levels_have_noise_where_the_fit_follows_one_cluster():
    """What the fit takes out was left in the squares of single clusters, which then exceeded the sum of all."""
    cluster = np.repeat(np.arange(60), 4)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        score = rng.beta(0.5, 20, 60)[cluster]
        label = (rng.random(240) < score).astype(int)
        label[cluster == int(score.argmax()) // 4] = 1
        found = analyse(Sample.from_rows(label, score, clusters=cluster)).squared.levels
        assert (found.null_variance[1:] > 0).all()


def test_curves_that_follow_few_clusters_are_no_evidence():
    """Nothing is left of how much the few clusters with the rarer outcome differ: Wald statistics become huge."""
    positive, cluster = 0, np.repeat(np.arange(60), 4)
    for seed in range(120):
        rng = np.random.default_rng(seed)
        score = rng.beta(2.8, 0.1, 60)[cluster]
        label = (rng.random(240) < score).astype(int)
        positive += analyse(Sample.from_rows(label, score, clusters=cluster)).limits.lower(0.025) > 0
    assert positive <= 3  # all are calibrated; 7 without the bound by independent rows


def test_variances_from_few_effective_clusters_are_those_of_student():
    assert inflation(1e9) == pytest.approx(1)
    assert inflation(20) == pytest.approx(19 / 17)  # scipy.stats.t(19).var()
    assert inflation(5.5) > inflation(6) > inflation(7)
    assert enough_clusters(15, 15.0)
    assert not enough_clusters(14, 14.0)
    assert not enough_clusters(500, 2.9)


def test_limits_allow_for_two_clusters_with_half_of_the_rows():
    rng = np.random.default_rng(3)
    score = rng.random(1200)
    label = (rng.random(1200) < score**1.5).astype(int)
    equal = np.arange(1200) // 10
    unequal = np.where(equal < 60, equal % 2, equal)
    one, two = (analyse(Sample.from_rows(label, score, clusters=who)).limits for who in (equal, unequal))
    assert one.reliable
    assert two.reliable
    assert two.upper(0.05) - two.lower(0.05) > 1.1 * (one.upper(0.05) - one.lower(0.05))
    giant = analyse(Sample.from_rows(label, score, clusters=np.where(equal < 90, 0, equal))).limits
    assert not giant.reliable  # 30 small clusters beside it say little
    assert (giant.lower(0.05), giant.upper(0.05)) == (0.0, giant.largest)


def test_very_many_clusters_are_blocks_of_them(monkeypatch):
    rng = np.random.default_rng(4)
    score = rng.random(6000)
    effect = rng.normal(0, 0.5, 2000).repeat(3)
    label = (rng.random(6000) < 1 / (1 + np.exp(-np.log(score / (1 - score)) - effect))).astype(int)
    sample = Sample.from_rows(label, score, clusters=np.arange(6000) // 3)
    alone = analyse(sample)
    monkeypatch.setattr("truecal.multiscale._constants.MOST_BLOCKS", 500)
    blocks = analyse(replace(sample))
    assert (alone.units.clusters.n_clusters, blocks.units.clusters.n_clusters) == (2000, 500)
    assert blocks.reliable
    low, high = (np.array([one.limits.lower(0.05), one.limits.upper(0.05)]) for one in (alone, blocks))
    assert high == pytest.approx(low, abs=0.1 * (low[1] - low[0]))
    assert blocks.error() == pytest.approx(alone.error(), abs=0.1 * (low[1] - low[0]))


def test_clusters_without_weight_are_not_merged(monkeypatch):
    monkeypatch.setattr("truecal.multiscale._constants.MOST_BLOCKS", 3)
    block, number = in_blocks(np.arange(12), 12, 2)
    assert (block.tolist(), number) == ([0, 1, 2] * 3 + [0, 3, 4], 5)
    assert in_blocks(np.arange(6), 6) == (pytest.approx(np.arange(6)), 6)


def test_many_pairs_take_no_longer_than_a_few_sorts():
    rng = np.random.default_rng(0)
    n = 200_000
    score, cluster = rng.random(n), rng.integers(0, 20_000, n)
    sample = Sample.from_rows((rng.random(n) < score).astype(int), score, clusters=cluster)
    keys = rng.random(10 * n)
    analyse(Sample.from_rows(np.array([0, 1] * 50), rng.random(100), clusters=np.arange(100)))  # loads SciPy

    def seconds(call):
        began = time.process_time()
        call()
        return time.process_time() - began

    def ratio():
        sorting = seconds(lambda: np.argsort(keys, kind="stable"))
        return seconds(lambda: analyse(replace(sample))) / sorting

    # About 0.75, and 2.5 when np.unique counted the pairs of every level. The best of rounds: other jobs disturb.
    assert min(ratio() for _ in range(5)) < 1.5
