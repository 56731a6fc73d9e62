import math

import numpy as np
import pytest

from truecal.data.sample import ones
from truecal.multiscale._null import ClusterNull, LabelNull, joint_clusters, joint_labels, merge_trials
from truecal.multiscale._omnibus import omnibus_test


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_those_of_draws(weighted):
    rng = np.random.default_rng(9)
    weight = rng.lognormal(0, 0.5, 300) if weighted else None
    null = LabelNull(np.sort(rng.beta(0.5, 2, 300)), np.ones(300), np.zeros(300), weight)
    drawn = np.concatenate(list(null.draws(20_000, rng)))
    terms = np.stack([np.ones(300), 1 - 2 * null.score], axis=1)
    squares = np.square(drawn @ terms).sum(axis=1)
    mean, variance = null.moments(terms)
    assert squares.mean() == pytest.approx(mean, abs=4 * squares.std() / math.sqrt(20_000))
    assert squares.var() == pytest.approx(variance, rel=0.1)
    assert drawn.mean(axis=0) == pytest.approx(0, abs=0.1)


def test_cluster_moments_are_those_of_all_sign_patterns():
    rng = np.random.default_rng(10)
    score = np.sort(rng.random(60))
    null = ClusterNull(score, score - (rng.random(60) < score), np.ones(60), np.arange(60) % 9)
    terms = rng.normal(size=(60, 3))
    squares = np.square(null.all_draws() @ terms).sum(axis=1)
    mean, variance = null.moments(terms)
    assert (squares.mean(), squares.var()) == pytest.approx((mean, variance))


def test_skewed_sums_of_clusters_do_not_hide_an_error_in_the_slope():
    """Data are divided by the scale: were draws multiplied by it, all their fine bins would look extreme."""
    rng = np.random.default_rng(1)
    score = np.sort(rng.random(1000))
    chance = score**2 / (score**2 + (1 - score) ** 2)
    residual = score - (rng.random(1000) < chance)
    cluster = rng.integers(0, 20, 1000)
    balanced = np.argsort(residual)[1::2]  # half of the rows, so that sums of clusters vary little
    cluster[balanced] = np.arange(len(balanced)) % 20
    null = ClusterNull(score, residual, np.ones(1000), cluster)
    assert null.scale.factor > 1.5
    assert omnibus_test(null, 199, rng).pvalue <= 0.05


def test_labels_are_drawn_with_their_scores():
    score = np.array([0.0, 1e-9, 0.001, 1 / 256, 0.3, 0.999, 1.0])
    null = LabelNull(score, np.ones(7), np.zeros(7))
    labels = score - np.concatenate(list(null.draws(200_000, np.random.default_rng(0))))
    assert np.isin(np.round(labels, 9), [0, 1]).all()
    share = labels.mean(axis=0)
    assert np.abs(share - score).max() <= 4 * math.sqrt(0.25 / 200_000)
    assert share[0] == 0
    assert share[-1] == 1
    assert share[2] == pytest.approx(0.001, abs=4 * math.sqrt(0.001 / 200_000))


def test_many_scores_are_merged_and_the_excess_of_the_variance_is_known():
    rng = np.random.default_rng(13)
    score = np.sort(rng.random(200_000))
    label = (rng.random(200_000) < score).astype(float)
    null = LabelNull(score, np.ones(200_000), label)
    assert len(null.chance) < 5000
    assert 0 < null.excess < 1e-2
    assert null.residual.sum() == pytest.approx(np.sum(score - label))


