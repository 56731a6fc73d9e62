import numpy as np
import pytest
from scipy import stats

from truecal._lib.numeric import (
    draw_binomials,
    keyed_generator,
    number_values,
    order_of,
    over_runs,
    run_maxima,
    run_sums,
    search_runs,
    sum_pairs,
)


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


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_the_order_is_that_of_a_stable_sort(n):
    code = np.random.default_rng(n).integers(0, 7, n)
    order, bounds = order_of(code, 7)
    assert order.tolist() == np.argsort(code, kind="stable").tolist()
    assert np.diff(bounds).tolist() == np.bincount(code, minlength=7).tolist()


@pytest.mark.parametrize(
    "values",
    [
        np.array([5, 3, 5, 9]),
        np.array([-128, 127, -128, 0] * 40, dtype=np.int8),
        np.array([2**64 - 1, 2**64 - 3, 2**64 - 1], dtype=np.uint64),
        np.array([-(2**63), 2**63 - 1, 0]),
        np.array([2**62, 7]),
        np.array([], dtype=np.int64),
        np.array([0.5, 0.25, 0.5]),
        np.array(["b", "a", "b"]),
    ],
    ids=lambda values: f"{values.dtype}-{len(values)}",
)
def test_values_are_numbered_in_their_order(values):
    distinct, place = number_values(values)
    expected, where = np.unique(values, return_inverse=True)
    assert distinct.dtype == expected.dtype
    assert distinct.tolist() == expected.tolist()
    assert place.tolist() == where.tolist()


def test_pairs_are_summed_in_the_order_of_the_second_and_then_the_first():
    rng = np.random.default_rng(0)
    minor, major, value = rng.integers(0, 5, 200), rng.integers(0, 9, 200), rng.random(200)
    first, second, (sums, counts) = sum_pairs(minor, major, [value, None])
    key, place = np.unique(major * 5 + minor, return_inverse=True)
    assert (second * 5 + first).tolist() == key.tolist()
    assert sums == pytest.approx(np.bincount(place, value), abs=1e-12)
    assert counts.tolist() == np.bincount(place).tolist()


SIZE = 20_000
FEW = 30  # draws for which no table is worth while


def draws(count, chance, size, rng):
    return draw_binomials(np.array([count], dtype=float), np.array([chance], dtype=float), size, rng)[:, 0]


@pytest.mark.parametrize("size", [SIZE, FEW])
@pytest.mark.parametrize(
    ("count", "chance"),
    [
        (1, 0.5),
        (50, 0.013),
        (98, 0.3),
        (98, 0.97),
        (3900, 0.5),
        (3900, 2e-4),
        (10**6, 1 - 1e-6),
        (10**9, 3e-9),
    ],
)
def test_each_outcome_has_its_probability(count, chance, size):
    rng = np.random.default_rng(count)
    found = np.concatenate([draws(count, chance, size, rng) for _ in range(SIZE // size)])
    # Outcomes in cells of about the same probability, at most 30 of them.
    edges = np.unique(stats.binom.ppf(np.arange(1, 30) / 30, count, chance))
    probability = np.diff(stats.binom.cdf(edges, count, chance), prepend=0, append=1)
    observed = np.bincount(np.searchsorted(edges, found), minlength=len(probability))
    likely = probability > 1e-3
    counts = np.append(observed[likely], observed[~likely].sum() + 1e-9)
    expected = len(found) * np.append(probability[likely], probability[~likely].sum()) + 1e-9
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(chi_square, len(counts) - 1) > 1e-3


@pytest.mark.parametrize("size", [SIZE, FEW])
def test_what_is_certain_is_never_otherwise(size):
    count, chance = np.array([7.0, 10_000.0, 7.0, 10_000.0]), np.array([0.0, 0.0, 1.0, 1.0])
    drawn = draw_binomials(count, chance, size, np.random.default_rng(0))
    assert (drawn == count * chance).all()


def test_distributions_are_independent_and_keep_their_places():
    count, chance = np.arange(1.0, 301.0), np.linspace(0.01, 0.99, 300)
    drawn = draw_binomials(count, chance, 4000, np.random.default_rng(0))
    score = (drawn - count * chance) / np.sqrt(count * chance * (1 - chance))
    assert np.abs(score.mean(axis=0)).max() < 5 / np.sqrt(4000)
    correlation = np.corrcoef(score.T) - np.eye(300)
    assert np.abs(correlation).max() < 6 / np.sqrt(4000)
    assert np.square(correlation).sum() / (300 * 299) == pytest.approx(1 / 4000, rel=0.05)


def test_far_outcomes_are_in_the_table():
    """The largest of many draws is as large as it should be, for a skewed distribution of small mean."""
    drawn = draw_binomials(np.full(500, 1000.0), np.full(500, 0.002), 2000, np.random.default_rng(0))
    largest = drawn.max()
    assert 1 - stats.binom.cdf(largest - 1, 1000, 0.002) ** drawn.size > 1e-3
    assert stats.binom.cdf(largest, 1000, 0.002) ** drawn.size > 1e-3


def test_generators_are_keyed_children_of_the_seed():
    child = np.random.SeedSequence(7, spawn_key=(3, 5))
    assert keyed_generator(7, 3, 5).random() == np.random.default_rng(child).random()
    assert keyed_generator(7, 5, 3).random() != keyed_generator(7, 3, 5).random()
