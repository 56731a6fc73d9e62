"""The upper limit: exact laws, Clopper and Pearson, symmetry, weights, and what it is used for."""

import itertools
import math
import warnings

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta, binom

import truecal
from support.grouped import sample_of
from truecal.data.sample import Sample
from truecal.multiscale import _constants
from truecal.multiscale import _intervals as intervals
from truecal.multiscale._error import analyse
from truecal.multiscale._intervals import combined
from truecal.multiscale._upper import UpperLimit


def limit_of(score, rows, events):
    """Return the upper limit of counted rows at a few scores."""
    sample = sample_of(score, rows, events)
    return analyse(sample).upper_limit()


@pytest.mark.parametrize("f", [0.0, 0.001, 0.02, 0.3, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("n", [5, 50, 1000])
def test_one_score_gives_the_limits_of_clopper_and_pearson(f, n):
    for k in {0, 1, n // 10, n // 2, n - 1, n}:
        for tail in (0.05, 0.01):
            high = 1.0 if k == n else float(beta.ppf(1 - tail, k + 1, n - k))
            low = 0.0 if k == 0 else float(beta.ppf(tail, k, n - k + 1))
            assert limit_of([f], [n], [k]).limit(tail) == pytest.approx(max(high - f, f - low), rel=1e-5)


def test_no_event_gives_three_over_n():
    assert limit_of([0.0], [1000], [0]).limit(0.05) == pytest.approx(3 / 1000, rel=0.01)


@pytest.mark.parametrize(
    ("score", "rows", "events"),
    [
        ([0.1, 0.4, 0.6, 0.8], [12, 9, 7, 5], [2, 3, 5, 3]),
        ([0.01, 0.02, 0.05, 0.2], [20, 10, 8, 5], [0, 0, 1, 0]),
        ([0.0, 0.3, 0.9, 1.0], [8, 8, 8, 8], [0, 3, 7, 8]),
    ],
)
def test_the_convolution_is_the_exact_law(score, rows, events):
    limit = limit_of(score, rows, events)
    for error in (0.15, 0.25, 0.4):
        gap, others, _ = limit._curves(error**2)
        curves = [(np.array([k]), gap[k : k + 1]) for k in np.flatnonzero(gap == gap)]
        curves += [(None, other[np.newaxis]) for other in others]
        for moved, move in curves:
            rate = limit.score - (
                move[0] if moved is None else np.where(np.arange(4) == moved, move, limit.base)
            )
            found = limit._convolved(moved, move, np.zeros(1))[0]
            assert found == pytest.approx(_enumerated(limit, rate), abs=0.012)


def _enumerated(limit, rate):
    """Return P(T <= t) over all numbers of events."""
    total, t = 0.0, limit.statistic * (1 + 1e-9)
    ranges = [range(int(n) + 1) for n in limit.rows]
    values = [
        limit.share[k] * ((limit.score[k] - np.arange(n + 1) / n) + limit.tilt[k] / (2 * n)) ** 2
        for k, n in enumerate(limit.rows.astype(int))
    ]
    chances = [binom.pmf(np.arange(n + 1), n, q) for n, q in zip(limit.rows.astype(int), rate, strict=True)]
    for events in itertools.product(*ranges):
        if sum(values[k][x] for k, x in enumerate(events)) <= t:
            total += math.prod(chances[k][x] for k, x in enumerate(events))
    return total


def test_rows_with_different_scores_have_the_law_of_their_sum():
    # Poisson-binomial counts, and their approximation by a binomial of the same mean and variance.
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.6, 30)
    limit = analyse(Sample.from_rows((rng.random(30) < p).astype(int), p)).upper_limit(resolution=2)
    _, value, chance = limit._events(np.array([0]), limit.score[:1], np.inf)
    assert chance.sum() == pytest.approx(1, abs=1e-9)
    mean, variance, *_ = limit._moments(np.zeros(len(limit)))[:, 0]
    assert chance @ value == pytest.approx(mean, rel=0.02)
    assert chance @ value**2 - (chance @ value) ** 2 == pytest.approx(variance, rel=0.1)


def test_many_intervals_agree_with_the_convolution(monkeypatch):
    rng = np.random.default_rng(1)
    p = rng.random(4000)
    sample = Sample.from_rows((rng.random(4000) < p**1.05).astype(int), p)
    mixed = analyse(sample).upper_limit()
    assert len(mixed) > _constants.MOST_CONVOLVED
    error = mixed.limit(0.05)
    monkeypatch.setattr(_constants, "MOST_CONVOLVED", 1000)
    monkeypatch.setattr(_constants, "GRID_STEPS", 8000)
    assert analyse(sample).upper_limit().pvalue(error) == pytest.approx(0.05, abs=0.003)


def test_exchanging_the_classes_changes_nothing():
    rng = np.random.default_rng(2)
    for n in (40, 900):
        p = np.round(rng.beta(0.5, 2, n), 3)
        y = (rng.random(n) < p).astype(int)
        one, two = (analyse(Sample.from_rows(*rows)).upper_limit() for rows in ((y, p), (1 - y, 1 - p)))
        assert one.limit(0.05) == pytest.approx(two.limit(0.05), rel=1e-4)


@pytest.mark.filterwarnings("ignore::truecal.exceptions.CalibrationWarning")
def test_equal_weights_are_no_weights_and_counts_are_repetitions():
    rng = np.random.default_rng(3)
    p = np.round(rng.random(300), 1)
    y, count = (rng.random(300) < p).astype(int), rng.integers(1, 4, 300)
    plain = analyse(Sample.from_rows(y, p)).upper_limit().limit(0.05)
    weighted = analyse(Sample.from_rows(y, p, np.full(300, 3.7), sampling=True)).upper_limit().limit(0.05)
    assert weighted == pytest.approx(plain, rel=1e-6)
    counted = analyse(Sample.from_rows(y, p, count)).upper_limit().limit(0.05)
    repeated = analyse(Sample.from_rows(y.repeat(count), p.repeat(count))).upper_limit().limit(0.05)
    assert counted == pytest.approx(repeated, rel=1e-9)


def test_uneven_weights_and_dependent_rows_give_longer_limits():
    rng = np.random.default_rng(4)
    p = rng.random(2000)
    y = (rng.random(2000) < p).astype(int)
    plain = analyse(Sample.from_rows(y, p)).upper_limit().limit(0.05)
    uneven = (
        analyse(Sample.from_rows(y, p, rng.lognormal(0, 1, 2000), sampling=True)).upper_limit().limit(0.05)
    )
    p, y = np.repeat(p[:400], 5), np.repeat(y[:400], 5)
    p = np.clip(p + rng.normal(0, 0.001, 2000), 0, 1)
    dependent = analyse(Sample.from_rows(y, p, clusters=np.arange(2000) // 5)).upper_limit().limit(0.05)
    assert uneven > 1.1 * plain
    assert dependent > 1.3 * plain


@pytest.mark.parametrize("f", [[0.2], [0.05, 0.5], [0.1, 0.2, 0.7, 0.9]])
def test_the_p_value_falls_from_one_to_zero(f):
    rng = np.random.default_rng(5)
    p = rng.choice(f, 150)
    limit = analyse(Sample.from_rows((rng.random(150) < p).astype(int), p)).upper_limit()
    error = np.linspace(0, limit.largest, 80)
    pvalue = np.array([limit.pvalue(one) for one in error])
    assert pvalue[0] == 1
    assert pvalue[-1] == 0
    assert np.diff(pvalue).max() < 0.03  # small rises are those of discrete laws


def test_more_rows_like_these_show_less_and_few_do_not():
    rng = np.random.default_rng(6)
    p = rng.random(1000)
    y = (rng.random(1000) < p).astype(int)
    limit = analyse(Sample.from_rows(y, p)).upper_limit()
    margins = [limit.margin(0.01, 0.05, 0.05, 0.9, factor) for factor in (0.1, 1, 3, 10, 100)]
    assert margins == sorted(margins)
    assert margins[0] < 0 < margins[-1]


def test_classes_side_by_side():
    rng = np.random.default_rng(7)
    parts = []
    for _ in range(3):
        p = rng.random(800)
        parts.append(analyse(Sample.from_rows((rng.random(800) < p).astype(int), p)).upper_limit())
    share = np.full(3, 1 / 3)
    independent, worst = combined(parts, share, 0.0), combined(parts, share, 1.0)
    assert len(independent) == sum(map(len, parts))
    assert independent.limit(0.05) < worst.limit(0.05)
    assert independent.limit(0.05) < max(part.limit(0.05) for part in parts)
    one = combined(parts[:1], np.ones(1), 0.0)
    assert one.limit(0.05) == pytest.approx(parts[0].limit(0.05), rel=1e-6)


def test_an_error_that_scores_do_not_allow_has_no_p_value():
    limit = limit_of([0.5], [10], [5])
    assert limit.largest == 0.5
    assert limit.pvalue(0.5) == 0
    assert isinstance(limit, UpperLimit)


def test_clusters_without_events_count_as_one_row_each():
    """No label shows how much rows of a cluster have in common: rows and cells used to differ by rounding alone."""
    rng = np.random.default_rng(12)
    p, cluster = rng.random(1200) * 1e-7, np.arange(1200) // 20
    for label in (np.zeros(1200), np.arange(1200) < 20):
        rows = truecal.confidence_interval(label, p, clusters=cluster)
        frame = pl.DataFrame({"p": p, "y": label.astype(int), "c": cluster})
        cells = truecal.confidence_interval(truecal.summarize(frame, score="p", label="y", cluster="c"))
        assert rows.high == pytest.approx(cells.high, rel=1e-4)
        assert rows.high > 2 * truecal.confidence_interval(label, p).high


def test_clusters_of_one_label_do_not_pass_at_their_own_error():
    """200 draws of 60 clusters: 36% passed when a cluster without events counted as 20 rows."""
    rng = np.random.default_rng(13)
    cluster, passed = np.arange(1200) // 20, 0
    for _ in range(200):
        label = (rng.random(60) < 0.02)[cluster]
        test = truecal.calibration_test(label, rng.random(1200) * 1e-4, clusters=cluster, at_most=0.02)
        passed += test.pvalue <= 0.05
    assert passed <= 200 * 0.06


@pytest.mark.parametrize("low", [0.0, 0.02])
@pytest.mark.parametrize("single", [0, 6])
def test_clusters_that_are_all_right_count_as_one_row_each(low, single):
    """Neither label is rare, but hardly any is on the unlikely side: 20 clusters tell no more than 20 rows."""
    cluster = np.repeat(np.arange(20), 50)
    score = np.where(cluster % 2, low, 1 - low)
    label = (score > 0.5).astype(int)
    label[:single] = 1 - label[:single]  # in one cluster
    test = truecal.calibration_test(label, score, clusters=cluster, at_most=0.05)
    assert test.pvalue >= 0.95**20  # what a model that is wrong in 5% of clusters gets


def test_labels_that_agree_with_certain_scores_need_no_large_grid(monkeypatch):
    sizes, irfft = [], np.fft.irfft
    monkeypatch.setattr(np.fft, "irfft", lambda a, n, axis: [sizes.append(n), irfft(a, n, axis=axis)][1])
    limit = limit_of([0.0, 1.0], [500, 500], [0, 500])
    assert limit.pvalue(0.01) == pytest.approx(
        (1 - 0.01 * math.sqrt(2)) ** 500, rel=0.3
    )  # one score is wrong
    assert limit.pvalue(0.2) < 1e-20
    assert max(sizes) <= 1 << 18


@pytest.mark.parametrize("factor", [1e-6, 0.1, 0.37, 7.0, 1e5])
def test_the_scale_of_weights_does_not_change_the_limit(factor):
    """w^2 / w^2 is not 1 exactly for every factor, but one row is one row."""
    for weight in ([3.2, 2.6, 3.6], [0.2, 3.0, 2.9], [1.7, 1.6, 0.2]):
        one, other = (
            truecal.confidence_interval([0, 0, 0], [0.99, 0.01, 0.02], sample_weight=by * np.array(weight))
            for by in (1, factor)
        )
        assert other.high == pytest.approx(one.high, rel=1e-6)


def test_scores_that_hardly_differ_from_0_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        interval = truecal.confidence_interval([0, 0, 0], [5e-324, 1e-310, 1e-310])
    assert 0 <= interval.low <= interval.high <= 1


def test_an_error_that_takes_all_the_room_of_a_score_is_no_negative_rate():
    sample = Sample(
        score=np.array([0.001, 0.005, 0.01, 0.05]),
        count=np.array([77.0, 63, 42, 18]),
        positives=np.array([1.0, 3, 4, 2]),
    )
    assert 0 < analyse(sample).limits.at_most(0.05) <= 1


@pytest.mark.parametrize("place", [0.2, 0.5, 0.8])
def test_a_jump_inside_an_interval_counts_with_all_of_its_energy(place):
    """The product of two observed steps alone falls short by the variance of the gap between them."""
    rng, sd, jump = np.random.default_rng(4), 0.02, 0.2
    gaps = [0.0, 0.0, place * jump, jump, jump] + sd * rng.normal(size=(4000, 5))
    found = np.array([intervals._jumps(gap, np.full(5, sd**2))[2] for gap in gaps])
    error = found.std() / math.sqrt(len(found))
    assert found.mean() == pytest.approx(place * (1 - place) * jump**2, abs=3 * error)


@pytest.mark.slow
def test_steps_pass_rarely_at_their_own_error():
    """Four steps with jumps inside intervals: 8.3% before jumps counted with all of their energy."""
    rng, error, passed = np.random.default_rng(6), 0.0842, 0
    for _ in range(500):
        score = rng.random(1000)
        rate = np.array([0.1, 0.4, 0.55, 0.9])[(4 * score).astype(int)]
        test = truecal.calibration_test(
            (rng.random(1000) < rate).astype(int), score, at_most=error, n_resamples=1
        )
        passed += test.pvalue <= 0.05
    assert passed <= 500 * 0.08


def test_clusters_that_all_have_one_label_give_no_positive_lower_end():
    """How much labels of a cluster have in common cannot be seen: sixteen clusters may be worth sixteen rows."""
    rng = np.random.default_rng(3)
    score, cluster = rng.uniform(0.7, 0.95, 160), np.arange(160) // 10
    test = truecal.calibration_test(np.ones(160, int), score, clusters=cluster, n_resamples=999, rng=0)
    interval = truecal.confidence_interval(np.ones(160, int), score, clusters=cluster)
    assert not test.tested
    assert interval.low == 0


def test_the_limit_is_where_the_p_value_falls_below_the_tail():
    """Also with uneven weights, where the gamma law alone would choose the wrong curve."""
    broken = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        score = rng.choice([0.1, 0.3, 0.35, 0.6, 0.8, 0.97], 60)
        label, weight = rng.random(60) < score, rng.lognormal(0, 2, 60)
        for tail in (0.05, 0.005):
            sample = truecal.Sample.from_predictions(label.astype(int), score, sample_weight=weight)
            above = analyse(sample).limits
            found = above.upper(tail)
            passes = [above.at_most(found * factor) <= tail for factor in (1 - 1e-5, 1 + 1e-5, 1.01, 1.05)]
            broken += found < above.largest and passes != [False, True, True, True]
    assert broken <= 1


@pytest.mark.parametrize("score", [[0.028, 0.036, 0.0087, 0.024], [0.9989, 0.9988, 0.99998, 0.9994, 0.9984]])
def test_an_error_below_the_limit_does_not_pass_although_p_dips_there(score):
    # In a few rows p may fall below the tail, and rise again before the limit.
    score = sorted(score)
    limit = limit_of(score, [1] * len(score), np.rint(score))
    dips = 0
    for tail in (0.05, 0.025):
        found = limit.limit(tail)
        assert limit.pvalue(found) <= tail
        for error in found * np.linspace(0.72, 0.98, 14):
            dips += limit._pvalue(error, exact=True) <= tail
            assert (
                limit.pvalue(error) > 0.97 * tail
            )  # beyond the next value that is looked at, within 2% of p
    assert dips


def test_the_variance_of_a_judges_labels_is_not_negative_by_rounding():
    # A negative one has no root, and the convolution failed on it.
    for seed in range(22, 27):
        rng = np.random.default_rng(seed)
        p = rng.beta(3, 1.5, 2000)
        y = rng.random(2000) < p
        judge = np.where(y, rng.random(2000) < 0.99, rng.random(2000) < 0.02)
        gold = np.where(rng.random(2000) < 0.05, y, np.nan)
        sample = Sample.from_predictions(truecal.labels.judged(judge, gold), p)
        assert analyse(sample).limits.above.extra.min() >= 0
        assert 0 <= truecal.confidence_interval(sample).high <= 1
