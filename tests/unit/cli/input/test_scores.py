"""The scale of scores: each option is compared with the values, and what does not fit is refused or noted."""

import json
import re

import numpy as np
import pytest

from support.command_line import refuse, run, write_csv
from truecal.cli._input import table

RNG = np.random.default_rng(21)
N = 400
P = RNG.uniform(0.005, 0.995, N).round(4)
LABEL = (RNG.random(N) < P).astype(int)
LOGIT = np.log(P / (1 - P)).round(7)
ODD = np.arange(N) % 20 == 0
HALF = np.arange(N) % 2 == 0

SCORES = {
    "fractions": P,
    "percentages": (100 * P).round(2),
    "tenths": (10 * P).round(3),
    "whole tenths": (10 * P).round().astype(int),
    "thousandths": (1000 * P).round(1),
    "logits": LOGIT,
    "log probabilities": np.log(P).round(6),
    "mixed": np.where(HALF, P.round(2), (100 * P).round()),
    "mixed tenths": np.where(HALF, P.round(2), (10 * P).round(1)),
    "code": np.where(ODD, -999, P),
    "code in percentages": np.where(ODD, -999, (100 * P).round(2)),
    "code in logits": np.where(ODD, -999, LOGIT),
    "code in log probabilities": np.where(ODD, -999, np.log(P).round(6)),
    "dashes": [("-" if odd else str(p)) for odd, p in zip(ODD, P, strict=True)],
    "sentences": [f"Confidence: {100 * p:.0f}%" for p in P],
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scales")
    return {
        name: write_csv(folder / f"{name}.csv", {"label": LABEL, "score": scores})
        for name, scores in SCORES.items()
    }


def error_of(path, *options):
    content = json.loads(run("measure", path, "--estimator", "ew_bin", "--format", "json", *options).stdout)
    return content["value"], content["n"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("percentages", ["--percent"]),
        ("percentages", ["--scale", "100"]),
        ("tenths", ["--scale", "10"]),
        ("thousandths", ["--scale", "1000"]),
        ("logits", ["--logits"]),
        ("log probabilities", ["--log-probabilities"]),
    ],
)
def test_every_scale_gives_the_error_of_the_fractions(files, name, options):
    value, n = error_of(files[name], *options)
    assert (value, n) == (pytest.approx(error_of(files["fractions"])[0], abs=2e-3), N)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("code", []),
        ("code in percentages", ["--percent"]),
        ("code in logits", ["--logits"]),
        ("code in log probabilities", ["--log-probabilities"]),
    ],
)
def test_codes_for_missing_values_are_named_and_then_left_out(files, tmp_path, name, options):
    """The refusal names the options that work, with every scale."""
    advice = "If -999 stands for a missing value, add --missing -999 --drop-missing."
    assert advice in refuse("measure", files[name], *options)
    assert advice in refuse("measure", files[name])
    said = refuse("measure", files[name], *options, "--missing", "-999")
    assert re.search("20 (missing|infinite or NaN)", said)
    assert "--drop-missing" in said
    rest = write_csv(tmp_path / "rest.csv", {"label": LABEL[~ODD], "score": P[~ODD]})
    value, n = error_of(files[name], *options, "--missing", "-999", "--drop-missing")
    assert (value, n) == (pytest.approx(error_of(rest)[0], abs=2e-3), 380)


def test_text_as_a_code(files):
    assert "If '-' stands for a missing value, add --missing '-' --drop-missing" in refuse(
        "measure", files["dashes"]
    )
    assert error_of(files["dashes"], "--missing", "-", "--drop-missing")[1] == 380


