"""The whole: accuracy, order and weights, influence, resolution."""

import numpy as np
import pytest

import truecal
from truecal.data.sample import Sample
from truecal.multiscale._error import analyse, analyse_many


def test_the_error_of_a_power_curve_is_found(draw):
    truth = np.sqrt(1 / 3 - 2 / 3.5 + 1 / 4)
    errors = [analyse(draw(4000, lambda p: p**1.5, seed=seed)).error() for seed in range(20)]
    assert np.mean(errors) == pytest.approx(truth, abs=4 * np.std(errors) / np.sqrt(20) + 0.002)


@pytest.mark.parametrize("decimals", [2, 3])
def test_alternating_errors_of_repeated_scores_are_resolved(draw, decimals):
    step = 10.0**-decimals

    def curve(p):
        return np.clip(p + 0.08 * (1 - 2 * (np.rint(p / step) % 2)), 0, 1)

    core = analyse(draw(20_000, curve, decimals=decimals))
    assert core.error() == pytest.approx(0.078, abs=0.012)


def test_fine_waves_of_continuous_scores_are_resolved(draw):
    core = analyse(draw(20_000, lambda p: np.clip(p + 0.1 * np.sin(80 * np.pi * p), 0, 1)))
    assert core.error() == pytest.approx(0.069, abs=0.015)


def test_a_local_error_keeps_its_l1_size(draw):
    values = [
        analyse(draw(20_000, lambda p: np.where((p > 0.3) & (p < 0.35), p + 0.3, p), seed=seed)).error(1)
        for seed in range(5)
    ]
    assert np.mean(values) == pytest.approx(0.015, abs=0.004)


def test_norms_are_ordered(draw):
    core = analyse(draw(3000, lambda p: p**1.5))
    values = [core.error(norm) for norm in (1, 1.5, 2, 3, 10)]
    assert values == sorted(values)


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(0)
    score = np.round(rng.random(3000), 2)
    label = (rng.random(3000) < score**1.2).astype(int)
    weight = rng.lognormal(0, 0.5, 3000)
    cluster = rng.integers(0, 300, 3000)
    order = rng.permutation(3000)
    for options in ({}, {"weight": weight, "sampling": True}, {"clusters": cluster}):
        moved = {k: v if isinstance(v, bool) else v[order] for k, v in options.items()}
        one = analyse(Sample.from_rows(label, score, **options))
        other = analyse(Sample.from_rows(label[order], score[order], **moved))
        assert other.error() == pytest.approx(one.error(), abs=1e-12)
        assert other.limits.interval(0.95) == pytest.approx(one.limits.interval(0.95), abs=1e-9)


def test_the_influence_of_rows_has_the_variance_that_the_sums_give():
    rng = np.random.default_rng(1)
    score = rng.random(9000)
    label = (rng.random(9000) < score**1.4).astype(int)
    weight = rng.lognormal(0, 0.6, 9000)
    for options in ({}, {"weight": weight, "sampling": True}):
        core = analyse(Sample.from_rows(label, score, **options))
        psi = core.influence(label, score)
        w = options.get("weight", np.ones(9000))
        centred = w * (psi - w @ psi / w.sum())
        from_rows = centred @ centred / w.sum() ** 2
        # Above 4,096 groups a unit holds several scores; its gap is the same for all of them.
        assert core.variance(2) == pytest.approx(from_rows, rel=0.02)


@pytest.mark.parametrize("n", [1, 2, 5, 23, 24, 50])
def test_tiny_samples_give_an_honest_answer(draw, n):
    core = analyse(draw(n))
    low, high = core.limits.interval(0.95)
    assert 0 <= low <= core.error() <= high <= core.largest(2)
    assert core.limits.at_most(0.01) > 0.05


@pytest.mark.parametrize(
    ("label", "score"),
    [([1] * 50, [0.5] * 50), ([0] * 40, [0.0] * 40), ([1] * 40, [0.0] * 40), ([0, 1] * 30, [0.0, 1.0] * 30)],
)
def test_degenerate_samples(label, score):
    core = analyse(Sample.from_rows(np.array(label), np.array(score)))
    low, high = core.limits.interval(0.95)
    truth = abs(np.mean(label) - score[0]) if len(set(score)) == 1 else 0.0
    assert low <= truth + 1e-9
    assert high >= truth - 0.05
    assert core.error() == pytest.approx(truth, abs=0.03)


