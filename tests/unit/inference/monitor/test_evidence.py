"""Evidence: ratios with expectation at most 1, whatever the score, and sums that do not depend on the grouping."""

import numpy as np
import pytest

from truecal.inference.monitor.alternatives import EXCESS, N_ALTERNATIVES, N_CURVES, N_NODES, SHIFTS, cells_of
from truecal.inference.monitor.evidence import tally, weigh, weigh_clusters

ONE = np.ones(1)


def _rows(score, label):
    return weigh(tally(score, np.ones(len(score)), label))


@pytest.mark.parametrize("score", [0.0, 1e-300, 1e-9, 0.02, 0.3, 0.5, 0.999, 1 - 1e-12, 1.0])
def test_expected_ratio_is_one_and_never_more(score):
    positive, negative = (np.exp(_rows(np.array([score]), label).log_ratio) for label in (ONE, 0 * ONE))
    # A label that contradicts a score of 0 or 1 has probability 0, and the monitor treats it on its own.
    mean = score * positive + (1 - score) * negative
    assert mean.max() <= 1 + 1e-14
    assert mean.min() > 1 - 3e-5


def test_what_the_tangent_loses_is_small():
    rng = np.random.default_rng(3)
    score = rng.random(5000)
    label = (rng.random(5000) < score).astype(float)
    excess = EXCESS[cells_of(score)]
    exact = np.where(label[:, np.newaxis] == 1, np.log1p(excess), 0) - np.log1p(score[:, np.newaxis] * excess)
    found = _rows(score, label).log_ratio[:N_CURVES]
    lost = exact[:, :N_CURVES].sum(axis=0) - found
    assert lost.min() >= -1e-9
    assert lost.max() < 0.01


def test_counts_equal_repeated_rows():
    rng = np.random.default_rng(0)
    score = rng.choice([0.0, 0.013, 0.2, 0.7, 1.0], 700)
    label = (rng.random(700) < score).astype(float)
    distinct, place = np.unique(score, return_inverse=True)
    grouped = weigh(tally(distinct, np.bincount(place).astype(float), np.bincount(place, label)))
    rows = _rows(score, label)
    assert grouped.log_ratio == pytest.approx(rows.log_ratio, abs=1e-9)
    assert grouped.squares == pytest.approx(rows.squares, rel=1e-12)
    assert (grouped.rows, grouped.units) == (700, 700)


def test_many_streams_at_once():
    rng = np.random.default_rng(4)
    score = rng.random((3, 60))
    label = (rng.random(score.shape) < score).astype(float)
    cells = np.stack([tally(*rows, k) for *rows, k in zip(score, np.ones_like(score), label, strict=True)])
    many = weigh(cells, 60)
    for row, (p, y) in enumerate(zip(score, label, strict=True)):
        assert many.log_ratio[row] == pytest.approx(_rows(p, y).log_ratio)
        assert many.squares[row] == pytest.approx(_rows(p, y).squares)
    assert many.rows == 60


def test_squares_are_no_less_than_those_of_the_rows():
    score = np.random.default_rng(5).random(500)
    excess = EXCESS[cells_of(score), :N_CURVES]
    exact = np.square(excess / (1 + score[:, np.newaxis] * excess)).sum(axis=0)
    found = _rows(score, np.zeros(500)).squares[:N_CURVES]
    assert (found >= exact).all()
    assert found == pytest.approx(exact, rel=0.03)


def test_level_is_the_sum_over_regions():
    score = np.random.default_rng(1).random(100)
    nodes = _rows(score, np.ones(100)).log_ratio[N_CURVES:].reshape(N_NODES, len(SHIFTS))
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
    rows = _rows(score, label)
    alone = weigh_clusters(score, np.ones(300), label, rng.permutation(300))
    assert alone.log_ratio == pytest.approx(rows.log_ratio, abs=1e-3)
    assert alone.squares == pytest.approx(rows.squares)
    assert (alone.rows, alone.units) == (300, 300)
    assert (alone.independent, rows.independent) == (False, True)


def test_a_cluster_is_one_unit():
    found = weigh_clusters(np.full(4, 0.5), np.ones(4), np.ones(4), np.array([0, 0, 1, 1]))
    single = _rows(np.full(2, 0.5), np.ones(2))
    assert found.units == 2
    assert found.log_ratio == pytest.approx(single.log_ratio, abs=1e-4)
    assert found.squares == pytest.approx(single.squares)


@pytest.mark.parametrize("error", [(0.1, 0.1), (0.1, -0.1), (-0.02, 0.14)])
def test_cluster_factor_under_an_error_is_bounded_by_root_mean_squares(error):
    """For two rows of any dependence, 1 + d c for the root mean squares d of the errors and c of the sensitivities."""
    score, cluster = np.array([0.3, 0.6]), np.zeros(2, dtype=np.intp)
    one, two = score + error
    found = {
        labels: weigh_clusters(score, np.ones(2), np.array(labels, dtype=float), cluster)
        for labels in ((1, 1), (1, 0), (0, 1), (0, 0))
    }
    chance = {(1, 1): one, (1, 0): 0.0, (0, 1): two - one, (0, 0): 1 - two}  # as dependent as can be
    mean = sum(chance[labels] * np.exp(each.log_ratio) for labels, each in found.items())
    size = np.sqrt(np.mean(np.square(error)))
    assert (mean <= 1 + size * np.sqrt(found[0, 0].squares) + 1e-12).all()
    assert len(mean) == N_ALTERNATIVES
