import dataclasses
import importlib
import json
import pickle
import pkgutil
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

import truecal
from truecal.results import SCHEMA_VERSION, BinTable, Estimate, Interval, Result


@pytest.fixture
def table():
    return BinTable(
        lower=np.array([0.0, 0.5]),
        upper=np.array([0.5, 1.0]),
        count=np.array([3.0, 1.0]),
        mean_score=np.array([0.2, 0.9]),
        mean_label=np.array([0.6, 0.6]),
    )


def test_a_bin_table_by_hand(table):
    assert len(table) == 2
    assert table.gap == pytest.approx([-0.4, 0.3])
    assert table.to_rows() == [
        {"lower": 0.0, "upper": 0.5, "count": 3.0, "mean_score": 0.2, "mean_label": 0.6, "gap": 0.2 - 0.6},
        {"lower": 0.5, "upper": 1.0, "count": 1.0, "mean_score": 0.9, "mean_label": 0.6, "gap": 0.9 - 0.6},
    ]
    assert {type(value) for row in table.to_rows() for value in row.values()} == {float}


def test_a_bin_table_prints_in_columns(table):
    large = dataclasses.replace(table, count=np.array([12_345_678, 0.5]))
    lines = str(large).splitlines()
    assert len(lines) == 3
    assert len({len(line) for line in lines}) == 1
    assert lines[1].split() == ["0.0000", "0.5000", "12345678", "0.200", "0.600", "-0.400"]
    assert lines[2].split() == ["0.5000", "1.0000", "0.5", "0.900", "0.600", "+0.300"]


def test_an_estimate_is_a_number_that_prints_what_it_is(table):
    estimate = Estimate(
        0.123456, table, n_bins=2, estimator="em_bin", norm=1.0, n=1_234_567, target="P(y = 1)"
    )
    assert float(estimate) == 0.123456
    assert str(estimate) == "em_bin (l1) of P(y = 1): 0.1235, n = 1234567, 2 bins"
    assert repr(estimate) == f"<Estimate {estimate}>"
    assert str(dataclasses.replace(estimate, n_bins=1)).endswith("1 bin")
    assert str(dataclasses.replace(estimate, n_bins=None, norm=None, n=2.5)) == (
        "em_bin of P(y = 1): 0.1235, n = 2.5"
    )


def test_results_are_frozen(table):
    estimate = Estimate(0.1, table)
    with pytest.raises(dataclasses.FrozenInstanceError):
        estimate.value = 0.2
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.count = None


@pytest.mark.parametrize("scalar", [np.float16, np.float32, np.float64, np.longdouble, int])
def test_numpy_scalars_become_plain_numbers(scalar):
    estimate = Estimate(scalar(1), n_bins=np.int64(3))
    assert (type(estimate.value), type(estimate.n_bins), float(estimate)) == (float, int, 1.0)
    json.dumps(estimate.to_dict())


@pytest.mark.parametrize("spec", truecal.list_estimators(), ids=lambda spec: spec.name)
def test_every_estimate_goes_through_json_and_pickle(golden, spec):
    y, p = golden(200)
    estimate = truecal.estimate(y, p, estimator=spec.name)
    plain = json.loads(json.dumps(estimate.to_dict(), allow_nan=False))
    assert plain == estimate.to_dict()
    assert plain["schema_version"] == SCHEMA_VERSION
    assert plain["value"] == estimate.value
    assert plain["target"] == "P(y = 1)"
    assert plain["estimator"] == spec.name
    assert plain["n"] == 200
    if estimate.bins is not None:
        assert sum(plain["bins"]["count"]) == 200
    again = pickle.loads(pickle.dumps(estimate))
    assert again.to_dict() == estimate.to_dict()


def test_a_classwise_estimate_carries_its_classes_into_json():
    proba = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5]]
    estimate = truecal.estimate([0, 1, 2], proba, multiclass="classwise", estimator="ew_bin")
    plain = json.loads(json.dumps(estimate.to_dict(), allow_nan=False))
    assert [part["target"] for part in plain["classes"]] == [f"P(y = {k}) against the rest" for k in range(3)]
    assert plain["value"] == pytest.approx(
        np.sqrt(np.mean([part["value"] ** 2 for part in plain["classes"]]))
    )
    assert "schema_version" not in plain["classes"][0]
    assert plain["bins"] is None


def test_sampling_weights_show_the_effective_number_of_rows():
    estimate = Estimate(0.1, estimator="kde", n=1.0, target="P(y = 1)", effective_size=812.34)
    assert str(estimate) == "kde of P(y = 1): 0.1000, effective n = 812.3"


def all_results():
    """Every class of results outside the command line and the integrations."""
    for module in pkgutil.walk_packages(truecal.__path__, "truecal."):
        if not module.name.startswith(("truecal.integrations", "truecal.cli", "truecal.__main__")):
            importlib.import_module(module.name)
    found, rest = [], [Result]
    while rest:
        below = rest.pop().__subclasses__()
        found += below
        rest += below
    return sorted(
        {one for one in found if one.__module__.startswith("truecal.")}, key=lambda one: one.__qualname__
    )


@pytest.mark.parametrize("long", [np.zeros(5000), "word " * 1000, (0.1,) * 5000, [np.zeros(10)] * 500])
def test_the_repr_of_every_result_is_short(long):
    classes = all_results()
    assert len(classes) > 40
    for kind in classes:
        if kind.__repr__ is Result.__repr__:
            result = object.__new__(kind)
            for part in fields(kind):
                object.__setattr__(result, part.name, long)
            assert len(repr(result)) < 1500, kind


def test_an_assessment_and_all_that_is_in_it_have_short_reprs(golden):
    y, p = golden(1500)
    found = truecal.assess(y, p, clinical=True, by=y, n_resamples=99, rng=0)
    rest = [found, truecal.compare(y, p, p**2), truecal.net_benefit(y, p)]
    while rest:
        one = rest.pop()
        if is_dataclass(one):
            assert len(repr(one)) < 1500, type(one)
            rest += [getattr(one, part.name) for part in fields(one)]
        elif isinstance(one, tuple | list):
            rest += one


def test_a_short_repr_is_that_of_a_dataclass():
    assert (
        repr(Interval(0.1, 0.2, 0.95))
        == "Interval(low=0.1, high=0.2, level=0.95, assumption='', resolution=None, reliable=True)"
    )
