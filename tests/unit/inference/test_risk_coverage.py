import numpy as np
import pytest

from truecal.exceptions import InputError
from truecal.inference.risk_coverage import risk_coverage


def test_against_a_loop():
    rng = np.random.default_rng(0)
    score = rng.integers(0, 20, 300) / 20
    label = rng.random(300) < score
    curve = risk_coverage(label, score)
    for k, threshold in enumerate(curve.threshold):
        kept = score >= threshold
        assert curve.coverage[k] == pytest.approx(kept.mean())
        assert curve.accuracy[k] == pytest.approx(label[kept].mean())
    assert curve.coverage[-1] == 1
    np.testing.assert_allclose(curve.risk, 1 - curve.accuracy)
    shares = [(score == threshold).mean() for threshold in curve.threshold]
    assert curve.aurc == pytest.approx(np.dot(shares, curve.risk))


def test_row_order_does_not_matter_and_ties_are_answered_together():
    y, p = np.array([1, 0, 1, 0]), np.array([0.9, 0.9, 0.5, 0.5])
    one, other = risk_coverage(y, p), risk_coverage(y[::-1], p[::-1])
    np.testing.assert_array_equal(one.accuracy, other.accuracy)
    assert one.coverage.tolist() == [0.5, 1.0]
    assert one.at(0.7)["coverage"] == 0.5
    assert one.at(0.1)["coverage"] == 0.5  # the smallest that is possible
    with pytest.raises(InputError, match="coverage must be above 0"):
        one.at(0)


def test_top_label_of_several_classes():
    curve = risk_coverage([0, 1, 2], [[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.5, 0.3, 0.2]])
    assert curve.threshold.tolist() == [0.7, 0.5, 0.4]
    assert curve.accuracy.tolist() == [1, 0.5, pytest.approx(2 / 3)]
    assert curve.target == "top label of 3 classes"


def test_wilson_interval_of_all_rows():
    curve = risk_coverage([1] * 8 + [0] * 2, [0.5] * 10)
    # Wilson's interval of 8 in 10; R 4.3, prop.test(8, 10, correct = FALSE)
    assert (curve.lower[0], curve.upper[0]) == (
        pytest.approx(0.4901625, abs=1e-6),
        pytest.approx(0.9433178, abs=1e-6),
    )


def test_clusters_widen_the_interval_and_single_rows_do_not():
    rng = np.random.default_rng(1)
    question = np.repeat(np.arange(100), 5)
    label = (rng.random(100) < 0.7)[question]  # all answers to a question are alike
    score = np.full(500, 0.8)
    plain = risk_coverage(label, score)
    clustered = risk_coverage(label, score, clusters=question)
    ratio = (clustered.upper - clustered.lower) / (plain.upper - plain.lower)
    assert ratio[0] == pytest.approx(np.sqrt(5), rel=0.03)
    single = risk_coverage(label, score, clusters=np.arange(500))
    np.testing.assert_allclose(single.lower, plain.lower, atol=2e-3)


def test_coverage_of_the_interval_with_clusters():
    rng, repeats, inside = np.random.default_rng(2), 400, 0
    question = np.repeat(np.arange(80), 4)
    for _ in range(repeats):
        ability = rng.beta(2, 1, 80)
        label = rng.random(320) < ability[question]
        curve = risk_coverage(label, np.full(320, 0.6), clusters=question)
        inside += curve.lower[0] <= 2 / 3 <= curve.upper[0]
    assert inside / repeats >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / repeats) - 0.01


def test_it_prints_itself():
    text = str(risk_coverage([1, 1, 0, 1], [0.9, 0.8, 0.3, 0.6]))
    assert "AURC" in text
    assert "coverage 50.0%, accuracy 100.0%" in text
