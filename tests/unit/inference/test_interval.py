import itertools

import numpy as np
import pytest

import truecal
from support.grouped import sample_of
from truecal.data import as_sample
from truecal.data.sample import Sample
from truecal.exceptions import InputError
from truecal.inference.interval import confidence_interval


def test_higher_levels_are_wider_and_contain_lower_ones():
    sample = as_sample(*truecal.paper.population("resnet110_c10").sample(1000, rng=0))
    intervals = [confidence_interval(sample, confidence_level=level) for level in (0.5, 0.8, 0.95, 0.99)]
    for inner, outer in itertools.pairwise(intervals):
        assert outer.low < inner.low < inner.high < outer.high


def test_more_rows_are_narrower():
    population = truecal.paper.population("resnet152_imgnet")
    widths = []
    for n in (200, 2000, 20_000):
        interval = confidence_interval(as_sample(*population.sample(n, rng=1)))
        widths.append(interval.high - interval.low)
    assert widths[0] > widths[1] > widths[2]


@pytest.mark.parametrize("assume", [None, "monotone", "none"])
@pytest.mark.parametrize("norm", [1, 2])
def test_every_assumption_gives_an_interval_with_the_value_and_the_truth(assume, norm):
    population = truecal.paper.population("resnet152_imgnet")
    y, p = population.sample(3000, rng=4)
    interval = confidence_interval(y, p, assume=assume, norm=norm)
    assert truecal.calibration_error(y, p, norm=norm) in interval
    assert population.true_error(norm) in interval
    assert interval.assumption


def test_assumptions_are_ordered_by_what_they_cost():
    y, p = truecal.paper.population("resnet110_c100").sample(3000, rng=3)
    short, rising, none = (confidence_interval(y, p, assume=a) for a in (None, "monotone", "none"))
    assert none.low < short.low
    assert short.high < rising.high < none.high
    assert (none.assumption, rising.assumption) == ("any curve; lower limit only", "the curve rises")
    assert short.resolution >= 8


def test_the_resolution_follows_from_the_scores_alone_or_is_given():
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 2, 2000)
    labels = [rng.random(2000) < p, rng.random(2000) < p**2, np.zeros(2000, dtype=bool)]
    assert len({confidence_interval(y, p).resolution for y in labels}) == 1
    default, coarse, fine = (confidence_interval(labels[0], p, resolution=r) for r in (None, 4, 64))
    assert coarse.resolution <= 4 < default.resolution < fine.resolution <= 64
    assert coarse.high < default.high < fine.high
    few = np.round(p, 1)
    assert confidence_interval(labels[0], few).resolution == len(np.unique(few))
    assert confidence_interval(labels[0], few, resolution=3).resolution <= 3
    with pytest.raises(InputError, match="resolution cannot be given beside assume"):
        confidence_interval(labels[0], p, resolution=4, assume="monotone")
    with pytest.raises(InputError, match="resolution must be"):
        confidence_interval(labels[0], p, resolution=0)


def test_all_routes_take_the_resolution_and_agree():
    y, p = truecal.paper.population("resnet110_c10").sample(1000, rng=0)
    interval = confidence_interval(y, p, resolution=5)
    assert truecal.estimate(y, p, confidence_level=0.95, resolution=5).interval == interval
    assert truecal.assess(y, p, resolution=5, recalibration=False, rng=0).interval == interval
    assert truecal.compare(y, p, p**1.1, resolution=5).intervals[0] == interval
    test = truecal.calibration_test(y, p, at_most=interval.high, resolution=5)
    assert test.pvalue == pytest.approx(0.025, rel=1e-4)
    assert test.resolution == interval.resolution
    with pytest.raises(InputError, match="resolution goes with"):
        truecal.estimate(y, p, resolution=5)
    with pytest.raises(InputError, match="resolution goes with"):
        truecal.calibration_test(y, p, resolution=5)


def test_a_band_needs_counted_independent_rows():
    rng = np.random.default_rng(0)
    sample = Sample.from_rows(rng.integers(0, 2, 100), rng.random(100), rng.random(100) + 0.5, sampling=True)
    with pytest.raises(InputError, match="'monotone' needs independent rows"):
        confidence_interval(sample, assume="monotone")


