"""Bins against the naive ones of `naive.py`, and the sweep against a slow one that tries every b."""

import math

import numpy as np
import pytest

from support.naive import equal_mass, equal_width, rows_of
from truecal._lib.numeric import lp_norm
from truecal.data.sample import Block, Sample
from truecal.estimators._binning import (
    EqualMass,
    EqualWidth,
    _broken_anywhere,
    _broken_near,
    cut,
    monotone_sweep,
    partition,
)

RULES = [EqualWidth, EqualMass]
FLOATS = [np.float16, np.float32, np.float64]


def sample_of(score, label=None, weight=None):
    score = np.asarray(score)
    score = score if score.dtype.kind == "f" else score.astype(float)
    label = np.zeros(len(score), int) if label is None else np.asarray(label, int)
    return Sample.from_rows(label, score, None if weight is None else np.asarray(weight, float))


def random_scores(rng, n):
    """Scores of many kinds: without ties, with few or many, skewed, on a grid, with 0 and 1."""
    kind = rng.integers(5)
    scores = [
        rng.random(n),
        np.round(rng.random(n), 1),
        np.round(rng.beta(3, 0.3, n), 2),
        rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], n),
        np.concatenate([np.full(n // 2, rng.random()), rng.random(n - n // 2)]),
    ][kind]
    return scores.astype(rng.choice(FLOATS))


def contents(rule, b):
    """The distinct scores of each bin."""
    return [part.tolist() for part in np.split(rule.groups.score, partition(rule, b).start[1:])]


def naive_contents(bins):
    return [sorted({float(score) for score, _, _ in content}) for content in bins]


# --- Equal width -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_equal_width_is_the_naive_binning(seed):
    rng = np.random.default_rng(seed)
    score = random_scores(rng, int(rng.integers(1, 40)))
    rule, rows = EqualWidth(sample_of(score)), rows_of(np.zeros(len(score)), score)
    for b in (1, 2, 3, 7, 15, 64):
        assert contents(rule, b) == naive_contents(equal_width(rows, b, score.dtype.type))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n_bins", [10, 20, 100])
def test_decimals_begin_their_own_bin(dtype, n_bins):
    decimals = [float(f"{k / n_bins:.2f}") for k in range(n_bins)]
    bins = partition(EqualWidth(sample_of(np.array(decimals, dtype))), n_bins)
    assert len(bins.start) == n_bins
    np.testing.assert_array_equal(bins.lower, np.arange(n_bins) / n_bins)


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_is_in_the_last_bin_and_zero_in_the_first(dtype):
    bins = partition(EqualWidth(sample_of(np.array([0.0, -0.0, 0.95, 1.0], dtype))), 10)
    assert bins.start.tolist() == [0, 1]
    assert bins.lower.tolist() == [0.0, 0.9]
    assert bins.upper.tolist() == [0.1, 1.0]


def test_empty_bins_are_left_out_and_their_number_is_kept():
    bins = partition(EqualWidth(sample_of([0.05, 0.55, 0.57])), 10)
    assert bins.lower.tolist() == [0.0, 0.5]
    assert bins.upper.tolist() == [0.1, 0.6]


# --- Equal mass ------------------------------------------------------------------------------------


def test_without_ties_rank_r_goes_to_floor_of_rb_over_n():
    for n in range(1, 31):
        rule = EqualMass(sample_of((np.arange(n) + 1) / 64))
        for b in range(1, 36):
            expected = [int(r * b / n + 1e-9) for r in range(n)]
            assert partition(rule, b).start.tolist() == [
                r for r in range(n) if r == 0 or expected[r] > expected[r - 1]
            ]


@pytest.mark.parametrize("seed", range(60))
def test_equal_mass_is_the_naive_binning(seed):
    rng = np.random.default_rng(seed)
    score = random_scores(rng, int(rng.integers(1, 40)))
    weight = [None, rng.integers(1, 5, len(score)), rng.integers(1, 5, len(score)) / 8][seed % 3]
    rule = EqualMass(sample_of(score, weight=weight))
    rows = rows_of(np.zeros(len(score)), score, weight)
    for b in (1, 2, 3, 7, 15, 64):
        assert contents(rule, b) == naive_contents(equal_mass(rows, b))


def test_a_heavy_tie_in_the_middle_gets_a_bin_of_its_own():
    score = np.concatenate([np.linspace(0.1, 0.4, 25), np.full(50, 0.5), np.linspace(0.6, 0.9, 25)])
    bins = cut(EqualMass(sample_of(score)), 5)[1]
    assert bins.count.tolist() == [20, 5, 50, 5, 20]
    assert (bins.lower[2], bins.upper[2]) == (0.5, 0.5)


@pytest.mark.parametrize("factor", [0.1, 1 / 3, 0.7, 1e-9, 12345.678, 3.0])
def test_equal_mass_does_not_change_when_weights_are_scaled(factor):
    rng = np.random.default_rng(5)
    for decimals in (1, 2, 17):
        score = np.round(rng.random(120), decimals)
        weight = rng.integers(1, 4, 120)
        label = rng.random(120) < score
        plain, scaled = (EqualMass(sample_of(score, label, w)) for w in (weight, weight * factor))
        assert scaled.finest == plain.finest
        assert monotone_sweep(scaled) == monotone_sweep(plain)
        for b in range(1, 40):
            assert partition(scaled, b).start.tolist() == partition(plain, b).start.tolist()


def test_equal_weights_are_no_weights():
    rng = np.random.default_rng(0)
    score = np.round(rng.random(500), 2)
    for factor in (0.1, 1 / 3, 2.0):
        plain, weighted = (
            EqualMass(sample_of(score)),
            EqualMass(sample_of(score, weight=np.full(500, factor))),
        )
        for b in (3, 10, 15, 100):
            assert partition(weighted, b).start.tolist() == partition(plain, b).start.tolist()


# --- Both rules ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("score", [[0.3], [0.2, 0.2, 0.2], [0.0, 1.0], [0.5, 1.0], [0.1, 0.4, 0.9]])
def test_more_bins_than_groups_cost_nothing(rule, score):
    for n_bins in (100, 10**9, 10**30):
        bins = partition(rule(sample_of(score)), n_bins)
        assert bins.start.tolist() == list(range(len(set(score))))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(6))
def test_index_is_the_bin_that_start_begins(rule, seed):
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(4000), [17, 3][seed % 2]).astype(FLOATS[seed % 3])
    weight = None if seed < 3 else rng.integers(1, 4, 4000) / 3
    cut = rule(sample_of(score, weight=weight))
    for b in (1, 2, 15, 100, 3000, 5000, 65537):
        start = cut.start(np.arange(b + 1), b)
        expected = np.searchsorted(start, np.arange(len(cut.groups.score)), side="right") - 1
        np.testing.assert_array_equal(
            cut.index(np.arange(len(cut.groups.score)), b), np.minimum(expected, b - 1)
        )


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(12))
def test_beyond_the_finest_binning_nothing_changes(rule, seed):
    rng = np.random.default_rng(seed)
    cut = rule(sample_of(random_scores(rng, 60)))
    alone = list(range(len(cut.groups.score)))
    if rule is EqualMass or cut.finest < cut.groups.n:
        for b in (cut.finest, cut.finest + 1, cut.finest + 7, 3 * cut.finest):
            assert partition(cut, b).start.tolist() == alone


