import numpy as np
import pytest

from truecal.data.resolution import resolution_of

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
