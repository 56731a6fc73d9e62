import json

import numpy as np
import pytest

import truecal
from support.command_line import COLUMNS, refuse, run, spread, write_csv


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    y, p = spread(600, 1)
    return write_csv(tmp_path_factory.mktemp("calibrated") / "good.csv", {"label": y, "score": p})


def test_the_exit_code_is_the_answer(plain, calibrated):
    assert "is rejected at level 0.05" in run("test", plain, code=1).stdout
    assert "is not rejected" in run("test", calibrated, code=0).stdout


def test_the_seed_fixes_the_result(plain):
    one, two = (run("test", plain, "--seed", "5", "--format", "json", code=1).stdout for _ in range(2))
    assert one == two
    truth = truecal.calibration_test(COLUMNS["label"], COLUMNS["score"], rng=5)
    assert json.loads(one)["result"]["pvalue"] == truth.pvalue


def test_groups_are_corrected_for_many_looks(plain):
    content = json.loads(run("test", plain, "--group", "region", "--format", "json", code=1).stdout)
    for row in content["results"]:
        assert row["pvalue"] <= row["adjusted_pvalue"] <= min(1, 3 * row["pvalue"])
    assert "adjusted p" in run("test", plain, "--group", "region", code=1).stdout


def test_groups_that_are_rejected_are_named(tmp_path):
    y, p = spread(6000, 3)
    group = np.array([f"g{k:02d}" for k in range(20)])[np.arange(6000) % 20]
    good = np.isin(group, ["g01", "g03"])
    y = np.where(good, spread(6000, 1)[0], y)
    path = write_csv(tmp_path / "a.csv", {"label": y, "score": p, "g": group})
    said = " ".join(run("test", path, "--group", "g", "--resamples", "199", code=1).stdout.split())
    assert said.endswith(
        "Perfect calibration is rejected at level 0.05 in 18 of 20 groups: "
        "g00; g02; g04; g05; g06; g07; g08; g09; g10; g11; and 8 more."
    )
    few = {name: column[good] for name, column in {"label": y, "score": p, "g": group}.items()}
    said = run("test", write_csv(tmp_path / "b.csv", few), "--group", "g", "--resamples", "199").stdout
    assert said.endswith("Perfect calibration is not rejected at level 0.05 in any of 2 groups.\n")


def test_doubled_rows_are_noted_in_groups_too(tmp_path):
    y, p = spread(600, 1)
    columns = {"label": y, "score": p, "g": ["a", "b"] * 300}
    path = write_csv(tmp_path / "twice.csv", {name: [*column, *column] for name, column in columns.items()})
    said = run("test", path, "--group", "g", "--resamples", "99", code=1).stdout
    assert " ".join(said.split()).count("Note: 600 scores occur 2 times each") == 1
    content = run("test", path, "--group", "g", "--resamples", "99", "--format", "json", code=1).stdout
    for row in json.loads(content)["results"]:
        assert "300 scores occur 2 times each" in row["notes"][-1]


def test_one_group_in_twenty_does_not_reject_by_chance_alone(tmp_path):
    import numpy as np

    y, p = spread(2000, 1)
    path = write_csv(tmp_path / "a.csv", {"label": y, "score": p, "g": np.arange(2000) % 20})
    content = json.loads(run("test", path, "--group", "g", "--resamples", "199", "--format", "json").stdout)
    assert content["rejected"] is False


def test_what_it_refuses(plain, tmp_path):
    assert "--alpha must be" in refuse("test", plain, "--alpha", "5")
    assert "--resamples" in refuse("test", plain, "--resamples", "0")
    path = write_csv(tmp_path / "a.csv", {**COLUMNS, "weight": COLUMNS["weight"] / 3})
    assert "Use method='multiscale'" in refuse("test", path, "--weight", "weight", "--method", "ks")


def test_equivalence(calibrated, plain, tmp_path):
    y, p = spread(8000, 1)
    path = write_csv(tmp_path / "a.csv", {"label": y, "score": p, "g": [k % 2 for k in range(8000)]})
    assert "The data show that" in run("test", path, "--at-most", "0.1").stdout
    content = json.loads(run("test", path, "--at-most", "0.1", "--format", "json").stdout)
    assert content["rejected"] is content["passed"] is True
    assert content["result"]["decision"]["state"] == "shown"
    assert (
        "The data show that the calibration error is above"
        in run("test", plain, "--at-most", "0.1", code=1).stdout
    )
    printed = run("test", calibrated, "--at-most", "0.01", code=1).stdout
    assert "The data do not show that" in printed
    assert "more rows like these" in " ".join(printed.split())
    run("test", path, "--at-most", "0.2", "--group", "g")
    printed = run("test", path, "--at-most", "0.001", "--group", "g", code=1).stdout
    assert "below 0.001 is not shown in 2 of 2" in " ".join(printed.split())
    assert max(map(len, printed.splitlines())) <= 80


def test_rows_in_clusters_count_less(tmp_path):
    y, p = spread(300, 1.4)
    repeated = {"label": y.repeat(20), "score": p.repeat(20), "patient": [k // 20 for k in range(6000)]}
    path = write_csv(tmp_path / "a.csv", repeated)
    pvalues = []
    for options, code in (((), 1), (("--cluster", "patient"), 0)):
        result = run("test", path, *options, "--alpha", "0.002", "--format", "json", code=code)
        pvalues.append(json.loads(result.stdout)["result"]["pvalue"])
    assert pvalues[0] < 0.002 < pvalues[1]


def test_too_little_information_is_neither_yes_nor_no(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.beta(2, 198, 400)
    columns = {"label": np.zeros(400, int), "score": p, "who": np.arange(400) // 20, "g": np.arange(400) % 2}
    path = write_csv(tmp_path / "rare.csv", columns)
    shown = run("test", path, "--cluster", "who", code=2).stdout
    assert "Not tested: all labels are the same" in shown
    assert "was not tested." in shown
    content = json.loads(run("test", path, "--cluster", "who", "--format", "json", code=2).stdout)
    assert (content["tested"], content["rejected"], content["passed"]) == (False, False, False)
    assert content["result"]["pvalue"] == 1
    groups = run("test", path, "--cluster", "who", "--group", "g", code=2).stdout
    assert groups.count("not tested") >= 3
    assert "not tested" in run("measure", path, "--cluster", "who").stdout
    # One of two groups can be tested.
    half = columns["g"] == 0
    columns |= {
        "label": np.where(half, rng.random(400) < 0.5, 0).astype(int),
        "score": np.where(half, 0.5, p),
    }
    mixed = run("test", write_csv(tmp_path / "half.csv", columns), "--cluster", "who", "--group", "g").stdout
    assert "in any of 2 groups (1 not tested)" in " ".join(mixed.split())


@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_clusters_are_not_tested(tmp_path, count):
    y, p = spread(60, 1)
    path = write_csv(tmp_path / "few.csv", {"label": y, "score": p, "who": np.arange(60) % count})
    assert f"with {count} cluster" in run("test", path, "--cluster", "who", code=2).stdout


def test_the_smallest_pvalue_of_groups_is_marked(tmp_path):
    y, p = spread(2000, 3)
    path = write_csv(tmp_path / "a.csv", {"label": y, "score": p, "g": np.arange(2000) % 2})
    assert "≤ 0.001" in run("test", path, "--group", "g", code=1).stdout
