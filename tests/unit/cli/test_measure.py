import json

import numpy as np
import pytest

import truecal
from support.command_line import COLUMNS, recommended, refuse, run, spread, write_csv
from truecal.estimators._registry import DEFAULT_ESTIMATOR


def test_the_table_names_the_recommended_estimator_first_and_the_interval(plain):
    text = run("measure", plain).stdout
    estimate = truecal.estimate(
        COLUMNS["label"], COLUMNS["score"], estimator="multiscale", confidence_level=0.95
    )
    rows = [line.split() for line in text.splitlines() if line]
    assert rows[2][:2] == ["multiscale", f"{estimate.value:.4f}"]
    assert (
        f"95% confidence interval of the true error: {estimate.interval.low:.4f} to {estimate.interval.high:.4f}."
        in text
    )


def test_json_has_a_version_and_the_first_value_on_top(plain):
    content = json.loads(run("measure", plain, "--format", "json").stdout)
    assert content["schema_version"] == 1
    assert content["command"] == "measure"
    assert content["estimator"] == "multiscale"
    assert content["value"] == recommended(COLUMNS["label"], COLUMNS["score"])
    assert content["interval"]["low"] < content["value"] < content["interval"]["high"]
    assert [row["estimator"] for row in content["results"]] == [
        "multiscale",
        "em_sweep",
        "em_debias",
        "ew_bin",
    ]
    assert {"group", "value", "norm", "n", "n_bins", "target", "interval", "notes", "bins"} <= set(
        content["results"][0]
    )


def test_groups_have_intervals_and_adjusted_p_values(plain):
    content = json.loads(run("measure", plain, "--group", "region", "--format", "json").stdout)
    assert [row["group"] for row in content["results"]] == [None, "east", "north", "south"]
    for row in content["results"][1:]:
        rows = COLUMNS["region"] == row["group"]
        assert row["value"] == recommended(COLUMNS["label"][rows], COLUMNS["score"][rows])
        test = truecal.calibration_test(COLUMNS["label"][rows], COLUMNS["score"][rows], rng=0)
        assert test.pvalue <= row["adjusted_pvalue"] <= 3 * test.pvalue
    text = run("measure", plain, "--group", "region").stdout
    assert "adjusted for 3 groups in the table" in text
    alone = "Each interval is for its group alone, not adjusted for the number of groups."
    assert alone in text.splitlines()
    for options in ((), ("--group", "region", "--confidence-level", "0")):
        assert alone not in run("measure", plain, *options).stdout


def test_rows_without_a_group_are_a_group(tmp_path):
    holes = np.where(np.arange(600) % 4 == 0, "", COLUMNS["region"])
    path = write_csv(tmp_path / "a.csv", {**COLUMNS, "region": holes})
    content = json.loads(run("measure", path, "--group", "region", "--format", "json").stdout)
    assert [row["group"] for row in content["results"]][-1] == "(missing)"
    path = write_csv(tmp_path / "b.csv", {**COLUMNS, "region": np.arange(600) % 12})
    content = json.loads(run("measure", path, "--group", "region", "--format", "json").stdout)
    assert [row["group"] for row in content["results"]] == [None, *map(str, range(12))]
    numbers = np.where(np.arange(600) % 4 == 0, "", np.arange(600) % 4)
    path = write_csv(tmp_path / "c.csv", {**COLUMNS, "region": numbers})
    content = json.loads(run("measure", path, "--group", "region", "--format", "json").stdout)
    assert [row["group"] for row in content["results"]] == [None, "1", "2", "3", "(missing)"]


def test_weights_reach_the_estimator(plain):
    content = json.loads(run("measure", plain, "--weight", "weight", "--format", "json").stdout)
    weight = COLUMNS["weight"]
    assert content["value"] == pytest.approx(
        recommended(COLUMNS["label"], COLUMNS["score"], sample_weight=weight)
    )
    assert content["n"] == COLUMNS["weight"].sum()


def test_fractional_weights_are_sampling_weights(tmp_path):
    path = write_csv(tmp_path / "a.csv", {**COLUMNS, "weight": COLUMNS["weight"] / 3})
    content = json.loads(
        run("measure", path, "--weight", "weight", "--group", "region", "--format", "json").stdout
    )
    assert all(0 < row["adjusted_pvalue"] <= 1 for row in content["results"][1:])
    for command in ("measure", "test"):
        said = refuse(command, path, "--weight", "weight", "--counts")
        assert "column 'weight' has" in said
        assert "a fractional part, which cannot count rows" in said
        assert "Leave out --counts for sampling weights." in said


