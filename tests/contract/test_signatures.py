"""Keywords of public functions: one order everywhere, and the names that the design gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import truecal
from truecal import InputError

#: The keywords that predictions have everywhere, after the function's own options, in this order.
ORDER = ("sample_weight", "weighting", "clusters", "pos_label", "labels", "multiclass", "rng")
#: Names of before the first release.
OLD = ("weights", "kind_of_weights", "cluster_weights")


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for space in (truecal, truecal.simulation, truecal.display, truecal.recalibration):
        for name in dir(space):
            value = getattr(space, name)
            if inspect.isfunction(value):
                yield f"{space.__name__}.{name}", value
            if inspect.isclass(value):
                for method, function in inspect.getmembers(value, callable):
                    if not method.startswith("_") and str(getattr(function, "__module__", "")).startswith(
                        "truecal"
                    ):
                        yield f"{space.__name__}.{name}.{method}", function


FUNCTIONS = dict(public_functions())
WITH_PREDICTIONS = {
    name: function
    for name, function in FUNCTIONS.items()
    if "y_true" in inspect.signature(function).parameters
    and {"sample_weight", "clusters", "multiclass"} & {*inspect.signature(function).parameters}
}


def keywords(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]


def test_the_functions_are_found() -> None:
    assert {"truecal.estimate", "truecal.assess", "truecal.audit", "truecal.Sample.from_predictions"} <= {
        *WITH_PREDICTIONS
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_common_keywords_have_one_order(name: str) -> None:
    common = [keyword for keyword in keywords(FUNCTIONS[name]) if keyword in ORDER]
    assert common == sorted(common, key=ORDER.index)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rng_is_the_last_keyword(name: str) -> None:
    drawing = ("name", "ax")  # of displays
    found = [keyword for keyword in keywords(FUNCTIONS[name]) if keyword not in drawing]
    assert "rng" not in found[:-1]


@pytest.mark.parametrize("name", WITH_PREDICTIONS)
def test_own_options_come_first(name: str) -> None:
    found = keywords(WITH_PREDICTIONS[name])
    first = min(found.index(keyword) for keyword in ORDER if keyword in found)
    assert all(keyword in ORDER for keyword in found[first:])
    assert next(iter(inspect.signature(WITH_PREDICTIONS[name]).parameters)) in ("y_true", "self")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_old_names_are_gone(name: str) -> None:
    if name != "truecal.register_estimator":  # there, whether an estimator takes weights
        assert not {*OLD} & {*inspect.signature(FUNCTIONS[name]).parameters}


Y, P = [0, 1, 0, 1, 1, 0, 1, 1], [0.2, 0.6, 0.4, 0.8, 0.7, 0.3, 0.9, 0.5]


@pytest.mark.parametrize(("name", "order"), [("l1", 1), ("l2", 2)])
def test_names_of_norms(name: str, order: float) -> None:
    named = truecal.estimate(Y, P, estimator="ew_bin", norm=name, n_bins=4)
    assert named.value == truecal.calibration_error(Y, P, estimator="ew_bin", norm=order, n_bins=4)
    assert named.norm == order
    assert truecal.confidence_interval(Y, P, norm=name) == truecal.confidence_interval(Y, P, norm=order)
    tests = [truecal.calibration_test(Y, P, norm=norm, at_most=0.5) for norm in (name, order)]
    assert tests[0].pvalue == tests[1].pvalue
    assert tests[0].norm == order
    uneven = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
    assert uneven.true_error(name) == uneven.true_error(order)
    both = [truecal.compare(Y, {"a": P, "b": P[::-1]}, norm=norm) for norm in (name, order)]
    assert both[0].to_dict() == both[1].to_dict()


def test_the_largest_gap_is_a_norm_of_estimators_with_bins() -> None:
    largest = truecal.estimate(Y, P, estimator="ew_bin", norm="max", n_bins=4)
    assert largest.estimator == "ew_mce"
    assert largest.value == np.abs(largest.bins.gap).max()
    assert truecal.calibration_error(Y, P, estimator="em_bin", norm="max") == truecal.calibration_error(
        Y, P, estimator="em_mce"
    )
    with pytest.raises(InputError, match=r"norm must be a finite number >= 1, 'l1' or 'l2'.*'ew_mce'"):
        truecal.estimate(Y, P, norm="max")
    with pytest.raises(InputError, match=r"Got 'l3' instead"):
        truecal.estimate(Y, P, norm="l3")
    with pytest.raises(InputError, match=r"norm must be a finite number"):
        truecal.estimate(Y, P, estimator="ece", norm="max")
