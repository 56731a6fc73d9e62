import json

import numpy as np
import pytest

import truecal
from support.command_line import COLUMNS, refuse, run, write_csv


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return write_csv(folder / "m.csv", {**COLUMNS, "squared": COLUMNS["score"] ** 2})


def test_compare_names_the_better_model(models):
    chosen = ("--score", "score", "--score", "squared")
    assert "squared is better calibrated" in run("compare", models, *chosen).stdout
    (found,) = json.loads(run("compare", models, *chosen, "--format", "json").stdout)["results"]
    truth = truecal.compare(COLUMNS["label"], COLUMNS["score"], COLUMNS["score"] ** 2)
    assert found["difference"] == pytest.approx(truth.difference)
    assert found["names"] == ["score", "squared"]


def test_compare_needs_two_models(models):
    assert "compare needs two models" in refuse("compare", models, "--score", "score")
    assert "compare needs two models" in refuse("compare", models)
    assert "--score score is given more than once" in refuse(
        "compare", models, "--score", "score", "--score", "score"
    )


def test_the_text_fits_80_columns(models):
    chosen = [part for name in ("score", "squared", "weight") for part in ("--score", name)][:4]
    assert max(map(len, run("compare", models, *chosen).stdout.splitlines())) <= 80


def test_models_of_several_classes_in_one_file(tmp_path):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1, 1], 500)
    label = (proba.cumsum(axis=1) < rng.random((500, 1))).sum(axis=1).clip(max=3)
    sharp = proba**3 / (proba**3).sum(axis=1, keepdims=True)
    np.savez(tmp_path / "a.npz", y=label, good=proba, sharp=sharp)
    result = run("compare", tmp_path / "a.npz", "--score", "sharp", "--score", "good", "--format", "json")
    (found,) = json.loads(result.stdout)["results"]
    assert found["difference"] == pytest.approx(truecal.compare(label, sharp, proba).difference)


def test_a_column_for_each_class_is_not_a_model(tmp_path):
    columns = {"y": np.arange(30) % 3, **{f"{m}_{k}": np.full(30, 0.3) for m in "ab" for k in range(3)}}
    path = write_csv(tmp_path / "a.csv", columns)
    for options in ((), ("--pos-label", "1")):
        said = refuse("compare", path, "--label", "y", "--score", "a_*", "--score", "b_*", *options)
        assert "Each --score is a model of its own" in said
        assert "matrices to truecal.compare in Python" in said


def test_three_models_are_ranked(models):
    chosen = [part for name in ("score", "squared", "weight") for part in ("--score", name)]
    result = run("compare", models, *chosen[:4], "--format", "json")
    assert "ranking" not in json.loads(result.stdout)
    rng = np.random.default_rng(0)
    path = write_csv(
        models.parent / "three.csv",
        {**COLUMNS, "squared": COLUMNS["score"] ** 2, "noise": rng.random(len(COLUMNS["score"]))},
    )
    three = ("--score", "score", "--score", "squared", "--score", "noise")
    content = json.loads(run("compare", path, *three, "--format", "json").stdout)
    assert len(content["results"]) == len(content["ranking"]) == 3
    errors = [model["error"] for model in content["ranking"]]
    assert errors == sorted(errors)
    assert max(map(len, run("compare", path, *three).stdout.splitlines())) <= 80
