import numpy as np
import pandas as pd
import polars as pl
import pytest

from truecal import Sample
from truecal.data import as_samples
from truecal.data.labels import classes_of, read_clusters
from truecal.exceptions import CalibrationWarning, InputError, Remedy

Y, P = np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8])


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_dates_are_labels_in_every_unit(unit):
    days = np.array(["2020-01-01", "2020-01-02"], dtype=f"M8[{unit}]")
    expected = Sample.from_predictions(Y, P).positives
    for positive in (days[1], pd.Timestamp("2020-01-02"), np.datetime64("2020-01-02")):
        sample = Sample.from_predictions(days[Y], P, pos_label=positive)
        np.testing.assert_array_equal(sample.positives, expected)
    with pytest.raises(InputError, match=r"1 missing \(NaN\) label"):
        Sample.from_predictions(np.append(days[Y][:3], np.datetime64("NaT")), P, pos_label=days[1])


def test_the_numbers_in_the_names_of_columns_are_their_classes():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 50)
    y = rng.integers(3, size=50)
    (expected,) = as_samples(y, proba)
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        frame = pd.DataFrame(proba[:, order], columns=[f"p{k}" for k in order])
        (sample,) = as_samples(y, frame)
        assert sample.positives.sum() == expected.positives.sum()
    one_based = pd.DataFrame(proba, columns=["p1", "p2", "p3"])
    assert as_samples(y + 1, one_based)[0].positives.sum() == expected.positives.sum()


def test_a_common_prefix_is_not_part_of_a_class():
    assert classes_of(["prob_dog", "prob_cat"], ["cat", "dog"]) == ["dog", "cat"]
    assert classes_of(["x", "y"], ["cat", "dog"]) is None


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series])
def test_clusters_of_many_kinds(make):
    for values in (["b", "a", "b", "c"], [10, 3, 10, 7]):
        codes = read_clusters(make(values), 4)
        assert sorted(set(codes.tolist())) == [0, 1, 2]
        assert codes[0] == codes[2]
        assert len({codes[0], codes[1], codes[3]}) == 3


def test_columns_of_clusters_are_crossed():
    frame = {"site": ["a", "a", "b", "a"], "ward": [1, 2, 1, 1]}
    for clusters in (pd.DataFrame(frame), pl.DataFrame(frame), np.array([[0, 1], [0, 2], [1, 1], [0, 1]])):
        codes = read_clusters(clusters, 4)
        assert codes[0] == codes[3]
        assert len(set(codes.tolist())) == 3


def test_wrong_clusters():
    with pytest.raises(InputError, match="clusters has 3 rows, y_true has 4"):
        Sample.from_predictions(Y, P, clusters=[1, 2, 3])
    with pytest.raises(InputError, match=r"clusters has 1 missing \(NaN\) value \(first at row 2\)") as info:
        Sample.from_predictions(Y, P, clusters=["a", "b", None, "b"])
    assert (info.value.argument, info.value.first_row, info.value.remedy) == ("clusters", 2, Remedy.DROP_ROWS)
    with pytest.raises(InputError, match="must have shape"):
        Sample.from_predictions(Y, P, clusters=np.zeros((4, 1, 1)))


def test_a_sample_keeps_clusters_and_sampling_weights():
    weight = np.array([1.0, 2.0, 0.5, 0.0])
    sample = Sample.from_predictions(
        Y, [0.2, 0.2, 0.7, 0.9], sample_weight=weight, clusters=["x", "y", "y", "z"]
    )
    assert sample.squares.tolist() == [5.0, 0.25]
    assert sample.positive_squares.tolist() == [0.0, 0.25]
    assert sample.clusters.n_clusters == 2  # that of the row of weight 0 is gone
    assert sample.clusters.group.tolist() == [0, 0, 1]
    assert sample.clusters.weight.tolist() == [1.0, 2.0, 0.5]
    counted = Sample.from_predictions(Y, P, sample_weight=[1, 2, 3, 4], weights="counts")
    assert counted.squares is None
    assert (counted.n, type(counted.n)) == (10, int)
    with pytest.raises(InputError, match="weights 'counts' needs sample_weight"):
        Sample.from_predictions(Y, P, weights="counts")


def test_numbers_as_text_are_taken_in_the_order_of_text_with_a_warning():
    labels = [str(k % 11) for k in range(22)]
    with pytest.warns(CalibrationWarning, match="in the order of the labels as text: '0', '1', '10', '2'"):
        Sample.from_predictions(labels, np.full((22, 11), 1 / 11))
    Sample.from_predictions([str(k % 9) for k in range(18)], np.full((18, 9), 1 / 9))  # the same either way
