"""Alternatives: a prior that is a distribution, cells that belong to one region, and the curves that are meant."""

import numpy as np
import pytest

from truecal.inference.monitor.alternatives import (
    CELL_EDGES,
    CELL_SCORES,
    EXCESS,
    LOG_PRIOR,
    N_ALTERNATIVES,
    N_CELLS,
    N_CURVES,
    N_LEAVES,
    N_NODES,
    SENSITIVITY,
    SHIFTS,
    cells_of,
    curve_log_ratios,
    node_edges,
)


def test_prior_is_a_distribution():
    assert np.exp(LOG_PRIOR).sum() == pytest.approx(1)
    assert len(SENSITIVITY) == N_ALTERNATIVES
    assert (SENSITIVITY > 0).all()


def test_slope_is_the_logistic_one():
    score = np.array([0.2, 0.6])
    log_r = curve_log_ratios(score)
    logit = np.log(score / (1 - score))
    slope = np.exp(-0.35)
    centre = 3 * 1 + 1  # second slope, second centre, which is 0
    assert log_r[:, centre] == pytest.approx((slope - 1) * logit)


def test_shift_by_points():
    r = np.exp(curve_log_ratios(np.array([0.3]))[0, -1])
    assert 0.3 * r / (1 + 0.3 * (r - 1)) == pytest.approx(0.38)
    assert np.exp(curve_log_ratios(np.array([0.99]))[0, -1]) == pytest.approx(np.exp(2))


def test_ratios_are_bounded():
    assert EXCESS.shape == (N_CELLS, N_CURVES + len(SHIFTS))
    assert np.abs(np.log1p(EXCESS)).max() <= 2 + 1e-12


def test_cells_nest_in_regions():
    assert cells_of(CELL_SCORES).tolist() == list(range(N_CELLS))
    assert CELL_EDGES[:: N_CELLS // N_LEAVES].tolist() == [
        *(node_edges(node)[0] for node in range(N_NODES // 2, N_NODES)),
        1.0,
    ]
    assert cells_of(np.array([0.0, 1.0])).tolist() == [0, N_CELLS - 1]


def test_nodes_nest_and_cover():
    edges = [node_edges(node) for node in range(N_NODES)]
    for node in range(N_NODES // 2):
        left, right = edges[2 * node + 1], edges[2 * node + 2]
        assert (left[0], right[1]) == edges[node]
        assert left[1] == right[0]
