import numpy as np
import pytest

from truecal._lib.runs import over_runs, run_maxima, run_sums, search_runs


@pytest.fixture
def runs():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 60, 40)
    bounds = np.append(0, np.cumsum(sizes))
    return [np.sort(np.round(rng.random(size), 2)) for size in sizes], bounds


def test_sums_and_maxima_do_not_depend_on_other_runs(runs):
    parts, bounds = runs
    values = np.concatenate(parts)
    alone = [np.array([0, len(part)]) for part in parts]
    for function in (run_sums, run_maxima):
        assert function(values, bounds).tolist() == [
            function(part, own)[0] for part, own in zip(parts, alone, strict=True)
        ]


def test_one_value_a_run_is_repeated_unless_there_is_one(runs):
    parts, bounds = runs
    first = np.array([part[0] for part in parts])
    assert over_runs(first, bounds).tolist() == [part[0] for part in parts for _ in part]
    assert over_runs(np.array([0.5]), np.array([0, 9])).tolist() == [0.5]


def test_a_search_stays_in_its_run(runs):
    parts, bounds = runs
    values = np.concatenate(parts)
    wanted = np.append(np.arange(-1, 102) / 100, np.inf)
    found = search_runs(values, bounds, np.arange(len(parts))[:, np.newaxis], wanted)
    for part, first, own in zip(parts, bounds, found, strict=False):
        np.testing.assert_array_equal(own - first, part.searchsorted(wanted))
    run = np.arange(len(parts))
    pairs = search_runs(values, bounds, run, wanted[: len(parts)])
    assert pairs.tolist() == [found[k, k] for k in run]
    assert search_runs(parts[0], bounds[:2], 0, wanted).tolist() == parts[0].searchsorted(wanted).tolist()
