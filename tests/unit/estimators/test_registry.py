import importlib.metadata
import types

import pytest

import truecal
from truecal.data import as_sample
from truecal.estimators import _registry
from truecal.estimators._registry import choose_estimators, get_estimator, register_estimator
from truecal.exceptions import CalibrationWarning, InputError
from truecal.results import Estimate

PAPER = {"ew_bin", "em_bin", "ew_label", "em_label", "ew_debias", "em_debias", "ew_sweep", "em_sweep", "kde"}
RELATED = {"ew_mce", "em_mce", "ks", "skce", "neighbor"}


@pytest.fixture
def registry(monkeypatch):
    """A copy of the registry, so that a test's own estimators are gone when it ends."""
    get_estimator("em_bin")
    specs = dict(_registry._SPECS)
    monkeypatch.setattr(_registry, "_SPECS", specs)
    return specs


def test_every_estimator_of_the_paper_is_there():
    names = [spec.name for spec in truecal.list_estimators()]
    assert set(names) >= PAPER | RELATED
    assert names == sorted(set(names))


@pytest.mark.parametrize("spec", truecal.list_estimators(), ids=lambda spec: spec.name)
def test_every_estimator_says_what_it_is(spec):
    assert spec.summary.endswith(".")
    assert spec.reference
    assert spec.estimand
    assert spec.norms in ("any", "none")
    assert spec.range[0] < spec.range[1]
    assert spec.function.__doc__
    assert "norm" not in spec.options


def test_an_alias_is_the_same_estimator():
    assert get_estimator("mce") is get_estimator("ew_mce")
    assert "mce" not in {spec.name for spec in truecal.list_estimators()}
    assert truecal.estimate([0, 1], [0.2, 0.9], estimator="mce").estimator == "ew_mce"


def test_ece_is_ew_bin_with_norm_1():
    y, p = [0, 1, 1, 1, 0], [0.1, 0.4, 0.8, 0.9, 0.35]
    estimate = truecal.estimate(y, p, estimator="ece")
    same = truecal.estimate(y, p, estimator="ew_bin", norm=1)
    assert (estimate.value, estimate.estimator, estimate.norm) == (same.value, "ew_bin", 1)
    assert truecal.calibration_error(y, p, estimator="ece", norm=1) == same.value
    assert get_estimator("ew_bin").fixed_norm is None
    assert "ece" not in {spec.name for spec in truecal.list_estimators()}
    with pytest.raises(InputError, match=r"norm cannot be 3: this alias of ew_bin implies norm=1\. Pass est"):
        truecal.calibration_error(y, p, estimator="ece", norm=3)


def test_estimators_are_chosen_by_name_or_with_options():
    choices = choose_estimators(["em_bin", {"estimator": "em_bin", "n_bins": 4}, "mce", "em_bin"])
    assert [choice.label for choice in choices] == ["em_bin", "em_bin(n_bins=4)", "ew_mce"]
    sample = as_sample([0, 1], [0.2, 0.9])
    assert choices[1].many(sample, norm=1).item(0).n_bins == 4
    for wrong in ("em_bin", {"estimator": "em_bin"}):
        with pytest.raises(InputError, match="estimators must be a list of names or mappings"):
            choose_estimators(wrong)


def test_the_defaults_are_registered():
    assert get_estimator(_registry.DEFAULT_ESTIMATOR).estimand == _registry.TRUE_ERROR


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(ValueError, match=r"Got 'em_sweeep' instead\. Did you mean 'em_sweep'\?"):
        get_estimator("em_sweeep")


def test_a_new_estimator_is_one_function(registry):
    @register_estimator("share", summary="Share of positives.", reference="This test", aliases=("rate",))
    def share(sample, *, norm, shift=0.0):
        return Estimate(sample.positives.sum() / sample.n + shift, notes=(f"p = {norm}",))

    with pytest.warns(UserWarning, match="share of P.y = 1.: p = 3.0"):
        outcome = truecal.estimate([0, 1, 1, 1], [0.1, 0.2, 0.3, 0.4], estimator="rate", norm=3, shift=1.0)
    assert (outcome.value, outcome.estimator, outcome.norm, outcome.n) == (1.75, "share", 3.0, 4)
    assert outcome.target == "P(y = 1)"
    assert registry["share"].options == {"shift": 0.0}
    assert share.__name__ == "share"


def test_the_list_is_legible():
    assert repr(get_estimator("ks")).startswith("<EstimatorSpec ks: Largest cumulative difference")


def test_a_name_belongs_to_one_module(registry):
    with pytest.raises(ValueError, match=r"'ew_bin' is already registered by truecal\.estimators\.bin"):
        register_estimator("ew_bin", summary="Another.", reference="This test")(
            lambda sample, *, norm: Estimate(0.0)
        )
    assert registry["ew_bin"].function.__module__ == "truecal.estimators.binned"


def test_options_are_checked_against_the_function():
    sample = as_sample([0, 1], [0.2, 0.9])
    with pytest.raises(ValueError, match=r"bins is not an option of em_bin\. Its options: n_bins\."):
        get_estimator("em_bin")(sample, bins=3)
    with pytest.raises(ValueError, match=r"bins is not an option of ks\. Its options: none\."):
        get_estimator("ks")(sample, bins=3)


def test_a_norm_is_checked_where_there_is_one():
    sample = as_sample([0, 1], [0.2, 0.9])
    with pytest.raises(ValueError, match="norm must be a finite number >= 1"):
        get_estimator("em_bin")(sample, norm=0.5)
    assert get_estimator("ks")(sample).norm is None


def test_an_estimator_may_refuse_fractional_weights(registry):
    @register_estimator("rows", summary="Rows.", reference="This test", weights=False, norms="none")
    def rows(sample):
        return Estimate(sample.n)

    whole, fractional = (as_sample([0, 1], [0.2, 0.9], sample_weight=w) for w in ([2, 1], [2, 0.5]))
    assert registry["rows"](whole).value == 3
    with pytest.raises(ValueError, match="sample_weight must be whole numbers for rows, which counts rows"):
        registry["rows"](fractional)


def test_other_packages_add_theirs_through_an_entry_point(registry, monkeypatch):
    def load():
        register_estimator("outside", summary="Outside.", reference="This test", norms="none")(
            lambda sample: Estimate(0.25)
        )

    def entry_points(*, group):
        return [types.SimpleNamespace(load=load)] if group == "truecal.estimators" else []

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    _registry._discover.cache_clear()
    try:
        assert truecal.calibration_error([0, 1], [0.2, 0.9], estimator="outside") == 0.25
        assert "outside" in {spec.name for spec in truecal.list_estimators()}
    finally:
        _registry._discover.cache_clear()


def test_a_broken_plugin_is_named_and_skipped(registry, monkeypatch):
    def fail():
        raise ZeroDivisionError("division by zero")

    broken = types.SimpleNamespace(
        load=fail, name="broken", value="badplug.module", dist=types.SimpleNamespace(name="badplug")
    )
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda *, group: [broken])
    _registry._discover.cache_clear()
    try:
        with pytest.warns(
            CalibrationWarning, match=r"badplug .*'broken', badplug\.module.*ZeroDivisionError: div"
        ):
            names = [spec.name for spec in truecal.list_estimators()]
        assert "em_bin" in names
    finally:
        _registry._discover.cache_clear()
