"""Arrays that cannot be read."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truecal
from support.refusals import FIX, FOUR_LABELS, FOUR_SCORES, NAN, OUTSIDE, refused
from truecal.data.arrays import to_array


def test_a_float32_value_is_shown_as_it_was_written():
    refused(
        f"y_proba has 1 value outside [0, 1] (first at row 0: 1.2). {OUTSIDE}",
        FOUR_LABELS,
        np.array([1.2, 0, 0, 0], np.float32),
    )
    refused(
        f"y_proba has 1 value outside [0, 1] (first at row 0: 1.2). {OUTSIDE}",
        FOUR_LABELS,
        np.array([1.2, 0, 0, 0], np.float16),
    )


GAP = [0.1, None, 0.35, None]


@pytest.mark.parametrize(
    "scores",
    [
        [0.1, NAN, 0.35, NAN],
        GAP,
        [[0.1], [NAN], [0.35], [NAN]],
        np.array([0.1, np.nan, 0.35, np.nan], dtype=np.float16),
        np.array(GAP, dtype=object),
        np.ma.array(FOUR_SCORES, mask=[False, True, False, True]),
        np.ma.array([1, 0, 1, 0], mask=[False, True, False, True]),
        pd.Series(GAP),
        pd.Series(GAP, dtype="Float64"),
        pd.Series(GAP, dtype="float64[pyarrow]"),
        pd.Series([0.1, pd.NA, 0.35, pd.NaT], dtype=object),
        pd.DataFrame({"p": pd.array(GAP)}),
        pd.array(GAP),
        pl.Series(GAP),
        pl.DataFrame({"p": GAP}),
        pa.array(GAP),
        pa.chunked_array([GAP[:2], GAP[2:]]),
        pa.table({"p": GAP}),
    ],
    ids=lambda scores: f"{type(scores).__module__}.{type(scores).__name__} {getattr(scores, 'dtype', '')}",
)
def test_a_missing_score(scores):
    refused(f"y_proba has 2 missing (NaN) values (first at row 1). {FIX}", FOUR_LABELS, scores)


def test_a_missing_score_among_columns():
    rows = [[0.5, 0.5], [0.5, 0.5], [0.5, None], [0.5, 0.5]]
    for scores in (rows, pd.DataFrame(rows), pl.DataFrame(rows, orient="row"), np.array(rows, dtype=float)):
        refused(f"y_proba has 1 missing (NaN) value (first at row 2). {FIX}", FOUR_LABELS, scores)


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        (["0.1", "0.2", "0.3", "0.4"], "4 non-numeric values (first at row 0: '0.1')"),
        (np.array(["0.1", "0.2", "0.3", "0.4"]), "4 non-numeric values (first at row 0: '0.1')"),
        ([0.1, 0.2, "0.3", 0.4], "1 non-numeric value (first at row 2: '0.3')"),
        (np.array([0.1, "high", 0.2, []], dtype=object), "2 non-numeric values (first at row 1: 'high')"),
        (np.array([0.1, 1j, 0.2, 0.3], dtype=object), "1 non-numeric value (first at row 1: 1j)"),
        (pd.Series(["a", "b", "c", "d"]), "4 non-numeric values (first at row 0: 'a')"),
        (pl.Series(["a", "b", "c", "d"]), "4 non-numeric values (first at row 0: 'a')"),
    ],
)
def test_scores_that_are_not_numbers(scores, says):
    refused(f"y_proba has {says}.", FOUR_LABELS, scores)


def test_dates_are_not_numbers():
    refused(
        "y_proba has 4 non-numeric values (first at row 0: ...).", FOUR_LABELS, np.zeros(4, dtype="M8[s]")
    )


def test_columns_that_are_not_numbers_are_named():
    frame = {
        "id": ["a", "b", "c", "d"],
        "p": FOUR_SCORES,
        "day": pd.to_datetime(["2026-01-01"] * 4),
        "q": FOUR_SCORES,
    }
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        refused(
            "y_proba has columns that do not hold numbers: 'id', 'day'. Leave them out.",
            FOUR_LABELS,
            make(frame),
        )


@pytest.mark.parametrize("scores", [0.5, np.array(0.5), "0.5", {0: 0.5}, {0.5}, iter(FOUR_SCORES), object()])
def test_scores_that_are_no_array(scores):
    refused("y_proba must be a list, an array or a column. Got ... instead.", FOUR_LABELS, scores)


def test_scores_of_another_shape():
    for shape in ((4, 2, 2), (1, 1, 4)):
        refused(
            f"y_proba must have shape (n,) or (n, K). Got shape {shape} instead. Reshape your data.",
            FOUR_LABELS,
            np.zeros(shape),
        )
    refused(
        "y_true has 4 rows, y_proba has 1. They must have the same length.",
        FOUR_LABELS,
        [[0.1, 0.2, 0.3, 0.4]],
    )


def test_rows_of_different_lengths():
    ragged = [[0.1, 0.9], [0.2], [0.3, 0.7], [0.4, 0.6]]
    for scores in (ragged, tuple(ragged), pd.Series(ragged), pl.Series(ragged), pa.array(ragged)):
        refused("y_proba must be rectangular: its rows have different lengths.", FOUR_LABELS, scores)


def test_no_rows():
    for scores in ([], (), np.array([]), np.empty((0, 3)), pd.Series([], dtype=float), pl.Series([])):
        refused("y_proba is empty: 0 sample(s) (shape=...) while a minimum of 1 is required.", [], scores)
    refused("y_true has 0 rows, y_proba has 4. They must have the same length.", [], FOUR_SCORES)


def test_two_columns_of_one_name():
    refused(
        "y_proba has several columns of the same name. Rename them.",
        FOUR_LABELS,
        pd.DataFrame(np.full((4, 2), 0.5), columns=["a", "a"]),
    )


def test_a_lazy_frame():
    refused("y_proba is a lazy frame. Collect it first.", FOUR_LABELS, pl.LazyFrame({"p": FOUR_SCORES}))
    refused("y_true is a lazy frame. Collect it first.", pl.LazyFrame({"y": FOUR_LABELS}), FOUR_SCORES)


def test_integers_of_128_bits_are_labels():
    label = pl.Series([0, 1, 1], dtype=pl.Int128)
    assert to_array(label, "y_true")[0].tolist() == [0, 1, 1]
    score = [0.2, 0.9, 0.8]
    assert truecal.calibration_error(label, score) == truecal.calibration_error([0, 1, 1], score)
