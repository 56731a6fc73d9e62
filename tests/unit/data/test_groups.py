from datetime import date

import numpy as np
import pytest

from truecal.data import read_rows
from truecal.data.groups import read_features, split_rows, split_sample
from truecal.exceptions import InputError


def members(split):
    return {name: np.flatnonzero(split.group == k).tolist() for k, name in enumerate(split.names)}


def test_one_column():
    assert members(split_rows(np.array(["b", "a", "b"]), 3)) == {"a": [1], "b": [0, 2]}
    assert split_rows([2, 10, 2], 3).names == ("2", "10")


def test_crossed_columns_in_all_forms():
    sex, age = ["m", "f", "m"], [1, 1, 2]
    expected = {"f, 1": [1], "m, 1": [0], "m, 2": [2]}
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = {"sex": sex, "age": age}
    for by in (columns, pandas.DataFrame(columns), polars.DataFrame(columns), (sex, age)):
        assert members(split_rows(by, 3)) == expected
    assert split_rows(columns, 3).columns == ("sex", "age")
    assert split_rows(np.array([sex, sex]).T, 3).columns == ("group 1", "group 2")
    assert split_rows(pandas.Series(sex, name="sex"), 3).columns == ("sex",)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_group_is_not_the_one_called_missing(missing):
    split = split_rows(["(missing)", missing, "a", missing], 4)
    assert members(split) == {"'(missing)'": [0], "a": [2], "(missing)": [1, 3]}
    assert split.keys[-1] == (None,)


def test_missing_values_of_pandas():
    pandas = pytest.importorskip("pandas")
    split = split_rows(pandas.Series([1, None, 1], dtype="Int64"), 3)
    assert members(split) == {"1": [0, 2], "(missing)": [1]}


def test_columns_of_polars_are_split_as_lists_are():
    polars = pytest.importorskip("polars")
    columns = [
        polars.Series(["b", None, "a", "b"]),
        polars.Series(["b", None, "a", "b"], dtype=polars.Categorical),
        polars.Series([2, None, 10, 2]),
        polars.Series([1.5, None, float("nan"), float("nan")]),
        polars.Series([True, None, False]),
        polars.Series([date(2024, 2, 1), date(2024, 1, 1)]),
        polars.Series([None, None]),
        polars.Series([1 + 0j, 1j, 1j], dtype=polars.Object),
    ]
    for column in columns:
        found, expected = split_rows(column, len(column)), split_rows(column.to_list(), len(column))
        assert (found.names, found.keys) == (expected.names, expected.keys)
        assert found.group.tolist() == expected.group.tolist()


def test_values_that_print_alike_stay_apart():
    assert members(split_rows([1, "1", 1], 3)) == {"1": [0, 2], "'1'": [1]}


def test_equal_values_of_different_types_stay_apart():
    split = split_rows([1, True, 1.0, None, 1], 5)
    assert sorted(members(split).values()) == [[0, 4], [1], [2], [3]]
    assert split.keys[-1] == (None,)


def test_all_missing_values_are_one_group():
    split = split_rows([float("nan"), None, 2.0, float("nan")], 4)
    assert members(split) == {"2.0": [2], "(missing)": [0, 1, 3]}


@pytest.mark.parametrize("by", ["sex", 3, {}, {"sex": ["a"]}, ["a", "b", "c"]])
def test_what_is_no_group_of_the_rows_is_refused(by):
    with pytest.raises(InputError, match="by "):
        split_rows(by, 2)


def test_each_group_has_the_sample_of_its_rows_unless_it_has_no_weight():
    (rows,) = read_rows([0, 1, 1, 0], [0.2, 0.4, 0.4, 0.9], sample_weight=[1, 2, 3, 0])
    samples = split_sample(rows, split_rows(["b", "a", "b", "c"], 4))
    assert [(k, part.score.tolist(), part.n) for k, part in samples.items()] == [
        (0, [0.4], 2),
        (1, [0.2, 0.4], 4),
    ]


@pytest.mark.parametrize("kind", ["array", "list", "pandas", "whole numbers", "polars", "tensor"])
def test_columns_of_features_in_any_form(kind):
    values = np.arange(12).reshape(6, 2)

    class Tensor:  # an array of another library, whose attribute `name` is no name
        name = None

        def __array__(self, dtype=None, copy=None):
            return values

    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    features = {
        "array": values,
        "list": values.tolist(),
        "pandas": pandas.DataFrame(values, columns=["a", "b"]),
        "whole numbers": pandas.DataFrame(values),
        "polars": polars.DataFrame(values, schema=["a", "b"]),
        "tensor": Tensor(),
    }[kind]
    found = read_features(features, 6, n_bins=2)
    names = {"pandas": ["a", "b"], "polars": ["a", "b"], "whole numbers": ["0", "1"]}
    assert [one.name for one in found] == names.get(kind, ["feature 0", "feature 1"])
    assert all(one.code.tolist() == [0, 0, 0, 1, 1, 1] for one in found)
