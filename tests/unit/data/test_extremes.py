import numpy as np
import pytest

from truecal.data.extremes import NO_FLOOR, Floor, floor_of, limits_of, resolution_of


def test_scores_without_exact_0_or_1_have_no_floor():
    assert floor_of(np.array([5e-324, 0.5, 1 - 1e-16])) == NO_FLOOR


def test_each_end_has_its_own():
    score = np.array([0.0, 1e-9, 0.3, 0.71])
    assert floor_of(score) == Floor(zero=5e-10)
    assert floor_of(1 - score).one == pytest.approx(5e-10)


@pytest.mark.parametrize("n", [20, 3000])
def test_the_number_of_rows_limits_what_a_zero_says(n):
    score = np.append(np.zeros(n - 3), [0.3, 0.41, 0.712])
    assert floor_of(score).zero == pytest.approx(1 / (2 * n + 2))
    table = np.tile([0.0, 0.3, 0.7], (n, 1))
    table[0] = [0.21, 0.312, 0.478]
    assert floor_of(table).zero == pytest.approx(1 / (6 * n + 6))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("votes", [2, 5, 60, 100, 200])
def test_half_a_vote(votes, dtype):
    score = (np.arange(votes + 1) / votes).astype(dtype)
    half = pytest.approx(0.5 / votes)
    assert floor_of(score) == Floor(half, half)
    assert floor_of(np.repeat(score, 100)[::-1]) == Floor(half, half)


def test_a_few_values_and_classes_are_no_votes():
    verbal = np.array([0.5, 0.7, 0.8, 0.9, 0.95, 1.0])
    assert floor_of(np.tile(verbal, 100)).one == pytest.approx(1 / 1202)
    assert floor_of(np.tile([0.0, 1.0], 100)).zero == pytest.approx(1 / 402)


def test_counts_are_rows_and_other_weights_are_not():
    score = np.array([0.0, 0.31, 0.42, 0.9])
    assert limits_of(score, np.full(4, 25.0)) == limits_of(np.repeat(score, 25))
    assert limits_of(score, np.full(4, 1e-6)) == limits_of(score)


def test_a_zero_is_below_all_positive_scores_of_ordinary_size():
    rng = np.random.default_rng(0)
    for scale in (1, 5, 20):
        score = np.append(1 / (1 + np.exp(scale * rng.normal(size=500))), [0.0, 1.0])
        floor = floor_of(score)
        inner = score[(score > 1e-15) & (score < 1 - 1e-15)]
        assert floor.zero < inner.min()
        assert floor.one < 1 - inner.max()


def test_a_table_keeps_its_sums():
    table = np.array([[0.0, 0.25, 0.75], [0.2, 0.3, 0.5]])
    bounded = Floor(zero=0.01).table(table)
    assert bounded.sum(axis=1) == pytest.approx(1)
    assert bounded[0, 0] == pytest.approx(0.01 / 1.01)
    assert Floor(zero=0.01).table(table[1:]) is not None


FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


def draws(n=5000, a=2.8, b=0.05, seed=0):
    return np.random.default_rng(seed).beta(b, a, n)


@pytest.mark.parametrize(
    ("dtype", "step"), [(np.float16, 2.0**-11), (np.float32, 2.0**-24), (np.float64, 2.0**-53)]
)
def test_near_one_it_is_the_spacing_of_the_floats_below_one(dtype, step):
    score = np.unique((1 - draws()).astype(dtype))
    found = resolution_of(score.astype(float), score.dtype)
    assert found.at_one == step == 1 - float(np.nextafter(dtype(1), dtype(0)))
    assert found.parts == 0


@pytest.mark.parametrize(("dtype", "half"), [(np.float32, 2.0**-25), (np.float64, 2.0**-54)])
def test_half_of_it_is_the_tie_that_still_rounds_to_one(dtype, half):
    assert dtype(1.0 - 0.99 * half) == 1 or dtype is np.float64
    assert dtype(1) - dtype(half) == 1
    assert dtype(1) - dtype(half * 1.01) < 1


def test_float32_numbers_stored_as_float64_keep_their_resolution():
    score = np.unique((1 - draws()).astype(np.float32)).astype(float)
    assert resolution_of(score, FLOAT64) == resolution_of(score, FLOAT32)


def test_a_softmax_reaches_only_every_other_float_below_one():
    small = draws().astype(np.float32)
    odds = small / (1 - small)
    score = np.unique(np.float32(1) / (np.float32(1) + odds))
    assert resolution_of(score.astype(float), FLOAT32).at_one == 2.0**-23


@pytest.mark.parametrize("parts", [20, 52, 100, 1000, 100_000])
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
def test_decimals_and_shares_of_votes_are_found(parts, dtype):
    score = np.unique(np.round((1 - draws(200_000, 1, 1)) * parts) / parts)
    found = resolution_of(score.astype(dtype).astype(float), dtype)
    assert found.parts == parts
    assert found.at_zero == found.at_one == 1 / parts


def test_few_scores_are_not_taken_for_a_grid():
    assert resolution_of(np.array([0.1, 0.2, 0.3, 1.0]), FLOAT64).parts == 0


def test_zero_of_an_arithmetic_by_complement_has_the_spacing_near_one():
    score = np.unique(1 - (1 - draws()))  # multiples of 2^-53
    assert score[0] == 0
    assert resolution_of(score, FLOAT64).at_zero == 2.0**-53


@pytest.mark.parametrize(("dtype", "smallest"), [(np.float32, 2.0**-149), (np.float64, 2.0**-1074)])
def test_zero_of_a_direct_arithmetic_is_an_underflow(dtype, smallest):
    score = np.unique(np.concatenate([[0.0], draws()]).astype(dtype)).astype(float)
    assert resolution_of(score, np.dtype(dtype)).at_zero == smallest
