"""A score of exactly 0 or 1, from rounding or votes, moves no fit, choice or report by much."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax

import truecal
from truecal.recalibration import (
    BetaCalibration,
    DirichletCalibration,
    HistogramBinning,
    IdentityCalibration,
    IsotonicCalibration,
    PlattScaling,
    TemperatureScaling,
    VectorScaling,
    VennAbersCalibration,
)
from truecal.recalibration.selection import select_recalibrator

RECALIBRATORS = (
    BetaCalibration,
    DirichletCalibration,
    HistogramBinning,
    IdentityCalibration,
    IsotonicCalibration,
    PlattScaling,
    TemperatureScaling,
    VectorScaling,
    VennAbersCalibration,
)
DECIMALS = (3, 4, 6)


def two_classes(rng, n=2000, steep=1.7):
    z = rng.normal(-1, 2.2, n)
    return (rng.random(n) < expit(z)).astype(int), expit(steep * z)


def classes(rng, n=2000, k=8, steep=1.4):
    z = 2.2 * rng.normal(size=(n, k))
    return (z + rng.gumbel(size=(n, k))).argmax(axis=1), softmax(steep * z, axis=1)


def rounded(p, decimals):
    p = np.round(p, decimals)
    return p if p.ndim == 1 else p / p.sum(axis=1, keepdims=True)


def log_loss(q, y):
    """The log loss of new rows, whose probabilities are not rounded."""
    chance = np.where(y == 1, q, 1 - q) if q.ndim == 1 else q[np.arange(len(y)), y]
    return -np.log(np.maximum(chance, 1e-4)).mean()


@pytest.mark.parametrize("decimals", DECIMALS)
@pytest.mark.parametrize("draw", [two_classes, classes])
@pytest.mark.parametrize("kind", RECALIBRATORS)
def test_rounding_hardly_moves_a_fit(kind, draw, decimals):
    rng = np.random.default_rng(0)
    (y, p), (y_new, p_new) = draw(rng), draw(rng)
    assert (rounded(p, 3) == 0).any()
    before = kind(input="probabilities").fit(p, y).transform(p_new)
    after = kind(input="probabilities").fit(rounded(p, decimals), y).transform(rounded(p_new, decimals))
    # Rounded scores know less, which is 0.005 of the log loss for the identity and three decimals.
    assert abs(log_loss(after, y_new) - log_loss(before, y_new)) < {3: 0.02, 4: 0.005, 6: 0.0005}[decimals]
    # The squares of differences; small scores may move, and few do.
    assert np.sqrt(np.mean((after - before) ** 2)) < {3: 0.02, 4: 0.01, 6: 0.004}[decimals]


@pytest.mark.parametrize("decimals", DECIMALS)
@pytest.mark.parametrize("steep", [1, 1.4, 2])
def test_rounding_hardly_moves_the_temperature(steep, decimals):
    y, p = classes(np.random.default_rng(1), steep=steep)
    fit = TemperatureScaling("probabilities").fit(rounded(p, decimals), y)
    assert fit.temperature_ == pytest.approx(steep, rel=0.2 if decimals == 3 else 0.1)


@pytest.mark.parametrize("draw", [two_classes, classes])
def test_rounding_hardly_moves_the_choice_and_its_numbers(draw):
    rng = np.random.default_rng(2)
    y, p = draw(rng) if draw is two_classes else draw(rng, k=4)
    whole = select_recalibrator(y, p, n_resamples=20, rng=0)
    for decimals in DECIMALS:
        found = select_recalibrator(y, rounded(p, decimals), n_resamples=20, rng=0)
        assert found.chosen in (whole.chosen, *whole.near_ties)
        for one, two in zip(found.candidates, whole.candidates, strict=True):
            # A failure that the model called a millionth costs 14, and less if that was rounded to 0.
            assert one.criterion == pytest.approx(
                two.criterion, abs=0.06 if one.name == "identity" else 0.015
            )
            # Folds are drawn from rows in the order of their scores, so that they are other folds.
            assert one.interval.low <= two.interval.high
            assert two.interval.low <= one.interval.high


@pytest.mark.parametrize("decimals", DECIMALS)
def test_rounding_hardly_moves_the_report(decimals):
    y, p = two_classes(np.random.default_rng(3))
    one, two = (truecal.assess(y, q, rng=0, n_resamples=199) for q in (p, rounded(p, decimals)))
    assert one.state == two.state
    assert two.recalibration.chosen in (one.recalibration.chosen, *one.recalibration.selection.near_ties)
    assert two.estimate.value == pytest.approx(one.estimate.value, abs=0.003)
    assert two.interval.high == pytest.approx(one.interval.high, abs=0.01)


@pytest.mark.parametrize("kind", [PlattScaling, BetaCalibration, TemperatureScaling, VectorScaling])
def test_votes_do_not_rule_a_fit(kind):
    # One vote in sixty is next to none; where a fit lets its zeros count as 1e-16, the others pay for it.
    rng = np.random.default_rng(4)
    truth = rng.beta(0.6, 0.6, 4000) * 0.9 + 0.05
    p, y = (
        rng.binomial(60, expit(1.6 * np.log(truth / (1 - truth)))) / 60,
        (rng.random(4000) < truth).astype(int),
    )
    assert np.mean((p == 0) | (p == 1)) > 0.05
    found = kind(input="probabilities").fit(p[:2000], y[:2000]).transform(p[2000:])
    assert truecal.calibration_error(y[2000:], found) < 0.05


@pytest.mark.parametrize("kind", [kind for kind in RECALIBRATORS if kind is not HistogramBinning])
@pytest.mark.parametrize("ends", [(), (0.0, 1.0)])
def test_a_fitted_curve_rises_through_exact_0_and_1(kind, ends):
    rng = np.random.default_rng(5)
    p = np.append(np.round(rng.random(300), 3), ends)
    fit = kind(input="probabilities").fit(p, rng.random(len(p)) < p)
    assert (np.diff(fit.transform(np.linspace(0, 1, 100_001))) >= -1e-15).all()


@pytest.mark.parametrize("kind", [TemperatureScaling, PlattScaling, BetaCalibration, VectorScaling])
def test_new_zeros_count_as_those_of_the_fit(kind):
    rng = np.random.default_rng(6)
    p = np.append(np.round(rng.random(500), 2), [0, 1])
    fit = kind(input="probabilities").fit(p, rng.random(502) < p)
    assert fit.floor_.zero == pytest.approx(0.005)
    np.testing.assert_allclose(fit.transform([0.0, 1.0]), fit.transform([0.005, 0.995]))
