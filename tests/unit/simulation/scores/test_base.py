"""What the score distributions share."""

import numpy as np
import pytest

from truecal.simulation.scores._base import GRID, draw_index, merge_masses, step_cdf


def test_the_grid_covers_the_unit_interval_and_its_complements_are_exact_near_one():
    score, complement = GRID
    assert (score[0], score[-1], complement[0], complement[-1]) == (0, 1, 1, 0)
    np.testing.assert_allclose(score + complement, 1, atol=2e-16)
    assert np.sort(complement[complement > 0])[0] == pytest.approx(1e-300)


def test_a_step_function_includes_the_score_itself():
    masses = np.array([0.2, 0.5]), np.array([0.25, 0.75])
    assert step_cdf(masses, [0.1, 0.2, 0.4, 0.5, 1.0]).tolist() == [0, 0.25, 0.25, 1, 1]
    assert step_cdf((np.empty(0), np.empty(0)), [0.5]).tolist() == [0]


def test_masses_of_equal_values_are_added_and_empty_ones_dropped():
    values, masses = merge_masses(np.array([0.5, 0.1, 0.5, 0.9]), np.array([0.25, 0.5, 0.25, 0.0]))
    assert (values.tolist(), masses.tolist()) == ([0.1, 0.5], [0.5, 0.5])


def test_indices_are_drawn_with_their_probabilities():
    drawn = draw_index(np.array([0.2, 0.0, 0.8]), 20_000, np.random.default_rng(0))
    share = np.bincount(drawn, minlength=3) / 20_000
    assert share[1] == 0
    assert share[0] == pytest.approx(0.2, abs=4.5 * np.sqrt(0.16 / 20_000))
