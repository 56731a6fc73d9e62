import json
import math

import numpy as np
import pytest

import truecal
from truecal.data import as_sample
from truecal.plotdata.bin_counts import bin_counts, bin_counts_of_study

SQUARE = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))


@pytest.mark.parametrize("binning", ["em", "ew"])
@pytest.mark.parametrize("norm", [1, 2])
def test_values_are_those_of_the_estimators(binning, norm):
    y, p = SQUARE.sample(500, rng=0)
    curve = bin_counts(as_sample(y, p), binning=binning, norm=norm, n_bins=[16, 1, 4, 4], true_error=0.5)
    assert curve.n_bins.tolist() == [1, 4, 16]
    for b, value in zip(curve.n_bins, curve.value, strict=True):
        estimator = f"{binning}_bin"
        expected = truecal.calibration_error(y, p, estimator=estimator, norm=norm, n_bins=int(b))
        assert value == pytest.approx(expected, rel=1e-14)
    sweep = truecal.estimate(y, p, estimator=f"{binning}_sweep", norm=norm)
    assert (curve.sweep_bins, curve.sweep_value) == (sweep.n_bins, sweep.value)
    assert (curve.true_error, curve.norm, curve.n, curve.target) == (0.5, norm, 500, "P(y = 1)")
    assert not curve.value_se.any()
    json.dumps(curve.to_dict(), allow_nan=False)


def test_by_default_the_choice_of_the_sweep_is_well_inside():
    curve = bin_counts(as_sample(*SQUARE.sample(2000, rng=0)))
    assert curve.n_bins[0] == 1
    assert curve.n_bins[-1] >= 2 * curve.sweep_bins
    assert len(curve.n_bins) <= 48


def test_one_row():
    curve = bin_counts(as_sample([1], [0.4]))
    assert curve.value == pytest.approx(np.full(len(curve.value), 0.6))


@pytest.fixture(scope="module")
def study():
    choices = [{"estimator": name, "n_bins": b} for name in ("em_bin", "ew_bin") for b in (8, 2)]
    return truecal.bias_study(
        {"square": SQUARE, "calibrated": SQUARE.calibrated()},
        estimators=[*choices, "em_sweep", "em_bin"],
        sizes=[100, 200],
        repeats=10,
        rng=0,
    )


def test_means_of_a_study(study):
    curve = bin_counts_of_study(study, population="square", n=200)
    rows = {row["estimator"]: row for row in study.rows if row["population"] == "square" and row["n"] == 200}
    assert curve.n_bins.tolist() == [2, 8]
    assert curve.value.tolist() == [rows[f"em_bin(n_bins={b})"]["mean"] for b in (2, 8)]
    assert curve.value_se.tolist() == [rows[f"em_bin(n_bins={b})"]["bias_se"] for b in (2, 8)]
    assert curve.sweep_bins == rows["em_sweep"]["mean_bins"]
    assert curve.true_error == SQUARE.true_error()
    assert (curve.target, curve.n) == ("square", 200)


def test_a_study_without_the_sweep(study):
    curve = bin_counts_of_study(study, population="calibrated", n=100, binning="ew")
    assert curve.n_bins.tolist() == [2, 8]
    assert math.isnan(curve.sweep_bins)
    assert curve.true_error == 0


def test_what_is_not_in_the_study_is_refused(study):
    with pytest.raises(ValueError, match=r"population must be one of 'square', 'calibrated'\. Got None"):
        bin_counts_of_study(study)
    with pytest.raises(ValueError, match=r"n must be one of 100, 200\. Got 7 instead"):
        bin_counts_of_study(study, population="square", n=7)
    other = truecal.bias_study({"square": SQUARE}, estimators=["em_bin"], sizes=[50], repeats=2, rng=0)
    with pytest.raises(ValueError, match=r"The study has no em_bin with given numbers of bins.*'n_bins': b"):
        bin_counts_of_study(other)


def test_bad_parameters_get_the_standard_message():
    sample = as_sample([1, 0], [0.4, 0.2])
    with pytest.raises(ValueError, match="binning must be one of 'em', 'ew'"):
        bin_counts(sample, binning="mass")
    with pytest.raises(ValueError, match="n_bins must be a whole number"):
        bin_counts(sample, n_bins=[1, 2.5])
    with pytest.raises(ValueError, match="norm must be a finite number"):
        bin_counts(sample, norm=0)
