"""The kernel error of the whole vector: the formula, its expectation, the level and the power of its test."""

import numpy as np
import pytest

import truecal
from truecal.inference import canonical


def drawn(n, classes=3, seed=0, distort=None):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(classes), n)
    truth = proba if distort is None else distort(proba)
    return (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), proba


def turned(proba):
    """Every margin nearly calibrated, the vector not: probability moves around the classes."""
    return 0.7 * proba + 0.3 * np.roll(proba, 1, axis=1)


def by_pairs(y, proba, gamma):
    residual = np.eye(proba.shape[1])[y] - proba
    distance = np.abs(proba[:, np.newaxis] - proba).sum(axis=2) / 2
    terms = np.exp(-distance / gamma) * (residual @ residual.T)
    n = len(y)
    return (terms.sum() - np.trace(terms)) / (n * (n - 1))


def error(y, proba, **options):
    return truecal.calibration_error(y, proba, multiclass="canonical", **options)


def test_is_the_mean_over_pairs():
    y, proba = drawn(60, 4)
    assert error(y, proba, bandwidth=0.3) == pytest.approx(by_pairs(y, proba, 0.3), abs=1e-14)
    result = truecal.calibration_test(y, proba, multiclass="canonical", bandwidth=0.3, n_resamples=19, rng=0)
    assert result.statistic == pytest.approx(by_pairs(y, proba, 0.3), abs=1e-9)
    assert result.method == "skce"
    assert "all 4 probabilities at once (kernel bandwidth 0.3)" in str(result)


def test_two_classes_are_twice_the_binary_error():
    y, p = truecal.paper.population("resnet152_imgnet").sample(200, rng=0)
    pair = np.column_stack([1 - p, p])
    assert error(y, pair, bandwidth=0.2) == pytest.approx(
        2 * truecal.calibration_error(y, p, estimator="skce"), abs=1e-12
    )


def test_rows_in_any_order_and_counts():
    y, proba = drawn(80)
    order = np.random.default_rng(1).permutation(80)
    assert error(y[order], proba[order]) == pytest.approx(error(y, proba), abs=1e-15)
    each = np.random.default_rng(2).integers(0, 3, 80)
    repeated = error(np.repeat(y, each), np.repeat(proba, each, axis=0), bandwidth=0.3)
    counted = error(y, proba, sample_weight=each, weighting="counts", bandwidth=0.3)
    assert counted == pytest.approx(repeated, abs=1e-14)


def test_blocks_are_unbiased(monkeypatch):
    monkeypatch.setattr(canonical, "ALL_PAIRS", 50)
    monkeypatch.setattr(canonical, "BLOCK", 50)
    truth = np.mean([by_pairs(*drawn(200, seed=k, distort=turned), 0.3) for k in range(60)])
    blocks = [error(*drawn(200, seed=k, distort=turned), bandwidth=0.3) for k in range(100, 260)]
    spread = np.std(blocks, ddof=1) / np.sqrt(len(blocks)) + np.std(blocks, ddof=1) / np.sqrt(60)
    assert abs(np.mean(blocks) - truth) < 4 * spread
    assert "pairs within 4 blocks" in truecal.estimate(*drawn(200), multiclass="canonical").target


def test_the_estimate_is_unbiased_for_a_calibrated_model():
    values = [error(*drawn(100, seed=seed)) for seed in range(300)]
    assert abs(np.mean(values)) < 4 * np.std(values, ddof=1) / np.sqrt(300)


@pytest.mark.slow
@pytest.mark.parametrize("landmarks", [512, 20])
def test_level_and_power(monkeypatch, landmarks):
    monkeypatch.setattr(canonical, "LANDMARKS", landmarks)

    def rejections(repeats, n, distort=None):
        tests = (
            truecal.calibration_test(
                *drawn(n, seed=seed, distort=distort), multiclass="canonical", n_resamples=99, rng=seed
            )
            for seed in range(repeats)
        )
        return np.mean([test.pvalue <= 0.1 for test in tests])

    assert abs(rejections(200, 100) - 0.1) < 4 * np.sqrt(0.1 * 0.9 / 200)
    assert rejections(20, 400, turned) > 0.9


