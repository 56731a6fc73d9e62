"""Nested bins: U-statistics against their definition, and the variance of increments against simulation."""

import numpy as np
import pytest

from truecal.data.sample import Sample
from truecal.multiscale._error import analyse


def pair_mean(residual, weight, cluster=None):
    """Return the mean of r_i r_j over all pairs of different rows, or of different clusters."""
    product = np.outer(weight * residual, weight * residual)
    mass = np.outer(weight, weight)
    same = np.eye(len(weight), dtype=bool) if cluster is None else cluster[:, np.newaxis] == cluster
    return product[~same].sum() / mass[~same].sum()


@pytest.mark.parametrize("kind", ["plain", "weights", "clusters"])
def test_bins_hold_the_mean_product_of_pairs(kind):
    rng = np.random.default_rng(3)
    n = 200
    score = np.sort(rng.random(n))
    label = (rng.random(n) < score**1.5).astype(int)
    weight = rng.lognormal(0, 0.5, n) if kind == "weights" else np.ones(n)
    cluster = rng.integers(0, 60, n) if kind == "clusters" else None
    if cluster is not None:
        cluster = np.unique(cluster, return_inverse=True)[1]
    sample = Sample.from_rows(label, score, weight, sampling=kind == "weights", clusters=cluster)
    core = analyse(sample)
    for level, depth in zip(core.squared.levels.levels[:2], (2, 3), strict=True):
        place = core.units.bin[0] >> (core.units.depth - depth)
        for k in range(2**depth):
            inside = place == k
            expected = pair_mean(
                (score - label)[inside], weight[inside], None if cluster is None else cluster[inside]
            )
            found = level.bins.residual_energy[0, level.where][k] / level.weight[0, k]
            assert found == pytest.approx(expected, abs=1e-10)


def test_a_row_alone_takes_over_from_the_bin_around_it():
    rng = np.random.default_rng(0)
    score = np.concatenate([np.repeat(np.linspace(0.1, 0.9, 9), 60), [0.123]])
    label = (rng.random(len(score)) < score).astype(int)
    core = analyse(Sample.from_rows(label, score))
    last = core.squared.levels.levels[-1]
    alone = np.flatnonzero(last.weight[0] == 1)
    assert len(alone) == 1
    parent = last.parent
    around = alone[0] // 2
    above = parent.bins.residual_energy[0, parent.where][around] / parent.weight[0, around]
    assert last.bins.residual_energy[0, last.where][alone[0]] == above  # its weight is 1


def test_increments_have_mean_zero_and_the_variance_that_is_stated():
    increments, stated = [], []
    rng = np.random.default_rng(11)
    for _ in range(400):
        score = rng.random(400)
        core = analyse(Sample.from_rows((rng.random(400) < score).astype(int), score))
        increments.append(core.squared.blocks.increment[:, 0])
        stated.append(core.squared.blocks.null_variance[:, 0])
    increments, stated = np.array(increments), np.array(stated).mean(axis=0)
    error = increments.std(axis=0) / 20
    assert (np.abs(increments.mean(axis=0)) < 4.5 * error).all()
    # The first level's increment also carries the noise of the smooth curve that it replaces.
    assert increments.var(axis=0)[3:] == pytest.approx(stated[3:], rel=0.35)


def test_clusters_of_one_row_are_no_clusters(draw):
    plain = analyse(draw(600, lambda p: p**1.4)).squared.levels
    single = analyse(draw(600, lambda p: p**1.4, clusters=np.arange(600))).squared.levels
    assert plain.square == pytest.approx(single.square, abs=1e-12)
    assert plain.null_variance == pytest.approx(single.null_variance, rel=0.25)
