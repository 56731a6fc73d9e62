"""Requirements on every registered estimator, including new ones: order, weights, range, messages, consistency."""

import inspect
import math
import re

import numpy as np
import pytest

import truecal
from truecal.data import as_sample

SPECS = truecal.list_estimators()
TCE = [spec for spec in SPECS if spec.estimand == "true calibration error"]

every_estimator = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
# Notes on difficult data (a sweep that fails, bins of one row) become warnings, which are not tested here.
pytestmark = pytest.mark.filterwarnings("ignore:.* of P.y = 1.*:UserWarning")


def error(spec, y, p, **options):
    return truecal.calibration_error(y, p, estimator=spec.name, **options)


def predictions(n=300, decimals=17, seed=0):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), decimals)
    return (rng.random(n) < p**2).astype(int), p


# --- Rows ------------------------------------------------------------------------------------------


@every_estimator
@pytest.mark.parametrize("decimals", [0, 1, 2, 17])
@pytest.mark.parametrize("weighted", [False, True])
def test_row_order_does_not_matter(spec, decimals, weighted):
    y, p = predictions(decimals=decimals)
    rng = np.random.default_rng(1)
    weight = rng.integers(1, 5, len(y)) / (3 if spec.weights else 1) if weighted else None
    orders = [np.arange(len(y))[::-1], np.lexsort((y, p)), np.lexsort((-y, p)), rng.permutation(len(y))]
    reference = error(spec, y, p, sample_weight=weight)
    for order in orders:
        shuffled = None if weight is None else weight[order]
        assert error(spec, y[order], p[order], sample_weight=shuffled) == reference


@every_estimator
def test_fractional_weights_are_taken_or_refused(spec):
    y, p = predictions()
    weight = np.random.default_rng(1).random(len(y)) + 0.5
    if spec.weights:
        assert spec.range[0] <= error(spec, y, p, sample_weight=weight) <= spec.range[1]
    else:
        with pytest.raises(ValueError, match="sample_weight must be whole numbers"):
            error(spec, y, p, sample_weight=weight)


@pytest.mark.parametrize(
    # The debiased ones take weights as frequencies, and warn.
    "spec",
    [spec for spec in SPECS if spec.weights and "debias" not in spec.name],
    ids=lambda spec: spec.name,
)
@pytest.mark.parametrize("total", [1.0, 1e-6])
def test_equal_weights_that_sum_to_little_give_the_value_without_weights(spec, total):
    y, p = predictions()
    weighted = error(spec, y, p, sample_weight=np.full(len(p), total / len(p)))
    assert weighted == pytest.approx(error(spec, y, p), abs=1e-3)


@every_estimator
def test_input_is_left_alone(spec):
    y, p = predictions()
    weight = np.arange(len(y)) % 3 + 1.0
    arrays = (y, p, weight)
    copies = [array.copy() for array in arrays]
    writable = error(spec, y, p, sample_weight=weight)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
        array.flags.writeable = False
    assert error(spec, y, p, sample_weight=weight) == writable


@every_estimator
def test_a_sample_can_be_used_twice(spec):
    sample = as_sample(*predictions(decimals=2))
    arrays = [array.copy() for array in (sample.score, sample.count, sample.positives)]
    first, second = spec(sample), spec(sample)
    assert first.value == second.value
    for array, before in zip((sample.score, sample.count, sample.positives), arrays, strict=True):
        np.testing.assert_array_equal(array, before)


@every_estimator
def test_the_same_seed_gives_the_same_value(spec):
    y, p = predictions()
    if spec.random:
        assert "rng" in spec.options
    for method in ("full", "block") if "method" in spec.options else (None,):
        options = {} if method is None else {"method": method}
        if "rng" in spec.options:
            options["rng"] = 5
        assert error(spec, y, p, **options) == error(spec, y, p, **options)
        if "rng" in spec.options:
            assert error(spec, y, p, **options | {"rng": np.random.default_rng(5)}) == error(
                spec, y, p, **options
            )


@every_estimator
def test_float32_and_float64_agree(spec):
    for decimals in (1, 2, 17):
        y, p = predictions(decimals=decimals)
        # Decimals are the difficult case: 0.7 in float32 is below 0.7 in float64, and must not change its bin.
        assert error(spec, y, p.astype(np.float32)) == pytest.approx(error(spec, y, p), abs=1e-5)


# --- Values ----------------------------------------------------------------------------------------

_RNG = np.random.default_rng(0)
_SATURATED = 1 - _RNG.random(200) * 1e-12
ADVERSARIAL = {
    "always wrong": (np.repeat([1, 0], 50), np.repeat([0.0, 1.0], 50)),
    "always right": (np.repeat([0, 1], 50), np.repeat([0.0, 1.0], 50)),
    "anti-monotone": (np.arange(100) < 50, np.linspace(0, 1, 100)),
    "all ones wrong": (np.zeros(20, int), np.ones(20)),
    "all zeros wrong": (np.ones(20, int), np.zeros(20)),
    "one class": (np.ones(50, int), np.linspace(0, 1, 50)),
    "all equal": (np.arange(30) % 3 == 0, np.full(30, 0.7)),
    "two rows": (np.array([1, 0]), np.array([0.0, 1.0])),
    "two equal rows": (np.array([1, 0]), np.array([0.5, 0.5])),
    "alternating": (np.arange(200) % 2, np.linspace(0, 1, 200)),
    "saturated": (_RNG.random(200) < 0.9, _SATURATED),
    "saturated and separable": (np.median(_SATURATED) < _SATURATED, _SATURATED),
    "neighbouring floats": (np.array([0, 1, 0, 1]), np.nextafter([0.0, 0.5, 0.5, 1.0], [1, 0, 1, 0])),
    "next to zero": (np.array([1, 1, 0, 1]), np.array([0.0, 5e-324, 1e-300, 1e-17])),
    "one row off": (np.arange(100) == 3, np.linspace(0.9, 1, 100)),
}