def test_few_clusters_give_no_confident_interval():
    rng = np.random.default_rng(0)
    score = rng.random(1000)
    label = (rng.random(1000) < score**2).astype(int)
    few = confidence_interval(Sample.from_rows(label, score, clusters=np.arange(1000) % 5))
    assert few.low == 0
    assert few.high == pytest.approx(np.sqrt(np.mean(np.maximum(score, 1 - score) ** 2)))
    assert few.assumption.startswith("5 clusters are too few")
    assert not few.reliable
    many = confidence_interval(Sample.from_rows(label, score, clusters=np.arange(1000) % 50))
    assert many.low > 0
    assert many.reliable


def test_what_must_be_independent_is_named():
    rng = np.random.default_rng(0)
    p = rng.choice([0.3, 0.7], 4000)
    y = rng.random(4000) < p
    for clusters, units in ((None, "rows"), (np.arange(4000) // 4, "clusters")):
        interval = confidence_interval(as_sample(y, p, clusters=clusters))
        assert (
            interval.assumption
            == f"any error at each of the 2 scores; nothing is assumed but independent {units}"
        )


def test_distinct_scores_that_are_all_resolved_need_no_assumption():
    rng = np.random.default_rng(1)
    score = np.round(rng.random(3000), 1)
    interval = confidence_interval((rng.random(3000) < score).astype(int), score)
    assert interval.resolution == 11
    assert interval.assumption.startswith("any error at each of the 11 scores; nothing is assumed")


def test_the_l1_interval_does_not_exceed_that_of_l2():
    sample = as_sample(*truecal.paper.population("resnet110_c100").sample(1000, rng=0))
    one, two = (confidence_interval(sample, norm=norm) for norm in (1, 2))
    assert one.low < two.low
    assert one.high == two.high


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
    sample = sample_of(score, count, positives)
    for norm in (1, 2):
        interval = confidence_interval(sample, norm=norm)
        assert 0 <= interval.low <= interval.high <= 1


def test_a_great_many_rows_use_the_approximation_and_still_hold_the_truth():
    # 10^9 rows in 100 groups, mean labels exactly on a line: the error is known without sampling.
    score = (np.arange(100) + 0.5) / 100
    count = np.full(100, 1e7)
    sample = Sample(score=score, count=count, positives=count * (0.9 * score + 0.05))
    truth = float(np.sqrt(np.mean((0.1 * score - 0.05) ** 2)))
    interval = confidence_interval(sample)
    assert truth in interval
    assert interval.high - interval.low < 0.001


@pytest.mark.filterwarnings("ignore:.*several times each:truecal.exceptions.CalibrationWarning")
def test_counts_are_rows_that_occur_so_often_for_classwise_errors_too():
    rng = np.random.default_rng(4)
    p = rng.dirichlet([1, 1, 1], 300)
    y = (p.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1).clip(max=2)
    count = rng.integers(1, 4, 300)
    one = confidence_interval(y, p, multiclass="classwise", sample_weight=count, weighting="counts")
    two = confidence_interval(y.repeat(count), p.repeat(count, axis=0), multiclass="classwise")
    assert (one.low, one.high) == pytest.approx((two.low, two.high), rel=1e-8)


def test_a_positive_lower_end_implies_that_the_test_rejects():
    # Close calls: small samples with weak evidence, where the closed-form p-value is often far from that of the test.
    rng = np.random.default_rng(1)
    positive = 0
    for k in range(150):
        n = int(rng.integers(15, 200))
        p = [rng.random(n), np.round(rng.random(n), 1), rng.beta(5, 1, n), np.full(n, 0.3)][k % 4]
        y = rng.random(n) < np.clip(p + rng.normal(0, 0.1), 0, 1)
        if confidence_interval(y, p).low > 0:
            positive += 1
            assert truecal.calibration_test(y, p, rng=k).pvalue <= 0.05, k
    assert positive > 20


def test_a_positive_lower_end_implies_that_the_test_rejects_with_clusters():
    # Few clusters of uneven sizes, of which a few have nearly all that shows how much clusters differ.
    positive = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        size = np.maximum((20 * rng.lognormal(0, 1, int(rng.integers(15, 40)))).astype(int), 1)
        cluster = np.repeat(np.arange(len(size)), size)
        p = rng.random(len(cluster)) if seed % 2 else rng.beta(0.5, 30, len(cluster))
        same = rng.random(len(cluster)) < 0.3
        u = np.where(same, rng.random(len(size))[cluster], rng.random(len(cluster)))
        y = (u < np.clip(p * rng.choice([0.5, 1, 1.5]), 0, 1)).astype(int)
        if confidence_interval(y, p, clusters=cluster).low > 0:
            positive += 1
            assert truecal.calibration_test(y, p, clusters=cluster, rng=seed).pvalue <= 0.05, seed
    assert positive > 20


def test_three_clusters_with_events_show_no_error():
    """Their sums say next to nothing about how much clusters differ: without the rule the lower end was 0.011."""
    size, score = np.r_[np.full(84, 8), 36, 19, 8], np.r_[np.linspace(1e-4, 0.02, 84), 0.03, 0.035, 0.073]
    cluster = np.repeat(np.arange(87), size)
    p, y = score[cluster], np.zeros(len(cluster), dtype=int)
    for one in (84, 85, 86):
        y[np.flatnonzero(cluster == one)[:2]] = 1
    assert truecal.calibration_test(y, p, clusters=cluster, rng=0).pvalue > 0.2
    assert confidence_interval(y, p, clusters=cluster).low == 0


def test_one_row_gives_the_widest_interval():
    for y, p in ((0, 0.999), (1, 0.001)):
        interval = confidence_interval([y], [p])
        assert (interval.low, interval.high) == (0.0, pytest.approx(0.999))
        assert interval.assumption == "one row is too few for an interval"
        assert not interval.reliable


#: Scores next to 0 and 1, ties, a few rows: where draws tie, and where closed-form evidence and the test differ most.
_AWKWARD = [0.0, 5e-324, 1e-12, 0.02, 0.3, 0.5, 0.9, 1 - 2**-53, 1.0]


@pytest.mark.parametrize("assume", [None, "monotone", "none"])
def test_a_positive_lower_end_means_that_the_test_rejects(assume):
    positive = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 40))
        p = rng.choice(_AWKWARD, n) if seed % 3 else rng.random(n)
        y = rng.integers(0, 2, n) if seed % 2 else (rng.random(n) < p**2).astype(int)
        for level in (0.8, 0.95):
            if confidence_interval(y, p, assume=assume, confidence_level=level).low > 0:
                positive += 1
                assert truecal.calibration_test(y, p, rng=seed).pvalue <= 1 - level
    assert positive > 5