def test_ties_and_impossible_classes():
    y, proba = np.array([0, 1, 2, 0]), np.eye(3)[[0, 1, 2, 0]]
    assert error(y, proba) == pytest.approx(0, abs=1e-15)
    wrong = truecal.calibration_test([1, 1, 2, 0], proba, multiclass="canonical", n_resamples=19, rng=0)
    assert wrong.pvalue == pytest.approx(0.05)
    assert wrong.notes == ("1 row has a class that a probability of exactly 0 rules out.",)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"estimator": "em_bin"}, "'em_bin' is not defined for multiclass='canonical'"),
        ({"bandwidth": 0}, r"bandwidth must be a number between 0\.001 and 1000\. Got 0 instead"),
        ({"method": "block"}, "method is not an option of the canonical error"),
        ({"n_bins": 5}, "n_bins is not supported with multiclass='canonical'"),
        ({"pos_label": 1}, "pos_label cannot be combined with multiclass='canonical'"),
        ({"clusters": np.arange(20)}, "clusters are not supported with multiclass='canonical'"),
        ({"sample_weight": np.full(20, 0.5)}, "sample_weight must be whole-number counts"),
    ],
)
def test_what_makes_no_sense_is_refused(options, says):
    with pytest.raises(truecal.InputError, match=says):
        error(*drawn(20), **options)


def test_where_it_is_not_defined():
    y, proba = drawn(20)
    with pytest.raises(truecal.InputError, match="confidence_level is not supported"):
        truecal.estimate(y, proba, multiclass="canonical", confidence_level=0.9)
    with pytest.raises(truecal.InputError, match="at_most is not supported"):
        truecal.calibration_test(y, proba, multiclass="canonical", at_most=0.1)
    with pytest.raises(truecal.InputError, match="'canonical' is for calibration_error, estimate and"):
        truecal.confidence_interval(y, proba, multiclass="canonical")
    with pytest.raises(truecal.InputError, match="a Sample has one column"):
        error(truecal.Sample.from_predictions([0, 1], [0.2, 0.7]), None)
    with pytest.raises(truecal.InputError, match="at least two rows"):
        error(y[:1], proba[:1])


# --- top k -----------------------------------------------------------------------------------------


def test_top_k():
    proba = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.4, 0.4, 0.2]])
    sample = truecal.Sample.from_predictions([2, 1, 1], proba, multiclass="top_2")
    assert sample.target == "top 2 of 3 classes"
    np.testing.assert_allclose(sample.score, [0.8, 0.9])
    np.testing.assert_array_equal(sample.positives, [1, 1])
    one = truecal.Sample.from_predictions([2, 1, 1], proba, multiclass="top_1")
    top = truecal.Sample.from_predictions([2, 1, 1], proba, multiclass="top")
    np.testing.assert_allclose(one.score, top.score)
    np.testing.assert_array_equal(one.positives, top.positives)
    assert truecal.Sample.from_predictions([2, 1, 1], proba, multiclass="top_k").target == sample.target


@pytest.mark.parametrize(
    ("multiclass", "says"),
    [
        ("top_3", "'top_3' needs more than 3 classes. Got 3 instead"),
        (
            "top_0",
            "multiclass must be one of 'top', 'classwise', 'top_k', 'top_by_class', 'multilabel', 'canonical'",
        ),
        ("top_x", "multiclass must be one of"),
    ],
)
def test_top_k_refused(multiclass, says):
    with pytest.raises(truecal.InputError, match=says):
        truecal.Sample.from_predictions(*drawn(5), multiclass=multiclass)


def test_top_k_of_a_calibrated_model():
    y, proba = drawn(4000, classes=8, seed=3)
    assert truecal.calibration_test(y, proba, multiclass="top_3", n_resamples=199, rng=0).pvalue > 0.01
    assert 0 in truecal.confidence_interval(y, proba, multiclass="top_3")
