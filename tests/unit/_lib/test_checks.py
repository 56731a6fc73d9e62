import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import truecal
from truecal._lib.checks import (
    as_generator,
    check_choice,
    check_count,
    check_flag,
    check_fraction,
    check_norm,
    require,
    unknown_option,
)
from truecal.exceptions import InputError


@pytest.mark.parametrize(
    "norm", [1, 1.0, 2.5, np.float32(2.5), np.int8(3), np.array(2)[()], Fraction(3, 2), 1e300]
)
def test_norm_is_any_finite_number_from_one(norm):
    checked = check_norm(norm)
    assert checked == float(norm)
    assert type(checked) is float


@pytest.mark.parametrize(
    "norm",
    [
        0,
        0.999,
        -1,
        math.nan,
        math.inf,
        -math.inf,
        10**400,
        -(10**400),
        True,
        np.True_,
        None,
        "2",
        1j,
        [1],
        Decimal(2),
        np.array([1.0, 2.0]),
        np.array(["a"]),
    ],
)
def test_any_other_norm_is_refused_by_value(norm):
    with pytest.raises(ValueError, match="norm must be a finite number >= 1") as caught:
        check_norm(norm)
    assert repr(norm) in str(caught.value)


def test_an_infinite_norm_is_led_to_the_largest_gap():
    with pytest.raises(ValueError, match="em_mce"):
        check_norm(np.inf)
    with pytest.raises(ValueError, match=r"Got 0 instead\.$"):
        check_norm(0)


@pytest.mark.parametrize("value", [1, 7, np.int64(7), np.uint8(7)])
def test_count_is_a_whole_number(value):
    checked = check_count("n_bins", value)
    assert checked == value
    assert type(checked) is int


@pytest.mark.parametrize(
    "value", [0, -3, 10.0, np.float64(10), True, np.True_, None, "10", math.nan, [10], np.array([1, 2])]
)
def test_any_other_count_is_refused_by_name_and_value(value):
    with pytest.raises(ValueError, match=r"n_bins must be a whole number >= 1\. Got ") as caught:
        check_count("n_bins", value)
    assert repr(value) in str(caught.value)


def test_a_count_has_a_smallest_value():
    assert check_count("n", 0, at_least=0) == 0
    with pytest.raises(ValueError, match=r"n must be a whole number >= 2\. Got 1 instead"):
        check_count("n", 1, at_least=2)


def test_fraction_lies_strictly_inside():
    assert check_fraction("alpha", np.float32(0.5)) == 0.5
    assert type(check_fraction("alpha", Fraction(1, 4))) is float
    for value in (0, 1, -0.1, 1.1, 95, math.nan, "0.5", None, True, 10**400, np.array([0.5, 0.6])):
        with pytest.raises(ValueError, match=r"alpha must be a number strictly between 0 and 1\. Got"):
            check_fraction("alpha", value)
    with pytest.raises(ValueError, match=r"Got 95 instead\. For 95% write 0\.95\.$"):
        check_fraction("confidence_level", 95)


def test_choice_names_the_choices_and_the_nearest():
    assert check_choice("estimator", "ew_bin", ("ew_bin", "em_bin")) == "ew_bin"
    with pytest.raises(
        ValueError, match=r"'ew_bin', 'em_sweep'\. Got 'em_sweeep' instead\. Did you mean 'em_sweep'\?"
    ):
        check_choice("estimator", "em_sweeep", ("ew_bin", "em_sweep"))
    for value in ("xyz", None, 3, []):
        with pytest.raises(ValueError, match=r"estimator must be one of .*\. Got .* instead\.$"):
            check_choice("estimator", value, iter(("ew_bin", "em_sweep")))


def test_generators_follow_spec_7():
    generator = np.random.default_rng(3)
    assert as_generator(generator) is generator
    by_seed = [
        as_generator(seed).random()
        for seed in (7, np.int64(7), np.random.SeedSequence(7), np.random.PCG64(7))
    ]
    assert by_seed == [np.random.default_rng(7).random()] * 4
    assert as_generator(None).random() != as_generator(None).random()
    for value in (True, "7", 7.0, np.random.RandomState(0), np.random):
        with pytest.raises(ValueError, match=r"rng must be None, a seed or a numpy\.random\.Generator\. Got"):
            as_generator(value)


def test_a_seed_leaves_the_global_generator_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    as_generator(0).random(10)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_require_imports_or_says_what_to_install():
    assert require("json", extra="app", purpose="A test") is json
    with pytest.raises(
        ImportError, match=r"The report needs the package 'no_such'.*pip install 'truecal\[app\]'"
    ):
        require("no_such.module", extra="app", purpose="The report")


def test_a_negative_seed_is_refused():
    with pytest.raises(InputError, match="a seed of at least 0"):
        as_generator(-1)


@pytest.mark.parametrize("value", [True, False, np.True_])
def test_a_flag_is_true_or_false(value):
    assert check_flag("band", value) == bool(value)


@pytest.mark.parametrize("value", ["nonsense", 1, None])
def test_any_other_flag_is_refused(value):
    with pytest.raises(InputError, match="band must be True or False"):
        check_flag("band", value)


@pytest.mark.parametrize("name", ["seed", "random_state"])
@pytest.mark.parametrize(
    "function", [truecal.estimate, truecal.calibration_test, truecal.select_recalibrator]
)
def test_seeds_are_led_to_rng(name, function):
    with pytest.raises(InputError, match=f"{name} is not an option .* Random seeds are passed as rng"):
        function([0, 1] * 20, np.linspace(0.1, 0.9, 40), **{name: 1})
    assert unknown_option("bandwith", "kde", ["bandwidth"]).remedy == "Did you mean 'bandwidth'?"
