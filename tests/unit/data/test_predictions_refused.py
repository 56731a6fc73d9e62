"""Bad input gets an InputError that says what is wrong, where, how many times, and what to do."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truecal
from truecal.data import as_sample, as_samples, probabilities_from_logits
from truecal.exceptions import InputError, Remedy

Y, P = [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]
THREE = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]]
NAN = float("nan")


def refused(message, *arguments, function=as_samples, **options):
    """Expect the whole message, in which `...` stands for anything."""
    pattern = re.escape(message).replace(r"\.\.\.", ".*")
    with pytest.raises(InputError, match=f"^{pattern}$"):
        function(*arguments, **options)


# --- Probabilities --------------------------------------------------------------------------------

OUTSIDE, ROUNDING, FIX = Remedy.LOGITS.value, Remedy.CLIP.value, Remedy.DROP_ROWS.value


@pytest.mark.parametrize("value", [1.2, -0.1, 1000.0, np.inf, -np.inf])
@pytest.mark.parametrize("weight", [None, [1, 1, 1, 1], [1, 1, 0, 1]])
def test_a_score_outside_the_unit_interval(value, weight):
    refused(
        f"y_proba has 1 value outside [0, 1] (first at row 2: {value}). {OUTSIDE}",
        Y,
        [0.1, 0.4, value, 0.8],
        sample_weight=weight,
    )
    refused(
        f"y_proba has 2 values outside [0, 1] (first at row 1: {value}). {OUTSIDE}",
        Y,
        [0.1, value, 0.5, value],
    )
    refused(
        f"y_proba has 1 value outside [0, 1] (first at row 0: {value}). {OUTSIDE}",
        Y,
        [[0.5, value], *[[0.5, 0.5]] * 3],
    )


@pytest.mark.parametrize("value", [1 + 1e-7, np.nextafter(1, 2), 1.0005, -1e-300, -0.0005])
def test_a_score_outside_by_rounding_is_refused_too_but_with_other_advice(value):
    refused(
        f"y_proba has 1 value outside [0, 1] (first at row 2: {value}). {ROUNDING}", Y, [0.1, 0.4, value, 0.8]
    )
    refused(
        f"y_proba has 2 values outside [0, 1] (first at row 2: {value}). {OUTSIDE}", Y, [0.1, 0.4, value, 1.8]
    )
    assert as_samples(Y, np.clip([0.1, 0.4, value, 0.8], 0, 1))[0].n == 4


def test_percentages():
    advice = Remedy.PERCENT.value
    refused(f"y_proba has 3 values outside [0, 1] (first at row 1: 40.0). {advice}", Y, [0.1, 40, 35, 80])


def test_the_fields_of_an_error():
    with pytest.raises(InputError) as info:
        as_sample(Y, [0.1, 1.2, 0.5, 1.3])
    error = info.value
    fields = error.argument, error.count, error.first_row, error.value, error.remedy
    assert fields == ("y_proba", 2, 1, 1.2, Remedy.LOGITS)


def test_an_excess_too_small_for_double_precision():
    if np.finfo(np.longdouble).eps == np.finfo(np.float64).eps:
        pytest.skip("long doubles are doubles here")
    refused(
        f"y_proba has 4 values outside [0, 1] (first at row 0: 1.0000000000000000...). {ROUNDING}",
        Y,
        np.ones(4, "g") + 1e-18,
    )


def test_a_float32_value_is_shown_as_it_was_written():
    refused(
        f"y_proba has 1 value outside [0, 1] (first at row 0: 1.2). {OUTSIDE}",
        Y,
        np.array([1.2, 0, 0, 0], np.float32),
    )
    refused(
        f"y_proba has 1 value outside [0, 1] (first at row 0: 1.2). {OUTSIDE}",
        Y,
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
        np.ma.array(P, mask=[False, True, False, True]),
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
    refused(f"y_proba has 2 missing (NaN) values (first at row 1). {FIX}", Y, scores)


def test_a_missing_score_among_columns():
    rows = [[0.5, 0.5], [0.5, 0.5], [0.5, None], [0.5, 0.5]]
    for scores in (rows, pd.DataFrame(rows), pl.DataFrame(rows, orient="row"), np.array(rows, dtype=float)):
        refused(f"y_proba has 1 missing (NaN) value (first at row 2). {FIX}", Y, scores)


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
    refused(f"y_proba has {says}.", Y, scores)


def test_dates_are_not_numbers():
    refused("y_proba has 4 non-numeric values (first at row 0: ...).", Y, np.zeros(4, dtype="M8[s]"))


def test_columns_that_are_not_numbers_are_named():
    frame = {"id": ["a", "b", "c", "d"], "p": P, "day": pd.to_datetime(["2026-01-01"] * 4), "q": P}
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        refused("y_proba has columns that do not hold numbers: 'id', 'day'. Leave them out.", Y, make(frame))


@pytest.mark.parametrize("scores", [0.5, np.array(0.5), "0.5", {0: 0.5}, {0.5}, iter(P), object()])
def test_scores_that_are_no_array(scores):
    refused("y_proba must be a list, an array or a column. Got ... instead.", Y, scores)


def test_scores_of_another_shape():
    for shape in ((4, 2, 2), (1, 1, 4)):
        refused(
            f"y_proba must have shape (n,) or (n, K). Got shape {shape} instead. Reshape your data.",
            Y,
            np.zeros(shape),
        )
    refused("y_true has 4 rows, y_proba has 1. They must have the same length.", Y, [[0.1, 0.2, 0.3, 0.4]])


def test_rows_of_different_lengths():
    ragged = [[0.1, 0.9], [0.2], [0.3, 0.7], [0.4, 0.6]]
    for scores in (ragged, tuple(ragged), pd.Series(ragged), pl.Series(ragged), pa.array(ragged)):
        refused("y_proba must be rectangular: its rows have different lengths.", Y, scores)


def test_no_rows():
    for scores in ([], (), np.array([]), np.empty((0, 3)), pd.Series([], dtype=float), pl.Series([])):
        refused("y_proba is empty: 0 sample(s) (shape=...) while a minimum of 1 is required.", [], scores)
    refused("y_true has 0 rows, y_proba has 4. They must have the same length.", [], P)


def test_rows_that_do_not_sum_to_one():
    rows = [[0.5, 0.5], [0.2, 0.7], [0.5, 0.5], [0.6, 0.9]]
    refused(
        f"y_proba has 2 rows whose sum is not 1 (first at row 1: 0.8999999999999999). {Remedy.NORMALIZE.value}",
        Y,
        rows,
    )
    refused(
        "y_proba has 1 row whose sum is not 1 (first at row 0: 0.998). ...",
        Y,
        [[0.5, 0.498], *[[0.5, 0.5]] * 3],
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 10, 1000])
def test_a_softmax_of_any_precision_sums_to_one(dtype, k):
    rng = np.random.default_rng(k)
    proba = probabilities_from_logits(rng.normal(scale=3, size=(200, k))).astype(dtype)
    assert as_samples(rng.integers(k, size=200), proba)[0].n == 200


def test_two_columns_of_one_name():
    refused(
        "y_proba has several columns of the same name. Rename them.",
        Y,
        pd.DataFrame(np.full((4, 2), 0.5), columns=["a", "a"]),
    )


def test_a_lazy_frame():
    refused("y_proba is a lazy frame. Collect it first.", Y, pl.LazyFrame({"p": P}))
    refused("y_true is a lazy frame. Collect it first.", pl.LazyFrame({"y": Y}), P)


# --- Labels ---------------------------------------------------------------------------------------


def test_labels_of_another_length():
    refused("y_true has 3 rows, y_proba has 4. They must have the same length.", [0, 1, 1], P)
    refused("y_true has 1 row, y_proba has 4. They must have the same length.", [[0, 1, 1, 0]], P)
    refused("y_true must be a list, an array or a column. Got 1 instead.", 1, P)


HOLES = [0, 1, None, 1]


@pytest.mark.parametrize(
    "labels",
    [
        [0.0, 1.0, NAN, 1.0],
        HOLES,
        [True, False, None, True],
        ["no", "yes", None, "yes"],
        ["no", "yes", NAN, "yes"],
        ["no", "yes", np.float32("nan"), "yes"],
        np.ma.array(Y, mask=[False, False, True, False]),
        np.array(["no", None, None, "yes"], dtype=np.dtypes.StringDType(na_object=None)),
        np.array(["no", NAN, NAN, "yes"], dtype=np.dtypes.StringDType(na_object=NAN)),
        pd.Series(HOLES),
        pd.Series(HOLES, dtype="Int64"),
        pd.Series(HOLES, dtype="int64[pyarrow]"),
        pd.Series([True, False, None, True], dtype="boolean"),
        pd.Series(["no", "yes", None, "yes"]),
        pd.Series(["no", "yes", None, "yes"], dtype="string[pyarrow]"),
        pd.Series(["no", "yes", None, "yes"], dtype="category"),
        pl.Series(HOLES),
        pl.Series([True, False, None, True]),
        pl.Series(["no", "yes", None, "yes"], dtype=pl.Categorical),
        pl.Series(["no", "yes", None, "yes"], dtype=pl.Enum(["no", "yes"])),
        pa.array(HOLES),
        pa.array([True, False, None, True]),
        pa.chunked_array([["no", "yes"], [None, "yes"]]),
        pa.array(["no", "yes", None, "yes"]).dictionary_encode(),
    ],
    ids=lambda labels: f"{type(labels).__module__}.{type(labels).__name__} {getattr(labels, 'dtype', '')}",
)
@pytest.mark.parametrize("pos_label", [None, "yes"])
def test_a_missing_label(labels, pos_label):
    for scores in (P, [[1 - p, p] for p in P]):
        with pytest.raises(
            InputError, match=r"y_true has [12] missing \(NaN\) labels? \(first at row [12]\)\. Remove"
        ):
            as_samples(labels, scores, pos_label=pos_label)


@pytest.mark.parametrize(
    ("labels", "seen", "remedy"),
    [
        ([1, 2, 2, 1], "1, 2", Remedy.POS_LABEL),
        ([-1, 1, 1, -1], "-1, 1", Remedy.POS_LABEL),
        (
            ["no", "yes", "yes", "no"],
            "'no', 'yes'",
            Remedy.POS_LABEL,
        ),
        (["0", "1", "1", "0"], "'0', '1'", Remedy.POS_LABEL),
        ([2, 2, 2, 2], "2", Remedy.POS_LABEL),
        ([0, 1, 2, 1], "0, 1, 2", Remedy.COLUMN_PER_CLASS),
        ([0.0, 1.0, 2.0, 1.0], "0, 1, 2", Remedy.COLUMN_PER_CLASS),
        (
            ["a", "b", "c", "a"],
            "'a', 'b', 'c'",
            Remedy.COLUMN_PER_CLASS,
        ),
        (P, "0.1, 0.35, 0.4, 0.8", Remedy.SWAPPED),
    ],
)
def test_labels_that_are_not_binary(labels, seen, remedy):
    for given in (labels, np.array(labels), np.array(labels, dtype=object), pl.Series(labels)):
        refused(f"y_true must hold 0 and 1. Got {seen} instead. {remedy.value}", given, P)


def test_many_labels_are_not_all_listed():
    refused(
        "y_true must hold 0 and 1. Got 0, 1, 2, 3, 4, 5, ... (9 in all) instead. ...", range(9), [0.5] * 9
    )


def test_a_positive_label_that_is_not_there():
    refused("pos_label 2 is not among the labels 0, 1.", Y, P, pos_label=2)
    refused("pos_label '1' is not among the labels 0, 1.", Y, P, pos_label="1")
    refused("pos_label 1 is not among the labels '0', '1'.", ["0", "0", "1", "1"], P, pos_label=1)
    refused("pos_label 'yes' is not among the labels 0.", [0] * 4, P, pos_label="yes")
    refused(
        "pos_label 'Yes' is not among the labels 'no', 'yes'.", ["no", "no", "yes", "yes"], P, pos_label="Yes"
    )
    refused("pos_label nan is not among the labels 0, 1.", Y, P, pos_label=NAN)
    refused("pos_label 3 is not among the classes 0, 1, 2.", [0, 1, 2, 2], THREE, pos_label=np.int64(3))


def test_three_labels_for_one_column():
    refused(
        f"y_true must hold two labels. Got 'a', 'b', 'c' instead. {Remedy.ONE_VERSUS_REST.value}",
        ["a", "b", "c", "a"],
        P,
        pos_label="b",
    )


@pytest.mark.parametrize("labels", [["yes", 1, "yes", "no"], ["yes", True, "no", "no"], [1, "a", 2.5, b"c"]])
def test_labels_of_several_types(labels):
    for scores in (P, THREE):
        refused(
            "y_true mixes labels of the types .... Use labels of one type.",
            labels,
            scores,
            pos_label="yes",
        )


def test_top_label_has_no_positive_class():
    refused(
        "pos_label cannot be combined with multiclass='top': the top class differs from row to row.",
        [0, 1, 2, 2],
        THREE,
        pos_label=1,
        multiclass="top",
    )
    refused(
        "multiclass must be one of 'top', 'classwise', 'top_k', 'canonical'. Got 'all' instead.",
        [0, 1, 2, 2],
        THREE,
        multiclass="all",
    )


NAME_THEM = Remedy.LABELS.value


@pytest.mark.parametrize(
    ("labels", "says", "where", "classes", "options"),
    [
        ([0, 1, 3, 4], "2 labels", "(first at row 2: 3)", "0, 1, 2", {}),
        ([1, 2, 3, 3], "2 labels", "(first at row 2: 3)", "0, 1, 2", {}),
        ([0, -1, 1, 2], "1 label", "(first at row 1: -1)", "0, 1, 2", {}),
        ([0.0, 1.5, 1.0, 2.0], "1 label", "(first at row 1: 1.5)", "0, 1, 2", {}),
        ([0, 1, 2, 3], "1 label", "(first at row 0: 0)", "1, 2, 3", {"labels": [1, 2, 3]}),
        (
            ["a", "b", "x", "c"],
            "1 label",
            "(first at row 2: 'x')",
            "'a', 'b', 'c'",
            {"labels": ["a", "b", "c"]},
        ),
        (["0", "1", "2", "2"], "4 labels", "(first at row 0: '0')", "0, 1, 2", {"labels": [0, 1, 2]}),
    ],
)
def test_a_label_outside_the_columns(labels, says, where, classes, options):
    for given in (labels, np.array(labels), pl.Series(labels)):
        rule = f"outside the classes {classes} of y_proba"
        refused(f"y_true has {says} {rule} {where}. {NAME_THEM}", given, THREE, **options)


@pytest.mark.parametrize("labels", [["a", "b", "c", "x"], ["a", "b", "b", "x"]])
def test_a_label_that_is_no_name_of_a_column(labels):
    refused(
        f"y_true has 1 label outside the classes 'a', 'b', 'c' of y_proba (first at row 3: 'x'). {NAME_THEM}",
        labels,
        pd.DataFrame(THREE, columns=["a", "b", "c"]),
    )


def test_column_names_that_say_nothing_of_the_labels():
    frame = pl.DataFrame(THREE, schema=["p_x", "p_a", "p_c"], orient="row")
    refused(
        f"y_true holds 'a', 'b', 'c', but the columns of y_proba are 'p_x', 'p_a', 'p_c'. {NAME_THEM}",
        ["a", "b", "c", "c"],
        frame,
    )
    assert as_samples(["a", "b", "c", "c"], frame, labels=["b", "a", "c"])[0].n == 4


def test_too_few_labels_to_tell_the_columns():
    refused(
        "y_true has 2 different labels ('a', 'b') for 3 columns of y_proba. Name ...",
        ["a", "b", "b", "a"],
        THREE,
    )


@pytest.mark.parametrize(
    "options", [{}, {"pos_label": "no"}, {"multiclass": "classwise"}, {"multiclass": "top"}]
)
def test_two_columns_of_words_in_an_unknown_order(options):
    both = np.column_stack([1 - np.array(P), P])
    refused(
        "y_true holds the strings 'no', 'yes', and two columns of y_proba could be in either order. "
        f"{Remedy.COLUMN_ORDER.value}",
        ["no", "no", "yes", "yes"],
        both,
        **options,
    )


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ([0, 1, 1], "labels must name 3 different classes. Got 0, 1, 1 instead."),
        ([0, 1], "labels must name 3 different classes. Got 0, 1 instead."),
        (["a", "b", "c", "d"], "labels must name 3 different classes. Got 'a', 'b', 'c', 'd' instead."),
        ("abc", "labels must be a list, an array or a column. Got 'abc' instead."),
        (3, "labels must be a list, an array or a column. Got 3 instead."),
    ],
)
def test_labels_that_do_not_name_the_columns(labels, says):
    refused(says, [0, 1, 2, 2], THREE, labels=labels)


def test_labels_of_one_column_are_two():
    refused("labels must name 2 different classes. Got 0, 1, 2 instead.", Y, P, labels=[0, 1, 2])
    refused(
        "y_true has 2 labels outside the classes 1, 2 of y_proba (first at row 0: 0). ...",
        Y,
        P,
        labels=[1, 2],
    )
    refused("pos_label 3 is not among the classes 0, 1.", Y, P, labels=[0, 1], pos_label=3)


@pytest.mark.parametrize(
    ("rows", "count", "first"),
    [
        (
            [[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 0]],
            "2",
            "1: [1, 1, 0]",
        ),
        (
            [[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [0, 1, 0]],
            "1",
            "1: [0.5, 0.5, 0.0]",
        ),
        (
            [[1, 0, 0], [2, 0, 0], [0, 1, 0], [0, 1, 0]],
            "1",
            "1: [2, 0, 0]",
        ),
        (
            [[0, 1, 0], [1, -1, 0], [0, 1, 0], [0, 1, 0]],
            "1",
            "1: [1, -1, 0]",
        ),
    ],
)
def test_rows_that_are_not_one_hot(rows, count, first):
    refused(f"y_true has {count} row... as one-hot labels have it (first at row {first}).", rows, THREE)


def test_one_hot_labels_of_another_width():
    hot = np.eye(4)[[0, 1, 2, 3]]
    refused("y_true is one-hot with 4 columns, y_proba has 3.", hot, THREE)
    refused("y_true must have shape (n,) or be one-hot. Got shape (4, 4) instead.", hot, P)
    refused("y_true must have shape (n,) or be one-hot. Got shape (4, 1, 1) instead.", np.zeros((4, 1, 1)), P)
    refused(
        f"y_true has 1 missing (NaN) label (first at row 1). {FIX}",
        np.where(hot[:, :3] == 1, [1, np.nan, 1], 0.0),
        THREE,
    )


def test_one_hot_columns_in_another_order():
    proba = pd.DataFrame(THREE, columns=["a", "b", "c"])
    hot = pd.DataFrame(np.eye(3)[[0, 1, 2, 2]], columns=["c", "b", "a"])
    refused("y_true and y_proba have the same columns in another order. Give them one order.", hot, proba)
    assert as_samples(hot[["a", "b", "c"]], proba)[0].n == 4


# --- Weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-1.0, -1e-300, 5e-324, np.nan, np.inf, 1e101])
def test_a_weight_out_of_range(value):
    refused(
        f"sample_weight has 2 values outside [1e-100, 1e+100] (first at row 1: {value}). "
        f"A weight of 2 counts a row twice, and 0 leaves it out.",
        Y,
        P,
        sample_weight=[1, value, value, 0],
    )


def test_other_bad_weights():
    refused("sample_weight is zero in every row. At least one row must count.", Y, P, sample_weight=[0] * 4)
    refused(
        "sample_weight has 1 non-numeric value (first at row 1: 'b').",
        Y,
        P,
        sample_weight=[1, "b", 1, 1],
    )
    refused(
        "sample_weight has 1 value outside ... (first at row 2: nan). ...",
        Y,
        P,
        sample_weight=[1, 1, None, 1],
    )
    refused("sample_weight must be a list, an array or a column. Got 2 instead.", Y, P, sample_weight=2)
    for shape in ((3,), (5,), (2, 2), (1, 4), (4, 2), (0,)):
        refused(
            f"sample_weight has shape {shape}. One weight is needed for each of 4 rows.",
            Y,
            P,
            sample_weight=np.ones(shape),
        )


def test_the_largest_weights_do_not_overflow():
    for name in ("em_sweep", "ew_bin", "ks", "skce"):
        assert 0 <= truecal.calibration_error(Y, P, sample_weight=[1e100] * 4, estimator=name) <= 1


# --- Logits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_logits_must_be_finite(value):
    for logits in ([0.0, 1.0, value, 2.0], [[0.0, 1.0], [0.0, 1.0], [value, 0.0], [0.0, 1.0]]):
        refused(
            f"logits has 1 infinite or NaN value (first at row 2: {value}). {FIX}",
            Y,
            logits,
            logits=True,
        )


def test_other_bad_logits():
    refused("logits is empty: 0 sample(s) (shape=...) while a minimum of 1 is required.", [], [], logits=True)
    refused(
        "logits is empty: 0 sample(s) (shape=...) while a minimum of 1 is required.",
        [],
        np.empty((0, 3)),
        logits=True,
    )
    refused(
        "logits has 1 non-numeric value (first at row 0: 'a').",
        ["a", 1.0],
        function=probabilities_from_logits,
    )
    refused(
        "logits must have shape (n,) or (n, K). Got shape (1, 2, 2) instead. Reshape your data.",
        np.ones((1, 2, 2)),
        function=probabilities_from_logits,
    )
    refused(
        "y_true has 2 rows, y_proba has 3. They must have the same length.",
        [0, 1],
        [1.0, 2.0, 3.0],
        logits=True,
    )


def test_logits_are_never_taken_for_probabilities_by_themselves():
    refused(
        f"y_proba has 4 values outside [0, 1] (first at row 0: -1.0). {OUTSIDE}", Y, [-1.0, 2.0, 3.0, -4.0]
    )
    refused(
        f"y_proba has 4 values outside [0, 1] (first at row 0: -1.0). {OUTSIDE}",
        Y,
        [[-1.0, 2.0], [0.5, 0.5], [3.0, -4.0], [0.5, 0.5]],
    )


# --- Samples made before --------------------------------------------------------------------------


def test_as_sample_is_one():
    (sample,) = as_samples(Y, P)
    assert as_sample(sample) is sample
    assert as_sample([0, 1, 2, 2], THREE, multiclass="top").target == "top label of 3 classes"
    refused(
        f"multiclass 'classwise' gives 3 samples, and only one can be used here. {Remedy.ONE_CLASS.value}",
        [0, 1, 2, 2],
        THREE,
        multiclass="classwise",
        function=as_sample,
    )
    refused(
        "y_proba and pos_label cannot be given beside a Sample, ...",
        sample,
        P,
        pos_label=1,
        function=as_sample,
    )
    refused("y_proba is missing. Pass labels and probabilities, or one Sample.", Y, function=as_sample)