def test_with_weights_the_interval_of_a_calibrated_model_holds_zero():
    rng = np.random.default_rng(2)
    hits = 0
    for _ in range(100):
        score = rng.random(600)
        label = (rng.random(600) < score).astype(int)
        sample = Sample.from_rows(label, score, rng.lognormal(0, 1, 600), sampling=True)
        hits += analyse(sample).limits.interval(0.95)[0] == 0
    assert hits >= 88


def test_large_norms_do_not_underflow(draw):
    core = analyse(draw(2000, lambda p: p**1.5, seed=0))
    errors = [core.error(norm) for norm in (2, 50, 500, 1e308)]
    assert errors == sorted(errors)
    assert 0.1 < errors[-1] <= 1


def test_clusters_of_one_row_agree_with_independent_rows_however_strong_the_evidence():
    y, p = truecal.paper.population("resnet110_c100").sample(20_000, rng=1)
    plain = truecal.estimate(y, p, confidence_level=0.95)
    alone = truecal.estimate(y, p, clusters=np.arange(20_000), confidence_level=0.95)
    assert alone.value == pytest.approx(plain.value, rel=2e-3)
    assert alone.interval.low == pytest.approx(plain.interval.low, rel=2e-3)
    assert alone.interval.high == pytest.approx(plain.interval.high, rel=2e-3)


@pytest.mark.parametrize("decimals", [None, 3])
@pytest.mark.parametrize("n", [40, 200, 1000])
def test_samples_analysed_together_give_what_they_give_alone(draw, n, decimals):
    """Among them samples with repeated scores, and with certain scores that are right or wrong."""
    rng = np.random.default_rng(n)
    score = rng.beta(1.5, 0.5, (12, n)) if decimals is None else np.round(rng.random((12, n)), decimals)
    score[4:8] = np.clip(1.1 * score[4:8] - 0.05, 0, 1)
    score.sort(axis=1)
    label = (rng.random((12, n)) < score**1.3).astype(float)
    label[6, score[6] == 1] = 0
    together = analyse_many(score, label)
    alone = [analyse(Sample.from_rows(one, other)) for one, other in zip(label, score, strict=True)]
    assert together.square == pytest.approx([core.square for core in alone], abs=1e-6)
    assert together.gate * together.root == pytest.approx([core.error() for core in alone], abs=1e-6)
    assert together.slope == pytest.approx([core.squared.slope[0] for core in alone], rel=1e-4)


def test_samples_without_certain_scores_analysed_together_give_what_they_give_alone():
    rng = np.random.default_rng(0)
    score = np.sort(rng.uniform(0.05, 0.95, (20, 200)), axis=1)  # their fits take different numbers of steps
    label = (rng.random((20, 200)) < score ** rng.uniform(0.3, 3, (20, 1))).astype(float)
    together = analyse_many(score, label)
    alone = [analyse(Sample.from_rows(one, other)).error() for one, other in zip(label, score, strict=True)]
    assert together.gate * together.root == pytest.approx(alone, abs=1e-6)


def test_samples_that_need_other_levels_are_not_analysed_together():
    rng = np.random.default_rng(0)
    score = np.sort(np.round(rng.random((3, 500)), 1), axis=1)
    assert analyse_many(score, np.zeros((3, 500))) is None
    assert analyse_many(np.sort(rng.random((3, 20)), axis=1), np.zeros((3, 20))) is None


@pytest.mark.parametrize("decimals", [None, 1, 2])
def test_exchanging_the_classes_changes_nothing(draw, decimals):
    """Also for an odd number of rows, where the middle one is exactly on an edge."""
    for n in (25, 101, 400, 401):
        sample = draw(n, lambda p: p**1.4, seed=n, decimals=decimals)
        if 0.5 in sample.score:
            continue  # a score of 1/2 in the very middle is on neither side
        mirrored = Sample(
            score=1 - sample.score[::-1],
            count=sample.count[::-1],
            positives=(sample.count - sample.positives)[::-1],
        )
        for norm in (1, 2):
            assert analyse(mirrored).error(norm) == pytest.approx(analyse(sample).error(norm), abs=1e-5)


def test_norms_between_1_and_2_lie_between_them(draw):
    for seed in range(30):
        core = analyse(draw(50, lambda p: p**1.3, seed=seed))
        values = [core.error(norm) for norm in (1, 1.25, 1.5, 1.75, 2)]
        assert values == sorted(values)
