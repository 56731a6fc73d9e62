"""Columns as levels."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from truecal.data.groups import read_features
from truecal.exceptions import InputError


def test_numbers_are_cut_at_quantiles_and_ties_stay_together():
    (feature,) = read_features({"x": [1.0, 1, 1, 1, 1, 2, 3, 4]}, 8, n_bins=4)
    assert feature.levels == ("1 to 1", "2 to 2", "3 to 4") or len(set(feature.code[:5])) == 1
    assert len(set(feature.code[:5].tolist())) == 1
    assert np.all(np.diff(feature.code) >= 0)


def test_few_numbers_and_text_are_levels_in_order():
    numbers, text = read_features({"n": [10, 9, 10, 2], "t": ["b", "a", "b", "a"]}, 4, n_bins=4)
    assert numbers.levels == ("2", "9", "10")
    assert numbers.code.tolist() == [2, 1, 2, 0]
    assert text.levels == ("'a'", "'b'")
    assert text.code.tolist() == [1, 0, 1, 0]


def test_a_missing_value_is_not_the_text_missing():
    (feature,) = read_features({"t": ["missing", None, "(missing)", float("nan")]}, 4)
    assert feature.code[1] == feature.code[3]
    assert len(set(feature.code.tolist())) == 3
    assert feature.levels[feature.code[1]] == "missing"
    assert feature.levels[feature.code[0]] == "'missing'"


def test_containers_agree():
    columns = {"age": [20.0, 30.0, 40.0, 50.0, 60.0, 70.0], "sex": ["f", "m", "f", "m", "f", "m"]}
    expected = [(f.name, f.levels, f.code.tolist()) for f in read_features(columns, 6, n_bins=2)]
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        assert [(f.name, f.levels, f.code.tolist()) for f in read_features(frame, 6, n_bins=2)] == expected
    (by_array,) = read_features(np.array(columns["age"])[:, np.newaxis], 6, n_bins=2)
    assert by_array.levels == expected[0][1]
    assert by_array.name == "feature 0"


def test_bad_columns_are_refused():
    with pytest.raises(InputError, match="features\\['x'\\] has shape \\(3,\\)"):
        read_features({"x": [1, 2, 3]}, 4)
    with pytest.raises(InputError, match="at least one column"):
        read_features({}, 4)
