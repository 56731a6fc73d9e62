"""What a calibration plot shows."""

import numpy as np
import pytest
from scipy.special import expit, logit

import truecal
from truecal.plotdata.calibration_plot import calibration_plot


def test_the_curves_follow_the_population():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 20_000)
    y = rng.random(20_000) < expit(0.2 + 0.6 * logit(p))
    plot = calibration_plot(y, p, n_groups=5)
    truth = expit(0.2 + 0.6 * logit(plot.score))
    assert np.abs(plot.logistic - truth).max() < 0.02
    assert np.abs(plot.flexible - truth).max() < 0.05
    assert len(plot.groups.bins) == 5
    assert plot.events.sum() == y.sum()
    assert plot.others.sum() == (~y).sum()
    assert plot.weak == truecal.weak_calibration(y, p)
    assert float(plot.index) == pytest.approx(np.abs(p - expit(0.2 + 0.6 * logit(p))).mean(), abs=0.01)


def test_one_outcome_has_no_logistic_curve():
    plot = calibration_plot([1, 1, 1], [0.2, 0.4, 0.9])
    assert np.isnan(plot.logistic).all()
    assert ((plot.flexible >= 0) & (plot.flexible <= 1)).all()


def test_scores_of_exactly_0_and_1():
    plot = calibration_plot([0, 0, 1, 0, 1, 1], [0.0, 0.2, 0.3, 0.6, 0.7, 1.0])
    assert np.isfinite(plot.logistic).all()
    assert plot.events.sum() + plot.others.sum() == 6