def test_the_finest_binning_parts_one_from_the_score_below():
    # [k/b, ...] closed at 1: two bins keep 0.5 and 1 together, three part them.
    assert EqualWidth(sample_of(np.repeat([0.5, 1.0], 5))).finest == 3
    assert EqualWidth(sample_of(np.repeat([0.0, 1.0], 5))).finest == 2
    # In float16 the edge 2048/2049 rounds down to the score below 1.
    below = np.nextafter(np.float16(1), np.float16(0))
    cut = EqualWidth(sample_of(np.repeat(np.array([below, 1], np.float16), 5000)))
    assert partition(cut, 2049).start.tolist() == [0]
    assert partition(cut, cut.finest).start.tolist() == [0, 1]


def test_scores_closer_than_any_number_of_bins():
    assert EqualWidth(sample_of([0.0, 5e-324, 0.5])).finest == 3


# --- Bin tables ------------------------------------------------------------------------------------


def test_bin_table_by_hand():
    sample = sample_of([0.1, 0.2, 0.2, 0.9], [0, 1, 0, 1])
    table = cut(EqualWidth(sample), 2)[1]
    assert table.count.tolist() == [3, 1]
    np.testing.assert_allclose(table.mean_score, [0.5 / 3, 0.9])
    np.testing.assert_allclose(table.mean_label, [1 / 3, 1])


def test_two_million_float32_rows_keep_their_gap():
    # Sums in float32 would lose it: the true gap is 0.05, and one more row adds less than a rounding.
    rng = np.random.default_rng(0)
    score = rng.uniform(0.9, 1.0, 2_000_000).astype(np.float32)
    label = np.arange(len(score)) % 10 < 9
    sample = Sample.from_rows(label, score)
    for rule in RULES:
        table = cut(rule(sample), 1)[1]
        assert table.gap[0] == pytest.approx(float(np.mean(score, dtype=np.float64)) - 0.9, abs=1e-13)


