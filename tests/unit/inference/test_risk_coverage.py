import numpy as np
import polars as pl
import pytest

import truecal
from truecal.exceptions import InputError
from truecal.inference.thresholds import risk_coverage


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


def test_clusters_against_a_loop():
    rng = np.random.default_rng(3)
    question, score = rng.integers(0, 30, 200), rng.integers(1, 12, 200) / 12
    label = rng.random(200) < 0.3 + 0.5 * (question % 3 > 0)
    curve = risk_coverage(label, score, clusters=question)
    for threshold, accuracy, low, high in zip(
        curve.threshold, curve.accuracy, curve.lower, curve.upper, strict=True
    ):
        kept = score >= threshold
        sums = np.bincount(question[kept], label[kept] - accuracy)
        n_clusters = len(np.unique(question[kept]))
        variance = (sums**2).sum() * n_clusters / (n_clusters - 1) / kept.sum() ** 2
        size = min(accuracy * (1 - accuracy) / variance, kept.sum())
        # Wilson's interval are the p with |accuracy - p| = t sqrt(p (1 - p) / size); t has 30 - 1 degrees of freedom.
        for end in (low, high):
            assert abs(accuracy - end) == pytest.approx(2.0452296 * np.sqrt(end * (1 - end) / size), rel=1e-6)


def test_samples_cells_and_weights():
    rng = np.random.default_rng(4)
    score = rng.integers(0, 20, 300) / 20
    label = rng.random(300) < score
    expected = risk_coverage(label, score)
    for sample in (
        truecal.Sample.from_predictions(label, score),
        truecal.summarize(_frame(label, score), **_NAMES),
    ):
        found = risk_coverage(sample)
        np.testing.assert_allclose(found.accuracy, expected.accuracy)
        np.testing.assert_allclose(found.upper, expected.upper)
    twice = risk_coverage(np.tile(label, 2), np.tile(score, 2))
    np.testing.assert_allclose(
        risk_coverage(label, score, sample_weight=2 * np.ones(300)).upper, expected.upper
    )
    counts = risk_coverage(label, score, sample_weight=2 * np.ones(300), weighting="counts")
    np.testing.assert_allclose(counts.upper, twice.upper)
    np.testing.assert_allclose(expected.mean_score[-1], score.mean())
    assert expected.mean_score[0] == pytest.approx(score.max())


_NAMES = {"label": "y", "score": "p"}


def _frame(label, score):
    return pl.DataFrame({"y": label, "p": score})
