"""skce: all pairs one by one, unbiasedness by enumeration, and random pairs."""

import itertools
import math

import numpy as np
import pytest

import truecal
from support import naive


def skce(y, p, **options):
    return truecal.calibration_error(y, p, estimator="skce", **options)


@pytest.mark.parametrize("bandwidth", [0.01, 0.2, 3.0, 100])
@pytest.mark.parametrize("seed", range(6))
def test_full_is_the_mean_over_all_pairs(bandwidth, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 50))
    p = np.round(rng.random(n), [17, 1, 0][seed % 3])
    y = (rng.random(n) < p**2).astype(int)
    expected = naive.kernel_calibration(y, p, bandwidth)
    assert skce(y, p, bandwidth=bandwidth) == pytest.approx(expected, abs=1e-14)


def test_weights_are_repetition():
    rng = np.random.default_rng(0)
    p = np.round(rng.random(100), 2)
    y, weight = rng.random(100) < p, rng.integers(1, 4, 100)
    repeated = np.repeat(y, weight), np.repeat(p, weight)
    assert skce(y, p, sample_weight=weight) == pytest.approx(skce(*repeated), abs=1e-14)
    assert skce(y, p, sample_weight=weight, method="block", rng=3) == skce(*repeated, method="block", rng=3)


@pytest.mark.parametrize(("method", "seeds", "tolerance"), [("full", 1, 1e-15), ("block", 150, 0.01)])
def test_it_is_unbiased_over_all_labels(method, seeds, tolerance):
    # Every outcome of five labels with its probability; ties and unlike frequencies included.
    p, rate = np.array([0.1, 0.4, 0.4, 0.8, 1.0]), np.array([0.3, 0.2, 0.9, 0.5, 0.6])
    mean = truth = 0.0
    for y in itertools.product([0, 1], repeat=5):
        chance = math.prod(r if label else 1 - r for label, r in zip(y, rate, strict=True))
        mean += chance * np.mean([skce(y, p, method=method, rng=seed) for seed in range(seeds)])
    for i, j in itertools.permutations(range(5), 2):
        truth += (p[i] - rate[i]) * (p[j] - rate[j]) * math.exp(-abs(p[i] - p[j]) / 0.2) / 20
    assert mean == pytest.approx(truth, abs=tolerance)


def test_a_block_is_a_pair():
    y, p = [0, 1], [0.3, 0.6]
    expected = 0.3 * -0.4 * math.exp(-0.3 / 0.2)
    assert skce(y, p, method="block") == pytest.approx(expected)
    assert skce(y, p, method="full") == pytest.approx(expected)


def test_an_odd_row_is_left_out():
    # Three rows make one pair: one of three values, and all three come up.
    y, p = np.array([0, 1, 0]), np.array([0.3, 0.6, 0.8])
    pairs = {round(naive.kernel_calibration(y[[i, j]], p[[i, j]]), 12) for i, j in ((0, 1), (0, 2), (1, 2))}
    assert {round(skce(y, p, method="block", rng=seed), 12) for seed in range(60)} == pairs


def test_blocks_average_to_the_full_estimate():
    rng = np.random.default_rng(0)
    p = np.round(rng.random(60), 1)
    y = rng.random(60) < p**2
    blocks = np.array([skce(y, p, method="block", rng=seed) for seed in range(2000)])
    assert abs(blocks.mean() - skce(y, p)) < 4.5 * blocks.std() / math.sqrt(len(blocks))


def test_the_same_seed_gives_the_same_value_for_any_row_order():
    rng = np.random.default_rng(0)
    p = np.round(rng.random(101), 1)
    y = rng.random(101) < p
    order = rng.permutation(101)
    assert skce(y, p, method="block", rng=7) == skce(y[order], p[order], method="block", rng=7)
    assert skce(y, p, method="block", rng=7) == skce(y, p, method="block", rng=np.random.default_rng(7))
    assert skce(y, p, method="block", rng=7) != skce(y, p, method="block", rng=8)


def test_extremes():
    assert skce([0, 0], [1.0, 1.0]) == 1.0
    assert skce([0, 1], [1.0, 1.0]) == 0.0
    assert skce([0, 1], [0.5, 0.5]) == -0.25


def test_linear_time_on_many_rows():
    # All pairs of 300,000 rows would be 10^11 kernels.
    rng = np.random.default_rng(0)
    p = rng.random(300_000)
    calibrated, off = rng.random(300_000) < p, rng.random(300_000) < p**2
    assert abs(skce(calibrated, p)) < 1e-4
    grid = (np.arange(2000) + 0.5) / 2000
    gap = grid - grid**2
    truth = gap @ np.exp(-np.abs(grid[:, None] - grid) / 0.2) @ gap / 2000**2
    assert skce(off, p) == pytest.approx(truth, rel=0.03)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": 0}, "bandwidth must be a number between 0.01 and 100. Got 0 instead"),
        ({"bandwidth": math.nan}, "bandwidth must be"),
        ({"bandwidth": "wide"}, "bandwidth must be"),
        ({"method": "blok"}, "method must be one of 'full', 'block'.*Did you mean 'block'"),
        ({"method": "block", "rng": "seed"}, "rng must be"),
        ({"method": "block", "sample_weight": [0.5, 1.5]}, "sample_weight must be whole numbers"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        skce([0, 1], [0.2, 0.7], **options)


def test_one_row_is_refused():
    with pytest.raises(ValueError, match=r"at least two rows for skce\. Got 1 instead"):
        skce([1], [0.2])
