"""Alternatives: ratios with expectation 1, whatever the score, and sums that do not depend on the grouping."""

import numpy as np
import pytest

from truecal.inference.monitor.alternatives import (
    LOG_PRIOR,
    N_ALTERNATIVES,
    N_CURVES,
    N_NODES,
    SENSITIVITY,
    SHIFTS,
    curve_terms,
    leaves,
    node_edges,
    weigh,
    weigh_clusters,
)

ONE = np.ones(1)


@pytest.mark.parametrize("score", [0.0, 1e-300, 1e-9, 0.02, 0.3, 0.5, 0.999, 1 - 1e-12, 1.0])
def test_expected_ratio_is_one(score):
    p = np.array([score])
    positive, negative = (np.exp(weigh(p, ONE, label).log_ratio) for label in (ONE, 0 * ONE))
    # A label that contradicts a score of 0 or 1 has probability 0, and the monitor treats it on its own.
    assert score * positive + (1 - score) * negative == pytest.approx(np.ones(N_ALTERNATIVES), abs=1e-12)


def test_prior_is_a_distribution():
    assert np.exp(LOG_PRIOR).sum() == pytest.approx(1)
    assert len(SENSITIVITY) == N_ALTERNATIVES
    assert (SENSITIVITY > 0).all()


def test_counts_equal_repeated_rows():
    rng = np.random.default_rng(0)
    score = rng.choice([0.0, 0.013, 0.2, 0.7, 1.0], 700)
    label = (rng.random(700) < score).astype(float)
    distinct, place = np.unique(score, return_inverse=True)
    grouped = weigh(distinct, np.bincount(place).astype(float), np.bincount(place, label))
    rows = weigh(score, np.ones(700), label)
    assert grouped.log_ratio == pytest.approx(rows.log_ratio, abs=1e-9)
    assert grouped.squares == pytest.approx(rows.squares, rel=1e-12)
    assert (grouped.rows, grouped.units) == (700, 700)


def test_slope_is_the_logistic_one():
    log_r, mean, _ = curve_terms(np.array([0.2, 0.6]))
    logit = np.log(np.array([0.2, 0.6]) / np.array([0.8, 0.4]))
    slope = np.exp(-0.35)
    centre = 3 * 1 + 1  # second slope, second centre, which is 0
    assert log_r[:, centre] == pytest.approx((slope - 1) * logit)
    raised = 1 / (1 + np.exp(-slope * logit))
    assert np.array([0.2, 0.6]) * np.exp(log_r[:, centre]) / mean[:, centre] == pytest.approx(raised)


def test_nodes_nest_and_cover():
    edges = [node_edges(node) for node in range(N_NODES)]
    for node in range(N_NODES // 2):
        left, right = edges[2 * node + 1], edges[2 * node + 2]
        assert (left[0], right[1]) == edges[node]
        assert left[1] == right[0]
    finest = edges[N_NODES // 2 :]
    middle = np.array([(low + high) / 2 for low, high in finest])
    assert leaves(middle).tolist() == list(range(len(finest)))


def test_level_is_the_sum_over_regions():
    rng = np.random.default_rng(1)
    score = rng.random(100)
    nodes = weigh(score, np.ones(100), np.ones(100)).log_ratio[N_CURVES:].reshape(N_NODES, len(SHIFTS))
    assert nodes[1] + nodes[2] == pytest.approx(nodes[0])


@pytest.mark.parametrize("together", [0.06, 0.2, 0.3])
def test_cluster_factor_has_expectation_one_under_any_dependence(together):
    """Two rows with scores 0.3 and 0.6, whose labels are both positive with any probability that is possible."""
    score, cluster = np.array([0.3, 0.6]), np.zeros(2, dtype=np.intp)
    chance = {(1, 1): together, (1, 0): 0.3 - together, (0, 1): 0.6 - together, (0, 0): 0.1 + together}
    assert sum(chance.values()) == pytest.approx(1)
    mean = np.zeros(N_ALTERNATIVES)
    for labels, probability in chance.items():
        found = weigh_clusters(score, np.ones(2), np.array(labels, dtype=float), cluster)
        mean += probability * np.exp(found.log_ratio)
    assert mean == pytest.approx(np.ones(N_ALTERNATIVES), abs=1e-12)


def test_clusters_of_one_row_equal_rows():
    rng = np.random.default_rng(2)
    score = rng.random(300)
    label = (rng.random(300) < score).astype(float)
    rows = weigh(score, np.ones(300), label)
    alone = weigh_clusters(score, np.ones(300), label, rng.permutation(300))
    assert alone.log_ratio == pytest.approx(rows.log_ratio, abs=1e-9)
    assert alone.squares == pytest.approx(rows.squares)
    assert (alone.rows, alone.units) == (300, 300)


def test_a_cluster_is_one_unit():
    found = weigh_clusters(np.full(4, 0.5), np.ones(4), np.ones(4), np.array([0, 0, 1, 1]))
    single = weigh(np.full(2, 0.5), np.ones(2), np.ones(2))
    assert found.units == 2
    assert found.log_ratio == pytest.approx(single.log_ratio)
