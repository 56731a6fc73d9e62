"""Score distributions, and what they share."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import betainc

from truecal.simulation import (
    AtomScores,
    BetaScores,
    EmpiricalScores,
    MixtureScores,
    RoundedScores,
    UniformScores,
    with_atoms,
)
from truecal.simulation._scores import GRID, draw_index, merge_masses, step_cdf


def test_the_grid_covers_the_unit_interval_and_its_complements_are_exact_near_one():
    score, complement = GRID
    assert (score[0], score[-1], complement[0], complement[-1]) == (0, 1, 1, 0)
    np.testing.assert_allclose(score + complement, 1, atol=2e-16)
    assert np.sort(complement[complement > 0])[0] == pytest.approx(1e-300)


def test_a_step_function_includes_the_score_itself():
    masses = np.array([0.2, 0.5]), np.array([0.25, 0.75])
    assert step_cdf(masses, [0.1, 0.2, 0.4, 0.5, 1.0]).tolist() == [0, 0.25, 0.25, 1, 1]
    assert step_cdf((np.empty(0), np.empty(0)), [0.5]).tolist() == [0]


def test_masses_of_equal_values_are_added_and_empty_ones_dropped():
    values, masses = merge_masses(np.array([0.5, 0.1, 0.5, 0.9]), np.array([0.25, 0.5, 0.25, 0.0]))
    assert (values.tolist(), masses.tolist()) == ([0.1, 0.5], [0.5, 0.5])


def test_indices_are_drawn_with_their_probabilities():
    drawn = draw_index(np.array([0.2, 0.0, 0.8]), 20_000, np.random.default_rng(0))
    share = np.bincount(drawn, minlength=3) / 20_000
    assert share[1] == 0
    assert share[0] == pytest.approx(0.2, abs=4.5 * np.sqrt(0.16 / 20_000))


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.5, 1), (0, 0.3), (0.2, 0.9), (0.7, 0.75)])
def test_means(low, high):
    scores = UniformScores(low, high)
    assert scores.expect(lambda c, t: c) == pytest.approx(scores.mean, abs=1e-13)
    exact = (high**1.3 - low**1.3) / 1.3 / (high - low)
    assert scores.expect(lambda c, t: c**0.3) == pytest.approx(exact, abs=1e-11)
    assert scores.moment(0.3) == pytest.approx(exact, abs=1e-12)
    exact = ((1 - low) ** 1.3 - (1 - high) ** 1.3) / 1.3 / (high - low)
    assert scores.expect(lambda c, t: t**0.3) == pytest.approx(exact, abs=1e-11)


def test_is_beta_1_1():
    def wave(c, t):
        return np.abs(np.sin(20 * c))

    kinks = np.arange(1, 7) * np.pi / 20
    uniform = UniformScores().expect(wave, points=kinks)
    assert uniform == pytest.approx(BetaScores(1, 1).expect(wave, points=kinks), abs=1e-13)
    last = 20 - 6 * np.pi
    assert uniform == pytest.approx((6 * 2 + 1 - np.cos(last)) / 20, abs=1e-12)


def test_cdf_and_pdf():
    scores = UniformScores(0.5, 1)
    assert scores.cdf([0.2, 0.5, 0.6, 1.0]).tolist() == pytest.approx([0, 0, 0.2, 1])
    assert scores.pdf([0.2, 0.6]).tolist() == [0, 2]


def test_draws():
    score, complement = UniformScores(0.5, 0.9).draw(1000, np.random.default_rng(0))
    assert 0.5 <= score.min() < 0.51
    assert 0.89 < score.max() < 0.9
    np.testing.assert_allclose(score + complement, 1, atol=3e-16)


def test_bad_parameters_of_uniform_scores():
    with pytest.raises(ValueError, match=r"low must be smaller than high \(0.2\). Got 0.4 instead"):
        UniformScores(0.4, 0.2)
    with pytest.raises(ValueError, match="high must be a finite number > 0 and <= 1"):
        UniformScores(0, 2)


SHAPES = [
    (2.7752, 0.0478),
    (0.0478, 2.7752),
    (0.05, 0.05),
    (1.0, 1.0),
    (0.5, 3.0),
    (40.0, 7.0),
    (900.0, 300.0),
]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_moments_have_closed_forms(a, b):
    scores = BetaScores(a, b)
    second = a * (a + 1) / ((a + b) * (a + b + 1))
    assert scores.expect(lambda c, t: np.ones_like(c)) == pytest.approx(1, abs=1e-11)
    assert scores.expect(lambda c, t: c) == pytest.approx(scores.mean, abs=1e-11)
    assert scores.expect(lambda c, t: c**2) == pytest.approx(second, abs=1e-11)
    assert scores.expect(lambda c, t: c * t) == pytest.approx(a * b / (a + b) / (a + b + 1), abs=1e-11)
    assert scores.moment(2) == pytest.approx(second, abs=1e-12)


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_cdf_and_pdf_are_those_of_scipy(a, b):
    grid = np.concatenate([[-0.5, 0.0], np.linspace(0.001, 0.999, 50), [1.0, 1.5]])
    scores, known = BetaScores(a, b), stats.beta(a, b)
    np.testing.assert_allclose(scores.cdf(grid), known.cdf(grid), atol=1e-13)
    np.testing.assert_allclose(scores.pdf(grid[2:-2]), known.pdf(grid[2:-2]), rtol=1e-11)
    assert scores.pdf([-0.5, 1.5]).tolist() == [0, 0]


@pytest.mark.parametrize(("a", "b"), [(2.7752, 0.0478), (0.0478, 2.7752), (0.05, 0.05), (3.0, 4.0)])
def test_draws_keep_both_ends(a, b):
    score, complement = BetaScores(a, b).draw(20_000, np.random.default_rng(1))
    assert score.min() > 0 or a > 1
    assert complement.min() > 0 or b > 1
    np.testing.assert_allclose(score + complement, 1, atol=2e-16)
    for side, first, second in [(score, a, b), (complement, b, a)]:
        if first < 1:
            # Given the half, the distribution function is uniform: no float lies too near its end.
            share = betainc(first, second, side[side < 0.5]) / betainc(first, second, 0.5)
            assert side.min() < 1e-60
            assert stats.kstest(share, "uniform").pvalue > 1e-3


def test_bad_parameters_of_beta_scores():
    with pytest.raises(ValueError, match=r"a must be a finite number > 0. Got -1 instead"):
        BetaScores(-1, 2)
    with pytest.raises(ValueError, match=r"b must be a finite number > 0. Got nan instead"):
        BetaScores(1, float("nan"))
    with pytest.raises(ValueError, match="must be finite"):
        BetaScores(1, 1).expect(lambda c, t: np.full_like(c, np.nan))


def test_repr_of_beta_scores():
    assert repr(BetaScores(2, 1)) == "BetaScores(a=2.0, b=1.0)"


def test_everything_is_a_sum():
    scores = AtomScores([1.0, 0.25, 1.0], [0.2, 0.5, 0.3])
    assert scores.expect(lambda c, t: c + 10 * t) == pytest.approx(0.5 * (0.25 + 7.5) + 0.5)
    values, masses = scores.point_masses
    assert values.tolist() == [0.25, 1]
    assert masses.tolist() == [0.5, 0.5]
    assert scores.cdf([0.0, 0.25, 1.0]).tolist() == [0, 0.5, 1]
    assert scores.pdf([0.25]).tolist() == [0]
    assert AtomScores([0.5, 1]) == AtomScores((0.5, 1.0), weights=[0.5, 0.5])


def test_draws_have_the_shares():
    score, complement = AtomScores([0.1, 0.9], [0.3, 0.7]).draw(10_000, np.random.default_rng(0))
    assert set(score) == {0.1, 0.9}
    assert np.mean(score == 0.1) == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / 10_000))
    assert (complement == 1 - score).all()


def test_bad_parameters_of_atoms_scores():
    with pytest.raises(ValueError, match=r"values has 2 values outside \[0, 1\] \(first at row 1: 1.2\)"):
        AtomScores([0.1, 1.2, -3])
    with pytest.raises(ValueError, match=r"weights must sum to 1. Got a sum of 0.7"):
        AtomScores([0.1, 0.2], [0.3, 0.4])
    with pytest.raises(ValueError, match="weights must hold 2 numbers"):
        AtomScores([0.1, 0.2], [1.0])


def test_repr_of_atoms_scores():
    assert repr(AtomScores([0, 1])) == "AtomScores(values=(0.0, 1.0), weights=(0.5, 0.5))"


def test_draws_are_real_scores():
    values = np.random.default_rng(0).random(50)
    score, complement = EmpiricalScores(values).draw(1000, np.random.default_rng(1))
    assert set(score) == set(values)
    assert (complement == 1 - score).all()


def test_mean_over_scores_is_the_mean():
    values = np.round(np.random.default_rng(0).random(200), 2)
    scores = EmpiricalScores(values)
    assert scores.expect(lambda c, t: np.abs(c - 0.3)) == pytest.approx(np.mean(np.abs(values - 0.3)))
    assert scores.cdf(0.4) == pytest.approx(np.mean(values <= 0.4))


def test_keeps_float32_and_does_not_share_memory():
    values = np.array([0.25, 0.5], dtype=np.float32)
    scores = EmpiricalScores(values)
    values[0] = 0
    assert scores.values.tolist() == [0.25, 0.5]
    assert scores.output_dtype == np.float32
    assert scores != EmpiricalScores([0.25, 0.5])
    assert scores == EmpiricalScores(np.array([0.25, 0.5], dtype=np.float32))
    assert len({scores, EmpiricalScores(np.array([0.25, 0.5], dtype=np.float32))}) == 1


def test_is_linear():
    parts = [BetaScores(2, 0.3), UniformScores(0.2, 0.4), AtomScores([0.1])]
    weights = [0.5, 0.3, 0.2]
    scores = MixtureScores(parts, weights)
    for name in ["mean", "cdf", "pdf", "expect"]:
        argument = (lambda c, t: t**0.4,) if name == "expect" else (0.3,)
        each = [p.mean if name == "mean" else getattr(p, name)(*argument) for p in parts]
        whole = scores.mean if name == "mean" else getattr(scores, name)(*argument)
        assert whole == pytest.approx(np.dot(weights, each), abs=1e-14)


def test_point_masses_are_merged():
    atoms = AtomScores([0.0, 1.0], [0.4, 0.6])
    values, masses = MixtureScores([atoms, AtomScores([1.0]), UniformScores()], [0.5, 0.2, 0.3]).point_masses
    assert values.tolist() == [0, 1]
    assert masses == pytest.approx([0.2, 0.5])


def test_shares_at_zero_and_one():
    scores = with_atoms(BetaScores(2, 2), at_zero=0.1, at_one=0.25)
    score, complement = scores.draw(20_000, np.random.default_rng(0))
    for found, share in [((score == 0).mean(), 0.1), ((complement == 0).mean(), 0.25)]:
        assert found == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 20_000))
    assert scores.mean == pytest.approx(0.25 + 0.65 * 0.5)
    assert scores.expect(lambda c, t: c == 1) == pytest.approx(0.25)


def test_exact_ends_do_not_widen_float32():
    rounded = RoundedScores(BetaScores(2, 2), dtype="float32")
    assert with_atoms(rounded, at_one=0.3).output_dtype == np.float32
    assert MixtureScores([rounded, AtomScores([0.3])], [0.5, 0.5]).output_dtype == np.float64


def test_bad_parameters_of_mixture_scores():
    with pytest.raises(ValueError, match=r"components must be score distributions. Got 3 instead"):
        MixtureScores([3], [1.0])
    with pytest.raises(ValueError, match=r"at_one must be a finite number >= 0 and <= 0.4. Got 0.7 instead"):
        with_atoms(UniformScores(), at_zero=0.6, at_one=0.7)


STEP = 2.0**-24  # spacing of float32 numbers below 1


def test_decimals_against_a_sum_over_cells():
    base = BetaScores(2, 0.3)
    scores = RoundedScores(base, decimals=2)
    values, masses = scores.point_masses
    assert values == pytest.approx(np.linspace(0, 1, 101), abs=1e-15)
    assert masses.sum() == pytest.approx(1, abs=1e-14)
    assert masses[40] == pytest.approx(base.cdf(0.405) - base.cdf(0.395), abs=1e-15)
    assert scores.expect(lambda c, t: t**0.3) == pytest.approx(np.sum(masses * (1 - values) ** 0.3))


def test_draws_are_rounded_as_numpy_rounds():
    base = BetaScores(0.4, 0.3)
    plain, _ = base.draw(1000, np.random.default_rng(5))
    for decimals in (0, 1, 3, 6):
        score, complement = RoundedScores(base, decimals=decimals).draw(1000, np.random.default_rng(5))
        assert (score == np.round(plain, decimals)).all()
        assert complement == pytest.approx(1 - score, abs=1e-15)
    for dtype in ("float32", "float16"):
        score, _ = RoundedScores(base, dtype=dtype).draw(1000, np.random.default_rng(5))
        assert (score == plain.astype(dtype)).all()


def test_atoms_of_the_base_are_rounded_exactly():
    base = MixtureScores([AtomScores([0.25, 0.35, 0.3]), UniformScores()], [0.6, 0.4])
    for decimals in (0, 1):
        scores = RoundedScores(base, decimals=decimals)
        values, masses = scores.point_masses
        drawn, _ = scores.draw(50_000, np.random.default_rng(0))
        shares = [np.mean(drawn == value) for value in values]
        np.testing.assert_allclose(shares, masses, atol=4.5 * np.sqrt(0.25 / 50_000))


def test_a_discrete_base_stays_discrete():
    values = np.random.default_rng(0).random(100)
    scores = RoundedScores(EmpiricalScores(values), dtype="float32")
    exact = np.mean(np.float32(values).astype(float) ** 2)
    assert scores.expect(lambda c, t: c**2) == pytest.approx(exact, abs=1e-15)
    assert scores.cdf(values[3]) == pytest.approx(np.mean(np.float32(values) <= values[3]))


def test_float16_counts_every_number():
    scores = RoundedScores(BetaScores(1.2, 0.2), dtype="float16")
    values, masses = scores.point_masses
    assert values.size == 15361  # floats of 16 bits from 0 to 1
    assert masses[-1] == pytest.approx(betainc(0.2, 1.2, 2.0**-12), abs=1e-14)
    assert masses.sum() == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize(("a", "b"), [(2.7752, 0.0478), (1.1928, 0.2206)])
@pytest.mark.parametrize("power", [0.3, 1.0])
def test_float32_against_every_cell_near_one(a, b, power):
    """The reference counts 2^17 cells; one atom at 1 and the base elsewhere would be off by 1e-6."""
    steps = np.arange(2**17)
    mass = np.diff(betainc(b, a, np.concatenate([[0.0], (steps + 0.5) * STEP])))
    cut = (steps[-1] + 0.5) * STEP
    base = BetaScores(a, b)
    rest = base.expect(lambda c, t: np.where(t > cut, t**power, 0), points=[1 - cut])
    got = RoundedScores(base, dtype="float32").expect(lambda c, t: t**power)
    assert got == pytest.approx(np.sum(mass * (steps * STEP) ** power) + rest, abs=2e-11)


def test_float32_at_the_small_end():
    """Half of Beta(0.007, 1) is below the least float32, which is 2^-149."""
    scores = RoundedScores(BetaScores(0.007, 1), dtype="float32")
    values, masses = scores.point_masses
    assert values[0] == 0
    assert masses[0] == pytest.approx(2.0 ** (-150 * 0.007), abs=1e-13)
    steps = np.arange(2**14)
    mass = np.diff(np.concatenate([[0.0], ((steps + 0.5) * 2.0**-149) ** 0.007]))
    cut = (steps[-1] + 0.5) * 2.0**-149
    rest = 0.007 * (1 - cut**0.017) / 0.017
    got = scores.expect(lambda c, t: c**0.01)
    assert got == pytest.approx(np.sum(mass * (steps * 2.0**-149) ** 0.01) + rest, abs=1e-9)


def test_float32_sees_a_jump_at_the_rounded_score():
    """float32(0.3) is above 0.3, so scores from half a step below it are beyond the jump."""
    base = BetaScores(3, 2)
    near, below = np.float32(0.3), np.nextafter(np.float32(0.3), np.float32(0))
    edge = (float(near) + float(below)) / 2
    got = RoundedScores(base, dtype="float32").expect(lambda c, t: c >= 0.3, points=[0.3])
    assert got == pytest.approx(1 - base.cdf(edge), abs=1e-12)
    assert abs(got - (1 - base.cdf(0.3))) > 1e-9


def test_float32_atoms_are_not_counted_twice():
    base = with_atoms(BetaScores(2, 0.3), at_zero=0.1, at_one=0.2)
    scores = RoundedScores(MixtureScores([base, AtomScores([0.3])], [0.5, 0.5]), dtype="float32")
    assert scores.expect(lambda c, t: np.ones_like(c)) == pytest.approx(1, abs=1e-12)
    values, masses = scores.point_masses
    assert values.tolist() == [0.0, float(np.float32(0.3)), 1.0]
    at_one = 0.5 * (0.2 + 0.7 * betainc(0.3, 2, STEP / 2))
    assert masses == pytest.approx([0.05, 0.5, at_one], abs=1e-12)
    assert scores.mean == pytest.approx(scores.base.mean, abs=2e-8)


def test_float32_cdf_and_pdf():
    base = BetaScores(2.7752, 0.0478)
    scores = RoundedScores(base, dtype="float32")
    assert scores.cdf([-1.0, 1.0, 2.0]).tolist() == [0, 1, 1]
    assert 1 - scores.cdf(1 - 1e-12) == pytest.approx(betainc(0.0478, 2.7752, STEP / 2), abs=1e-12)
    drawn, _ = scores.draw(40_000, np.random.default_rng(0))
    for c in (0.9, 1 - 5 * STEP, 1 - 1e-8):
        share = scores.cdf(c)
        assert np.mean(drawn <= c) == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 40_000))
    assert scores.pdf([0.0, 1.0]).tolist() == [0, 0]
    assert scores.pdf([0.4]) == base.pdf([0.4])


def test_bad_parameters_of_rounded_scores():
    with pytest.raises(ValueError, match="needs either decimals or dtype"):
        RoundedScores(UniformScores())
    with pytest.raises(ValueError, match="needs either decimals or dtype"):
        RoundedScores(UniformScores(), decimals=2, dtype="float32")
    with pytest.raises(ValueError, match="decimals must be at most 6"):
        RoundedScores(UniformScores(), decimals=9)
    with pytest.raises(ValueError, match="Did you mean 'float32'"):
        RoundedScores(UniformScores(), dtype="float23")
    with pytest.raises(ValueError, match="base must be a score distribution"):
        RoundedScores(0.5, decimals=2)


def test_repr_of_rounded_scores():
    assert repr(RoundedScores(UniformScores(), decimals=2)) == (
        "RoundedScores(base=UniformScores(low=0.0, high=1.0), decimals=2, dtype=None)"
    )
