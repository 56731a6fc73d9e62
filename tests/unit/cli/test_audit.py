import json

import numpy as np
import pytest

import truecal
from support.command_line import refuse, run, write_csv

_rng = np.random.default_rng(0)
P = _rng.uniform(0.2, 0.8, 3000).round(3)
REGION, SEX = _rng.integers(0, 3, 3000), np.array(["f", "m"])[_rng.integers(0, 2, 3000)]
Y = (_rng.random(3000) < P + 0.19 * ((REGION == 2) & (SEX == "m"))).astype(int)
COLUMNS = {"label": Y, "score": P, "region": REGION, "sex": SEX}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("audit") / "a.csv", COLUMNS)


def test_the_miscalibrated_segment_is_found(path):
    content = json.loads(run("audit", path, "--format", "json", code=1).stdout)
    truth = truecal.audit(Y, P, {"region": REGION, "sex": SEX}, rng=0)
    assert content["segments"][0]["name"] == truth.segments[0].name
    assert content["n_searched"] == truth.n_searched
    assert content["columns"]["feature"] == ["region", "sex"]
    text = run("audit", path, code=1).stdout
    assert "region: 2" in text
    assert max(map(len, text.splitlines())) <= 80


def test_features_can_be_chosen_and_a_calibrated_model_passes(path):
    content = json.loads(
        run("audit", path, "--feature", "se*", "--max-depth", "1", "--format", "json", code=1).stdout
    )
    assert content["n_searched"] == 2
    good = write_csv(path.with_name("good.csv"), {**COLUMNS, "label": (_rng.random(3000) < P).astype(int)})
    assert "0 found" in run("audit", good).stdout


def test_what_it_refuses(path, tmp_path):
    assert "audit takes no weights" in refuse("audit", path, "--weight", "region")
    bare = write_csv(tmp_path / "bare.csv", {"label": Y, "score": P})
    assert "no columns of features" in refuse("audit", bare)
    assert "--max-depth" in refuse("audit", path, "--max-depth", "9")


@pytest.mark.parametrize("name", ["status", "wide"])
def test_a_feature_that_is_the_outcome_is_refused(path, tmp_path, name):
    """A copy of the label, or a finer one; by chance no column of a calibrated model comes near."""
    copy = {"status": np.where(Y, "paid", "failed"), "wide": Y * 10 + np.arange(3000) % 3}
    said = refuse("audit", write_csv(tmp_path / "a.csv", {**COLUMNS, name: copy[name]}))
    assert f"column {name!r} has" in said
    assert "all rows with the same value have the same label" in said
    assert "--feature" in said
    copy["status"][0] = "paid" if Y[0] == 0 else "failed"
    copy["wide"][0] = 10 - copy["wide"][0]
    run("audit", write_csv(tmp_path / "b.csv", {**COLUMNS, name: copy[name]}), code=1)


def test_columns_with_a_value_for_each_row_or_few_rows_are_no_outcomes(tmp_path):
    identifier = {**COLUMNS, "row": [f"r{k}" for k in range(3000)]}
    run("audit", write_csv(tmp_path / "a.csv", identifier), code=1)
    rare = {"label": np.arange(400) < 3, "score": np.full(400, 0.01), "ward": np.arange(400) < 3}
    rare = {name: np.asarray(column).astype(float) for name, column in rare.items()}
    run("audit", write_csv(tmp_path / "b.csv", rare), code=(0, 1))


def test_a_picture_is_written(tmp_path):
    for name in ("a.png", "a.svg"):
        run(
            "audit",
            "flights",
            "--feature",
            "origin",
            "--resamples",
            "99",
            "--picture",
            tmp_path / name,
            code=1,
        )
        assert (tmp_path / name).stat().st_size > 2000
    assert ".png, .svg or .pdf" in refuse("audit", "flights", "--picture", tmp_path / "a.txt")


def test_too_many_features_are_refused_at_once(tmp_path):
    rng = np.random.default_rng(0)
    wide = {f"x{k}": rng.integers(0, 2, 60) for k in range(400)}
    path = write_csv(tmp_path / "wide.csv", {"label": Y[:60], "score": P[:60], **wide})
    assert "80,200 combinations" in refuse("audit", path)


def test_what_is_tested_is_shown_and_identifiers_are_listed(path, tmp_path):
    off = write_csv(tmp_path / "off.csv", {"id": np.arange(3000), **COLUMNS, "score": P * 0.8})
    text = run("audit", off, code=1).stdout
    assert text.startswith("The model is off as a whole")
    assert "only name rows: id" in text
    assert "The sum of their squares is tested" in " ".join(text.split())
    assert "≤ 0.001" in text
    assert max(map(len, text.splitlines())) <= 80


def test_clusters_without_events_are_not_tested(tmp_path):
    columns = {
        "label": np.zeros(300, int),
        "score": np.full(300, 0.01),
        "x": REGION[:300],
        "who": np.arange(300) % 20,
    }
    text = run("audit", write_csv(tmp_path / "a.csv", columns), "--cluster", "who", code=2).stdout
    assert "3 segments not tested" in text
