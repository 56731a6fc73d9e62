import itertools

import numpy as np
import pytest

import truecal
from truecal.data import read
from truecal.data.sample import Sample
from truecal.inference.interval import confidence_interval


def test_higher_levels_are_wider_and_contain_lower_ones():
    (sample,) = read(*truecal.paper.population("resnet110_c10").sample(1000, rng=0))
    intervals = [confidence_interval(sample, confidence_level=level) for level in (0.5, 0.8, 0.95, 0.99)]
    for inner, outer in itertools.pairwise(intervals):
        assert outer.low < inner.low < inner.high < outer.high


def test_more_rows_are_narrower():
    population = truecal.paper.population("resnet152_imgnet")
    widths = []
    for n in (200, 2000, 20_000):
        interval = confidence_interval(*read(*population.sample(n, rng=1)))
        widths.append(interval.high - interval.low)
    assert widths[0] > widths[1] > widths[2]


def test_the_l1_interval_lies_below_that_of_l2():
    (sample,) = read(*truecal.paper.population("resnet110_c100").sample(1000, rng=0))
    one, two = (confidence_interval(sample, norm=norm) for norm in (1, 2))
    assert one.low < two.low
    assert one.high < two.high


@pytest.mark.parametrize(
    ("score", "count", "positives"),
    [
        ([0.3], [1], [1]),
        ([0.3], [1], [0]),
        ([1.0], [9], [9]),
        ([0.0, 1.0], [5, 5], [5, 0]),
        ([0.5], [1e9], [5e8]),
    ],
)
def test_odd_samples_give_intervals_within_0_and_1(score, count, positives):
    sample = Sample(*(np.array(part, dtype=float) for part in (score, count, positives)))
    for norm in (1, 2):
        interval = confidence_interval(sample, norm=norm)
        assert 0 <= interval.low <= interval.high <= 1


def test_a_great_many_rows_use_the_approximation_and_still_hold_the_truth():
    # 10^9 rows in 100 groups, mean labels exactly on a line: the error is known without sampling.
    score = (np.arange(100) + 0.5) / 100
    count = np.full(100, 1e7)
    sample = Sample(score, count, count * (0.9 * score + 0.05))
    truth = float(np.sqrt(np.mean((0.1 * score - 0.05) ** 2)))
    interval = confidence_interval(sample)
    assert truth in interval
    assert interval.high - interval.low < 0.001
