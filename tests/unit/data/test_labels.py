import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truecal
from support.refusals import FOUR_LABELS, FOUR_SCORES, NAN, THREE, refused
from truecal import Sample
from truecal.data import as_samples
from truecal.data.labels import classes_of, read_clusters
from truecal.exceptions import CalibrationWarning, InputError, Remedy

Y, P = np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8])


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_dates_are_labels_in_every_unit(unit):
    days = np.array(["2020-01-01", "2020-01-02"], dtype=f"M8[{unit}]")
    expected = Sample.from_predictions(Y, P).positives
    for positive in (days[1], pd.Timestamp("2020-01-02"), np.datetime64("2020-01-02")):
        sample = Sample.from_predictions(days[Y], P, pos_label=positive)
        np.testing.assert_array_equal(sample.positives, expected)
    with pytest.raises(InputError, match=r"1 missing \(NaN\) label"):
        Sample.from_predictions(np.append(days[Y][:3], np.datetime64("NaT", unit)), P, pos_label=days[1])


def test_the_numbers_in_the_names_of_columns_are_their_classes():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 50)
    y = rng.integers(3, size=50)
    (expected,) = as_samples(y, proba)
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        frame = pd.DataFrame(proba[:, order], columns=[f"p{k}" for k in order])
        (sample,) = as_samples(y, frame)
        assert sample.positives.sum() == expected.positives.sum()
    one_based = pd.DataFrame(proba, columns=["p1", "p2", "p3"])
    assert as_samples(y + 1, one_based)[0].positives.sum() == expected.positives.sum()


def test_a_common_prefix_is_not_part_of_a_class():
    assert classes_of(["prob_dog", "prob_cat"], ["cat", "dog"]) == ["dog", "cat"]
    assert classes_of(["x", "y"], ["cat", "dog"]) is None


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series])
def test_clusters_of_many_kinds(make):
    for values in (["b", "a", "b", "c"], [10, 3, 10, 7]):
        codes = read_clusters(make(values), 4)
        assert sorted(set(codes.tolist())) == [0, 1, 2]
        assert codes[0] == codes[2]
        assert len({codes[0], codes[1], codes[3]}) == 3


def test_columns_of_clusters_are_crossed():
    frame = {"site": ["a", "a", "b", "a"], "ward": [1, 2, 1, 1]}
    for clusters in (pd.DataFrame(frame), pl.DataFrame(frame), np.array([[0, 1], [0, 2], [1, 1], [0, 1]])):
        codes = read_clusters(clusters, 4)
        assert codes[0] == codes[3]
        assert len(set(codes.tolist())) == 3


def test_wrong_clusters():
    with pytest.raises(InputError, match="clusters has 3 rows, y_true has 4"):
        Sample.from_predictions(Y, P, clusters=[1, 2, 3])
    with pytest.raises(InputError, match=r"clusters has 1 missing \(NaN\) value \(first at row 2\)") as info:
        Sample.from_predictions(Y, P, clusters=["a", "b", None, "b"])
    assert (info.value.argument, info.value.first_row, info.value.remedy) == ("clusters", 2, Remedy.DROP_ROWS)
    with pytest.raises(InputError, match="must have shape"):
        Sample.from_predictions(Y, P, clusters=np.zeros((4, 1, 1)))


def test_a_sample_keeps_clusters_and_sampling_weights():
    weight = np.array([1.0, 2.0, 0.5, 0.0])
    sample = Sample.from_predictions(
        Y, [0.2, 0.2, 0.7, 0.9], sample_weight=weight, clusters=["x", "y", "y", "z"]
    )
    assert sample.squares.tolist() == [5.0, 0.25]
    assert sample.positive_squares.tolist() == [0.0, 0.25]
    assert sample.clusters.n_clusters == 2  # that of the row of weight 0 is gone
    assert sample.clusters.group.tolist() == [0, 0, 1]
    assert sample.clusters.weight.tolist() == [1.0, 2.0, 0.5]
    counted = Sample.from_predictions(Y, P, sample_weight=[1, 2, 3, 4], weighting="counts")
    assert counted.squares is None
    assert (counted.n, type(counted.n)) == (10, int)
    with pytest.raises(InputError, match="weighting 'counts' needs sample_weight"):
        Sample.from_predictions(Y, P, weighting="counts")


@pytest.mark.parametrize(
    "decide",
    [
        Sample.from_predictions,
        truecal.estimate,
        truecal.confidence_interval,
        truecal.calibration_test,
        truecal.assess,
        truecal.select_recalibrator,
        lambda y, p, **reading: truecal.compare(y, {"a": p, "b": p}, **reading),
    ],
)
def test_counts_are_whole_numbers(decide):
    problem = (
        r"sample_weight has 2 values with a fractional part, which cannot count rows \(first at row 1: 0\.5\)"
    )
    with pytest.raises(InputError, match=rf"{problem}\. Leave out weighting='counts' for sampling weights\."):
        decide(Y, P, sample_weight=[1, 0.5, 3, 2.25], weighting="counts")