def test_codes_are_checked(files, tmp_path):
    assert "--missing '-9' does not occur" in refuse("measure", files["code"], "--missing", "-9")
    assert "--missing leaves only the label 1" in refuse("measure", files["fractions"], "--missing", "0")
    columns = {"label": [1, 0, "?", 1], "score": [0.5, 0.5, 0.5, 0.5], "w": [1, 1, 1, -9]}
    path = write_csv(tmp_path / "a.csv", columns)
    options = ("--weight", "w", "--missing", "?", "--missing", "-9", "--drop-missing")
    assert "dropped 2 of 4 rows" in run("measure", path, *options).stderr


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("percentages", [], "add --percent"),
        ("whole tenths", [], "add --scale 10"),
        ("thousandths", [], "--scale 1000"),
        ("logits", [], "for logits add --logits"),
        ("log probabilities", [], "add --log-probabilities"),
        ("mixed", [], "write all of them on one scale"),
        ("mixed tenths", [], "write all of them on one scale"),
        ("fractions", ["--percent"], "look like fractions. Leave out --percent"),
        ("fractions", ["--scale", "10"], "look like fractions. Leave out --scale 10"),
        ("fractions", ["--logits"], "look like probabilities. Leave out --logits"),
        ("fractions", ["--log-probabilities"], "leave out --log-probabilities"),
        ("mixed", ["--percent"], "some look like fractions and others are on a scale of 100"),
        ("mixed", ["--scale", "100"], "some look like fractions and others are on a scale of 100"),
        ("mixed tenths", ["--scale", "10"], "some look like fractions and others are on a scale of 10"),
        ("percentages", ["--scale", "10"], "outside 0 to 10 .*use --percent"),
        ("whole tenths", ["--scale", "5"], "outside 0 to 5 .*use --scale 10"),
        ("whole tenths", ["--percent"], "Use --scale 10"),
        ("whole tenths", ["--logits"], "Use --scale 10"),
        ("percentages", ["--logits"], "Use --percent"),
        ("thousandths", ["--logits"], "Use --scale"),
        ("logits", ["--percent"], "use --logits"),
        ("logits", ["--log-probabilities"], "use --logits"),
        ("log probabilities", ["--logits"], "Use --log-probabilities"),
        ("log probabilities", ["--percent"], "--log-probabilities"),
        ("fractions", ["--percent", "--logits"], "--percent and --logits cannot be combined"),
        ("fractions", ["--scale", "10", "--log-probabilities"], "cannot be combined"),
        ("fractions", ["--scale", "0"], "--scale must be a positive number"),
        ("fractions", ["--scale", "nan"], "--scale must be a positive number"),
        ("sentences", [], "Write numbers alone"),
        ("sentences", ["--percent"], "Write numbers alone"),
    ],
)
@pytest.mark.parametrize("size", ["small", "large"])
def test_what_does_not_fit_is_refused_with_what_does(files, name, options, message, size, monkeypatch):
    if size == "large":
        monkeypatch.setattr(table, "MANY_ROWS", 10)
    said = refuse("measure", files[name], *options)
    assert re.search(message, said), said


def test_one_command_more_takes_the_scale(files):
    """Other commands read scores in the same way."""
    path = files["mixed"]
    for command in ("test", "report", "recalibrate", "audit"):
        assert "some look like fractions" in refuse(command, path, "--percent")
    assert "log probabilities" in refuse("recalibrate", files["log probabilities"], "--logits")


@pytest.mark.parametrize(
    ("scores", "option", "note"),
    [
        ([0.2, 0.3, 0.4], "--percent", "is above 0.5: are they from 0 to 1, and not on a scale of 100?"),
        ([2, 5, 9], "--percent", "is above 10: are they from 0 to 10, and not on a scale of 100?"),
        ([0.2, 70, 0.4, 55], "--percent", "2 values of column 'score' between 0 and 1, and none from 1 to 2"),
        ([2, 5, 11], "--percent", None),
        ([0.5, 2.5, 9.5], "--logits", "no value of column 'score' is negative"),
        ([-4, -2.5, -1], "--logits", "are they log probabilities"),
        ([-4, -2.5, 1], "--logits", None),
        (np.random.default_rng(0).lognormal(0, 1, 500), "--percent", None),
    ],
)
def test_what_is_odd_but_possible_is_noted(tmp_path, scores, option, note):
    labels = np.arange(len(scores)) % 2
    said = run("measure", write_csv(tmp_path / "a.csv", {"label": labels, "score": scores}), option).stderr
    assert (note in said) if note else ("?" not in said)


@pytest.mark.parametrize(
    "command", ["measure", "test", "report", "compare", "audit", "monitor", "recalibrate"]
)
def test_predicted_classes_are_named_by_every_command(tmp_path, command):
    columns = {"label": LABEL, "hard": (P > 0.5).astype(int), "soft": P, "side": HALF}
    path = write_csv(tmp_path / "a.csv", columns)
    scores = ["--score", "hard"] + (["--score", "soft"] if command == "compare" else [])
    more = ["--quick", "-o", tmp_path / "a.html"] if command == "report" else []
    said = run(command, path, *scores, *more, code=(0, 1)).stderr
    assert said.count("look like predicted classes, not probabilities") == 1
    assert ("column 'hard': all scores" in said) == (command == "compare")


def test_predicted_classes_in_a_large_file(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "MANY_ROWS", 10)
    path = write_csv(tmp_path / "a.csv", {"label": LABEL, "score": (P > 0.5).astype(int), "side": HALF})
    for options in ([], ["--group", "side"]):
        assert "look like predicted classes" in run("measure", path, *options).stderr
