"""Units: sums of residuals, the nested bins, and the effective size of weights."""

import numpy as np
import pytest
import scipy

from truecal.data.sample import Sample
from truecal.multiscale._units import gram, make_units, place_of


def rows(n, seed=0, decimals=3):
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(n), decimals)
    return (rng.random(n) < score).astype(int), score, rng.lognormal(0, 0.7, n)


@pytest.mark.parametrize("n", [300, 30_000])
def test_sums_are_those_of_the_rows(n):
    label, score, weight = rows(n, decimals=9)
    units = make_units(Sample.from_rows(label, score, weight, sampling=True))
    scaled = weight * weight.sum() / np.sum(weight**2)
    residual = score - label
    assert units.size == pytest.approx(weight.sum() ** 2 / np.sum(weight**2))
    assert units.weight.sum() == pytest.approx(units.size)
    assert units.weight2.sum() == pytest.approx(units.size)
    assert units.residual.sum() == pytest.approx(np.sum(scaled * residual))
    assert units.residual2.sum() == pytest.approx(np.sum((scaled * residual) ** 2))
    assert units.residual_weight2.sum() == pytest.approx(np.sum(scaled**2 * residual))


def test_equal_weights_are_no_weights():
    label, score, _ = rows(500)
    plain = make_units(Sample.from_rows(label, score))
    weighted = make_units(Sample.from_rows(label, score, np.full(500, 1 / 500), sampling=True))
    assert weighted.size == pytest.approx(500)
    np.testing.assert_allclose(weighted.residual, plain.residual, atol=1e-12)
    np.testing.assert_allclose(weighted.residual2, plain.residual2, atol=1e-12)


def test_counts_are_repeated_rows():
    label, score, _ = rows(400)
    times = np.arange(400) % 3 + 1
    counted = make_units(Sample.from_rows(label, score, times.astype(float)))
    repeated = make_units(Sample.from_rows(np.repeat(label, times), np.repeat(score, times)))
    np.testing.assert_allclose(counted.residual2, repeated.residual2)
    assert (counted.bin == repeated.bin).all()


def test_the_finest_bins_hold_six_rows_or_more_and_never_cut_a_tie():
    for n, decimals in [(24, 9), (1000, 9), (5000, 2), (100_000, 9)]:
        label, score, _ = rows(n, decimals=decimals)
        units = make_units(Sample.from_rows(label, score))
        assert 6 * 2**units.depth <= n
        assert (np.diff(units.bin) >= 0).all()
        assert units.bin.max() < 2**units.depth


def test_units_stay_few_for_many_rows():
    label, score, _ = rows(200_000, decimals=12)
    sample = Sample.from_rows(label, score)
    units = make_units(sample)
    assert len(units) == 2**units.depth == 2**15
    assert np.diff(units.start, append=len(sample)).tolist() == units.weight[0].tolist()
    residual = np.add.reduceat(sample.score - sample.positives, units.start)
    np.testing.assert_allclose(units.residual[0], residual)


def test_repeated_scores_get_a_level_of_their_own():
    label, score, _ = rows(20_000, decimals=2)
    assert not make_units(Sample.from_rows(label, score)).saturated  # the bins separate them already
    label, score, _ = rows(5000, decimals=3)
    assert make_units(Sample.from_rows(label, score)).saturated
    label, score, _ = rows(1500, decimals=3)
    assert not make_units(Sample.from_rows(label, score)).saturated  # too few rows for each


def test_clusters_limit_the_depth():
    label, score, _ = rows(1000, decimals=9)
    alone = make_units(Sample.from_rows(label, score, clusters=np.arange(1000)))
    few = make_units(
        Sample.from_rows(label, np.repeat(score[:100], 10), clusters=np.repeat(np.arange(100), 10))
    )
    assert alone.depth == make_units(Sample.from_rows(label, score)).depth
    assert 6 * 2**few.depth <= 100


@pytest.mark.parametrize(("n", "n_clusters", "decimals"), [(1000, 200, 9), (3000, 30, 2), (20_000, 5000, 3)])
def test_the_finest_level_with_clusters_has_six_of_them_in_a_bin(n, n_clusters, decimals):
    label, score, _ = rows(n, decimals=decimals)
    sample = Sample.from_rows(label, score, clusters=np.random.default_rng(1).integers(0, n_clusters, n))
    table, rank = sample.clusters, (np.cumsum(sample.count) - sample.count / 2) / n

    def clusters_per_bin(depth):
        place = place_of(rank, sample.score, 2**depth)[table.group]
        return len(set(zip(place.tolist(), table.cluster.tolist(), strict=True))) / 2**depth

    depth = make_units(sample).depth
    assert all(clusters_per_bin(coarser) >= 6 for coarser in range(2, depth + 1))
    possible = make_units(Sample.from_rows(label, score)).depth
    assert depth == min(possible, 10) or clusters_per_bin(depth + 1) < 6


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_products_of_columns_do_not_depend_on_how_sparse_they_are(share):
    rng = np.random.default_rng(0)
    dense = rng.random((9000, 30)) * (rng.random((9000, 30)) < share)
    assert gram(scipy.sparse.csr_array(dense)) == pytest.approx(dense.T @ dense, abs=1e-9)