@pytest.mark.parametrize(
    "make",
    [
        lambda values, order: pd.Series(values, dtype=pd.CategoricalDtype(order)),
        pd.Categorical,
        lambda values, order: pl.Series(values, dtype=pl.Enum(order)),
    ],
)
def test_categories_that_are_not_in_the_order_of_the_alphabet_need_the_classes(make):
    values, order = ["low", "mid", "high", "low"], ["low", "mid", "high"]
    proba = np.array([[0.1, 0.8, 0.1], [0.2, 0.1, 0.7], [0.6, 0.3, 0.1], [0.5, 0.3, 0.2]])
    problem = "has the categories 'low', 'mid', 'high', and the columns of y_proba could be in this order"
    with pytest.raises(InputError, match=problem) as caught:
        Sample.from_predictions(make(values, order), proba)
    assert caught.value.remedy is Remedy.LABELS
    known = Sample.from_predictions(make(values, order), proba, labels=sorted(order))
    assert known.positives.sum() == 3
    same = Sample.from_predictions(make(values, sorted(order)), proba)
    np.testing.assert_array_equal(same.positives, known.positives)
    with pytest.warns(CalibrationWarning, match="order of the sorted labels: 'high', 'low', 'mid'") as caught:
        plain = Sample.from_predictions(values, proba)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(plain.positives, known.positives)
    named = pd.DataFrame(proba, columns=sorted(order))
    np.testing.assert_array_equal(
        Sample.from_predictions(make(values, order), named).positives, known.positives
    )


def test_numbers_as_text_are_taken_in_the_order_of_text_with_a_warning():
    labels = [str(k % 11) for k in range(22)]
    with pytest.warns(CalibrationWarning, match="in the order of the sorted labels: '0', '1', '10', '2'"):
        Sample.from_predictions(labels, np.full((22, 11), 1 / 11))
    Sample.from_predictions([str(k % 9) for k in range(18)], np.full((18, 9), 1 / 9))  # the same either way


@pytest.mark.parametrize(
    "names", [("True", "False"), ("False", "True"), ("p_true", "p_false"), (True, False)]
)
@pytest.mark.parametrize("kind", [bool, int])
def test_columns_named_true_and_false_belong_to_boolean_labels(names, kind):
    """In any order of the columns, for arrays and for frames, the error is that of the column of True."""
    rng = np.random.default_rng(3)
    score = rng.random(500) ** 2
    label = (rng.random(500) < score**2).astype(kind)
    of_true = [str(name).lower().endswith("true") for name in names]
    columns = {name: score if hit else 1 - score for name, hit in zip(names, of_true, strict=True)}
    expected = truecal.calibration_error(label, score)
    assert truecal.calibration_error(label, pd.DataFrame(columns)) == pytest.approx(expected)
    if isinstance(names[0], str):
        frame = pl.DataFrame({**columns, "y": label})
        cells = truecal.summarize(frame, label="y", score=list(names), pos_label=1)
        assert (cells.target, cells.positives.sum()) == ("P(y = 1)", label.sum())
        assert truecal.calibration_error(cells) == pytest.approx(expected, abs=1e-3)


def _three_classes():
    rng = np.random.default_rng(4)
    proba = rng.dirichlet([1, 1, 1], size=600)
    return proba, (proba.cumsum(axis=1) < rng.random((600, 1))).sum(axis=1)


def test_labels_counted_from_1_without_the_last_class():
    """Such labels lie inside 0 to K - 1; the probabilities show that they are one too high."""
    proba, label = _three_classes()
    few = label < 2
    with pytest.raises(
        InputError, match=r"has no label 0, and the probabilities fit labels .* from 1"
    ) as caught:
        truecal.calibration_error(label[few] + 1, proba[few])
    assert caught.value.remedy is Remedy.LABELS
    truth = truecal.calibration_error(label[few], proba[few])
    assert truecal.calibration_error(label[few] + 1, proba[few], labels=[1, 2, 3]) == truth


@pytest.mark.parametrize(
    "use",
    [
        lambda y, p: truecal.select_recalibrator(y, p, rng=0, candidates=["temperature"]),
        lambda y, p: truecal.recalibration.TemperatureScaling(input="probabilities").fit(p, y),
        lambda y, p: truecal.recalibration.VectorScaling(input="logits").fit(np.log(p), y),
    ],
)
def test_recalibrators_take_no_labels_counted_from_1_either(use):
    proba, label = _three_classes()
    few = label < 2
    use(label[few], proba[few])
    with pytest.raises(InputError, match=r"has no label 0, .* from 1.* Count them from 0"):
        use(label[few] + 1, proba[few])


def test_labels_without_0_that_are_counted_from_0():
    proba, label = _three_classes()
    truecal.calibration_error(label[label > 0], proba[label > 0])
    truecal.calibration_error([2, 1], [[0.7, 0.2, 0.1], [0.9, 0.1, 0.0]])  # too few rows to tell