@every_estimator
@pytest.mark.parametrize("case", ADVERSARIAL)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_declared_range_holds(spec, case, weighted):
    y, p = ADVERSARIAL[case]
    weight = None
    if weighted:
        weight = np.random.default_rng(2).random(len(y)) * 3 + 1 if spec.weights else np.arange(len(y)) + 1
    for norm in (1, 1.5, 2, 3, 10):
        value = error(spec, y, p, norm=norm, sample_weight=weight)
        assert spec.range[0] <= value <= spec.range[1]


@every_estimator
def test_one_row_is_measured_or_refused_clearly(spec):
    try:
        value = error(spec, [1], [0.3])
    except ValueError as refusal:
        assert re.search(r"at least \w+", str(refusal))  # noqa: PT017
    else:
        assert spec.range[0] <= value <= spec.range[1]


@every_estimator
def test_the_result_describes_itself(spec):
    estimate = truecal.estimate(*predictions(), estimator=spec.name, norm=3)
    assert isinstance(estimate.value, float)
    assert estimate.estimator == spec.name
    assert estimate.norm == (3 if spec.norms == "any" else None)
    assert estimate.n == 300
    assert estimate.target == "P(y = 1)"
    if estimate.bins is not None:
        assert estimate.bins.count.sum() == 300
        assert len(estimate.bins) <= estimate.n_bins
    if "n_bins" in spec.options:
        assert truecal.estimate(*predictions(), estimator=spec.name, n_bins=7).n_bins == 7


# --- The truth -------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", TCE, ids=lambda spec: spec.name)
@pytest.mark.parametrize(("norm", "truth"), [(1, 1 / 6), (2, math.sqrt(1 / 30))])
def test_the_estimate_approaches_the_true_error(spec, norm, truth):
    # Uniform scores c, and c^2 as the conditional probability of the event. With 15 bins, or neighbourhoods of
    # 1/15, the remaining error is at most (1/15)^2 / 12 of a square of 1/30, 0.001 after the root; kernels leave less.
    rng = np.random.default_rng(0)

    def draws(n, repeats):
        samples = ((p, rng.random(n) < p**2) for p in rng.random((repeats, n)))
        return np.array([error(spec, y, p, norm=norm) for p, y in samples])

    small, large = draws(100, 20), draws(40_000, 10)
    assert abs(large.mean() - truth) < 0.0015 + 4.5 * large.std(ddof=1) / math.sqrt(len(large))
    assert np.abs(large - truth).mean() < np.abs(small - truth).mean() / 3


@pytest.mark.parametrize("spec", TCE, ids=lambda spec: spec.name)
def test_the_estimate_approaches_zero_for_a_calibrated_model(spec):
    rng = np.random.default_rng(0)
    values = {}
    for n in (200, 50_000):
        samples = ((p, rng.random(n) < p) for p in rng.random((8, n)))
        values[n] = np.mean([error(spec, y, p) for p, y in samples])
    # Noise alone makes the squares b v / n with v = E c (1 - c) = 1/6, and b near n^(1/3) for the sweep;
    # label-binned errors add the spread of scores in a bin, (1/15)^2 / 12 in the square.
    spread = (1 / 15) ** 2 / 12 if spec.name.endswith("label") or spec.name == "neighbor" else 0.0
    assert values[50_000] < math.sqrt(50 / 6 / 50_000 + spread)
    assert values[50_000] < values[200] or values[200] == 0


# --- Parameters and papers -------------------------------------------------------------------------


@every_estimator
def test_bad_parameters_get_the_standard_message(spec):
    y, p = predictions()
    with pytest.raises(ValueError, match=f"bins is not an option of {spec.name}. Its options: "):
        error(spec, y, p, bins=3)
    if spec.norms == "any":
        # For estimators of gaps in bins, infinity is the norm "max".
        infinite = () if spec.largest else (math.inf,)
        for norm in (0, 0.5, -1, math.nan, *infinite, "2", None, True):
            with pytest.raises(
                ValueError, match=r"norm must be a finite number >= 1, 'l1' or 'l2'\. Got .* instead"
            ):
                error(spec, y, p, norm=norm)
    for option in spec.options:
        if option == "rng" and not spec.random:
            continue  # used, and checked, only where a method asks for it
        for bad in (-1, math.nan, "no such value", [1]):
            with pytest.raises(ValueError, match=rf"{option} must .* Got .* instead"):
                error(spec, y, p, **{option: bad})


@every_estimator
def test_it_is_documented(spec):
    doc = inspect.getdoc(spec.function)  # without the indentation, which Python 3.13 removes itself
    assert ".. math::" in doc, "a formula"
    assert re.search("estimand", doc, flags=re.I), "an estimand"
    assert "References\n----------\n" in doc, "a reference"
    example = doc.partition("Examples\n--------\n>>> import")[2]
    assert re.search(r"truecal\.(calibration_error|estimate)\(", example), "an example"
    assert re.search(r"\(\d{4}\)", spec.reference), "a year"
    assert spec.summary.endswith(".")
    assert len(spec.summary) < 90
    assert spec.estimand


def test_names_and_aliases_are_one_to_one():
    names = [name for spec in SPECS for name in (spec.name, *spec.aliases)]
    assert len(names) == len(set(names))
