"""Smooth curves: the fits, their noise, scores of 0 and 1."""

import numpy as np
import pytest
from scipy.optimize import minimize

from truecal.data import as_sample
from truecal.data.sample import Sample
from truecal.multiscale._curves import fit_curves
from truecal.multiscale._error import analyse
from truecal.multiscale._units import make_units


def test_the_logistic_fit_is_the_penalised_maximum(draw):
    sample = draw(200, lambda p: p**1.5)
    curve, _ = fit_curves(make_units(sample))
    logit = np.log(sample.score / (1 - sample.score))
    design = np.column_stack([np.ones(200), logit])
    prior = sample.score * (1 - sample.score)
    ridge = 0.5 * (design.T * prior / prior.sum()) @ design

    def loss(b):
        eta = logit + design @ b
        return np.logaddexp(0, eta).sum() - sample.positives @ eta + 0.5 * b @ ridge @ b

    best = minimize(loss, np.zeros(2), tol=1e-12).x
    assert curve.coefficients[0, :2] == pytest.approx(best, abs=1e-3)


def test_the_noise_of_the_curve_is_what_simulation_shows(draw):
    at = np.array([[0.2, 0.5, 0.9]])
    curves = [fit_curves(make_units(draw(800, lambda p: p**1.3, seed=seed))) for seed in range(200)]
    for which in (0, 1):
        values = np.array([pair[which](at) for pair in curves])
        stated = np.mean([pair[which].sd(at) for pair in curves], axis=0)
        assert values.std(axis=0) == pytest.approx(stated, rel=0.25)


def test_the_squared_error_is_debiased(draw):
    squares = np.array([[c.square for c in fit_curves(make_units(draw(300, seed=s)))] for s in range(400)])
    assert (np.abs(squares.mean(axis=0)) < 4 * squares.std(axis=0) / 20).all()


def test_certain_scores_that_are_right_do_not_move_the_fit():
    rng = np.random.default_rng(0)
    score = rng.random(200)
    label = (rng.random(200) < score).astype(int)
    ends = np.concatenate([score, np.zeros(20), np.ones(30)])
    with_ends = Sample.from_rows(np.concatenate([label, np.zeros(20, int), np.ones(30, int)]), ends)
    one, _ = fit_curves(make_units(Sample.from_rows(label, score)))
    other, _ = fit_curves(make_units(with_ends))
    assert other.coefficients == pytest.approx(one.coefficients, abs=1e-3)
    assert other(np.array([[0.0, 1.0]])).tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize(
    ("label", "score"),
    [
        ([1] * 30, [0.5] * 30),
        ([0, 1] * 20, [0.0, 1.0] * 20),
        ([1, 0] * 20, [0.0, 1.0] * 20),
        ([0, 1, 1] * 10, [0.0, 0.5, 1.0] * 10),
        ([1], [0.7]),
    ],
)
def test_degenerate_samples_give_finite_curves(label, score):
    for curve in fit_curves(make_units(Sample.from_rows(np.array(label), np.array(score)))):
        assert np.isfinite([curve.square, curve.support, curve.freedom, curve.null_variance]).all()
        assert curve.null_variance < 1
        assert ((curve(np.array([[0.0, 0.3, 1.0]])) >= 0) & (curve(np.array([[0.0, 0.3, 1.0]])) <= 1)).all()


def test_scores_next_to_0_and_1_count_as_0_and_1():
    rng = np.random.default_rng(4)
    score = np.concatenate([rng.random(300), np.zeros(40), np.ones(60)])
    label = (rng.random(400) < np.clip(score, 0.02, 0.96)).astype(int)
    exact = analyse(Sample.from_rows(label, score)).error(2)
    for near in (1e-16, 1e-12, 1e-9):
        moved = Sample.from_rows(label, np.clip(score, near, 1 - near))
        assert analyse(moved).error(2) == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize(
    ("label", "score"), [([1], [0.19]), ([1, 0], [0.56, 0.36]), ([0, 1, 1], [0.502, 0.5077, 0.5077])]
)
def test_fewer_scores_than_parameters_leave_no_rounding_errors_in_the_noise(label, score):
    """Swapping the classes changes nothing; products with a huge inverse once gave -1.14 for 0.055."""
    label, score = np.array(label), np.array(score)
    for one, other in zip(
        fit_curves(make_units(as_sample(label, score))),
        fit_curves(make_units(as_sample(1 - label, 1 - score))),
        strict=True,
    ):
        assert one.square == pytest.approx(other.square, abs=1e-6)
        assert np.linalg.eigvalsh(one.covariance).min() >= -1e-9
        assert -0.5 < one.square <= 1
        assert one.freedom == pytest.approx(other.freedom, abs=1e-6)
