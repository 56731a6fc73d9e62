"""The evidence of rows: expectation at most 1 by enumeration of all labels; bounds that hold."""

import itertools
import math

import numpy as np
import pytest

from truecal.inference.monitor._evidence import (
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
    Processes,
    cells_of,
    curve_log_ratios,
    frequency_bounds,
    largest_error,
    later_starts,
    log_later,
    log_sum_exp,
    node_edges,
    smallest_error,
    tally,
    weigh,
    weigh_clusters,
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


SCORES = np.array([0.03, 0.4, 0.5, 0.97])


def _outcomes(truth):
    """Yield all labels with their probability."""
    for labels in itertools.product([0.0, 1.0], repeat=len(truth)):
        y = np.array(labels)
        yield y, float(np.prod(np.where(y == 1, truth, 1 - truth)))


def _run(y, sizes, **settings):
    processes = Processes(**settings)
    start = 0
    for size in sizes:
        rows = slice(start, start + size)
        processes.add(_rows(SCORES[rows], y[rows]))
        start += size
    return processes


@pytest.mark.parametrize("sizes", [(4,), (1, 1, 1, 1), (1, 3), (2, 2)])
def test_expectations_under_perfect_calibration(sizes):
    found = [(chance, _run(y, sizes)) for y, chance in _outcomes(SCORES)]
    assert sum(chance * math.exp(one.log_evalue) for chance, one in found) == pytest.approx(1, rel=1e-5)
    assert sum(chance * math.exp(one.log_detector) for chance, one in found) == pytest.approx(4, rel=1e-5)


@pytest.mark.parametrize(
    "error", [(0.02, 0.02, 0.02, 0.02), (-0.02, 0.02, -0.02, 0.02), (0.01, -0.02, 0.02, -0.01)]
)
@pytest.mark.parametrize("sizes", [(4,), (1, 1, 1, 1)])
def test_expectation_under_an_allowed_error(error, sizes):
    found = [(chance, _run(y, sizes, at_most=0.02)) for y, chance in _outcomes(SCORES + error)]
    assert sum(chance * math.exp(one.log_evalue) for chance, one in found) <= 1
    assert sum(chance * math.exp(one.log_detector) for chance, one in found) <= 4


def test_expectation_where_only_the_mean_square_is_allowed():
    """The first row is off by more than 2%, but the scores are random and the root mean square is 2%."""
    mean = 0.0
    for first in (True, False):  # each with probability one half
        score = np.array([0.3 if first else 0.6])
        truth = score + (0.02 * math.sqrt(2) if first else 0.0)
        for y, chance in _outcomes(truth):
            processes = Processes(at_most=0.02)
            processes.add(_rows(score, y))
            mean += chance / 2 * math.exp(processes.log_evalue)
    assert mean <= 1


def test_large_errors_are_evidence_against_a_small_allowed_one():
    score = np.full(4000, 0.5)
    y = np.r_[np.ones(2400), np.zeros(1600)]
    logs = []
    for at_most in (0.0, 0.02, 0.05, 0.2):
        processes = Processes(at_most=at_most)
        processes.add(_rows(score, y))
        logs.append(processes.log_evalue)
    assert logs == sorted(logs, reverse=True)
    assert logs[2] > math.log(20)
    assert logs[3] < 0


def test_merge_is_the_same_as_more_rows():
    y = np.array([1.0, 0.0, 1.0, 1.0])
    whole, first, second = _run(y, (2, 2)), _run(y, (2,)), Processes()
    second.add(_rows(SCORES[2:], y[2:]))
    first.merge(second)
    for name in ("total", "squares", "mixed", "detector"):
        assert getattr(first, name) == pytest.approx(getattr(whole, name))
    assert (first.rows, first.units) == (4, 4)
    assert first.log_evalue == pytest.approx(whole.log_evalue)


def test_errors_in_many_regions_stop_with_the_first_clusters():
    rng = np.random.default_rng(0)
    score = rng.random(3000)
    truth = np.clip(score + 0.15 * np.sin(4 * np.pi * score), 0, 1)
    y = (rng.random(3000) < truth).astype(float)
    rows, clusters = Processes(), Processes()
    rows.add(_rows(score, y))
    clusters.add(weigh_clusters(score, np.ones(3000), y, np.arange(3000)))
    assert clusters.regions_stopped == 0
    assert rows.log_evalue > clusters.log_evalue
    before = rows.log_evalue
    rows.add(weigh_clusters(SCORES, np.ones(4), np.ones(4), np.zeros(4, dtype=np.intp)))
    assert rows.regions_stopped > 5
    assert rows.log_evalue == pytest.approx(before, abs=1)


def test_expectation_if_clusters_are_named_when_it_pays():
    """After two rows, clusters are named for the others where that would drop a small R; the mean stays at most 1."""
    mean = 0.0
    for y, chance in _outcomes(SCORES):
        processes = _run(y[:2], (2,))
        if processes.log_evalue > 0:
            processes.add(weigh_clusters(SCORES[2:], np.ones(2), y[2:], np.arange(2)))
        else:
            processes.add(_rows(SCORES[2:], y[2:]))
        mean += chance * math.exp(processes.log_evalue)
    assert mean == pytest.approx(1, rel=1e-5)


def test_expectation_of_merged_shards():
    found = []
    for y, chance in _outcomes(SCORES):
        one, two = _run(y[:2], (1, 1)), Processes()
        two.add(_rows(SCORES[2:], y[2:]))
        one.merge(two)
        found.append((chance, one))
    assert sum(chance * math.exp(one.log_evalue) for chance, one in found) == pytest.approx(1, rel=1e-5)
    assert sum(chance * math.exp(one.log_detector) for chance, one in found) == pytest.approx(4, rel=1e-5)


def test_state():
    processes = _run(np.array([1.0, 0.0, 1.0, 1.0]), (2, 2), at_most=0.02)
    again = Processes.from_state(0.02, processes.to_state())
    assert again.log_evalue == processes.log_evalue
    assert again.to_state() == processes.to_state()


def test_prior_of_later_starts_is_a_distribution():
    at = [later_starts(rows) for rows in (0, 1, 1e3, 1e9, 1e300)]
    assert at[0] == 0
    assert at == sorted(at)
    assert at[-1] < 1
    assert math.exp(log_later(500, 200)) == pytest.approx((later_starts(700) - later_starts(500)) / 2)
    assert log_later(1e15, 1) > -math.inf


def _bounds(units, labels, alpha):
    low, high = frequency_bounds(np.array([units]), np.array([labels]), alpha)
    return float(low[0]), float(high[0])


def test_error_bound_is_below_the_error_and_tightens():
    score = np.full(1, 0.5)
    bounds = []
    for n in (1_000, 100_000, 10_000_000):
        found = weigh(tally(score, np.array([n]), np.array([0.6 * n])))
        bounds.append(smallest_error(found.log_ratio, found.squares, n, 0.05))
    assert bounds == sorted(bounds)
    assert 0.07 < bounds[-1] <= 0.1


def test_error_bound_of_calibrated_rows_is_zero():
    found = weigh(tally(np.array([0.5]), np.array([10_000.0]), np.array([5_000.0])))
    assert smallest_error(found.log_ratio, found.squares, 10_000, 0.05) == 0


@pytest.mark.parametrize("rate", [0.001, 0.3, 0.999])
def test_frequency_bounds_hold_and_shrink(rate):
    widths = []
    for n in (100, 10_000, 1_000_000):
        low, high = _bounds(n, rate * n, 0.05)
        assert 0 <= low <= rate <= high <= 1
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.05 * np.sqrt(rate * (1 - rate))


def test_frequency_bounds_mirror():
    low, high = _bounds(500, 40, 0.05)
    mirrored = _bounds(500, 460, 0.05)
    assert (1 - high, 1 - low) == pytest.approx(mirrored, abs=0.02)


def test_frequency_bounds_hold_at_all_times_at_once():
    rng = np.random.default_rng(3)
    at = np.unique(np.geomspace(10, 3000, 25).astype(int))
    missed = 0
    for _ in range(200):
        labels = np.cumsum(rng.random(3000) < 0.2)[at - 1]
        low, high = frequency_bounds(at, labels, 0.1)
        missed += ((low > 0.2) | (high < 0.2)).any()
    assert missed / 200 <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 200)


