import json
import re

import numpy as np
import pytest

from support.command_line import COLUMNS, refuse, run, value_of, write_csv
from truecal.cli._input.columns import Columns
from truecal.cli._input.table import Table


def complete(*names, **given):
    logits = given.pop("logits", False)
    return Columns(**given).complete(Table("a.csv", names, {}), logits=logits)


@pytest.mark.parametrize(
    ("names", "label", "score"),
    [
        ("label,score", "label", "score"),
        ("Y_True,P,x", "Y_True", "P"),
        ("won,prob", "won", "prob"),
        ("label,p2,p0,p1", "label", "p0,p1,p2"),
        ("label,prob_0,prob_1", "label", "prob_0,prob_1"),
        ("label,y_pred_proba_1", "label", "y_pred_proba_1"),
        ("y,0,1,2", "y", "0,1,2"),
    ],
)
def test_conventional_names_are_detected_and_reported(names, label, score):
    found = complete(*names.split(","))
    assert (",".join(found.label), ",".join(found.score)) == (label, score)
    assert found.detected[0].startswith("using ")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("a,b", "which column is the label"),
        ("label,score,prob", r"which column is the score\? Several could be it \(score, prob\)"),
        ("label,score,score", "Several could be it"),
        ("label,prob_0", "which column is the score"),
        ("label,p1,p2", "which column is the score"),
        ("label,logit_0,logit_1,logit_2", "which column is the score"),
    ],
)
def test_what_is_ambiguous_is_asked_for(names, message, tmp_path):
    (tmp_path / "a.csv").write_text(f"{names}\n{','.join('1' for _ in names.split(','))}\n")
    assert re.search(message, refuse("measure", tmp_path / "a.csv"))


def test_patterns():
    names = ("label", "logit_0", "logit_1", "logit_10", "x")
    assert complete(*names, score=("logit_*",)).score == names[1:4]
    assert complete(*names[:3], "logit_2", logits=True).score == ("logit_0", "logit_1", "logit_2")
    assert complete("y", "a*", score=("a*",)).score == ("a*",)
    with pytest.raises(ValueError, match="no column that matches 'z_\\*'"):
        complete(*names, score=("z_*",))
    with pytest.raises(ValueError, match="logit_0 is given more than once"):
        complete(*names, score=("logit_*", "logit_0"))


def test_detected_columns_are_in_the_json(tmp_path):
    path = write_csv(tmp_path / "a.csv")
    content = json.loads(run("measure", path, "--format", "json").stdout)
    assert content["columns"] == {"label": ["label"], "score": ["score"]}
    assert content["detected"][0] == "using 'score' as the score and 'label' as the label"


def test_columns_matched_with_labels_by_their_order_are_reported(tmp_path):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 200)
    columns = {"label": COLUMNS["label"][:200], "home": proba[:, 0], "draw": proba[:, 1], "away": proba[:, 2]}
    path = write_csv(tmp_path / "a.csv", columns)
    result = run("measure", path, *(part for name in ("home", "draw", "away") for part in ("--score", name)))
    assert "by the order of the columns: 0 for 'home', 1 for 'draw', 2 for 'away'" in result.stderr
    assert "only the labels 0, 1 occur, for 3 classes" in result.stderr


def test_a_column_of_class_zero_is_questioned(tmp_path):
    path = write_csv(tmp_path / "a.csv", {"label": COLUMNS["label"], "prob_0": 1 - COLUMNS["score"]})
    result = run("measure", path, "--score", "prob_0")
    assert "if it is that of label 0, add --pos-label 0" in result.stderr
    right = run("measure", path, "--score", "prob_0", "--pos-label", "0", "--format", "json")
    assert value_of(right) < 0.3
    assert "which column is the score" in refuse("measure", path)


def test_a_column_cannot_be_label_and_score(tmp_path):
    path = write_csv(tmp_path / "a.csv")
    assert "is both the label and the score" in refuse(
        "measure", path, "--label", "score", "--score", "score"
    )
