"""Columns of frames: what is read, what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from support import engine_contract as contract
from support.frames import FRAME
from truecal.data.frames import summarize
from truecal.exceptions import InputError

# An older narwhals asks pandas in a way that a newer pandas warns of.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword in:DeprecationWarning")


def test_only_one_label_is_there():
    frame = pl.DataFrame({"p": [0.1, 0.8], "y": ["no", "no"]})
    assert summarize(frame, score="p", label="y", pos_label="yes").positives.sum() == 0
    assert summarize(frame, score="p", label="y", pos_label="no").positives.sum() == 2


def test_the_class_of_each_column():
    proba = pl.DataFrame({"1": [0.7, 0.2], "2": [0.2, 0.2], "3": [0.1, 0.6], "y": [1, 2]})
    assert summarize(proba, score=["1", "2", "3"], label="y").positives.tolist() == [
        0,
        1,
    ]  # numbers of the columns' names
    renamed = proba.rename({"1": "a", "2": "b", "3": "c"})
    assert summarize(renamed, score=["a", "b", "c"], label="y").positives.tolist() == [1, 0]  # of 0, 1, 2
    two = summarize(proba.with_columns(a=1 - pl.col("3"), y=pl.Series([0, 1])), score=["a", "3"], label="y")
    assert two.target == "P(y = 1)"
    assert two.score.tolist() == [0.1, 0.6]
    text = proba.with_columns(a=1 - pl.col("3"), y=pl.Series(["a", "3"]))
    assert summarize(text, score=["a", "3"], label="y").target == "P(y = '3')"
    one = summarize(
        proba.with_columns(y=pl.Series(["no", "yes"])), score="3", label="y", labels=["no", "yes"]
    )
    assert one.target == "P(y = 'yes')"
    assert one.positives.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("columns", "options", "says"),
    [
        (
            ["scor", "label"],
            {},
            r"The frame has no column 'scor'. It has: 'score', .* Did you mean 'score'\?",
        ),
        (["score", "label"], {"by": "nowhere"}, "no column 'nowhere'"),
        (["score", "label"], {"weight": "wait"}, "no column 'wait'.*Did you mean 'weight'"),
        (["answer", "label"], {}, "column 'answer' must hold numbers. Its type is String"),
        (["score", "label"], {"weight": "site"}, "column 'site' must hold numbers"),
        ([[], "label"], {}, "score must name at least one column"),
        (
            ["score", "answer"],
            {},
            r"column 'answer' must hold 0 and 1. Got 'no', 'yes' instead. Choose the positive class",
        ),
        (
            ["score", "answer"],
            {"pos_label": 1},
            "pos_label 1 is not among the labels of column 'answer', which holds text",
        ),
        (
            ["score", "label"],
            {"pos_label": "1"},
            "pos_label '1' is not among the labels of column 'label', which holds numbers",
        ),
        (["score", "label"], {"pos_label": 7}, "must hold two labels, 7 and .*. It has .* other labels"),
        ([contract.PARTS, "animal"], {}, "has 3,000 labels .* outside the classes .*'p0'.* Name the class"),
        ([contract.PARTS, "kind"], {"labels": [1, 2]}, "labels must name 4 different classes"),
        ([contract.PARTS, "kind"], {"labels": [1, 2, 2, 3]}, "labels must name 4 different classes"),
        ([contract.PARTS, "kind"], {"pos_label": 9}, "pos_label 9 is not among the classes 0, 1, 2, 3"),
        (
            [contract.PARTS, "kind"],
            {"multiclass": "top", "pos_label": 1},
            "cannot be combined with multiclass='top'",
        ),
        (
            [contract.PARTS, "kind"],
            {"multiclass": "classwise"},
            "the top label or one class. Choose a class with pos_label",
        ),
        ([contract.PARTS, "kind"], {"multiclass": "best"}, "multiclass must be one of 'top'"),
    ],
)
def test_what_cannot_be_asked(columns, options, says):
    with pytest.raises(ValueError, match=says):
        summarize(FRAME, score=columns[0], label=columns[1], **options)


def test_columns_of_dates():
    frame = pl.DataFrame({"p": [0.1], "y": [None]}, schema={"p": pl.Float64, "y": pl.Date})
    with pytest.raises(
        ValueError, match=r"column 'y' must hold numbers, booleans or text\. Its type is Date"
    ):
        summarize(frame, score="p", label="y")


def test_names_that_are_no_text_and_groups_that_are_lists():
    frame = pd.DataFrame({0: [0.1, 0.9], 1: [0.9, 0.1], "y": [1, 0]})
    with pytest.raises(ValueError, match=r"Columns must be named by text\. Got 1 instead"):
        summarize(frame, score=1, label="y")
    with pytest.raises(ValueError, match=r"Columns must be named by text\. Got 0 instead"):
        summarize(frame, score=[0, 1], label="y")
    with pytest.raises(ValueError, match=r"Columns must be named by text\. Got 0 instead"):
        summarize(frame.rename(columns={1: "p"}), score="p", label="y", by=0)
    nested = pl.DataFrame({"p": [0.1, 0.9], "y": [0, 1], "site": [[1], [2]]})
    with pytest.raises(ValueError, match=r"column 'site' holds List.*cannot be a group"):
        summarize(nested, score="p", label="y", by="site")


def test_a_name_that_reads_as_a_regular_expression_is_refused():
    frame = pl.DataFrame({"^s.*$": [0.9, 0.1], "s": [0.5, 0.5], "y": [1, 0]})
    with pytest.raises(InputError, match="reads as a pattern"):
        summarize(frame, score="^s.*$", label="y")


def test_labels_that_float64_would_round_are_refused():
    label = pl.Series([2**63 + 1, 2**63 + 1, 2**63, 2**63], dtype=pl.UInt64)
    frame = pl.DataFrame({"p": [0.9, 0.9, 0.1, 0.1], "y": label})
    with pytest.raises(InputError, match=r"4 labels beyond 2\^53"):
        summarize(frame, score="p", label="y", pos_label=2**63 + 1)
    small = frame.with_columns(y=pl.Series([7, 7, 3, 3], dtype=pl.UInt64))
    assert summarize(small, score="p", label="y", pos_label=7).positives.tolist() == [0, 2]


def test_columns_go_by_the_numbers_in_their_names():
    frame = pl.DataFrame({"p0": [0.9, 0.2, 0.4], "p1": [0.1, 0.8, 0.6], "y": [0, 1, 1]})
    expected = summarize(frame, score=["p0", "p1"], label="y")
    turned = summarize(frame, score=["p1", "p0"], label="y")
    assert (expected.target, turned.target) == ("P(y = 1)", "P(y = 0)")  # that of the second column
    np.testing.assert_allclose(turned.score, 1 - expected.score[::-1])
    assert turned.positives.tolist() == (expected.count - expected.positives)[::-1].tolist()
    three = pl.DataFrame({"p3": [0.2], "p1": [0.3], "p2": [0.5], "y": [1]})
    with pytest.raises(InputError, match="not in the order of their numbers"):
        summarize(three, score=["p3", "p1", "p2"], label="y")