def test_norms_without_intervals(plain):
    content = json.loads(run("measure", plain, "--norm", "3", "--format", "json").stdout)
    assert content["norm"] == 3
    assert content["interval"] is None
    content = json.loads(run("measure", plain, "--confidence-level", "0", "--format", "json").stdout)
    assert content["interval"] is None
    run("measure", plain, "--estimator", "ks", "--estimator", "skce")


def test_options_that_make_no_sense(plain):
    assert "--norm must be" in refuse("measure", plain, "--norm", "0.5")
    assert "Did you mean 'em_sweep'" in refuse("measure", plain, "--estimator", "em_swep")
    assert "--confidence-level" in refuse("measure", plain, "--confidence-level", "2")
    assert "bins" in refuse("measure", plain, "--estimator", "em_sweep", "--n-bins", "7")


def test_n_bins_goes_to_estimators_that_take_it(plain):
    content = json.loads(run("measure", plain, "--n-bins", "7", "--format", "json").stdout)
    assert [(row["estimator"], row["n_bins"]) for row in content["results"]] == [("ew_bin", 7), ("em_bin", 7)]


def test_output_goes_to_a_file(plain, tmp_path):
    result = run("measure", plain, "--format", "json", "-o", tmp_path / "a.json")
    assert result.stdout == ""
    assert json.loads((tmp_path / "a.json").read_text())["command"] == "measure"
    assert "there is no folder" in refuse("measure", plain, "-o", tmp_path / "no" / "a.json")
    assert "would be overwritten" in refuse("measure", plain, "-o", plain)
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_an_estimate_outside_the_interval_is_explained(tmp_path):
    y, p = spread(100_000, 1)
    path = write_csv(tmp_path / "a.csv", {"label": y, "score": p})
    content = json.loads(run("measure", path, "--format", "json").stdout)
    outside = content["value"] > content["interval"]["high"]
    assert ("lies outside" in run("measure", path).stdout) == outside


def test_a_sweep_that_fails_says_so_below_the_table(tmp_path):
    path = write_csv(tmp_path / "a.csv", {"label": 1 - COLUMNS["label"], "score": COLUMNS["score"]})
    assert "Note: em_sweep: " in run("measure", path).stdout


def test_escapes_in_data_do_not_reach_the_terminal(tmp_path):
    path = write_csv(
        tmp_path / "a.csv", {**COLUMNS, "region": np.where(COLUMNS["score"] > 0.5, "\x1b[2J", "b")}
    )
    result = run("measure", path, "--group", "region")
    assert "\x1b" not in result.output
    assert "\\u001b[2J" in result.output
    assert "\x1b" not in refuse("measure", path, "--score", "\x1b]0;x")


def test_the_text_fits_80_columns(plain):
    for options in ((), ("--group", "region"), ("--estimator", "em_debias", "--estimator", "ks")):
        assert max(map(len, run("measure", plain, *options).stdout.splitlines()[1:])) <= 80


def test_remarks_on_the_data(plain, tmp_path):
    path = write_csv(tmp_path / "a.csv", {"label": [1] * 40, "score": [0.2, 0.7] * 20})
    assert "Only one of the two outcomes occurs." in run("measure", path).stdout
    content = json.loads(run("measure", path, "--format", "json").stdout)
    assert "Only one of the two outcomes occurs." in content["warnings"]


def test_quiet_and_short(plain):
    assert run("measure", plain, "-q").stderr == ""
    content = json.loads(run("measure", plain, "--no-bins", "--format", "json").stdout)
    assert all("bins" not in row for row in content["results"])


def test_the_usual_name_of_the_error_works(plain):
    content = json.loads(run("measure", plain, "--estimator", "ece", "--format", "json").stdout)
    truth = truecal.calibration_error(COLUMNS["label"], COLUMNS["score"], estimator="ew_bin", norm=1)
    assert content["value"] == pytest.approx(truth, rel=1e-12)
    assert content["norm"] == 1


