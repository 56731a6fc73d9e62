"""Intervals of scores: fixed by the scores, symmetric, no ties cut."""

import numpy as np
import pytest

from truecal.multiscale._intervals import cut_scores


def cut(score, **options):
    distinct, weight = np.unique(score, return_counts=True)
    place = cut_scores(distinct, weight.astype(float), len(distinct), **options)
    assert place[0] == 0
    assert set(np.diff(place)) <= {0, 1}
    return place


@pytest.mark.parametrize(
    ("n", "few", "many"), [(100, 6, 10), (1000, 14, 18), (5000, 26, 32), (100_000, 90, 110)]
)
def test_the_number_of_intervals_grows_like_n_to_two_fifths(n, few, many):
    place = cut(np.random.default_rng(0).random(n))
    assert few <= place[-1] + 1 <= many


@pytest.mark.parametrize("n_scores", [1, 2, 5, 20, 101])
def test_few_scores_are_intervals_of_their_own(n_scores):
    score = np.random.default_rng(1).choice(np.linspace(0, 1, n_scores), 2000)
    assert cut(score)[-1] + 1 == len(np.unique(score))


def test_scores_with_three_digits_are_not_1000_intervals():
    score = np.round(np.random.default_rng(2).random(6000), 3)
    assert cut(score)[-1] + 1 == pytest.approx(
        cut(np.round(score + 1e-4 * np.arange(6000) / 6000, 6))[-1] + 1, abs=2
    )


def test_rare_scores_have_intervals_at_their_upper_end():
    # Half of the measure follows the variance of labels: otherwise the last interval would hold n / B rows.
    score = np.random.default_rng(3).beta(0.1, 2, 5000)
    place = cut(score)
    assert np.mean(place == place[-1]) < 0.5 / (place[-1] + 1)


def test_exchanging_the_classes_changes_nothing():
    rng = np.random.default_rng(4)
    for score in (
        rng.random(501),
        rng.beta(0.3, 3, 2000),
        np.round(rng.random(400), 2),
        np.arange(801) / 800,
    ):
        place, other = cut(score), cut(1 - score)[::-1]
        assert np.array_equal(np.diff(place), -np.diff(other))


@pytest.mark.parametrize("resolution", [1, 2, 7, 16, 50])
def test_a_given_resolution_is_not_exceeded(resolution):
    rng = np.random.default_rng(5)
    for score in (
        rng.random(3000),
        rng.beta(0.2, 10, 3000),
        np.where(rng.random(3000) < 0.7, 0.0, rng.random(3000)),
    ):
        number = cut(score, resolution=resolution)[-1] + 1
        assert number <= resolution
        assert number >= resolution / 2


def test_heavy_scores_stand_alone():
    rng = np.random.default_rng(6)
    score = np.where(rng.random(4000) < 0.4, 0.25, rng.random(4000))
    distinct = np.unique(score)
    place = cut(score)
    assert np.count_nonzero(place == place[np.searchsorted(distinct, 0.25)]) == 1


def test_dependent_rows_may_lower_the_number():
    score = np.random.default_rng(7).random(5000)
    assert cut(score, most=10.0)[-1] + 1 <= 12


def test_scores_of_zero_and_one_alone():
    assert cut(np.array([0.0, 1.0, 1.0]))[-1] == 1
    assert cut(np.zeros(5))[-1] == 0
