"""What reports on clinical prediction models give."""

import numpy as np
import pytest
from scipy.special import expit, logit

import truecal
from truecal.assessment._plotdata import calibration_plot
from truecal.assessment._sections import THRESHOLDS


def draw(rng, n, intercept=0.0, slope=1.0):
    p = rng.beta(2, 5, n)
    return (rng.random(n) < expit(intercept + slope * logit(p))).astype(int), p


def clinical(y, p, **options):
    return truecal.assess(y, p, clinical=True, recalibration=False, n_resamples=19, rng=0, **options)


def test_it_holds_what_the_single_functions_return():
    y, p = draw(np.random.default_rng(0), 3000, -0.3, 0.7)
    found = clinical(y, p, thresholds=[0.15, 0.4])
    measures = found.clinical
    assert found.weak == truecal.weak_calibration(y, p)  # of all rows, not of merged scores
    assert measures.index == truecal.calibration_index(y, p)
    np.testing.assert_array_equal(measures.decisions.thresholds, [0.15, 0.4])
    np.testing.assert_array_equal(measures.decision_curve.net_benefit, truecal.net_benefit(y, p).net_benefit)
    assert measures.events == y.sum()
    assert "too low on average" not in measures.verdict
    assert "too extreme (calibration slope 0." in measures.verdict
    assert "At thresholds from" in measures.verdict
    assert "C statistic" in str(found)
    assert found.to_dict()["clinical"]["decisions"]["thresholds"] == [0.15, 0.4]


def test_without_miscalibration_or_use():
    rng = np.random.default_rng(2)
    p = np.full(400, 0.3) + rng.uniform(-0.01, 0.01, 400)
    measures = clinical(rng.random(400) < 0.3, p).clinical
    assert measures.verdict.startswith("Neither O:E (")
    assert "At no threshold" in measures.verdict
    np.testing.assert_array_equal(measures.decisions.thresholds, THRESHOLDS)


def test_directions():
    y, p = draw(np.random.default_rng(2), 3000, 0.5, 1.6)
    assert "too low on average" in clinical(y, p - 0.5 * p).clinical.verdict
    assert "too moderate" in clinical(y, p).clinical.verdict


def test_clusters_and_one_class_of_several():
    rng = np.random.default_rng(3)
    y, p = draw(rng, 500)
    assert clinical(y, p, clusters=np.arange(500) // 5).clinical.c_statistic.standard_error > 0
    assert "With only 5 clusters" in clinical(y, p, clusters=np.arange(500) % 5).clinical.verdict
    proba = rng.dirichlet([1, 1, 1], 300)
    assert clinical(rng.integers(0, 3, 300), proba, pos_label=1).clinical.events > 0


def test_refusals():
    proba = np.random.default_rng(4).dirichlet([1, 1, 1], 60)
    with pytest.raises(truecal.InputError, match="needs the probability of one event"):
        clinical(np.arange(60) % 3, proba)
    with pytest.raises(truecal.InputError, match="need clinical=True"):
        truecal.assess([0, 1], [0.2, 0.7], thresholds=[0.1])
    with pytest.raises(truecal.InputError, match="strictly between 0 and 1"):
        clinical([0, 1], [0.2, 0.7], thresholds=[0.0])
    assert truecal.assess([0, 1], [0.2, 0.7], n_resamples=19, rng=0).clinical is None


def test_few_rows_and_one_outcome():
    assert np.isnan(float(clinical([1, 1, 1], [0.2, 0.3, 0.9]).clinical.c_statistic))
    assert "Clinical validation" in clinical([1, 1, 1], [0.2, 0.3, 0.9]).to_html()
    assert "Clinical validation" in clinical([1], [0.2]).to_html()


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
