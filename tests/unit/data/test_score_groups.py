import numpy as np
import pytest

from truecal.data.score_groups import ScoreGroups, ones, prefix_sums

SCORE, POSITIVES = np.array([0.1, 0.4, 0.8]), np.array([0.0, 1.0, 1.0])


def test_groups_of_one_row_each():
    groups = ScoreGroups(SCORE, ones(3), POSITIVES)
    assert (groups.n, groups.even, groups.whole, groups.rounding) == (3, True, True, 0)
    assert groups.bounds.tolist() == [0, 3]
    assert groups.label is groups.positives
    assert groups.cumulative_count.tolist() == [0, 1, 2, 3]
    assert groups.rows_between(np.array([0, 1]), np.array([2, 3])).tolist() == [2, 2]


def test_weighted_groups():
    groups = ScoreGroups(SCORE, np.array([2.0, 0.5, 1.0]), np.array([1.0, 0.5, 0.0]))
    assert (groups.n, groups.even, groups.whole) == (3.5, False, False)
    assert groups.rounding > 0
    assert groups.label.tolist() == [0.5, 1, 0]
    assert groups.cumulative_positives.tolist() == [0, 1, 1.5, 1.5]
    assert groups.rows_between(np.array([0, 1]), np.array([2, 3])).tolist() == [2.5, 1.5]


@pytest.mark.parametrize("count", [ones(3), np.ones(3), np.array([1.0, 3.0, 2.0])])
def test_sums_of_runs(count):
    groups = ScoreGroups(SCORE, count, POSITIVES)
    rows, score, positives = groups.sums(np.array([0, 2]))
    assert rows.tolist() == [count[0] + count[1], count[2]]
    np.testing.assert_allclose(score, [0.1 * count[0] + 0.4 * count[1], 0.8 * count[2]])
    assert positives.tolist() == [1, 1]


def test_prefix_sums_begin_with_zero():
    assert prefix_sums(np.array([1.0, 2.0, 3.0])).tolist() == [0, 1, 3, 6]


def test_middle_ranks_begin_anew_in_each_sample():
    groups = ScoreGroups(SCORE, np.array([2.0, 5.0, 1.0]), POSITIVES)
    assert groups.middle_rank.tolist() == [0.5, 4, 7]
    two = ScoreGroups(SCORE, np.array([2.0, 5.0, 1.0]), POSITIVES)
    object.__setattr__(two, "bounds", np.array([0, 1, 3]))
    assert two.middle_rank.tolist() == [0, 2, 5]
