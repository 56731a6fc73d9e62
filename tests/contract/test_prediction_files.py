"""A file gives the same answer whether it is read into memory or summarised, whatever kind of file it is."""

import json
import warnings

import numpy as np
import polars as pl
import pytest

import truecal
from support.command_line import run, value_of
from support.prediction_files import GROUP, Case, cases

CASES = cases()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for case in CASES:
        (folder / case.name).write_bytes(case.content)
    return folder


def expected(case: Case) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return truecal.calibration_error(case.y_true, case.y_proba, estimator="ew_bin")


@pytest.mark.parametrize("case", CASES, ids=repr)
@pytest.mark.parametrize("path", ["in memory", "summarised"])
def test_every_kind_of_file_gives_the_same_answer_by_both_paths(case, path, folder, monkeypatch):
    if path == "summarised":
        monkeypatch.setattr("truecal.cli._input.table.MANY_ROWS", 10)
        monkeypatch.setattr("truecal.cli._input.table.MANY_BYTES", 10)
    result = run("measure", folder / case.name, *case.options, "--estimator", "ew_bin", "--format", "json")
    assert value_of(result) == pytest.approx(expected(case), abs=1e-9)
    assert json.loads(result.stdout)["n"] == len(case.y_true)


@pytest.mark.parametrize("case", [case for case in CASES if "npy" not in case.name], ids=repr)
def test_standard_input_gives_the_same_answer(case):
    if case.name in ("tabs.tsv", "savetxt.csv") or case.content[:2] == b"PK":
        pytest.skip("the format cannot be seen from the content")
    result = run(
        "measure", "-", *case.options, "--estimator", "ew_bin", "--format", "json", stdin=case.content
    )
    assert value_of(result) == pytest.approx(expected(case), abs=1e-9)


@pytest.mark.parametrize("many", [10**9, 10])
def test_groups_are_the_same_by_both_paths(many, tmp_path, monkeypatch):
    monkeypatch.setattr("truecal.cli._input.table.MANY_BYTES", many)
    case = next(case for case in CASES if case.name == "plain.csv")
    names = ["(missing)", "", "10", "9", " a", "a"]
    lines = case.content.decode().splitlines()
    rows = [f"{line},{names[k % 6]},{GROUP[k]}" for k, line in enumerate(lines[1:])]
    path = tmp_path / "groups.csv"
    path.write_text("\n".join(["label,score,g,h", *rows]))
    content = json.loads(run("measure", path, "--group", "g", "--format", "json").stdout)
    found = {row["group"]: row["n"] for row in content["results"]}
    assert found == {None: 300, "'(missing)'": 50, "(missing)": 50, "10": 50, "9": 50, "a": 100}
    content = json.loads(run("measure", path, "--group", "g", "--group", "h", "--format", "json").stdout)
    assert {row["group"]: row["n"] for row in content["results"]}["a, b"] == 50
    assert sum(row["n"] for row in content["results"][1:]) == 300


@pytest.mark.parametrize("options", [(), ("--group", "site"), ("--group", "site", "--group", "year")])
def test_every_number_of_measure_is_the_same_by_both_paths(options, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    score = rng.random(3000).round(3)  # so that every cell holds one score
    label, site = rng.random(3000) < score**1.2, rng.choice(["north", "south", None], 3000)
    frame = pl.DataFrame({"label": label, "score": score, "site": site, "year": rng.integers(2, size=3000)})
    frame.write_parquet(tmp_path / "a.parquet")
    command = ("measure", tmp_path / "a.parquet", *options, "--format", "json")
    small = json.loads(run(*command).stdout)
    monkeypatch.setattr("truecal.cli._input.table.MANY_ROWS", 10)
    large = json.loads(run(*command).stdout)
    assert large["test"] == small["test"]
    assert len(large["results"]) == len(small["results"]) == (4, 4, 7)[len(options) // 2]
    for one, other in zip(small["results"], large["results"], strict=True):
        for key in ("group", "estimator", "adjusted_pvalue", "n", "n_bins", "target", "notes"):
            assert other[key] == one[key]
        assert other["value"] == pytest.approx(one["value"], abs=1e-12)
        if one["interval"] is not None:
            assert other["interval"]["low"] == pytest.approx(one["interval"]["low"], abs=1e-12)
            assert other["interval"]["high"] == pytest.approx(one["interval"]["high"], abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if len(case.content) < 50_000], ids=repr)
def test_every_command_reads_every_kind_of_file(case, folder, tmp_path):
    source, page = folder / case.name, tmp_path / "page.html"
    tested = run("test", source, *case.options, "--resamples", "49", "--format", "json", code=(0, 1))
    assert json.loads(tested.stdout)["result"]["n"] == len(case.y_true)
    run("report", source, *case.options, "--quick", "-o", page)
    assert page.stat().st_size > 10_000
    if case.name == "one_class.csv":
        return  # recalibrators take all classes
    run("recalibrate", source, *case.options, "--write", tmp_path / "better.csv")
    assert len((tmp_path / "better.csv").read_text().splitlines()) > 1


@pytest.mark.parametrize(
    "options", [("--weight", "w"), ("--weight", "w", "--counts"), ("--weight", "w", "--group", "g")]
)
def test_weights_give_the_same_interval_and_p_value_by_both_paths(options, tmp_path, monkeypatch):
    case = next(case for case in CASES if case.name == "plain.csv")
    lines = case.content.decode().splitlines()
    rows = [f"{line},{k % 5 + 1},{GROUP[k]}" for k, line in enumerate(lines[1:])]
    path = tmp_path / "weights.csv"
    path.write_text("\n".join(["label,score,w,g", *rows]))
    asked = (*options, "--estimator", "multiscale", "--format", "json")
    found = []
    for many in (10**9, 10):
        monkeypatch.setattr("truecal.cli._input.table.MANY_BYTES", many)
        found.append(json.loads(run("measure", path, *asked).stdout))
    small, large = found
    for one, two in zip(small["results"], large["results"], strict=True):
        assert [two["value"], two["n"], *map(two["interval"].get, ("low", "high"))] == pytest.approx(
            [one["value"], one["n"], *map(one["interval"].get, ("low", "high"))], abs=1e-9
        )
    assert large["test"] == small["test"]


def test_clusters_do_not_depend_on_the_format(tmp_path):
    case = next(case for case in CASES if case.name == "plain.csv")
    rows = [f"{line},{k % 40}" for k, line in enumerate(case.content.decode().splitlines()[1:])]
    (tmp_path / "a.csv").write_text("\n".join(["label,score,c", *rows]))
    pl.read_csv(tmp_path / "a.csv").write_parquet(tmp_path / "a.parquet")
    asked = ("--cluster", "c", "--resamples", "99", "--format", "json")
    one, two = (
        json.loads(run("test", tmp_path / f"a.{end}", *asked, code=(0, 1)).stdout)
        for end in ("csv", "parquet")
    )
    assert two["result"] == one["result"]
