import numpy as np
import pytest

from support.likelihood import best, mean_loss
from truecal.recalibration._logistic import fit_logistic


@pytest.mark.parametrize("weighted", [False, True])
def test_the_coefficients_maximise_the_likelihood(weighted):
    rng = np.random.default_rng(0)
    features = np.column_stack([rng.normal(size=200), np.ones(200)])
    target = rng.random(200)
    weight = rng.random(200) if weighted else None
    found = fit_logistic(features, target, weight, start=np.zeros(2))
    expected = best(lambda theta: mean_loss(features @ theta, target, weight), np.zeros(2))
    assert found == pytest.approx(expected, abs=1e-5)


def test_a_bound_is_kept():
    features = np.column_stack([np.arange(6.0), np.ones(6)])
    target = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 1.0])
    found = fit_logistic(features, target, None, start=np.zeros(2), lower=np.array([0.0, -np.inf]))
    assert found == pytest.approx([0.0, np.log(4 / 2)])