def test_a_package_whose_estimators_cannot_be_loaded_is_reported_where_one_may_be_missing(plain, monkeypatch):
    import warnings

    from truecal.estimators import _registry

    def discover():
        warnings.warn("badplug is skipped", stacklevel=2)

    monkeypatch.setattr(_registry, "_discover", discover)
    messages = run("measure", plain, "--estimator", "badplug_bin", code=2).stderr
    assert "truecal: badplug is skipped" in messages
    assert "badplug_bin" in messages
    assert "badplug" not in run("measure", plain, "--estimator", "em_bin").stderr


def test_the_number_to_report_is_named(plain):
    assert (
        f"Report the {DEFAULT_ESTIMATOR} value; the others are for comparison."
        in run("measure", plain).stdout
    )


def test_a_column_that_looks_like_a_question_is_pointed_out(tmp_path):
    rng = np.random.default_rng(0)
    p = np.repeat(rng.beta(3, 2, 100), 5)
    columns = {"y": (rng.random(500) < p).astype(int), "p": p, "question_id": np.repeat(np.arange(100), 5)}
    path = write_csv(tmp_path / "a.csv", columns)
    found = run("measure", path, "--label", "y", "--score", "p", "--format", "json")
    assert any(
        "'question_id' has 100 values in 500 rows" in note for note in json.loads(found.stdout)["detected"]
    )
    named = run(
        "measure", path, "--label", "y", "--score", "p", "--cluster", "question_id", "--format", "json"
    )
    content = json.loads(named.stdout)
    assert not any("--cluster" in note for note in content["detected"])
    assert content["results"][0]["n_clusters"] == 100
    single = write_csv(tmp_path / "b.csv", {**columns, "question_id": np.arange(500)})
    assert "--cluster" not in run("measure", single, "--label", "y", "--score", "p").stderr


def test_five_clusters_give_no_confident_interval(shared):
    path = shared / "external" / "calibrationcurves_clusters.csv"
    found = run("measure", path, "--label", "y", "--score", "p", "--cluster", "cluster", "--format", "json")
    interval = json.loads(found.stdout)["interval"]
    assert interval["low"] == 0
    assert interval["high"] > 0.5
    assert interval["assumption"].startswith("5 clusters are too few for an interval")


@pytest.mark.parametrize("multiclass", ["top_by_class", "top_2", "canonical"])
def test_other_questions_about_several_classes(multiclass):
    data = truecal.datasets.load("digits")
    found = json.loads(
        run("measure", "digits", "--multiclass", multiclass, "--format", "json", "--no-bins").stdout
    )
    expected = truecal.estimate(
        data.y_true,
        data.y_proba,
        labels=data.labels,
        multiclass=multiclass,
        estimator="skce" if multiclass == "canonical" else "multiscale",
    )
    assert found["value"] == expected.value
    assert found["target"] == expected.target
    assert (found["interval"] is None) == (multiclass == "canonical")


def test_an_unknown_question_is_refused():
    result = run("measure", "digits", "--multiclass", "top_0", code=2)
    assert "'top_0' is not one of top, classwise" in result.stderr


