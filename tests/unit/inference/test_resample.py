import numpy as np
import pytest
from scipy import stats

from truecal import Sample
from truecal.data import as_sample
from truecal.data.cells import Cells
from truecal.inference.resample import bootstrap, redraw_classes, redraws


def plain(n=400, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return as_sample(rng.random(n) < score, score)


def tied():
    return Sample(
        score=np.array([0.0, 0.2, 0.7, 1.0]),
        count=np.array([3.0, 50.0, 1.0, 6.0]),
        positives=np.array([0.0, 9, 1, 6]),
    )


# -- labels drawn from the scores ------------------------------------------------------------------------


@pytest.mark.parametrize("sample", [plain(), tied()], ids=["plain", "tied"])
def test_redraws_keep_scores_and_counts_and_leave_the_sample_alone(sample):
    before = sample.positives.copy()
    for draw in redraws(sample, 3, rng=0):
        assert draw.score is sample.score or np.shares_memory(draw.score, sample.score)
        np.testing.assert_array_equal(draw.count, sample.count)
        assert (draw.positives >= 0).all()
        assert (draw.positives <= draw.count).all()
        assert (draw.dtype, draw.target, draw.n) == (sample.dtype, sample.target, sample.n)
    np.testing.assert_array_equal(sample.positives, before)


def test_scores_of_zero_and_one_are_sure():
    for draw in redraws(tied(), 200, rng=1):
        assert draw.positives[0] == 0
        assert draw.positives[-1] == 6


@pytest.mark.parametrize(("count", "score"), [(1, 0.3), (50, 0.02), (10**9, 0.7)])
def test_positives_of_a_group_are_binomial(count, score):
    sample = Sample(score=np.array([score]), count=np.array([float(count)]), positives=np.array([0.0]))
    drawn = np.array([draw.positives[0] for draw in redraws(sample, 4000, rng=2)])
    law = stats.binom(count, score)
    assert abs(drawn.mean() - law.mean()) < 4 * law.std() / np.sqrt(len(drawn))
    # The variance of a sample variance, from the kurtosis of the law.
    kurtosis = float(law.stats("k"))
    spread = law.var() * np.sqrt((2 + kurtosis) / len(drawn))
    assert abs(drawn.var() - law.var()) < 4 * spread


def test_a_seed_fixes_the_draws_and_a_generator_moves_on():
    sample = tied()
    one = [draw.positives.tolist() for draw in redraws(sample, 5, rng=7)]
    assert one == [draw.positives.tolist() for draw in redraws(sample, 5, rng=7)]
    generator = np.random.default_rng(7)
    assert one == [next(redraws(sample, 1, rng=generator)).positives.tolist() for _ in range(5)]


def test_cells_are_redrawn_as_any_other_groups():
    cells = Cells.from_sample(plain())
    draw = next(redraws(cells, 1, rng=0))
    assert isinstance(draw, Cells)
    np.testing.assert_array_equal(draw.cell, cells.cell)


@pytest.mark.parametrize("resample", [bootstrap, lambda sample, rng: redraws(sample, 2, rng=rng)])
def test_fractional_weights_are_refused_at_once(resample):
    sample = as_sample([0, 1], [0.2, 0.9], sample_weight=[0.5, 2])
    with pytest.raises(ValueError, match="sample_weight must be whole numbers"):
        resample(sample, 0)


def test_the_number_of_draws_is_checked_at_once():
    with pytest.raises(ValueError, match=r"n_resamples must be a whole number >= 1\. Got 0"):
        redraws(plain(), 0)


# -- classes -----------------------------------------------------------------------------------------


def test_classes_fall_with_their_probabilities():
    proba = np.tile([0.1, 0.0, 0.6, 0.3], (500, 1))
    drawn = np.concatenate(list(redraw_classes(proba, 20, rng=0)))
    count = np.bincount(drawn, minlength=4)
    assert count[1] == 0
    assert stats.chisquare(count[[0, 2, 3]], np.array([0.1, 0.6, 0.3]) * len(drawn)).pvalue > 1e-4


def test_rows_that_nearly_sum_to_one_never_give_an_impossible_class():
    proba = np.array([[0.9993, 0.0, 0.0]] * 2000, dtype=np.float32)
    assert not any(draw.any() for draw in redraw_classes(proba, 20, rng=0))


# -- the bootstrap -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", [plain(), tied()], ids=["plain", "tied"])
def test_bootstrap_draws_as_many_rows_of_the_same_kinds(sample):
    for seed in range(20):
        drawn = bootstrap(sample, seed)
        assert drawn.n == sample.n
        assert (drawn.count > 0).all()
        place = np.searchsorted(sample.score, drawn.score)
        np.testing.assert_array_equal(sample.score[place], drawn.score)
        label = sample.label[place]
        assert (drawn.positives[label == 0] == 0).all()
        assert (drawn.positives[label == 1] == drawn.count[label == 1]).all()


def test_bootstrap_counts_are_multinomial():
    sample = tied()
    generator = np.random.default_rng(3)
    totals = []
    for _ in range(4000):
        drawn = bootstrap(sample, generator)
        totals.append(drawn.positives.sum())
    share = sample.positives.sum() / sample.n
    law = stats.binom(int(sample.n), share)
    assert abs(np.mean(totals) - law.mean()) < 4 * law.std() / np.sqrt(len(totals))
    assert np.var(totals) == pytest.approx(law.var(), rel=4 * np.sqrt(2 / len(totals)))
