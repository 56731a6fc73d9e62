"""Recalibrators of other packages, by what they can do, and the spline."""

import numpy as np
import pytest

import truecal
from truecal.recalibration import IdentityCalibration, SplineCalibration


class OfProbmetrics:
    """As the recalibrators of probmetrics: `fit` and `predict_proba` on one column for each class."""

    def fit(self, X, y):
        assert X.shape[1] == 2
        np.testing.assert_allclose(X.sum(axis=1), 1)
        self.share = np.mean(y)
        return self

    def predict_proba(self, X):
        q = X[:, 1] ** 2
        return np.column_stack([1 - q, q])


class OfNetcal:
    """As the recalibrators of netcal: `fit` and `transform` on confidences."""

    def fit(self, X, y):
        return self

    def transform(self, X):
        return np.asarray(X) ** 2


def overconfident(n=2000, rng=0):
    population = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
    return population.sample(n, rng=rng)


@pytest.mark.parametrize("candidate", [OfProbmetrics(), OfNetcal()])
def test_they_can_be_chosen(candidate):
    y, p = overconfident()
    selection = truecal.select_recalibrator(
        y, p, candidates={"other": candidate, "histogram": "histogram"}, rng=0
    )
    assert selection.chosen == "other"
    np.testing.assert_allclose(selection.recalibrator.transform(p[:5]), p[:5] ** 2)


def test_what_is_none_is_refused():
    with pytest.raises(truecal.InputError, match="fit, and transform or predict_proba"):
        truecal.select_recalibrator([0, 1], [0.2, 0.7], candidates=[object()])


def test_the_spline_rises_and_beats_platt_on_a_bent_curve():
    rng = np.random.default_rng(0)
    p = rng.random(8000)
    curve = np.where(p < 0.5, 0.3 * p, 0.15 + 0.85 * (p - 0.5) / 0.5)
    y = (rng.random(8000) < curve).astype(int)
    spline = SplineCalibration(n_pieces=4).fit(p[:4000], y[:4000])
    q = spline.transform(p[4000:])
    assert (np.diff(spline.transform(np.linspace(0.01, 0.99, 50))) >= 0).all()
    platt = truecal.recalibration.PlattScaling().fit(p[:4000], y[:4000]).transform(p[4000:])
    error = [np.sqrt(np.mean((one - curve[4000:]) ** 2)) for one in (q, platt)]
    assert error[0] < 0.7 * error[1]


def test_the_spline_leaves_one_score_and_calibrated_scores_nearly_alone():
    y, p = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.IdentityCurve()).sample(
        20_000, rng=0
    )
    q = SplineCalibration().fit(p, y).transform(p)
    np.testing.assert_allclose(q, IdentityCalibration().fit(p, y).transform(p), atol=0.03)
    np.testing.assert_allclose(
        SplineCalibration().fit([0.4] * 10, [0, 1] * 5).transform([0.4]), 0.5, atol=1e-6
    )
