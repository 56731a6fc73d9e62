"""Beta scores against scipy.stats and closed forms."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import betainc

from truecal.simulation import BetaScores

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


def test_bad_parameters():
    with pytest.raises(ValueError, match=r"a must be a finite number > 0. Got -1 instead"):
        BetaScores(-1, 2)
    with pytest.raises(ValueError, match=r"b must be a finite number > 0. Got nan instead"):
        BetaScores(1, float("nan"))
    with pytest.raises(ValueError, match="must be finite"):
        BetaScores(1, 1).expect(lambda c, t: np.full_like(c, np.nan))


def test_repr():
    assert repr(BetaScores(2, 1)) == "BetaScores(a=2.0, b=1.0)"
