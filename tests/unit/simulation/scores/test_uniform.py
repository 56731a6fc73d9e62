"""Uniform scores against closed forms."""

import numpy as np
import pytest

from truecal.simulation import BetaScores, UniformScores


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


def test_bad_parameters():
    with pytest.raises(ValueError, match=r"low must be smaller than high \(0.2\). Got 0.4 instead"):
        UniformScores(0.4, 0.2)
    with pytest.raises(ValueError, match="high must be a finite number > 0 and <= 1"):
        UniformScores(0, 2)