def test_means_of_fractional_weights_do_not_leave_the_unit_interval():
    rng = np.random.default_rng(0)
    score = 1 - np.arange(300) * 2.0**-53  # as close to 1 as scores can be, and all different
    for _ in range(50):
        sample = sample_of(score, np.ones(300), rng.random(300))
        for rule in RULES:
            table = cut(rule(sample), 7)[1]
            assert table.mean_label.max() <= 1
            assert table.mean_score.max() <= 1


# --- The sweep -------------------------------------------------------------------------------------


def slow_sweep(sample, kind, most):
    """Every b in turn, every group in each, by whole-number ranks or by the edges themselves."""
    doubled = np.rint(2 * np.cumsum(sample.count) - sample.count - sample.count.min()).astype(np.int64)
    for b in range(2, most + 1):
        if kind is EqualMass:
            bin_of = doubled * b // round(2 * sample.n)
        else:
            edges = (np.arange(b) / b).astype(sample.dtype).astype(float)
            bin_of = np.searchsorted(edges, sample.score, side="right") - 1
        count, hits = np.bincount(bin_of, sample.count), np.bincount(bin_of, sample.positives)
        heights = hits[count > 0] / count[count > 0]
        if (heights[1:] < heights[:-1]).any():
            return b - 1
    return most


def hard_case(rng):
    """Labels that keep a sweep busy: separable but for a few rows, or noisy in one place only."""
    n = int(rng.integers(100, 1200))
    score = [
        rng.random(n),
        np.round(rng.random(n), 2),
        rng.beta(0.1, 0.1, n),
        np.where(rng.random(n) < 0.8, 1 - rng.random(n) * 1e-9, rng.random(n) / 2),
        np.round(rng.beta(3, 0.3, n), 3),
    ][rng.integers(5)].astype(rng.choice(FLOATS))
    threshold = rng.random()
    distance = score.astype(float) - threshold
    label = distance > 0
    match rng.integers(4):
        case 0:
            label[rng.integers(0, n, 2)] ^= True
        case 1:
            near = np.argsort(np.abs(distance))[: rng.integers(2, 30)]
            label[near] = rng.random(len(near)) < 0.5
        case 2:
            label = rng.random(n) < 1 / (1 + np.exp(np.clip(-distance * 10 ** rng.uniform(1, 5), -50, 50)))
        case 3:
            label = (score > 0.9) & (rng.random(n) < 0.9)
    return Sample.from_rows(label, score)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(25))
def test_sweep_is_the_slow_sweep(rule, seed):
    sample = hard_case(np.random.default_rng(seed))
    cut = rule(sample)
    found, expected = monotone_sweep(cut), slow_sweep(sample, rule, round(sample.n))
    # Where every group is alone before b = n, larger b change nothing and the least of them is given.
    assert found == expected or (expected == sample.n and found == cut.finest)
    assert partition(cut, found).start.tolist() == partition(cut, expected).start.tolist()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(10))
def test_looking_near_descents_finds_what_looking_anywhere_finds(rule, seed):
    cut = rule(hard_case(np.random.default_rng(100 + seed)))
    descents = np.flatnonzero(cut.groups.label[1:] < cut.groups.label[:-1])
    for first, last in ((2, 16), (17, 17), (30, 200)):
        near = _broken_near(cut, first, last, descents) if len(descents) else 0
        assert _broken_anywhere(cut, first, last, np.array([0])) == [near]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_block_is_swept_and_cut_sample_by_sample(rule, dtype):
    rng = np.random.default_rng(5)
    score = rng.beta(2, 0.1, (90, 400)).astype(dtype)
    score[::4] = np.round(score[::4], 2)
    noise = np.geomspace(1e-3, 3, 90)[rng.permutation(90), np.newaxis]  # sweeps of very different lengths
    label = score + noise * rng.standard_normal(score.shape) > 0.9
    block = Block.from_rows(label, score)
    found = monotone_sweep(rule(block))
    assert found.tolist() == [int(monotone_sweep(rule(sample))[0]) for sample in block]
    assert {(b > 1) + (b > 16) + (b > 32) for b in found.tolist()} == {0, 1, 2, 3}
    for n_bins in (1, 15, 500, found):
        division = partition(rule(block), n_bins)
        starts = np.split(division.start, division.bounds[1:-1])
        for number, sample in enumerate(block):
            b = int(np.broadcast_to(n_bins, 90)[number])
            expected = partition(rule(sample), b)
            assert (starts[number] - block.bounds[number]).tolist() == expected.start.tolist()
            own = slice(*division.bounds[number : number + 2])
            assert division.lower[own].tolist() == expected.lower.tolist()
            assert division.upper[own].tolist() == expected.upper.tolist()


