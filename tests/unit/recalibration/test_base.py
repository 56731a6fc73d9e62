"""What holds for every recalibrator."""

from __future__ import annotations

import copy
import pickle
import time
import warnings

import numpy as np
import pytest
from scipy.special import expit, logit, softmax

import truecal
from truecal.exceptions import CalibrationWarning

GRID = np.linspace(0, 1, 201)


def quiet_fit(recalibrator, *args, **kwargs):
    """Fit without the warning of temperature scaling that there is no best temperature."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return recalibrator.fit(*args, **kwargs)


def test_a_miscalibrated_model_is_improved(make, golden):
    y, p = golden(4000)  # the labels come true p squared of the time
    if make.name in ("identity", "temperature"):
        pytest.skip("cannot bend the curve so")
    after = make().fit(p, y).transform(p)
    assert np.abs(after - p**2).max() < 0.1
    assert truecal.calibration_error(y, after) < 0.2 * truecal.calibration_error(y, p)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_shape_comes_back_as_float64(make, golden, dtype):
    y, p = golden(200)
    p = p.astype(dtype)
    fitted = make().fit(p, y)
    flat = fitted.transform(p)
    assert flat.shape == (200,)
    assert flat.dtype == np.float64
    np.testing.assert_array_equal(fitted.transform(p[:, np.newaxis]), flat[:, np.newaxis])
    two = np.column_stack([1 - p, p])
    answer = make().fit(two, y).transform(two)
    np.testing.assert_array_equal(answer[:, 1], flat)
    np.testing.assert_array_equal(answer[:, 0], 1 - flat)


def test_several_classes_sum_to_one(make, three_classes):
    label, logits = three_classes
    after = make(input="logits").fit(logits, label).transform(logits)
    assert after.shape == (600, 3)
    assert after.min() >= 0
    np.testing.assert_allclose(after.sum(axis=1), 1, rtol=1e-12)


def test_several_classes_come_out_less_sure(make, three_classes):
    label, logits = three_classes
    if make.name == "identity":
        pytest.skip("changes nothing")
    before, after = softmax(logits, axis=1), make(input="logits").fit(logits, label).transform(logits)
    assert truecal.calibration_error(label, after) < 0.6 * truecal.calibration_error(label, before)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_and_logits_say_the_same(make, three_classes, n_classes):
    label, logits = three_classes
    if n_classes == 2:
        label, logits = label == 2, logits[:, 2]
    proba = expit(logits) if n_classes == 2 else softmax(logits, axis=1)
    by_logits = make(input="logits").fit(logits, label).transform(logits)
    by_proba = make().fit(proba, label).transform(proba)
    np.testing.assert_allclose(by_proba, by_logits, atol=1e-6)


def test_two_logits_are_their_difference(make, three_classes):
    label, logits = three_classes
    two, y = logits[:, :2], label == 1
    one = two[:, 1] - two[:, 0]
    answer = make(input="logits").fit(two, y).transform(two)
    np.testing.assert_allclose(answer[:, 1], make(input="logits").fit(one, y).transform(one), atol=1e-12)


def test_weights_are_repetition(make, golden):
    y, p = golden(150)
    weight = np.arange(150) % 4
    weighted = make().fit(p, y, sample_weight=weight).transform(GRID)
    repeated = make().fit(np.repeat(p, weight), np.repeat(y, weight)).transform(GRID)
    np.testing.assert_allclose(weighted, repeated, atol=1e-7)


def test_the_order_of_rows_does_not_matter(make, golden):
    y, p = golden(300)
    p = np.round(p, 2)  # ties
    shuffled = np.random.default_rng(0).permutation(300)
    there = make().fit(p, y).transform(GRID)
    back = make().fit(p[shuffled], y[shuffled]).transform(GRID)
    np.testing.assert_allclose(there, back, atol=1e-9)


def test_input_arrays_are_left_as_they_are(make, golden):
    y, p = golden(50)
    weight = np.ones(50)
    kept = [array.copy() for array in (y, p, weight)]
    for array in (y, p, weight):
        array.flags.writeable = False
    make().fit(p, y, sample_weight=weight).transform(p)
    for array, before in zip((y, p, weight), kept, strict=True):
        np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize("only", [0, 1])
def test_one_class_only(make, golden, only):
    _, p = golden(100)
    p = p * 0.8 + 0.1
    after = quiet_fit(make(), p, np.full(100, only)).transform(p)
    assert np.isfinite(after).all()
    assert ((after >= 0) & (after <= 1)).all()
    if make.name not in ("identity", "temperature", "venn-abers"):  # the last is careful at the ends
        assert np.abs(after - only).max() < 0.05


def test_constant_scores_become_the_base_rate(make):
    y = np.array([1, 0, 0, 0] * 25)
    after = quiet_fit(make(), np.full(100, 0.6), y).transform([0.6])
    if make.name == "identity":
        assert after == 0.6
    elif make.name == "temperature":
        assert after == pytest.approx(0.5, abs=1e-3)  # one side of 1/2 is all that it can reach
    else:
        assert after == pytest.approx(0.25, abs=0.01)


def test_scores_of_exactly_0_and_1(make):
    p = np.array([0.0, 0.0, 0.0, 0.0, 0.3, 0.6, 1.0, 1.0, 1.0, 1.0, 1.0])
    y = np.array([0, 0, 1, 0, 0, 1, 1, 1, 1, 0, 1])
    after = make().fit(p, y).transform([0.0, 0.5, 1.0])
    assert np.isfinite(after).all()
    assert after[0] <= after[2]
    assert ((after >= 0) & (after <= 1)).all()


def test_scores_beyond_those_seen(make, golden):
    y, p = golden(200)
    inner = 0.4 + 0.2 * p
    after = quiet_fit(make(), inner, y).transform(GRID)
    assert np.isfinite(after).all()
    assert ((after >= 0) & (after <= 1)).all()
    if "histogram" not in make.name:  # whose bins may fall
        assert (np.diff(after) >= -1e-12).all()


def test_huge_logits(make):
    z = np.array([-2000.0, -3.0, -1.0, 1.0, 2.0, 3000.0] * 10)
    y = np.array([0, 0, 1, 0, 1, 1] * 10)
    after = make(input="logits").fit(z, y).transform([-1e6, 0.0, 1e6])
    assert np.isfinite(after).all()
    assert after[0] <= after[2]


def test_a_class_without_rows(make, three_classes):
    label, logits = three_classes
    kept = label != 1
    after = quiet_fit(make(input="logits"), logits[kept], label[kept]).transform(logits)
    np.testing.assert_allclose(after.sum(axis=1), 1, rtol=1e-12)


def test_pickle_and_copy(make, golden):
    y, p = golden(100)
    fitted = make().fit(p, y)
    for twin in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(twin.transform(GRID), fitted.transform(GRID))
        assert twin.get_params() == fitted.get_params()


def test_parameters_by_name(make):
    recalibrator = make()
    assert recalibrator.get_params()["input"] == "probabilities"
    assert recalibrator.set_params(input="logits") is recalibrator
    assert recalibrator.input == "logits"
    with pytest.raises(
        ValueError, match=r"must be one of .*'input'.* Got 'inputs' instead. Did you mean 'input'"
    ):
        recalibrator.set_params(inputs="logits")


def test_wrong_parameters_are_refused_in_fit(make):
    with pytest.raises(ValueError, match=r"input must be one of 'probabilities', 'logits'. Got 'logit'"):
        make(input="logit").fit([0.1, 0.9], [0, 1])


def test_transform_before_fit(make):
    with pytest.raises(ValueError, match=r"is not fitted yet. Call fit\(scores, y\) first"):
        make().transform([0.5])


def test_another_number_of_columns(make, three_classes):
    label, logits = three_classes
    fitted = make(input="logits").fit(logits, label)
    with pytest.raises(ValueError, match=r"X has 2 features, but \w+ is expecting 3 features as input"):
        fitted.transform(logits[:, :2])


def test_fit_transform_and_labels_as_words(make, golden):
    y, p = golden(100)
    words = np.where(y == 1, "yes", "no")
    recalibrator = make()
    np.testing.assert_array_equal(recalibrator.fit_transform(p, words), make().fit_transform(p, y))
    assert recalibrator.classes_.tolist() == ["no", "yes"]
    assert recalibrator.n_features_in_ == 1


def test_logit_of_golden_scores_round_trips(golden):
    # a guard of the tests above: no golden score is so near 0 or 1 that clipping would show
    _, p = golden(4000)
    np.testing.assert_allclose(expit(logit(p)), p, rtol=1e-12)


WEIGHTS = {
    "huge": lambda rng, n: rng.random(n) * 1e12 + 1,
    "one huge": lambda rng, n: np.where(np.arange(n) == 0, 1e12, 1.0),
    "uneven": lambda rng, n: 10.0 ** rng.integers(-6, 7, n),
    "tiny": lambda rng, n: rng.random(n) * 1e-9 + 1e-12,
}


@pytest.mark.parametrize("weights", WEIGHTS)
def test_weights_of_any_size_are_fast_and_without_warnings_of_numpy(make, weights):
    rng = np.random.default_rng(0)
    for n, scores in ((5, 10.0 ** rng.uniform(-300, 0, 5)), (60, rng.random(60))):
        y = rng.integers(0, 2, n)
        y[:2] = 0, 1
        weight, started = WEIGHTS[weights](rng, n), time.process_time()
        found = quiet_fit(make(), scores, y, sample_weight=weight).transform(scores)
        assert time.process_time() - started < 2
        assert ((found >= 0) & (found <= 1)).all()
