"""The quadrature with singular ends, through Beta scores, against closed forms and other rules."""

import numpy as np
import pytest
from scipy.special import betainc, betaln, digamma, roots_jacobi

from truecal.exceptions import CalibrationWarning
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


def logit_rule(a, b, breaks=()):
    """Return nodes (score, complement) and weights of an independent rule: Gauss panels in the logit."""
    node, weight = np.polynomial.legendre.leggauss(24)
    middle, spread = np.log(a / b), np.sqrt(1 / a + 1 / b)
    low = max(-700, middle - 50 / min(a, 1) - 50 * spread)
    high = min(700, middle + 50 / min(b, 1) + 50 * spread)
    edges = np.unique(np.concatenate([np.linspace(low, high, 2001), breaks]))
    half = np.diff(edges)[:, None] / 2
    x = (edges[:-1, None] + half + half * node).ravel()
    log_c, log_t = -np.logaddexp(0, -x), -np.logaddexp(0, x)
    density = np.exp(a * log_c + b * log_t - betaln(a, b))
    return np.exp(log_c), np.exp(log_t), (half * weight).ravel() * density


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_logarithms_at_both_singular_ends(a, b):
    """E[-log(1 - C)] = digamma(a + b) - digamma(b) is about 21 for the paper's most skewed model."""
    scores = BetaScores(a, b)
    near_one = scores.expect(lambda c, t: -np.log(np.maximum(t, 1e-320)))
    assert near_one == pytest.approx(digamma(a + b) - digamma(b), rel=1e-9)
    near_zero = scores.expect(lambda c, t: -np.log(np.maximum(c, 1e-320)))
    assert near_zero == pytest.approx(digamma(a + b) - digamma(a), rel=1e-9)


@pytest.mark.parametrize("power", [0.003, 0.3, 1.0])
@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_powers_of_the_complement(a, b, power):
    exact = np.exp(betaln(b + power, a) - betaln(b, a))
    # Below 1e-308 a complement is 0, and its 0.003rd power is not: such shapes lose that much.
    lost = betainc(b, a, 1e-300) * 1e-300**power
    assert BetaScores(a, b).expect(lambda c, t: t**power) == pytest.approx(exact, abs=1e-10 + lost)


def test_gauss_jacobi_agrees_on_a_smooth_function():
    a, b = 2.7752, 0.0478
    node, weight = roots_jacobi(60, b - 1, a - 1)
    exact = np.sum(weight * np.exp(np.sin(3 * (node + 1) / 2))) / weight.sum()
    got = BetaScores(a, b).expect(lambda c, t: np.exp(np.sin(3 * c)))
    assert got == pytest.approx(exact, abs=1e-11)


@pytest.mark.parametrize(("a", "b"), SHAPES)
@pytest.mark.parametrize("kink", [0.2, 0.75, 0.99])
def test_kinks_and_jumps(a, b, kink):
    scores = BetaScores(a, b)
    jump = scores.expect(lambda c, t: c > kink, points=[kink])
    assert jump == pytest.approx(1 - betainc(a, b, kink), abs=1e-11)
    c, _, weight = logit_rule(a, b, breaks=[np.log(kink) - np.log1p(-kink)])
    exact = np.sum(weight * np.abs(c - kink)) + betainc(b, a, np.exp(-700)) * (1 - kink)
    exact += betainc(a, b, np.exp(-700)) * kink
    for points in [[kink], []]:
        got = scores.expect(lambda c, t: np.abs(c - kink), points=points)
        assert got == pytest.approx(exact, abs=1e-10)


def test_jumps_that_are_not_named_are_found_wherever_they_are():
    """Also next to the end of a panel of the quadrature, where no Gauss node sees them."""
    scores = BetaScores(1.2, 0.2)
    ends = 1 - scores._weight.cuts[1][3:]
    near_ends = (ends[:, None] + 1e-4 * np.array([-1, 1, 5]) * (1 - ends[:, None])).ravel()
    for jump in [*np.linspace(0.003, 0.997, 40), *near_ends]:
        share = scores.expect(lambda c, t: c > jump)  # noqa: B023
        assert share == pytest.approx(1 - betainc(1.2, 0.2, jump), abs=1e-10)


def test_a_jump_closer_to_one_than_a_float_can_tell():
    a, b = 2.7752, 0.0478
    share = BetaScores(a, b).expect(lambda c, t: t < 1e-30)
    assert share == pytest.approx(betainc(b, a, 1e-30), abs=1e-11)


def test_noise_is_reported():
    noise = np.random.default_rng(0)
    with pytest.warns(CalibrationWarning, match="did not converge"):
        BetaScores(2, 2).expect(lambda c, t: noise.random(c.shape))
