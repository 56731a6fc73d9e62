"""Which scale scores outside [0, 1] are on, the same for arrays and for every kind of frame."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truecal
from truecal.assessment._verdict import data_warnings
from truecal.data.faults import CLASSES, finite, fitting_remedy, look_at
from truecal.exceptions import CalibrationWarning, InputError, Remedy

RNG = np.random.default_rng(20)
P = RNG.random(400)
Y = (RNG.random(400) < P).astype(int)
ODD = np.arange(400) % 20 == 0
HALF = np.arange(400) % 2 == 0

SCALES = {
    "percentages": (100 * P, Remedy.PERCENT),
    "whole percentages": ((100 * P).round(), Remedy.PERCENT),
    "0 to 10": ((10 * P).round(), Remedy.SCALE_10),
    "0 to 1000": (1000 * P, Remedy.SCALE),
    "logits": (np.log(P / (1 - P)), Remedy.LOGITS),
    "log probabilities": (np.log(P), Remedy.LOG_PROBABILITIES),
    "rounding": ((P - P.min()) / np.ptp(P) * 1.0005 - 2e-4, Remedy.CLIP),
    "a few errors": (np.where(ODD, 1.2, P), Remedy.LOGITS),
    "fractions and percentages": (np.where(HALF, P, 100 * P).round(2), Remedy.ONE_SCALE),
    "fractions and 0 to 10": (np.where(HALF, P, 10 * P).round(2), Remedy.ONE_SCALE),
    "-999 among fractions": (np.where(ODD, -999, P), Remedy.MISSING_CODE),
    "-1 among fractions": (np.where(ODD, -1, P), Remedy.MISSING_CODE),
    "99 among fractions": (np.where(ODD, 99, P), Remedy.MISSING_CODE),
    "-1 among percentages": (np.where(ODD, -1, 100 * P), Remedy.MISSING_CODE),
    "999 among percentages": (np.where(ODD, 999, 100 * P), Remedy.MISSING_CODE),
    "-999 among logits": (np.where(ODD, -999, np.log(P / (1 - P))), Remedy.MISSING_CODE),
}


def _frames(values):
    columns = {"y": Y, "p": values}
    return [pl.DataFrame(columns), pl.LazyFrame(columns), pd.DataFrame(columns), pa.table(columns)]


@pytest.mark.parametrize("name", SCALES)
def test_a_refusal_names_the_scale_that_fits(name):
    values, remedy = SCALES[name]
    assert fitting_remedy(look_at([values])) is remedy
    with pytest.raises(InputError, match=r"outside \[0, 1\]") as refused:
        truecal.calibration_error(Y, values)
    assert refused.value.remedy is remedy
    for frame in _frames(values):
        with pytest.raises(InputError, match=r"outside \[0, 1\]") as refused:
            truecal.summarize(frame, label="y", score="p")
        assert refused.value.remedy is (Remedy.LOGITS_FLAG if remedy is Remedy.LOGITS else remedy)


def test_a_code_is_named_with_its_first_row():
    with pytest.raises(InputError, match=r"first at row 2: -999\). If -999 stands for a missing value"):
        truecal.calibration_error([0, 1, 1, 0], [0.2, 0.8, -999, 0.4])


@pytest.mark.parametrize("draw", [(0.1, 0.1), (0.3, 30), (1, 1), (1, 300), (0.02, 0.05)])
@pytest.mark.parametrize("seed", range(5))
def test_percentages_on_one_scale_are_not_called_mixed(draw, seed):
    """Confident models and rare events have many percentages below 1, and they fall off smoothly."""
    percentages = 100 * np.random.default_rng(seed).beta(*draw, size=2000)
    for digits in (0, 1, 3, 9):
        assert not look_at([percentages.round(digits)]).is_mixed


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("draw", [(1, 1), (4, 2), (8, 1)])
def test_fractions_among_percentages_are_seen(share, draw):
    rng = np.random.default_rng(1)
    p = rng.beta(*draw, size=600)
    assert look_at([np.where(rng.random(600) < share, p, 100 * p).round(2)]).is_mixed


@pytest.mark.parametrize("values", [[np.inf], [np.inf, -np.inf], [np.inf, 0.5]])
def test_infinite_values_are_outside(values):
    with pytest.raises(InputError, match=r"outside \[0, 1\].*inf"):
        truecal.calibration_error([1] * len(values), values)


def test_few_values_mixed():
    assert look_at([np.array([0.9, 85, 0.8, 70, 0.95, 0.6, 55, 0.75])]).is_mixed
    assert not look_at([np.array([0.2, 85, 0.1, 70])]).is_mixed


def test_columns_are_taken_together_and_gaps_left_out():
    values = look_at([np.array([0.5, -999.0]), np.array([0.25, 0.75])])
    assert (values.n, values.code, values.between) == (4, -999, 3)
    assert finite([[np.inf, 1.0], [np.nan, 2.0]]).tolist() == [1.0, 2.0]


HARD = [0.0, 1.0, 1.0, 0.0] * 10
WHICH = [0, 1, 0, 0] * 10


@pytest.mark.parametrize(
    "measure",
    [
        truecal.calibration_error,
        truecal.estimate,
        truecal.calibration_test,
        truecal.confidence_interval,
        truecal.decompose,
        lambda y, p: truecal.assess(y, p, recalibration=False),
        lambda y, p: truecal.compare(y, {"a": p, "b": np.linspace(0.1, 0.9, len(p))}),
        lambda y, p: truecal.audit(y, p, features={"x": np.arange(len(p)) % 4}, min_rows=5),
        lambda y, p: truecal.Sample.from_predictions(y, p),
        lambda y, p: truecal.summarize(pl.DataFrame({"y": y, "p": p}), label="y", score="p"),
        lambda y, p: truecal.calibration_error(y, np.column_stack([1 - np.array(p), p])),
    ],
)
def test_predicted_classes_are_named_by_every_function(measure):
    with pytest.warns(CalibrationWarning, match="look like predicted classes, not probabilities") as caught:
        measure(WHICH, HARD)
    assert __file__ in {str(warning.filename) for warning in caught}
    with warnings.catch_warnings():
        warnings.simplefilter("error", CalibrationWarning)
        truecal.calibration_error(WHICH, [*HARD[:-1], 0.5])


def test_predicted_classes_are_in_the_assessment():
    with pytest.warns(CalibrationWarning, match="predicted classes"):
        sample = truecal.Sample.from_predictions(WHICH, HARD)
    assert CLASSES in data_warnings(sample)
