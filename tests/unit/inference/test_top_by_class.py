"""Top label, class by class: definition, interval, test and refusals."""

import numpy as np
import pytest
from scipy.special import expit, logit

import truecal

BY_CLASS = {"multiclass": "top_by_class"}


def draw(rng, n, shift=0.8, classes=4):
    """Return labels and probabilities: even predicted classes are overconfident, odd ones underconfident."""
    proba = rng.dirichlet(np.full(classes, 0.5), n)
    top = proba.argmax(axis=1)
    chance = expit(logit(np.clip(proba.max(axis=1), 1e-9, 1 - 1e-9)) + np.where(top % 2, shift, -shift))
    label = top.copy()
    wrong = rng.random(n) >= chance
    label[wrong] = (top[wrong] + rng.integers(1, classes, wrong.sum())) % classes
    return label, proba


def test_it_is_the_weighted_mean_over_predicted_classes():
    y, p = draw(np.random.default_rng(0), 600)
    top = p.argmax(axis=1)
    for norm in (1, 2):
        options = {"estimator": "em_bin", "n_bins": 5, "norm": norm}
        found = truecal.estimate(y, p, **options, **BY_CLASS)
        parts = [truecal.calibration_error(y[top == k] == k, p[top == k, k], **options) for k in range(4)]
        share = np.bincount(top) / 600
        assert found.value == pytest.approx((share @ np.power(parts, norm)) ** (1 / norm))
        assert [one.value for one in found.classes] == pytest.approx(parts)
        assert found.n == 600


def test_errors_that_cancel_between_classes_are_seen():
    y, p = draw(np.random.default_rng(1), 4000)
    by_class = truecal.estimate(y, p, confidence_level=0.95, **BY_CLASS)
    top = truecal.estimate(y, p, confidence_level=0.95, multiclass="top")
    assert by_class.interval.low > top.interval.high
    assert by_class.value in by_class.interval
    assert truecal.confidence_interval(y, p, **BY_CLASS) == by_class.interval
    test = truecal.calibration_test(y, p, rng=0, **BY_CLASS)
    assert test.pvalue <= 0.001
    assert len(test.classes) == 4
    assert all(one.adjusted_pvalue <= 0.01 for one in test.classes)


def test_the_order_of_rows_and_a_single_predicted_class():
    y, p = draw(np.random.default_rng(2), 300)
    order = np.random.default_rng(3).permutation(300)
    first, second = (
        truecal.estimate(a, b, confidence_level=0.9, **BY_CLASS) for a, b in ((y, p), (y[order], p[order]))
    )
    assert first.value == pytest.approx(second.value, abs=1e-12)
    assert first.interval.high == pytest.approx(second.interval.high, abs=1e-9)
    one = np.tile([0.6, 0.3, 0.1], (50, 1))
    label = np.arange(50) % 3
    assert truecal.calibration_error(label, one, **BY_CLASS) == truecal.calibration_error(label, one)


@pytest.mark.filterwarnings("ignore:.*scores occur several times")
def test_weights_and_clusters():
    y, p = draw(np.random.default_rng(4), 500)
    weight = np.random.default_rng(5).integers(1, 4, 500)
    counts = {"sample_weight": weight, "weighting": "counts", "confidence_level": 0.95, **BY_CLASS}
    counted = truecal.estimate(y, p, **counts)
    repeated = truecal.estimate(
        np.repeat(y, weight), np.repeat(p, weight, axis=0), confidence_level=0.95, **BY_CLASS
    )
    assert counted.value == pytest.approx(repeated.value)
    assert counted.interval.high == pytest.approx(repeated.interval.high)
    cluster = np.arange(500) // 5
    clustered = truecal.estimate(y, p, clusters=cluster, confidence_level=0.95, **BY_CLASS)
    assert clustered.n_clusters == 100
    test = truecal.calibration_test(y, p, clusters=cluster, rng=0, n_resamples=199, **BY_CLASS)
    assert test.pvalue == min(one.adjusted_pvalue for one in test.classes)
    few = truecal.estimate(y, p, clusters=np.arange(500) % 5, confidence_level=0.95, **BY_CLASS)
    assert "5 clusters are too few" in few.interval.assumption


def test_equivalence():
    y, p = draw(np.random.default_rng(6), 4000, shift=0.0)
    assert truecal.calibration_test(y, p, at_most=0.2, **BY_CLASS).pvalue < 0.01
    assert truecal.calibration_test(y, p, at_most=0.001, **BY_CLASS).pvalue > 0.05


@pytest.mark.slow
def test_level_and_coverage():
    """100 draws with calibrated scores and with errors that cancel: within four Monte Carlo standard errors."""
    rejected = covered = 0
    _, p = draw(np.random.default_rng(7), 400_000)
    top, h = p.argmax(axis=1), p.max(axis=1)
    chance = expit(logit(np.clip(h, 1e-9, 1 - 1e-9)) + np.where(top % 2, 0.8, -0.8))
    truth = np.sqrt(np.mean((h - chance) ** 2))
    for seed in range(100):
        rng = np.random.default_rng([8, seed])
        y, p = draw(rng, 300, shift=0.0)
        rejected += truecal.calibration_test(y, p, n_resamples=99, rng=rng, **BY_CLASS).pvalue <= 0.05
        covered += truth in truecal.confidence_interval(*draw(rng, 1000), **BY_CLASS)
    assert abs(rejected / 100 - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 100)
    assert covered / 100 > 0.95 - 4 * np.sqrt(0.05 * 0.95 / 100)


def test_refusals():
    y, p = draw(np.random.default_rng(9), 50)
    with pytest.raises(truecal.InputError, match="a Sample has one column"):
        truecal.estimate(truecal.Sample.from_predictions(y == 0, p[:, 0]), **BY_CLASS)
    with pytest.raises(truecal.InputError, match="the top class differs"):
        truecal.estimate(y, p, pos_label=1, **BY_CLASS)
    with pytest.raises(truecal.InputError, match="must be 'multiscale'"):
        truecal.calibration_test(y, p, method="em_bin", **BY_CLASS)
    with pytest.raises(truecal.InputError, match="is for calibration_error, estimate, confidence_interval"):
        truecal.weak_calibration(y, p, **BY_CLASS)


def test_the_size_is_that_of_all_classes():
    rng = np.random.default_rng(2)
    proba = rng.dirichlet(np.ones(3), 300)
    y, weight = rng.integers(0, 3, 300), rng.lognormal(size=300)
    rows = {"y_true": y, "y_proba": proba, "multiclass": "top_by_class", "sample_weight": weight}
    tested, found = truecal.calibration_test(**rows, n_resamples=19, rng=0), truecal.estimate(**rows)
    assert (tested.n, tested.effective_size) == (found.n, found.effective_size)
