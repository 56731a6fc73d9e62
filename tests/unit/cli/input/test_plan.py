"""The plan by which a table is read, before any of its rows become predictions."""

import polars as pl
import pytest

from truecal.cli._input.columns import Columns, Reading
from truecal.cli._input.plan import CLUSTER, WEIGHT, make_plan
from truecal.cli._input.table import Table
from truecal.exceptions import InputError


def planned(columns, reading=None, **options):
    frame = pl.DataFrame(columns)
    table = Table("t", tuple(frame.columns), frame.lazy())
    names = {name: options.pop(name) for name in ("weight", "cluster", "group") if name in options}
    return make_plan(table, Columns(**names).complete(table), Reading(**(reading or {})), **options)


def test_columns_are_detected_and_words_become_booleans():
    plan = planned({"label": ["no", "yes"], "score": [0.25, 0.5], "id": [1, 2]})
    assert (plan.columns.label, plan.columns.score, plan.label) == (("label",), ("score",), "label")
    assert plan.notes == (
        "using 'score' as the score and 'label' as the label",
        "using 'yes' as the positive label",
    )
    assert plan.options == {}
    assert plan.lazy.collect().to_dict(as_series=False) == {"score": [0.25, 0.5], "label": [False, True]}


def test_classes_and_conversions_of_several_columns():
    plan = planned({"y": ["a", "b"], "a": ["90", "20"], "b": ["10", "80"]}, {"percent": True})
    assert plan.options == {"labels": ["a", "b"]}
    assert {name: [part.name for part in fields] for name, fields in plan.models.items()} == {
        "a b": ["a", "b"]
    }
    assert plan.lazy.collect().row(0) == (0.9, 0.1, "a")


def test_weights_clusters_and_groups_have_names_that_no_column_has():
    rows = {"label": [0, 1], "score": [0.2, 0.8], "w": [1, 3], "c": ["7", "8"], "g": ["x", "y"]}
    plan = planned(rows, {"counts": True}, weight="w", cluster="c", group=("g",))
    assert list(plan.values) == ["score", "label", WEIGHT, CLUSTER]
    assert list(plan.groups) == ["g"]
    assert plan.options["weighting"] == "counts"
    assert plan.lazy.collect().row(1) == (0.8, 1, 3.0, 8, "y")


def test_several_models_are_not_several_classes():
    frame = pl.DataFrame({"label": [0, 1], "one": [0.1, 0.9], "two": [0.2, 0.8]})
    table = Table("t", tuple(frame.columns), frame.lazy())
    plan = make_plan(table, Columns(label=("label",), score=("one", "two")), Reading(), as_models=True)
    assert list(plan.models) == ["one", "two"]
    assert plan.options == {}


@pytest.mark.parametrize(
    ("reading", "names", "option"),
    [
        ({"counts": True}, {}, "--counts"),
        ({"equal_clusters": True}, {}, "--equal-clusters"),
        ({"counts": True, "equal_clusters": True}, {"weight": "w", "cluster": "w"}, "--equal-clusters"),
        ({"normalize": True}, {}, "--normalize"),
    ],
)
def test_options_that_lack_what_they_need(reading, names, option):
    with pytest.raises(InputError) as caught:
        planned({"label": [0, 1], "score": [0.2, 0.8], "w": [1, 3]}, reading, **names)
    assert caught.value.argument == option
