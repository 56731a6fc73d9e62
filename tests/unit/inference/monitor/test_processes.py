"""The e-process has expectation 1 and the e-detector grows by one a row, shown by enumeration of all labels."""

import itertools
import math

import numpy as np
import pytest

from truecal.inference.monitor.evidence import tally, weigh, weigh_clusters
from truecal.inference.monitor.processes import Processes, later_starts, log_later

SCORES = np.array([0.03, 0.4, 0.5, 0.97])


def _evidence(score, y):
    return weigh(tally(score, np.ones(len(score)), y))


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
        processes.add(_evidence(SCORES[rows], y[rows]))
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
            processes.add(_evidence(score, y))
            mean += chance / 2 * math.exp(processes.log_evalue)
    assert mean <= 1


def test_large_errors_are_evidence_against_a_small_allowed_one():
    score = np.full(4000, 0.5)
    y = np.r_[np.ones(2400), np.zeros(1600)]
    logs = []
    for at_most in (0.0, 0.02, 0.05, 0.2):
        processes = Processes(at_most=at_most)
        processes.add(_evidence(score, y))
        logs.append(processes.log_evalue)
    assert logs == sorted(logs, reverse=True)
    assert logs[2] > math.log(20)
    assert logs[3] < 0


def test_merge_is_the_same_as_more_rows():
    y = np.array([1.0, 0.0, 1.0, 1.0])
    whole, first, second = _run(y, (2, 2)), _run(y, (2,)), Processes()
    second.add(_evidence(SCORES[2:], y[2:]))
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
    rows.add(_evidence(score, y))
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
            processes.add(_evidence(SCORES[2:], y[2:]))
        mean += chance * math.exp(processes.log_evalue)
    assert mean == pytest.approx(1, rel=1e-5)


def test_expectation_of_merged_shards():
    found = []
    for y, chance in _outcomes(SCORES):
        one, two = _run(y[:2], (1, 1)), Processes()
        two.add(_evidence(SCORES[2:], y[2:]))
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