def test_logarithms_of_sums_neither_underflow_nor_fail():
    assert log_sum_exp(np.array([[-1000.0, -1000.0], [-np.inf, -np.inf]])) == pytest.approx(
        [np.log(2) - 1000, -np.inf]
    )


def test_prior_of_later_starts():
    assert later_starts(0) == 0
    assert later_starts(1e6) == pytest.approx(0.874, abs=0.001)


def test_largest_error_of_two_regions():
    sums = np.array([[5000.0, 5000.0], [1000.0, 4000.0], [1000.0, 4000.0]])
    assert largest_error(sums, 0.05) == pytest.approx(0.022, abs=0.0005)


def test_largest_error_holds_and_tightens():
    bounds = []
    for n in (1_000, 100_000, 10_000_000):
        sums = np.array([[n, n, 0], [0.3 * n, 0.5 * n, 0], [0.2 * n, 0.6 * n, 0]])
        bounds.append(largest_error(sums, 0.05))
    assert bounds == sorted(bounds, reverse=True)
    assert 0.1 < bounds[-1] < 0.102


def test_parts_of_units_give_wider_bounds_than_as_many_units():
    """A row of a cluster of five is a fifth of a unit; the bounds are those of the sum of the parts."""
    whole, fifth = _bounds(1000, 300, 0.05), _bounds(200, 60, 0.05)
    assert fifth[0] < whole[0] < 0.3 < whole[1] < fifth[1]