@pytest.mark.parametrize("options", [(), ("--equal-clusters",), ("--group", "region")])
def test_clusters_of_a_large_file_give_the_same_answer(tmp_path, monkeypatch, options):
    rng = np.random.default_rng(0)
    cluster = np.minimum(rng.geometric(0.2, 600).cumsum() // 20, 199)
    path = write_csv(
        tmp_path / "a.csv", {**COLUMNS, "score": COLUMNS["score"].round(2), "patient": cluster.astype(str)}
    )
    given = ("measure", path, "--cluster", "patient", *options, "--format", "json")
    small = json.loads(run(*given).stdout)
    monkeypatch.setattr("truecal.cli._input.table.MANY_ROWS", 10)
    large = json.loads(run(*given).stdout)
    for one, other in zip(small["results"], large["results"], strict=True):
        assert other["n_clusters"] == one["n_clusters"]
        assert other["weighting"] == one["weighting"] == ("clusters" if "equal" in str(options) else "rows")
        assert other["value"] == pytest.approx(one["value"], abs=1e-9)
    assert large["interval"]["high"] == pytest.approx(small["interval"]["high"], abs=1e-9)


def test_every_command_with_clusters_says_what_counts_the_same(tmp_path):
    path = write_csv(
        tmp_path / "a.csv", {**COLUMNS, "score2": COLUMNS["score"] ** 1.2, "q": np.arange(600) // 4}
    )
    given = ("--label", "label", "--cluster", "q")
    for command in (
        ("measure", path, "--score", "score"),
        ("test", path, "--score", "score", "--resamples", "99"),
        ("compare", path, "--score", "score", "--score", "score2"),
        ("recalibrate", path, "--score", "score"),
    ):
        assert "150 clusters in 'q'; every row counts the same" in run(*command, *given, code=(0, 1)).stderr
        assert (
            "every cluster counts the same" in run(*command, *given, "--equal-clusters", code=(0, 1)).stderr
        )
    text = run("measure", path, "--score", "score", *given, "--equal-clusters").stdout
    assert "every cluster counted once" in text
    assert "600 rows in 150 clusters" in text
    for command in (("audit", path, "--feature", "region"), ("monitor", path)):
        assert "Leave out --equal-clusters" in refuse(
            *command, "--score", "score", *given, "--equal-clusters"
        )
    assert "--equal-clusters needs --cluster" in refuse(
        "measure", path, "--score", "score", "--equal-clusters"
    )


@pytest.mark.parametrize("command", ["measure", "test", "report", "monitor"])
def test_groups_by_the_outcome_are_refused(plain, tmp_path, command):
    """Given the label no probability but 0 and 1 is calibrated, so every model would fail."""
    output = ("-o", tmp_path / "r.html") if command == "report" else ()
    names = ("--label", "label", "--score", "score")
    said = refuse(command, plain, *names, "--group", "region", "--group", "label", *output)
    assert "column 'label' is both the label and a group" in said
    copied = write_csv(tmp_path / "a.csv", {**COLUMNS, "paid": np.where(COLUMNS["label"], "yes", "no")})
    said = refuse(command, copied, *names, "--group", "paid", *output)
    assert "column 'paid' has 2 values, and all rows with the same value have the same label" in said


@pytest.mark.parametrize("weight", [(), ("--weight", "weight")])
def test_groups_by_the_outcome_are_refused_in_large_files_too(tmp_path, monkeypatch, weight):
    monkeypatch.setattr("truecal.cli._input.table.MANY_ROWS", 1)
    monkeypatch.setattr("truecal.cli._input.table.MANY_BYTES", 1)
    copied = write_csv(tmp_path / "a.csv", {**COLUMNS, "paid": np.where(COLUMNS["label"], "yes", "no")})
    names = ("--label", "label", "--score", "score", *weight)
    said = refuse("measure", copied, *names, "--group", "region", "--group", "paid")
    assert "column 'paid' has 2 values, and all rows with the same value have the same label" in said
    assert "region" in run("measure", copied, *names, "--group", "region").stdout


def test_the_sum_of_sampling_weights_is_not_called_rows(tmp_path, monkeypatch):
    """Weights of 2.7 on average do not make 1,620 rows of 600; those that are counts do."""
    weight = COLUMNS["weight"] * 1.35
    path = write_csv(tmp_path / "a.csv", {**COLUMNS, "weight": weight, "times": COLUMNS["weight"]})
    kish = f"{weight.sum() ** 2 / (weight**2).sum():,.1f}"
    assert f"a.csv, 600 rows, effective n = {kish}\n" in run("measure", path, "--weight", "weight").stdout
    assert f"effective n = {kish}\n" in run("test", path, "--weight", "weight", code=1).stdout
    assert f"effective n = {kish}\n" in run("test", path, "--weight", "weight", "--at-most", "0.3").stdout
    assert "n = 600\n" in run("recalibrate", path, "--weight", "weight").stdout
    for command in (("measure",), ("test",), ("test", "--at-most", "0.9")):
        said = run(*command, path, "--weight", "weight", "--group", "region", code=(0, 1)).stdout
        assert "effective n" in said
        assert "1,620" not in said
        counted = run(
            *command, path, "--weight", "times", "--counts", "--group", "region", code=(0, 1)
        ).stdout
        assert "effective n" not in counted
    assert "a.csv, 1,200 rows\n" in run("measure", path, "--weight", "times", "--counts").stdout
    monkeypatch.setattr("truecal.cli._input.table.MANY_ROWS", 10)
    assert f"a.csv, effective n = {kish}\n" in run("measure", path, "--weight", "weight").stdout