def counting(rule):
    """The rule, counting how many bin starts are asked of it."""

    class Counting(rule):
        asked = 0

        def start(self, k, b, sample=0):
            Counting.asked += np.size(k)  # the class's: a long sweep makes a rule of its own
            return super().start(k, b, sample)

    return Counting


@pytest.mark.parametrize("rule", RULES)
def test_separable_labels_need_almost_no_trying(rule):
    score = (np.arange(200_000) + 0.5) / 200_000
    cut = counting(rule)(sample_of(score, score > 0.3))
    assert monotone_sweep(cut) == 200_000  # trying every bin of every b would ask 2 * 10^10 times
    assert cut.asked < 1000


@pytest.mark.parametrize("rule", RULES)
def test_one_wrong_row_asks_a_few_times_for_each_b(rule):
    score = (np.arange(200_000) + 0.5) / 200_000
    label = score > 0.3
    label[label.argmax() + 2] = False
    cut = counting(rule)(sample_of(score, label))
    found = monotone_sweep(cut)
    assert 20_000 < found < 200_000
    assert cut.asked < 20 * found


def test_many_wrong_rows_in_one_place_are_looked_at_together():
    # A saturated model: nearly all rows closer to 1 than any equal-width bin, with noisy labels.
    rng = np.random.default_rng(0)
    score = np.concatenate([rng.random(10) / 2, 1 - rng.random(50_000) * 1e-9])
    label = (score > 0.9) & (rng.random(len(score)) < 0.9)
    cut = counting(EqualWidth)(sample_of(score, label))
    assert monotone_sweep(cut) == len(score)
    assert cut.asked < 20 * len(score)


@pytest.mark.parametrize("factor", [0.1, 1 / 3])
def test_rounding_of_weights_does_not_stop_a_sweep(factor):
    rng = np.random.default_rng(0)
    score = np.round(rng.random(30_000), 4)
    label = score > 0.5
    label[np.flatnonzero(label)[np.argsort(score[label])[:2]]] = False
    plain = monotone_sweep(EqualMass(sample_of(score, label)))
    assert plain > 1000
    assert monotone_sweep(EqualMass(sample_of(score, label, np.full(30_000, factor)))) == plain


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "weight", [[1e12, 1, 1, 1e12], [1, 1e-12, 1e-12, 1], [1e17, 1, 1, 1], [1, 1e-17, 1e-17, 1]]
)
@pytest.mark.parametrize("label", [[0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 0]])
def test_weights_of_any_size_come_to_an_end(rule, weight, label):
    cut = rule(sample_of([0.1, 0.2, 0.2000001, 0.9], label, weight))
    assert 1 <= monotone_sweep(cut) < 10**18


def norm_of_one(gap, weight, p):
    (value,) = lp_norm(gap, weight, p, np.array([0, len(gap)]))
    return value


def test_lp_norm_by_hand():
    gap, weight = np.array([-0.4, 0.3]), np.array([3.0, 1.0])
    assert norm_of_one(gap, weight, 1) == pytest.approx((3 * 0.4 + 0.3) / 4)
    assert norm_of_one(gap, weight, 2) == pytest.approx(math.sqrt((3 * 0.16 + 0.09) / 4))
    assert norm_of_one(gap, weight, 3.5) == pytest.approx(((3 * 0.4**3.5 + 0.3**3.5) / 4) ** (1 / 3.5))
    assert norm_of_one(np.zeros(2), weight, 2) == 0.0


def test_runs_have_norms_of_their_own():
    gap, weight, bounds = (
        np.array([-0.4, 0.3, 0.0, 0.0, 0.2]),
        np.array([3.0, 1, 1, 2, 1]),
        np.array([0, 2, 4, 5]),
    )
    for p in (1, 2, 2.5, 40):
        alone = [norm_of_one(gap[own], weight[own], p) for own in (slice(0, 2), slice(2, 4), slice(4, 5))]
        assert lp_norm(gap, weight, p, bounds).tolist() == alone


def test_a_large_p_approaches_the_largest_gap_and_does_not_round_to_nothing():
    gap, weight = np.array([-0.4, 0.3]), np.array([3.0, 1.0])
    values = [norm_of_one(gap, weight, p) for p in (1, 2, 10, 1000, 1e6, 1e300)]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(0.4, abs=1e-12)
