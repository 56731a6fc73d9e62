"""`draw_binomials` draws from the distributions that it names, by tables and without."""

import numpy as np
import pytest
from scipy import stats

from truecal._lib.binomial import draw_binomials

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
