"""Bad input gets a ValueError that says what is wrong, where, how many times, and what to do."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truecal
from truecal.data import from_logits, one_sample, probabilities_from_logits, read

Y, P = [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]
THREE = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]]
NAN = float("nan")


def refused(message, *arguments, function=read, **options):
    """Expect the whole message, in which `...` stands for anything."""
    pattern = re.escape(message).replace(r"\.\.\.", ".*")
    with pytest.raises(ValueError, match=f"^{pattern}$"):
        function(*arguments, **options)


# --- Probabilities --------------------------------------------------------------------------------

OUTSIDE = "outside [0, 1]. Pass probabilities; for logits use truecal.data.from_logits."
ROUNDING = "outside [0, 1]. If that is rounding, pass numpy.clip(y_proba, 0, 1)."
MEND = "Remove or mend these rows."


@pytest.mark.parametrize("value", [1.2, -0.1, 100.0, np.inf, -np.inf])
@pytest.mark.parametrize("weight", [None, [1, 1, 1, 1], [1, 1, 0, 1]])
def test_a_score_outside_the_unit_interval(value, weight):
    refused(
        f"y_proba has 1 value (first at row 2: {value}) {OUTSIDE}",
        Y,
        [0.1, 0.4, value, 0.8],
        sample_weight=weight,
    )
    refused(f"y_proba has 2 values (first at row 1: {value}) {OUTSIDE}", Y, [0.1, value, 0.5, value])
    refused(f"y_proba has 1 value (first at row 0: {value}) {OUTSIDE}", Y, [[0.5, value], *[[0.5, 0.5]] * 3])


@pytest.mark.parametrize("value", [1 + 1e-7, np.nextafter(1, 2), 1.0005, -1e-300, -0.0005])
def test_a_score_outside_by_rounding_is_refused_too_but_with_other_advice(value):
    refused(f"y_proba has 1 value (first at row 2: {value}) {ROUNDING}", Y, [0.1, 0.4, value, 0.8])
    refused(f"y_proba has 2 values (first at row 2: {value}) {OUTSIDE}", Y, [0.1, 0.4, value, 1.8])
    assert read(Y, np.clip([0.1, 0.4, value, 0.8], 0, 1))[0].n == 4


def test_an_excess_too_small_for_double_precision():
    if np.finfo(np.longdouble).eps == np.finfo(np.float64).eps:
        pytest.skip("long doubles are doubles here")
    refused(
        f"y_proba has 4 values (first at row 0: 1.0000000000000000...) {ROUNDING}", Y, np.ones(4, "g") + 1e-18
    )


def test_a_float32_value_is_shown_as_it_was_written():
    refused(f"y_proba has 1 value (first at row 0: 1.2) {OUTSIDE}", Y, np.array([1.2, 0, 0, 0], np.float32))
    refused(f"y_proba has 1 value (first at row 0: 1.2) {OUTSIDE}", Y, np.array([1.2, 0, 0, 0], np.float16))


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
    refused(f"y_proba has 2 missing (NaN) values (first at row 1: nan). {MEND}", Y, scores)


def test_a_missing_score_among_columns():
    rows = [[0.5, 0.5], [0.5, 0.5], [0.5, None], [0.5, 0.5]]
    for scores in (rows, pd.DataFrame(rows), pl.DataFrame(rows, orient="row"), np.array(rows, dtype=float)):
        refused(f"y_proba has 1 missing (NaN) value (first at row 2: nan). {MEND}", Y, scores)


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        (["0.1", "0.2", "0.3", "0.4"], "4 other values (first at row 0: '0.1')"),
        (np.array(["0.1", "0.2", "0.3", "0.4"]), "4 other values (first at row 0: '0.1')"),
        ([0.1, 0.2, "0.3", 0.4], "1 other value (first at row 2: '0.3')"),
        (np.array([0.1, "high", 0.2, []], dtype=object), "2 other values (first at row 1: 'high')"),
        (np.array(P, dtype=complex), "4 other values (first at row 0: (0.1+0j))"),
        (np.array([0.1, 1j, 0.2, 0.3], dtype=object), "1 other value (first at row 1: 1j)"),
        (pd.Series(["a", "b", "c", "d"]), "4 other values (first at row 0: 'a')"),
        (pl.Series(["a", "b", "c", "d"]), "4 other values (first at row 0: 'a')"),
    ],
)
def test_scores_that_are_not_numbers(scores, says):
    refused(f"y_proba must be numbers. It has {says}.", Y, scores)


def test_dates_are_not_numbers():
    refused(
        "y_proba must be numbers. It has 4 other values (first at row 0: ...).", Y, np.zeros(4, dtype="M8[s]")
    )


def test_columns_that_are_not_numbers_are_named():
    frame = {"id": ["a", "b", "c", "d"], "p": P, "day": pd.to_datetime(["2026-01-01"] * 4), "q": P}
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        refused("y_proba has columns that do not hold numbers: 'id', 'day'. Leave them out.", Y, make(frame))


@pytest.mark.parametrize("scores", [0.5, np.array(0.5), None, "0.5", {0: 0.5}, {0.5}, iter(P), object()])
def test_scores_that_are_no_array(scores):
    refused("y_proba must be a list, an array or a column. Got ... instead.", Y, scores)


def test_scores_of_another_shape():
    for shape in ((4, 2, 2), (4, 0), (1, 1, 4)):
        refused(f"y_proba must have shape (n,) or (n, K). Got shape {shape} instead.", Y, np.zeros(shape))
    refused("y_true has 4 rows, y_proba has 1. They must have the same length.", Y, [[0.1, 0.2, 0.3, 0.4]])


def test_rows_of_different_lengths():
    ragged = [[0.1, 0.9], [0.2], [0.3, 0.7], [0.4, 0.6]]
    for scores in (ragged, tuple(ragged), pd.Series(ragged), pl.Series(ragged), pa.array(ragged)):
        refused("y_proba must be rectangular: its rows have different lengths.", Y, scores)


def test_no_rows():
    for scores in ([], (), np.array([]), np.empty((0, 3)), pd.Series([], dtype=float), pl.Series([])):
        refused("y_proba is empty. At least one row is needed.", [], scores)
    refused("y_true has 0 rows, y_proba has 4. They must have the same length.", [], P)


def test_rows_that_do_not_sum_to_one():
    rows = [[0.5, 0.5], [0.2, 0.7], [0.5, 0.5], [0.6, 0.9]]
    refused(
        "y_proba has 2 of 4 rows that do not sum to 1 (first at row 1; the worst, row 3, sums to 1.5). Pass "
        "one probability for each class; for logits use truecal.data.from_logits.",
        Y,
        rows,
    )
    refused(
        "y_proba has 1 of 4 rows ... (first at row 0; the worst, row 0, sums to 0.998). ...",
        Y,
        [[0.5, 0.498], *[[0.5, 0.5]] * 3],
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 10, 1000])
def test_a_softmax_of_any_precision_sums_to_one(dtype, k):
    rng = np.random.default_rng(k)
    proba = probabilities_from_logits(rng.normal(scale=3, size=(200, k))).astype(dtype)
    assert read(rng.integers(k, size=200), proba)[0].n == 200


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
    refused("y_true has 1 rows, y_proba has 4. They must have the same length.", [[0, 1, 1, 0]], P)
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
            ValueError, match=r"y_true has [12] missing \(NaN\) labels? \(first at row [12]: .*\)\. Remove"
        ):
            read(labels, scores, pos_label=pos_label)


@pytest.mark.parametrize(
    ("labels", "seen", "remedy"),
    [
        ([1, 2, 2, 1], "1, 2", "Pass pos_label=2 (or another) to say which is positive."),
        ([-1, 1, 1, -1], "-1, 1", "Pass pos_label=1 (or another) to say which is positive."),
        (
            ["no", "yes", "yes", "no"],
            "'no', 'yes'",
            "Pass pos_label='yes' (or another) to say which is positive.",
        ),
        (["0", "1", "1", "0"], "'0', '1'", "Pass pos_label='1' (or another) to say which is positive."),
        ([2, 2, 2, 2], "2", "Pass pos_label=2 (or another) to say which is positive."),
        ([0, 1, 2, 1], "0, 1, 2", "For several classes pass y_proba with one column for each class."),
        ([0.0, 1.0, 2.0, 1.0], "0, 1, 2", "For several classes pass y_proba with one column for each class."),
        (
            ["a", "b", "c", "a"],
            "'a', 'b', 'c'",
            "For several classes pass y_proba with one column for each class.",
        ),
        (P, "0.1, 0.35, 0.4, 0.8", "Labels come first, then probabilities: are they the wrong way round?"),
    ],
)
def test_labels_that_are_not_binary(labels, seen, remedy):
    for given in (labels, np.array(labels), np.array(labels, dtype=object), pl.Series(labels)):
        refused(f"y_true must hold 0 and 1. Got {seen} instead. {remedy}", given, P)


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
        "y_true must hold two labels. Got 'a', 'b', 'c'. For one class against the rest pass y_true == 'b', "
        "or y_proba with one column for each class.",
        ["a", "b", "c", "a"],
        P,
        pos_label="b",
    )


@pytest.mark.parametrize("labels", [["yes", 1, "yes", "no"], ["yes", True, "no", "no"], [1, "a", 2.5, b"c"]])
def test_labels_of_several_types(labels):
    for scores in (P, THREE):
        refused(
            "y_true holds labels that have no order (types ...). Use labels of one type.",
            labels,
            scores,
            pos_label="yes",
        )


def test_top_label_has_no_positive_class():
    refused(
        "multiclass='top' has no pos_label: the top class differs from row to row.",
        [0, 1, 2, 2],
        THREE,
        pos_label=1,
        multiclass="top",
    )
    refused(
        "multiclass must be one of 'top', 'classwise'. Got 'all' instead.",
        [0, 1, 2, 2],
        THREE,
        multiclass="all",
    )


NAME_THEM = "Pass labels=[...] to name the class of each column."


@pytest.mark.parametrize(
    ("labels", "says", "classes", "options"),
    [
        ([0, 1, 3, 4], "2 labels (first at row 2: 3)", "0, 1, 2", {}),
        ([1, 2, 3, 3], "2 labels (first at row 2: 3)", "0, 1, 2", {}),
        ([0, -1, 1, 2], "1 label (first at row 1: -1)", "0, 1, 2", {}),
        ([0.0, 1.5, 1.0, 2.0], "1 label (first at row 1: 1.5)", "0, 1, 2", {}),
        ([0, 1, 2, 3], "1 label (first at row 0: 0)", "1, 2, 3", {"labels": [1, 2, 3]}),
        (["a", "b", "x", "c"], "1 label (first at row 2: 'x')", "'a', 'b', 'c'", {"labels": ["a", "b", "c"]}),
        (["0", "1", "2", "2"], "4 labels (first at row 0: '0')", "0, 1, 2", {"labels": [0, 1, 2]}),
    ],
)
def test_a_label_outside_the_columns(labels, says, classes, options):
    for given in (labels, np.array(labels), pl.Series(labels)):
        where = f"outside the 3 columns of y_proba, whose classes are {classes}. {NAME_THEM}"
        refused(f"y_true has {says} {where}", given, THREE, **options)


@pytest.mark.parametrize("labels", [["a", "b", "c", "x"], ["a", "b", "b", "x"]])
def test_a_label_that_is_no_name_of_a_column(labels):
    refused(
        "y_true has 1 label (first at row 3: 'x') outside the 3 columns of y_proba, whose classes are "
        f"'a', 'b', 'c'. {NAME_THEM}",
        labels,
        pd.DataFrame(THREE, columns=["a", "b", "c"]),
    )


def test_column_names_that_say_nothing_of_the_labels():
    frame = pl.DataFrame(THREE, schema=["p_b", "p_a", "p_c"], orient="row")
    refused(
        f"y_true holds 'a', 'b', 'c', and the columns of y_proba are 'p_b', 'p_a', 'p_c'. {NAME_THEM}",
        ["a", "b", "c", "c"],
        frame,
    )
    assert read(["a", "b", "c", "c"], frame, labels=["b", "a", "c"])[0].n == 4


def test_too_few_labels_to_tell_the_columns():
    refused(
        "y_true has 2 different labels ('a', 'b') for 3 columns of y_proba. Pass labels=[...] ...",
        ["a", "b", "b", "a"],
        THREE,
    )


@pytest.mark.parametrize(
    "options", [{}, {"pos_label": "no"}, {"multiclass": "classwise"}, {"multiclass": "top"}]
)
def test_two_columns_of_words_in_an_unknown_order(options):
    both = np.column_stack([1 - np.array(P), P])
    refused(
        "y_true holds the strings 'no', 'yes', and two columns of y_proba could be in either order. Pass "
        "labels=[first, second], or the column of the positive class with pos_label.",
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
    refused("y_true has 2 labels (first at row 0: 0) outside the 2 columns ...", Y, P, labels=[1, 2])
    refused("pos_label 3 is not among the classes 0, 1.", Y, P, labels=[0, 1], pos_label=3)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            [[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 1, 0]],
            "2 rows that are not one-hot (first at row 1: [1, 1, 0])",
        ),
        (
            [[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [0, 1, 0]],
            "1 row that is not one-hot (first at row 1: [0.5, 0.5, 0.0])",
        ),
        (
            [[1, 0, 0], [2, 0, 0], [0, 1, 0], [0, 1, 0]],
            "1 row that is not one-hot (first at row 1: [2, 0, 0])",
        ),
        (
            [[0, 1, 0], [1, -1, 0], [0, 1, 0], [0, 1, 0]],
            "1 row that is not one-hot (first at row 1: [1, -1, 0])",
        ),
    ],
)
def test_rows_that_are_not_one_hot(rows, says):
    refused(f"y_true has {says}. Each row must hold a single 1 among 0s.", rows, THREE)


def test_one_hot_labels_of_another_width():
    hot = np.eye(4)[[0, 1, 2, 3]]
    refused("y_true is one-hot with 4 columns, y_proba has 3.", hot, THREE)
    refused("y_true must have shape (n,) or be one-hot. Got shape (4, 4) instead.", hot, P)
    refused("y_true must have shape (n,) or be one-hot. Got shape (4, 1, 1) instead.", np.zeros((4, 1, 1)), P)
    refused(
        f"y_true has 1 missing (NaN) label (first at row 1: nan). {MEND}",
        np.where(hot[:, :3] == 1, [1, np.nan, 1], 0.0),
        THREE,
    )


def test_one_hot_columns_in_another_order():
    proba = pd.DataFrame(THREE, columns=["a", "b", "c"])
    hot = pd.DataFrame(np.eye(3)[[0, 1, 2, 2]], columns=["c", "b", "a"])
    refused("y_true and y_proba have the same columns in another order. Give them one order.", hot, proba)
    assert read(hot[["a", "b", "c"]], proba)[0].n == 4


# --- Weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-1.0, -1e-300, np.nan, np.inf, 1e101])
def test_a_weight_that_is_no_frequency(value):
    refused(
        f"sample_weight has 2 values (first at row 1: {value}) outside [0, 1e+100]. "
        f"Weights are frequencies: 0 leaves a row out, 2 counts it twice.",
        Y,
        P,
        sample_weight=[1, value, value, 0],
    )


def test_other_bad_weights():
    refused("sample_weight is zero in every row. At least one row must count.", Y, P, sample_weight=[0] * 4)
    refused(
        "sample_weight must be numbers. It has 1 other value (first at row 1: 'b').",
        Y,
        P,
        sample_weight=[1, "b", 1, 1],
    )
    refused(
        "sample_weight has 1 value (first at row 2: nan) outside ...", Y, P, sample_weight=[1, 1, None, 1]
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
            f"logits has 1 infinite or NaN value (first at row 2: {value}). {MEND}",
            Y,
            logits,
            function=from_logits,
        )


def test_other_bad_logits():
    refused("logits is empty. At least one row is needed.", [], [], function=from_logits)
    refused("logits is empty. At least one row is needed.", [], np.empty((0, 3)), function=from_logits)
    refused(
        "logits must be numbers. It has 1 other value (first at row 0: 'a').",
        ["a", 1.0],
        function=probabilities_from_logits,
    )
    refused(
        "logits must have shape (n,) or (n, K). Got shape (1, 2, 2) instead.",
        np.ones((1, 2, 2)),
        function=probabilities_from_logits,
    )
    refused(
        "y_true has 2 rows, y_proba has 3. They must have the same length.",
        [0, 1],
        [1.0, 2.0, 3.0],
        function=from_logits,
    )


def test_logits_are_never_taken_for_probabilities_by_themselves():
    refused(f"y_proba has 4 values (first at row 0: -1.0) {OUTSIDE}", Y, [-1.0, 2.0, 3.0, -4.0])
    refused(
        f"y_proba has 4 values (first at row 0: -1.0) {OUTSIDE}",
        Y,
        [[-1.0, 2.0], [0.5, 0.5], [3.0, -4.0], [0.5, 0.5]],
    )


# --- Samples made before --------------------------------------------------------------------------


def test_one_sample_is_one():
    (sample,) = read(Y, P)
    assert one_sample(sample) is sample
    assert one_sample([0, 1, 2, 2], THREE, multiclass="top").target == "top label of 3 classes"
    refused(
        "multiclass='classwise' makes 3 samples, and this takes one. Choose a class with pos_label, or the "
        "top label with multiclass='top'.",
        [0, 1, 2, 2],
        THREE,
        multiclass="classwise",
        function=one_sample,
    )
    refused("... Leave out y_proba, pos_label.", sample, P, pos_label=1, function=one_sample)
    refused("y_proba is missing. Pass labels and probabilities, or one Sample.", Y, function=one_sample)