@pytest.mark.parametrize("norm", [1, 2])
def test_at_most_agrees_with_the_upper_end(norm):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 60))
        p = rng.choice(_AWKWARD, n) if seed % 2 else rng.random(n)
        y = (rng.random(n) < p**1.5).astype(int)
        weight = rng.lognormal(0, 2, n) if seed % 3 else None
        interval = confidence_interval(y, p, norm=norm, sample_weight=weight)
        for bound in (interval.high * (1 - 1e-6), min(interval.high * (1 + 1e-6), 1 - 1e-12)):
            test = truecal.calibration_test(y, p, norm=norm, sample_weight=weight, at_most=bound)
            assert (test.pvalue <= 0.025 + 1e-12) == (bound >= interval.high)


def test_estimate_and_confidence_interval_are_the_same_with_weights_within_a_score():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = rng.choice([0.1, 0.4, 0.8], 20)
        y, weight = (rng.random(20) < 0.4).astype(int), rng.lognormal(0, 1, 20)
        estimate = truecal.estimate(y, p, sample_weight=weight, confidence_level=0.8)
        assert estimate.interval == confidence_interval(y, p, sample_weight=weight, confidence_level=0.8)


def test_a_part_of_one_row_does_not_make_the_whole_interval_useless():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.2, 3, 3], 400)
    p[0] = [0.8, 0.1, 0.1]
    p[1:, 0] /= 10
    p /= p.sum(axis=1, keepdims=True)
    y = np.append(rng.integers(0, 3, 397), [0, 1, 2])
    interval = confidence_interval(y, p, multiclass="top_by_class")
    assert interval.high < 0.6
