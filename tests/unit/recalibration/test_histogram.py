from __future__ import annotations

import numpy as np
import pytest

from truecal.recalibration import HistogramBinning


def test_equal_mass_by_hand():
    p = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    fitted = HistogramBinning(n_bins=3).fit(p, [0, 1, 0, 0, 1, 1])
    (bins,) = fitted.maps_
    np.testing.assert_allclose(bins.edges, [0.25, 0.45])
    np.testing.assert_allclose(bins.values, [0.5, 0, 1])
    np.testing.assert_allclose(fitted.transform([0, 0.25, 0.44, 0.45, 1]), [0.5, 0, 0, 1, 1])


def test_each_row_of_fit_stays_in_its_bin_between_neighbouring_floats():
    lower = 0.5
    upper = np.nextafter(lower, 1)
    fitted = HistogramBinning(n_bins=2).fit([lower, upper], [0, 1])
    np.testing.assert_array_equal(fitted.transform([lower, upper]), [0, 1])


def test_ties_stay_together():
    p = np.repeat([0.2, 1.0], [10, 90])
    y = np.concatenate([np.zeros(10), np.tile([0, 1, 1], 30)]).astype(int)
    fitted = HistogramBinning(n_bins=15).fit(p, y)
    assert len(fitted.maps_[0].values) == 2
    np.testing.assert_allclose(fitted.transform([0.2, 1.0]), [0, 2 / 3])


def test_an_empty_bin_of_equal_width_returns_the_score_itself():
    fitted = HistogramBinning(n_bins=4, strategy="width").fit([0.1, 0.2, 0.9], [1, 0, 1])
    np.testing.assert_allclose(fitted.transform([0.0, 0.24, 0.25, 0.6, 0.75, 1]), [0.5, 0.5, 0.25, 0.6, 1, 1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tenths_land_in_their_bins(dtype):
    tenths = (np.arange(11) / 10).astype(dtype)
    fitted = HistogramBinning(n_bins=10, strategy="width").fit(tenths, np.arange(11) % 2)
    expected = np.append(np.arange(9) % 2, [0.5, 0.5])  # 0.9 and 1.0 share the last bin
    np.testing.assert_allclose(fitted.transform(tenths), expected)


def test_rows_that_every_class_denies_keep_the_models_word():
    p = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    fitted = HistogramBinning(n_bins=2).fit(np.repeat(p, 5, axis=0), np.repeat([0, 1, 2], 5))
    unsure = [[0.3, 0.3, 0.4]]  # below the edge 0.45 of every class: each is mapped to 0
    np.testing.assert_allclose(fitted.transform(unsure), unsure)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"n_bins": 0}, "n_bins must be a whole number >= 1. Got 0 instead"),
        ({"n_bins": 2.5}, "n_bins must be a whole number"),
        (
            {"strategy": "mas"},
            "strategy must be one of 'mass', 'width'. Got 'mas' instead. Did you mean 'mass'",
        ),
    ],
)
def test_wrong_parameters(parameters, says):
    with pytest.raises(ValueError, match=says):
        HistogramBinning(**parameters).fit([0.1, 0.9], [0, 1])
