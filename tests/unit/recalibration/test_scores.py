"""What the recalibrators take, and what they say to the rest."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from scipy.special import logsumexp

from truecal.exceptions import CalibrationWarning, InputError
from truecal.recalibration import IsotonicCalibration, TemperatureScaling
from truecal.recalibration._scores import one_against_rest, read_scores


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        ([0.1, 1.7], r"scores has 1 value outside \[0, 1\] \(first at row 1: 1.7\). .* set input='logits'"),
        ([0.1, np.nan], r"scores has 1 missing \(NaN\) value \(first at row 1\)"),
        ([[0.1, 0.9], [0.5, 0.6]], r"scores has 1 row whose sum is not 1 \(first at row 1: 1.1\)"),
        ([], r"scores is empty: 0 sample\(s\)"),
        (np.zeros((2, 0)), r"scores is empty: 0 feature\(s\)"),
        (np.zeros((2, 2, 2)), r"scores must have shape \(n,\) or \(n, K\). Got shape \(2, 2, 2\) instead"),
        (["a", "b"], "scores has 2 non-numeric values"),
        ([1j, 0.5], "Complex data not supported"),
    ],
)
def test_wrong_scores(scores, says):
    with pytest.raises(ValueError, match=says):
        IsotonicCalibration().fit(scores, [0, 1])


def test_wrong_types():
    with pytest.raises(TypeError, match=r"sparse matrix. Pass a dense array"):
        IsotonicCalibration().fit(csr_array(np.eye(2)), [0, 1])
    with pytest.raises(TypeError, match="scores must be numbers"):
        IsotonicCalibration().fit(np.array([{"a": 1}, 0.5], dtype=object), [0, 1])


def test_infinite_logits():
    with pytest.raises(ValueError, match="infinite or NaN value"):
        TemperatureScaling().fit([0.1, np.inf], [0, 1])


def test_probabilities_passed_as_logits():
    p = np.array([0.1, 0.4, 0.8, 0.9])
    with pytest.raises(ValueError, match=r"all rows sum to 1. Pass input='probabilities'"):
        TemperatureScaling().fit(np.column_stack([1 - p, p]), [0, 1, 0, 1])
    with pytest.warns(CalibrationWarning, match=r"all lie in \[0, 1\]. If they are probabilities, pass"):
        TemperatureScaling().fit(p, [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("y", "says"),
    [
        (None, "fit requires y to be passed"),
        ([0, 1], "y has 2 rows, scores has 3. They must have the same length"),
        ([0, 1, 2], r"y has 3 different labels \(0, 1, 2\) for 2 classes"),
        (["a", "a", "a"], r"y has 1 different label \('a'\)"),
        (
            [0.0, 0.5, 1.0],
            r"y has 1 fractional value \(Unknown label type: continuous\) \(first at row 1: 0.5\)\. .*wrong order",
        ),
        ([0.0, np.nan, 1.0], r"y has 1 missing \(NaN\) label \(first at row 1"),
        ([[1, 1], [0, 1], [1, 0]], "y has 1 row without a single 1"),
        (np.zeros((3, 4)), r"y is one-hot with 4 columns, scores has 2"),
    ],
)
def test_wrong_labels(y, says):
    with pytest.raises(ValueError, match=says):
        IsotonicCalibration().fit([0.1, 0.5, 0.9], y)


@pytest.mark.parametrize(
    ("weight", "says"),
    [
        ([1, 2], r"sample_weight has shape \(2,\). One weight is needed for each of 3 rows"),
        (
            [1, -1, 1],
            r"sample_weight has 1 value missing or outside \[1e-100, 1e\+100\] \(first at row 1: -1.0\)",
        ),
        ([0, 0, 0], "sample_weight is zero in every row"),
    ],
)
def test_wrong_weights(weight, says):
    with pytest.raises(ValueError, match=says):
        IsotonicCalibration().fit([0.1, 0.5, 0.9], [0, 1, 1], sample_weight=weight)


@pytest.mark.parametrize(
    "y",
    [[0, 1, 1], [False, True, True], [0.0, 1.0, 1.0], [-1, 1, 1], ["a", "b", "b"], [[1, 0], [0, 1], [0, 1]]],
)
def test_labels_of_many_kinds(y):
    fitted = IsotonicCalibration().fit([0.2, 0.5, 0.9], y)
    np.testing.assert_allclose(fitted.transform([0.2, 0.9]), [0, 1])


def test_one_label_of_0_and_1_needs_no_other():
    np.testing.assert_allclose(IsotonicCalibration().fit([0.2, 0.5], [0, 0]).transform([0.3]), 0)
    np.testing.assert_allclose(IsotonicCalibration().fit([0.2, 0.5], [1, 1]).transform([0.3]), 1)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_and_their_column_names(frame):
    p = frame({"dog": [0.7, 0.1, 0.2], "cat": [0.2, 0.6, 0.2], "ant": [0.1, 0.3, 0.6]})
    fitted = TemperatureScaling(input="probabilities").fit(p, ["dog", "cat", "dog"])  # no ant was seen
    assert fitted.classes_.tolist() == ["dog", "cat", "ant"]
    assert fitted.transform(p).shape == (3, 3)


def test_series_by_position(golden):
    y, p = golden(60)
    shuffled = pd.Series(p, index=np.arange(60)[::-1])
    np.testing.assert_array_equal(
        IsotonicCalibration().fit(shuffled, pd.Series(y)).transform(p),
        IsotonicCalibration().fit(p, y).transform(p),
    )


def test_one_against_rest_is_exact():
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.normal(size=(50, 4)) * scale for scale in (0.1, 1, 30, 1000)])
    for k in range(4):
        rest = logsumexp(np.delete(z, k, axis=1), axis=1)
        np.testing.assert_allclose(one_against_rest(z)[:, k], z[:, k] - rest, rtol=1e-12, atol=1e-12)


def test_log_probabilities_are_named():
    with pytest.raises(InputError, match=r"numpy\.exp of log probabilities, or set input='logits'"):
        read_scores(np.log([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]), "probabilities")