@pytest.mark.parametrize("ties", [1, 9])
def test_trials_that_are_merged_share_a_cell_of_mass_and_one_of_width(ties):
    rng = np.random.default_rng(ties)
    score = np.unique(np.concatenate([[0.0, 1.0], rng.random(150_000) ** 3]))
    count = rng.integers(1, ties + 1, len(score)).astype(float)
    positives = np.floor(rng.random(len(score)) * (count + 1))
    middle = np.cumsum(count) - count / 2
    cells = [np.floor(2048 * middle / count.sum()), np.floor(512 * score), score > 0, score == 1]
    _, cell = np.unique(np.stack(cells), axis=1, return_inverse=True)
    if ties == 1:
        count = ones(len(score))  # which takes no memory
    merged_score, merged_count, merged_positives, _ = merge_trials(score, count, positives)
    assert merged_count.tolist() == np.bincount(cell.ravel(), count).tolist()
    assert merged_positives.tolist() == np.bincount(cell.ravel(), positives).tolist()
    assert merged_score == pytest.approx(np.bincount(cell.ravel(), count * score) / merged_count)


def test_an_alternative_is_drawn_with_its_own_chances():
    score, chance = np.array([0.2, 0.5]), np.array([0.9, 0.1])
    null = LabelNull(score, np.full(2, 3.0), np.zeros(2))
    drawn = np.concatenate(list(null.draws(20_000, np.random.default_rng(0), chance)))
    assert drawn.mean(axis=0) == pytest.approx(3 * (score - chance), abs=4 * math.sqrt(0.75 / 20_000))


@pytest.mark.parametrize("weighted", [False, True])
def test_classes_are_drawn_together(weighted):
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(3), 40)
    truth = np.eye(3, dtype=bool)[rng.integers(0, 3, 40)]
    weight = rng.lognormal(0, 1, 40) if weighted else None
    joint = joint_labels(proba, truth, weight)
    blocks = [np.concatenate(parts) for parts in zip(*joint.draws(4000, rng), strict=True)]
    total = sum(block.sum(axis=1) for block in blocks)  # every row has one class
    assert np.abs(total).max() < 1e-9
    for null, block in zip(joint.nulls, blocks, strict=True):
        assert block.mean(axis=0) == pytest.approx(0, abs=4.5 * block.std(axis=0).max() / math.sqrt(4000))
        assert block.var(axis=0).sum() == pytest.approx(null.information.sum(), rel=0.05)


def test_a_cluster_has_one_sign_in_all_classes():
    score, cluster = np.array([0.2, 0.4, 0.6, 0.8]), np.array([0, 1, 0, 1])
    nulls = [ClusterNull(score, sign * score, np.ones(4), cluster) for sign in (1.0, -1.0)]
    for one, two in joint_clusters(nulls).draws(50, np.random.default_rng(0)):
        np.testing.assert_allclose(one, -two)


def test_merged_scores_close_to_1_stay_below_1():
    score = np.sort(1 - np.random.default_rng(0).random(200_000) * 1e-15)
    score = score[score < 1]
    merged, _, _, excess = merge_trials(score, np.ones(len(score)), np.ones(len(score)))
    assert merged.max() < 1
    assert excess < 1e-3


def test_very_many_clusters_have_the_signs_of_blocks_of_them(monkeypatch):
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(3000), 2)
    score = np.sort(rng.random(6000))
    label = rng.random(6000) < score
    rows = score, score - label, np.ones(6000), cluster
    alone = ClusterNull(*rows)
    monkeypatch.setattr("truecal.multiscale._constants.MOST_BLOCKS", 500)
    blocks = ClusterNull(*rows)
    merged = ClusterNull(*rows[:3], cluster % 500)
    assert blocks.n_clusters == 500
    assert (blocks.residual == alone.residual).all()
    assert blocks.scale == alone.scale
    terms = rng.normal(size=(len(blocks.score), 2))
    assert blocks.moments(terms) == merged.moments(terms)
    # A draw has the variance of the sums of the clusters, as it has with a sign for each of them.
    drawn = [next(null.draws(2000, np.random.default_rng(0))) @ terms for null in (alone, blocks)]
    spread = [np.square(one).sum(axis=0) / len(one) for one in drawn]
    assert spread[1] == pytest.approx(spread[0], rel=4 * math.sqrt(2 / 500 + 4 / len(drawn[0])))
