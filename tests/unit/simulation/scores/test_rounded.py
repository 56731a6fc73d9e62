"""Rounded scores against sums over every possible score."""

import numpy as np
import pytest
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


def test_bad_parameters():
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


def test_repr():
    assert repr(RoundedScores(UniformScores(), decimals=2)) == (
        "RoundedScores(base=UniformScores(low=0.0, high=1.0), decimals=2, dtype=None)"
    )