@pytest.mark.parametrize("missing", [None, np.nan])
@pytest.mark.parametrize("others", [["yes"], ["yes", "no"]])
def test_missing_text_labels_are_no_class(missing, others):
    """With some versions of pandas and narwhals a cast to text made them the label 'None'."""
    labels = np.array([*others * 6, missing], dtype=object)
    columns = {"y": labels, "p": np.linspace(0.1, 0.9, len(labels))}
    with pytest.raises(InputError, match=r"1 missing \(NaN\) label"):
        truecal.summarize(pd.DataFrame(columns), label="y", score="p", pos_label="yes")
    with pytest.raises(InputError, match=r"1 missing \(NaN\) label"):
        truecal.calibration_error(labels, columns["p"], pos_label="yes")


def test_labels_of_another_length():
    refused("y_true has 3 rows, y_proba has 4. They must have the same length.", [0, 1, 1], FOUR_SCORES)
    refused("y_true has 1 row, y_proba has 4. They must have the same length.", [[0, 1, 1, 0]], FOUR_SCORES)
    refused("y_true must be a list, an array or a column. Got 1 instead.", 1, FOUR_SCORES)


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
        np.ma.array(FOUR_LABELS, mask=[False, False, True, False]),
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
    for scores in (FOUR_SCORES, [[1 - p, p] for p in FOUR_SCORES]):
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
        (FOUR_SCORES, "0.1, 0.35, 0.4, 0.8", Remedy.SWAPPED),
    ],
)
def test_labels_that_are_not_binary(labels, seen, remedy):
    for given in (labels, np.array(labels), np.array(labels, dtype=object), pl.Series(labels)):
        refused(f"y_true must hold 0 and 1. Got {seen} instead. {remedy.value}", given, FOUR_SCORES)


def test_many_labels_are_not_all_listed():
    refused(
        "y_true must hold 0 and 1. Got 0, 1, 2, 3, 4, 5, ... (9 in all) instead. ...", range(9), [0.5] * 9
    )


def test_a_positive_label_that_is_not_there():
    refused("pos_label 2 is not among the labels 0, 1.", FOUR_LABELS, FOUR_SCORES, pos_label=2)
    refused("pos_label '1' is not among the labels 0, 1.", FOUR_LABELS, FOUR_SCORES, pos_label="1")
    refused("pos_label 1 is not among the labels '0', '1'.", ["0", "0", "1", "1"], FOUR_SCORES, pos_label=1)
    refused("pos_label 'yes' is not among the labels 0.", [0] * 4, FOUR_SCORES, pos_label="yes")
    refused(
        "pos_label 'Yes' is not among the labels 'no', 'yes'.",
        ["no", "no", "yes", "yes"],
        FOUR_SCORES,
        pos_label="Yes",
    )
    refused("pos_label nan is not among the labels 0, 1.", FOUR_LABELS, FOUR_SCORES, pos_label=NAN)
    refused("pos_label 3 is not among the classes 0, 1, 2.", [0, 1, 2, 2], THREE, pos_label=np.int64(3))


def test_three_labels_for_one_column():
    refused(
        f"y_true must hold two labels. Got 'a', 'b', 'c' instead. {Remedy.ONE_VERSUS_REST.value}",
        ["a", "b", "c", "a"],
        FOUR_SCORES,
        pos_label="b",
    )


@pytest.mark.parametrize("labels", [["yes", 1, "yes", "no"], ["yes", True, "no", "no"], [1, "a", 2.5, b"c"]])
def test_labels_of_several_types(labels):
    for scores in (FOUR_SCORES, THREE):
        refused(
            "y_true mixes labels of the types .... Use labels of one type.",
            labels,
            scores,
            pos_label="yes",
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
    both = np.column_stack([1 - np.array(FOUR_SCORES), FOUR_SCORES])
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
    refused(
        "labels must name 2 different classes. Got 0, 1, 2 instead.",
        FOUR_LABELS,
        FOUR_SCORES,
        labels=[0, 1, 2],
    )
    refused(
        "y_true has 2 labels outside the classes 1, 2 of y_proba (first at row 0: 0). ...",
        FOUR_LABELS,
        FOUR_SCORES,
        labels=[1, 2],
    )
    refused(
        "pos_label 3 is not among the classes 0, 1.", FOUR_LABELS, FOUR_SCORES, labels=[0, 1], pos_label=3
    )


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
    refused("y_true must have shape (n,) or be one-hot. Got shape (4, 4) instead.", hot, FOUR_SCORES)
    refused(
        "y_true must have shape (n,) or be one-hot. Got shape (4, 1, 1) instead.",
        np.zeros((4, 1, 1)),
        FOUR_SCORES,
    )
    refused(
        f"y_true has 1 missing (NaN) label (first at row 1). {Remedy.UNLABELLED.value}",
        np.where(hot[:, :3] == 1, [1, np.nan, 1], 0.0),
        THREE,
    )
