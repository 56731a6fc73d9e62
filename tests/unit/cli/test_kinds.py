"""Labels that are not the truth on the command line: the same results as in Python, and what is refused."""

import json
import zipfile

import numpy as np
import polars as pl
import pytest

import truecal
from support.command_line import refuse, run
from truecal import labels
from truecal.cli._input import table as tables

N = 1500


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    p = rng.beta(3, 1.5, N)
    y = (rng.random(N) < p).astype(int)
    judge = np.where(y == 1, rng.random(N) < 0.95, rng.random(N) < 0.1).astype(int)
    time, stop = rng.exponential(-1 / np.log(1 - p)), rng.exponential(2.0, N)
    return {
        "id": np.arange(N),
        "p": p,
        "worse": np.clip(p + 0.15, 0, 1),
        "judge": judge,
        "verdict": np.where(judge == 1, "correct", "incorrect"),
        "gold": np.where(rng.random(N) < 0.15, y, np.nan),
        "pi": np.full(N, 0.15),
        "votes": rng.binomial(4, p) / 4,
        "t": np.minimum(time, stop),
        "e": (time <= stop).astype(int),
        "origin": np.where(rng.random(N) < 0.5, "a", "b"),
    }


@pytest.fixture(scope="module")
def file(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("kinds") / "rows.csv"
    pl.DataFrame(data).with_columns(pl.col("gold").fill_nan(None)).write_csv(path)
    return path


def kinds(data):
    seen = {"sensitivity": 0.95, "specificity": 0.9}
    rates = ("--label", "judge", "--sensitivity", "0.95", "--specificity", "0.9")
    censored = ("--time", "t", "--event", "e", "--horizon", "1")
    return [
        (("--judge", "judge", "--gold", "gold"), labels.judged(data["judge"], data["gold"])),
        (("--label", "judge", "--gold", "gold"), labels.judged(data["judge"], data["gold"])),
        (("--judge", "verdict", "--gold", "gold"), labels.judged(data["judge"], data["gold"])),
        (
            ("--judge", "judge", "--judge", "votes", "--gold", "gold", "--gold-probability", "pi"),
            labels.judged(np.column_stack([data["judge"], data["votes"]]), data["gold"], data["pi"]),
        ),
        (("--label", "votes", "--soft"), labels.soft(data["votes"])),
        (censored, labels.censored(data["t"], data["e"], horizon=1.0)),
        ((*censored, "--strata", "3"), labels.censored(data["t"], data["e"], horizon=1.0, strata=3)),
        (
            (*censored, "--strata", "origin"),
            labels.censored(data["t"], data["e"], horizon=1.0, strata=data["origin"]),
        ),
        (rates, labels.misclassified(data["judge"], **seen)),
        (
            (*rates, "--validated", "200", "150"),
            labels.misclassified(data["judge"], **seen, validated=(200, 150)),
        ),
    ]


def test_the_result_is_that_of_python(file, data):
    for options, made in kinds(data):
        found = json.loads(run("measure", file, "--score", "p", *options, "--format", "json").stdout)
        truth = truecal.estimate(made, data["p"], confidence_level=0.95)
        assert found["value"] == pytest.approx(truth.value, abs=1e-9), options
        assert found["interval"]["high"] == pytest.approx(truth.interval.high, rel=1e-6), options
        assert found["results"][0]["label_kind"] == truth.label_kind


def test_text_names_the_kind_and_what_the_judge_alone_would_say(file):
    text = run("measure", file, "--score", "p", "--judge", "judge", "--gold", "gold").stdout
    assert "gold, worth" in text
    assert "Judge against gold" in text
    assert "labels alone would say" in text


def test_other_commands(file):
    judged = ("--judge", "judge", "--gold", "gold")
    assert "not rejected" in run("test", file, "--score", "p", *judged).stdout
    both = run("compare", file, "--score", "p", "--score", "worse", *judged).stdout
    assert "p is better calibrated" in both
    grouped = run("measure", file, "--score", "p", *judged, "--group", "origin").stdout
    assert "adjusted p" in grouped


def test_reports(file, tmp_path):
    page = tmp_path / "r.html"
    run("report", file, "--score", "p", "--judge", "judge", "--gold", "gold", "--quick", "-o", page)
    assert "Judge against gold" in page.read_text()
    run(
        "report", file, "--score", "p", "--time", "t", "--event", "e", "--horizon", "1", "--quick", "-o", page
    )
    assert "censored before 1" in page.read_text()


def gold_file(data, path, **columns):
    known = ~np.isnan(data["gold"])
    frame = pl.DataFrame({"id": data["id"][known], "gold": data["gold"][known].astype(int)} | columns)
    frame.write_csv(path)
    return path


def test_a_file_of_gold_labels_is_joined_by_id(file, data, tmp_path):
    gold = gold_file(data, tmp_path / "gold.csv")
    command = ("measure", file, "--score", "p", "--judge", "judge", "--format", "json", "--gold")
    joined, column = (json.loads(run(*command, one).stdout) for one in (gold, "gold"))
    assert joined["interval"] == column["interval"]
    assert "by 'id'" in joined["detected"][0]


def write_log(path, data, scorer="model_graded_qa", epochs=1):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "header.json", json.dumps({"status": "success", "eval": {"model": "m", "task": "t"}})
        )
        for i in range(N):
            score = {
                "value": "C" if data["judge"][i] else "I",
                "metadata": {"confidence": float(data["p"][i])},
            }
            question, epoch = divmod(i, epochs)
            one = {"id": question, "epoch": epoch + 1, "scores": {scorer: score}}
            archive.writestr(f"samples/{question}_epoch_{epoch + 1}.json", json.dumps(one))
    return path


