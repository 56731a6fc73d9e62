"""Curves that follow the data."""

import numpy as np
import pytest

import truecal
from truecal._lib.numeric import isotonic_rate
from truecal.recalibration import HistogramBinning, IsotonicCalibration, VennAbersCalibration
from truecal.recalibration._nonparametric import with_a_positive


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("decimals", [2, 15])
def test_it_agrees_with_scikit_learn(golden, weighted, decimals):
    isotonic = pytest.importorskip("sklearn.isotonic")
    y, p = golden(500)
    p = np.round(p, decimals)
    weight = 0.5 + (np.arange(500) % 7) if weighted else None
    grid = np.linspace(0, 1, 1001)
    theirs = isotonic.IsotonicRegression(out_of_bounds="clip").fit(p, y, sample_weight=weight).transform(grid)
    ours = IsotonicCalibration().fit(p, y, sample_weight=weight).transform(grid)
    np.testing.assert_allclose(ours, theirs, atol=1e-10)


def test_falling_labels_become_the_base_rate():
    fitted = IsotonicCalibration().fit([0.1, 0.4, 0.6, 0.9], [1, 1, 0, 0])
    np.testing.assert_allclose(fitted.transform([0.0, 0.5, 1.0]), 0.5)


def test_knots_are_the_ends_of_level_stretches():
    fitted = IsotonicCalibration().fit([0.1, 0.2, 0.3, 0.4, 0.5], [0, 1, 0, 1, 1])
    (rising,) = fitted.maps_
    np.testing.assert_allclose(rising.score, [0.1, 0.2, 0.3, 0.4, 0.5])
    np.testing.assert_allclose(rising.value, [0, 0.5, 0.5, 1, 1])


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


def test_every_group_is_isotonic_regression_with_one_more_row():
    rng = np.random.default_rng(0)
    for _ in range(200):
        size = rng.integers(1, 12)
        count = rng.integers(1, 5, size).astype(float)
        positives = np.floor(rng.random(size) * (count + 1))
        found = with_a_positive(count, positives)
        for k in range(size):
            more = np.eye(size)[k]
            assert found[k] == pytest.approx(isotonic_rate(count + more, positives + more)[k], abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_bounds_at_any_score(seed):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(30), 1 + seed % 2)
    y = (rng.random(30) < p).astype(int)
    (fitted,) = VennAbersCalibration().fit(p, y).maps_
    for new in (*np.unique(p), 0.0, 1.0, *rng.random(10)):
        low, high = fitted.bounds(np.array([new]))
        expected = []
        for label in (0, 1):
            score, group = np.unique(np.append(p, new), return_inverse=True)
            labels = np.append(y, label)
            rate = isotonic_rate(np.bincount(group).astype(float), np.bincount(group, labels))
            expected.append(rate[np.searchsorted(score, new)])
        assert [low[0], high[0]] == pytest.approx(expected, abs=1e-12)
        assert low[0] <= high[0]


def test_never_certain_and_close_to_the_curve():
    population = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
    y, p = population.sample(5000, rng=0)
    after = VennAbersCalibration().fit(p, y).transform(np.linspace(0, 1, 101))
    assert 0 < after.min() <= after.max() < 1
    assert (np.diff(after) >= -1e-12).all()
    assert np.abs(after - np.linspace(0, 1, 101) ** 2).mean() < 0.03
    assert np.all(VennAbersCalibration().fit([0.2, 0.8], [0, 1]).transform([0.0, 1.0]) % 1 > 0)


def test_validity():
    """The bound that belongs to the label of the new row is calibrated: its mean is the mean label, in 40 rows."""
    rng = np.random.default_rng(1)
    gap = []
    for _ in range(1500):
        p = rng.random(41)
        y = rng.random(41) < p**3
        (fitted,) = VennAbersCalibration().fit(p[1:], y[1:].astype(int)).maps_
        low, high = fitted.bounds(p[:1])
        gap.append(float((high if y[0] else low)[0]) - y[0])
    assert abs(np.mean(gap)) < 4 * np.std(gap, ddof=1) / np.sqrt(len(gap))
