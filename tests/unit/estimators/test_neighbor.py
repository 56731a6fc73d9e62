"""neighbor against the formula: for every row, every radius."""

import numpy as np
import pytest

import truecal
from support import naive


@pytest.mark.parametrize("norm", [1, 1.5, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_is_the_formula(norm, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 13))
    p = np.round(rng.random(n), [17, 1, 2][seed % 3])
    y = rng.random(n) < p
    for weight in (None, rng.integers(1, 4, n), rng.integers(1, 9, n) / 8):
        for k in (1, 3, n):
            expected = naive.neighbors(naive.rows_of(y, p, weight), k, norm)
            got = truecal.calibration_error(
                y, p, estimator="neighbor", norm=norm, n_neighbors=k, sample_weight=weight
            )
            assert got == pytest.approx(expected, abs=1e-13)


def test_one_neighbor_is_the_row_itself():
    y, p = np.array([0, 1, 1, 0]), np.array([0.1, 0.4, 0.8, 0.95])
    got = truecal.calibration_error(y, p, estimator="neighbor", norm=1, n_neighbors=1)
    assert got == pytest.approx(np.abs(p - y).mean())


def test_all_neighbors_are_one_bin_of_labels():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p
    everyone = truecal.calibration_error(y, p, estimator="neighbor", n_neighbors=200)
    assert everyone == pytest.approx(truecal.calibration_error(y, p, estimator="em_label", n_bins=1))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_two_rows_at_the_same_distance_are_both_taken(dtype):
    # From 0.3, the rows at 0.2 and 0.4 are equally far, though their floats are not.
    y, p = [0, 1, 1], np.array([0.2, 0.3, 0.4], dtype)
    got = truecal.calibration_error(y, p, estimator="neighbor", norm=1, n_neighbors=2)
    expected = (abs(0.2 - 0.5) + abs(0.3 - 2 / 3) + abs(0.4 - 1)) / 3
    assert got == pytest.approx(expected, abs=float(np.finfo(dtype).eps))


def test_neighbouring_floats_are_different_scores():
    y, p = [1, 0, 1, 0], [0.5, np.nextafter(0.5, 1), 1.0, np.nextafter(1.0, 0)]
    got = truecal.calibration_error(y, p, estimator="neighbor", norm=1, n_neighbors=1)
    assert got == pytest.approx(0.5)


@pytest.mark.parametrize("parts", [10, 3, 49])
def test_rows_in_parts_add_up_to_neighbors(parts):
    # Ten rows of weight 0.1 are one neighbour, though their sum may round below 1.
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p
    whole = truecal.calibration_error(y, p, estimator="neighbor", n_neighbors=2 * parts)
    weight = np.full(200, 1 / parts)
    got = truecal.calibration_error(y, p, estimator="neighbor", n_neighbors=2, sample_weight=weight)
    assert got == pytest.approx(whole, rel=1e-9)


def test_by_default_a_fifteenth_of_the_rows():
    rng = np.random.default_rng(0)
    p = rng.random(301)
    y = rng.random(301) < p
    assert truecal.calibration_error(y, p, estimator="neighbor") == truecal.calibration_error(
        y, p, estimator="neighbor", n_neighbors=21
    )


@pytest.mark.parametrize("bad", [0, -1, 1.5, "3", True])
def test_n_neighbors_must_be_a_whole_number(bad):
    with pytest.raises(ValueError, match="n_neighbors must be a whole number >= 1"):
        truecal.calibration_error([0, 1], [0.2, 0.7], estimator="neighbor", n_neighbors=bad)


def test_weights_that_sum_to_1_do_not_shrink_the_neighbourhoods():
    rng = np.random.default_rng(3)
    p = rng.random(500)
    y = rng.random(500) < p**2
    plain = truecal.calibration_error(y, p, estimator="neighbor")
    weighted = truecal.calibration_error(y, p, estimator="neighbor", sample_weight=np.full(500, 1 / 500))
    assert weighted == pytest.approx(plain, rel=1e-12)