def test_a_log_with_gold_labels(data, tmp_path):
    log = write_log(tmp_path / "log.eval", data)
    alone = run("measure", log)
    assert "graded by a model (model_graded_qa)" in alone.stderr
    assert "look wrong by 0.03" in alone.stderr
    assert "truecal.labels.judged" in alone.stderr
    gold = gold_file(data, tmp_path / "gold.csv")
    found = run("measure", log, "--gold", gold, "--format", "json")
    assert "graded by a model" not in found.stderr
    truth = truecal.confidence_interval(labels.judged(data["judge"], data["gold"]), data["p"])
    assert json.loads(found.stdout)["interval"]["high"] == pytest.approx(truth.high, rel=1e-6)


def test_answers_to_the_same_question_are_told_apart(data, tmp_path):
    log = write_log(tmp_path / "log.eval", data, "match", epochs=2)
    known = ~np.isnan(data["gold"])
    number = data["id"][known]
    gold = gold_file(data, tmp_path / "gold.csv", id=number // 2)
    assert "several rows" in refuse("measure", log, "--gold", gold)
    gold = gold_file(data, tmp_path / "gold.csv", id=number // 2, epoch=number % 2 + 1)
    found = json.loads(run("measure", log, "--gold", gold, "--format", "json").stdout)
    assert found["results"][0]["n_clusters"] == N // 2
    assert found["results"][0]["label_kind"] == f"judge + {known.sum()} gold"


def test_what_is_refused(file, data, tmp_path):
    judged = ("--judge", "judge", "--gold", "gold")
    cases = [
        (("measure", *judged, "--soft"), "different kinds of labels"),
        (("measure", "--judge", "judge"), "--judge needs --gold"),
        (("measure", "--time", "t", "--event", "e"), "--time needs --horizon"),
        (("measure", "--sensitivity", "0.9"), "needs --specificity"),
        (("measure", "--sensitivity", "0"), "--sensitivity needs --specificity"),  # 0 is given, too
        (("measure", "--label", "judge", "--judge", "verdict", "--gold", "gold"), "name the labels twice"),
        (("measure", *judged, "--predicted", "origin"), "--predicted cannot be combined"),
        (("measure", "--judge", "judge", "--gold", "nope"), "no column 'nope'"),
        (("measure", "--judge", "origin", "--gold", "gold"), "--pos-label"),
        (("measure", "--judge", "t", "--gold", "gold"), "column 't' has"),
        (("measure", "--label", "votes"), "--soft.*truecal.labels.soft, judged"),
        (("measure", "--label", "gold"), "NaN.*--drop-missing.*labels.judged"),
        (("measure", "--cells", *judged), "--cells cannot be combined"),
        (("measure", *judged, "--group", "judge"), "both the label and a group"),
        (("audit", "--soft"), "audit needs true labels"),
        (("monitor", "--judge", "judge"), "monitor needs true labels"),
        (("recalibrate", *judged), "recalibrate needs true labels"),
    ]
    for (command, *options), words in cases:
        message = refuse(command, file, "--score", "p", *options)
        assert pl.Series([message.replace("\n", " ")]).str.contains(words).item(), (words, message)
    gold = gold_file(
        data, tmp_path / "gold.csv", id=[f"x{i}" for i in range(int((~np.isnan(data["gold"])).sum()))]
    )
    assert "none of the" in refuse("measure", file, "--score", "p", "--judge", "judge", "--gold", gold)


def test_large_files_are_refused(file, monkeypatch):
    monkeypatch.setattr(tables, "MANY_BYTES", 10)
    message = refuse("measure", file, "--score", "p", "--judge", "judge", "--gold", "gold")
    assert "too many rows for a judge" in message
