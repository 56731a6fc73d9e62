"""How random signs of clusters are scaled, and when they say too little."""

import re

import numpy as np
import pytest
from scipy import stats

from truecal.multiscale._null import far_tail, flip_scale


def scale(label, score, cluster):
    label, score = np.asarray(label, dtype=float), np.asarray(score, dtype=float)
    return flip_scale(score, score - label, np.ones(len(score)), np.asarray(cluster))


def test_ordinary_clusters_are_hardly_scaled():
    rng = np.random.default_rng(0)
    score, cluster = rng.random(4000), np.arange(4000) % 40
    chance = np.clip(score + rng.normal(0, 0.1, 40)[cluster], 0, 1)
    found = scale(rng.random(4000) < chance, score, cluster)
    assert not found.too_little
    assert 1 <= found.factor < 1.15


@pytest.mark.parametrize("rare", [0.002, 0.01, 0.05])
@pytest.mark.parametrize("label", [0, 1])
def test_equal_labels_show_nothing_if_the_scores_expect_few_others(rare, label):
    score = np.full(200, rare if label == 0 else 1 - rare)
    found = scale(np.full(200, label), score, np.arange(200) % 20)
    assert "all labels are the same" in found.too_little
    # The largest variance that any dependence allows: all rows of a cluster alike.
    assert found.deviation == pytest.approx(np.sqrt(20 * 10**2 * rare * (1 - rare)))


def test_what_the_largest_variance_does_not_explain_counts():
    found = scale(np.zeros(400), np.full(400, 0.5), np.arange(400) % 20)
    assert found.factor == pytest.approx(1)
    assert found.reason(0.001) == ""
    assert found.reason(0.2) == found.too_little


def test_one_cluster_with_all_events_is_too_little():
    label = np.zeros(3000)
    label[:25] = 1
    found = scale(label, np.full(3000, 0.01), np.arange(3000) // 200)
    assert "1 cluster of 15" in found.too_little


@pytest.mark.parametrize("count", [1, 2, 5, 6])
def test_few_clusters_have_few_patterns_of_signs(count):
    rng = np.random.default_rng(1)
    score = rng.random(300)
    found = scale(rng.random(300) < score, score, np.arange(300) % count)
    assert ("no p-value can be below" in found.too_little) == (count < 6)


def test_clusters_alike_leave_the_doubt_of_as_many_and_a_known_reason_the_largest_variance():
    rng = np.random.default_rng(3)
    score, cluster = np.full(4000, 0.3), np.arange(4000) % 40
    label = rng.random(4000) < score
    found = scale(label, score, cluster)
    assert found.doubt == pytest.approx(1 / 40)
    known = flip_scale(score, score - label, np.ones(4000), cluster, "known")
    assert known.too_little == "known"
    assert known.deviation == pytest.approx(np.sqrt(40 * 100**2 * 0.3 * 0.7))


@pytest.mark.parametrize("low", [0.02, 0.05, 0.1])
def test_certain_scores_on_both_sides_say_as_little_as_on_one(low):
    cluster = np.repeat(np.arange(20), 30)
    score = np.where(cluster % 2, low, 1 - low)
    label = (score > 0.5).astype(float)
    assert "no score makes its label unlikely" in scale(label, score, cluster).too_little
    label[:30] = 0  # one cluster is wrong
    assert re.search("about [12] clusters? of 20", scale(label, score, cluster).too_little)


def test_scores_between_do_not_hide_what_certain_ones_say():
    cluster = np.repeat(np.arange(30), 10)
    score = np.array([0.1, 0.5, 0.9])[cluster % 3]
    label = np.where(score == 0.5, cluster % 2, score > 0.5)
    assert "no score makes its label unlikely" in scale(label, score, cluster).too_little
    few = np.where(cluster % 3 == 0, 0.1, 0.5)  # certain ones are a third of the rows
    few[cluster == 2] = 0.9
    assert not scale(np.where(few == 0.5, cluster % 2, few > 0.5), few, cluster).too_little


def test_missing_numbers_of_clusters_do_not_count():
    rng = np.random.default_rng(2)
    score, cluster = rng.random(300), np.arange(300) % 20
    label = rng.random(300) < score
    assert scale(label, score, cluster) == scale(label, score, 7 * cluster + 3)


def test_doubt_makes_small_pvalues_larger():
    assert far_tail(0.01, 0.0) == 0.01
    assert far_tail(1.0, 0.1) == 1
    assert far_tail(0.01, 0.1) == pytest.approx(2 * stats.t.sf(stats.norm.isf(0.005), 10))


def test_no_residual_at_all():
    assert scale([0, 1, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]).factor == 1
