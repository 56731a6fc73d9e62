"""Files as people have them: each gives the right answer, or one clear sentence."""

import gzip
import io
import json
import re

import numpy as np
import polars as pl
import pytest

from support.command_line import COLUMNS, recommended, refuse, run, value_of, write_csv


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("predictions") / "plain.csv")


@pytest.fixture(scope="module")
def frame():
    return pl.DataFrame(COLUMNS)


@pytest.fixture(scope="module")
def truth():
    return recommended(COLUMNS["label"], COLUMNS["score"])


def lines(pattern, header):
    rows = zip(COLUMNS["label"].tolist(), COLUMNS["score"].tolist(), strict=True)
    return header + "\n" + "".join(pattern(y, p) + "\n" for y, p in rows)


KINDS = {
    "bom.csv": lambda f: lines(lambda y, p: f"{y},{p!r}", "\ufefflabel,score").encode(),
    "crlf.csv": lambda f: lines(lambda y, p: f"{y},{p!r}\r", "label,score\r").encode(),
    "semicolons.csv": lambda f: lines(lambda y, p: f"{y};{p!r}", "label;score").encode(),
    "commas.csv": lambda f: lines(lambda y, p: f"{y};{p!r}".replace(".", ","), "label;score").encode(),
    "tabs.csv": lambda f: lines(lambda y, p: f"{y}\t{p!r}", "label\tscore").encode(),
    "tabs.tsv": lambda f: lines(lambda y, p: f"{y}\t{p!r}", "label\tscore").encode(),
    "bars.txt": lambda f: lines(lambda y, p: f"{y}|{p!r}", "label|score").encode(),
    "blanks.csv": lambda f: lines(lambda y, p: f"{y}, {p!r}", "label, score").encode(),
    "quotes.csv": lambda f: lines(lambda y, p: f'"{y}","{p!r}"', '"label","score"').encode(),
    "latin1.csv": lambda f: lines(lambda y, p: f"{y},{p!r},Müller", "label,score,name").encode("latin1"),
    "floats.csv": lambda f: lines(lambda y, p: f"{y}.0,{p!r}", "label,score").encode(),
    "words.csv": lambda f: lines(lambda y, p: f"{bool(y)},{p!r}", "label,score").encode(),
    "packed.csv.gz": lambda f: gzip.compress(f.write_csv().encode()),
    "rows.jsonl": lambda f: f.write_ndjson().encode(),
    "rows.jsonl.gz": lambda f: gzip.compress(f.write_ndjson().encode()),
    "list.json": lambda f: f.write_json().encode(),
    "table.parquet": lambda f: written(f.write_parquet),
    "text.parquet": lambda f: written(f.with_columns(pl.col("score").cast(pl.String)).write_parquet),
    "table.feather": lambda f: written(f.write_ipc),
    "stream.arrow": lambda f: written(f.write_ipc_stream),
    "arrays.npz": lambda f: written(
        lambda file: np.savez(file, label=COLUMNS["label"], score=COLUMNS["score"])
    ),
}


def written(write):
    file = io.BytesIO()
    write(file)
    return file.getvalue()


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_file_gives_the_same_answer(name, frame, truth, tmp_path):
    content = KINDS[name](frame)
    (tmp_path / name).write_bytes(content)
    result = run("measure", tmp_path / name, "--format", "json")
    assert value_of(result) == pytest.approx(truth, abs=1e-12)
    assert "taking 'score' for the score and 'label' for the label" in result.stderr


@pytest.mark.parametrize("name", [name for name in KINDS if name not in ("tabs.tsv",)])
def test_standard_input_is_recognised_by_its_content(name, frame, truth):
    result = run("measure", "-", "--format", "json", stdin=KINDS[name](frame))
    assert value_of(result) == pytest.approx(truth, abs=1e-12)


def test_npy(truth, tmp_path):
    np.save(tmp_path / "a.npy", np.column_stack([COLUMNS["label"], COLUMNS["score"]]))
    chosen = ("--label", "column_0", "--score", "column_1")
    assert value_of(run("measure", tmp_path / "a.npy", *chosen, "--format", "json")) == pytest.approx(truth)


@pytest.mark.parametrize("parts", [("a.parquet", "b.parquet"), ("day=1/a.parquet", "day=2/a.parquet")])
def test_a_folder_and_a_glob_of_parquet_files(parts, frame, truth, tmp_path):
    for name, part in zip(parts, (frame[:250], frame[250:]), strict=True):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        part.write_parquet(tmp_path / name)
    (tmp_path / "_SUCCESS").touch()
    for source in (tmp_path, tmp_path / "**" / "*.parquet"):
        assert value_of(run("measure", source, "--format", "json")) == pytest.approx(truth)


def test_a_name_with_brackets_is_a_name(truth, tmp_path):
    path = write_csv(tmp_path / "model[1].csv", COLUMNS)
    assert value_of(run("measure", path, "--format", "json")) == pytest.approx(truth)


def test_odd_names_of_columns(truth, tmp_path):
    path = write_csv(
        tmp_path / "odd.csv", {"Ist (0/1)": COLUMNS["label"], '"Wahrsch., geschätzt"': COLUMNS["score"]}
    )
    chosen = ("--label", "Ist (0/1)", "--score", "Wahrsch., geschätzt")
    assert value_of(run("measure", path, *chosen, "--format", "json")) == pytest.approx(truth)


# --- What cannot be read ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.csv", b"", "empty.csv is empty"),
        ("blank.csv", b"\n \n", "blank.csv is empty"),
        ("header.csv", b"label,score\n", "no rows"),
        ("bare.csv", b"0,0.5\n1,0.25\n", "first line holds numbers only"),
        ("twice.csv", b"label,score,score\n0,.2,.3\n", "several columns named 'score'"),
        ("ragged.csv", b"label,score\n0,0.2\n1,0.3,7\n0,.1\n", "line 3 has more fields"),
        ("utf16.csv", "label,score\n0,0.5\n".encode("utf-16"), "UTF-16"),
        ("bytes.csv", bytes(range(256)), "bytes that no text has"),
        ("excel.csv", b"PK\x03\x04....", "Excel"),
        ("umlaut.csv", "label,schätzung\n0,.5\n".encode("latin1"), "not UTF-8"),
        ("text.parquet", b"label,score\n0,.5\n", "no Parquet file"),
        ("cut.parquet", b"PAR1....", "cannot be read as parquet"),
        ("bad.jsonl", b'{"label": 1, "score"\n', "cannot be read"),
        ("bad.npz", b"PK\x03\x04 no archive", "cannot be read as npz"),
        ("cut.csv.gz", b"\x1f\x8b\x08\x00 damaged", "gzip"),
        ("what.dat", b"label,score\n0,.5\n", "what kind of file"),
        ("none.csv", b"a,b\n0,.5\n", "which column is the label"),
        ("many.csv", b"label,score,prob\n0,.5,.5\n", r"Several could be it \(score, prob\)"),
        ("yes.csv", b"label,score\nyes,.5\nno,.5\n", "'yes' instead.*--pos-label"),
        ("onetwo.csv", b"label,score\n1,.5\n2,.5\n", "1, 2 instead.*--pos-label"),
        ("percent.csv", b"label,score\n1,50%\n0,20%\n", "2 values that are no numbers"),
        ("null.csv", b"label,score\n1,.5\n0,\n", r"column 'score' has 1 missing \(NaN\) value \(first in data row 2"),
        ("nolabel.csv", b"label,score\n1,.5\n,.5\n", "column 'label' has 1 missing"),
        ("high.csv", b"label,score\n1,.5\n0,1.7\n", r"outside \[0, 1\] \(first in data row 2: 1.7\).*--logits"),
    ],
)  # fmt: skip
def test_one_clear_sentence(name, content, says, tmp_path):
    (tmp_path / name).write_bytes(content)
    assert re.search(says, refuse("measure", tmp_path / name))


def test_one_bad_row_in_many_is_found(tmp_path):
    rows = [f"{k % 2},0.5" for k in range(30_000)]
    path = tmp_path / "long.csv"
    for bad, column in (("1,oops", "score"), ("maybe,0.5", "label")):
        path.write_text("label,score\n" + "\n".join([*rows[:25_000], bad, *rows[25_000:]]) + "\n")
        assert f"column '{column}' has a value that is no number (in data row 25001:" in refuse(
            "measure", path
        )
    texts = [f'{{"label": {k % 2}, "score": 0.5}}' for k in range(30_000)]
    texts[20_000] = '{"label": 1, "score": "oops"}'
    (tmp_path / "long.jsonl").write_text("\n".join(texts))
    assert "in data row 20001: 'oops'" in refuse("measure", tmp_path / "long.jsonl")


def test_files_and_folders_that_are_not_there(tmp_path):
    assert "there is no such file" in refuse("measure", tmp_path / "gone.csv")
    assert "there is no such file" in refuse("measure", tmp_path / "gone.npz")
    assert "no file has such a name" in refuse("measure", tmp_path / "*.parquet")
    assert "folder without Parquet files" in refuse("measure", tmp_path)
    assert "standard input is empty" in refuse("measure", "-", stdin=b"")


def test_wrong_names_are_answered_with_the_nearest(plain):
    for option in ("--label", "--score", "--weight", "--group"):
        assert "Did you mean 'region'?" in refuse("measure", plain, option, "regio")
    assert "no numbers" in refuse("measure", plain, "--weight", "region")
    assert "is no number, and the labels are" in refuse("measure", plain, "--pos-label", "yes")


# --- Several classes -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(3)
    proba = rng.dirichlet([0.6] * 4, size=400)
    proba /= proba.sum(axis=1, keepdims=True)
    label = (proba.cumsum(axis=1) < rng.random((400, 1))).sum(axis=1).clip(max=3)
    return np.array(["cat", "dog", "<b>", "ant"]), label, proba


def test_columns_named_after_the_classes(classes, tmp_path):
    names, label, proba = classes
    truth = recommended(label, proba)
    path = tmp_path / "named.csv"
    pl.DataFrame({"label": names[label], **dict(zip(names, proba.T, strict=True))}).write_csv(path)
    result = run("measure", path, "--format", "json")
    assert value_of(result) == pytest.approx(truth)
    assert "'cat', 'dog', '<b>', 'ant' for the scores" in result.stderr
    backwards = [part for name in names[::-1] for part in ("--score", name)]
    assert value_of(run("measure", path, *backwards, "--format", "json")) == pytest.approx(truth)
    one = recommended(label == 1, proba[:, 1])
    assert value_of(run("measure", path, "--pos-label", "dog", "--format", "json")) == pytest.approx(one)
    assert "--score" in run("measure", path, "--score", "cat", "--pos-label", "cat", code=2).stderr


def test_numbered_columns_in_any_order(classes, tmp_path):
    _, label, proba = classes
    path = tmp_path / "numbered.csv"
    pl.DataFrame({"label": label, **{f"prob_{k}": proba[:, k] for k in (2, 0, 3, 1)}}).write_csv(path)
    truth = recommended(label, proba)
    assert value_of(run("measure", path, "--format", "json")) == pytest.approx(truth)
    chosen = [part for k in (3, 1, 0, 2) for part in ("--score", f"prob_{k}")]
    assert value_of(run("measure", path, *chosen, "--format", "json")) == pytest.approx(truth)


def test_matrices_and_lists(classes, tmp_path):
    names, label, proba = classes
    truth = recommended(label, proba)
    np.savez(tmp_path / "a.npz", label=label, y_proba=proba, logits=np.log(proba), meta=np.float64(3))
    assert value_of(run("measure", tmp_path / "a.npz", "--format", "json")) == pytest.approx(truth)
    logits = ("--score", "logits", "--logits", "--format", "json")
    assert value_of(run("measure", tmp_path / "a.npz", *logits)) == pytest.approx(truth)
    pl.DataFrame({"label": names[label], "y_proba": proba.tolist()}).write_parquet(tmp_path / "a.parquet")
    said = run("measure", tmp_path / "a.parquet", "--classes", "cat,dog,<b>,ant", "--format", "json")
    assert value_of(said) == pytest.approx(truth)
    assert "in the order <b>,ant,cat,dog" in run("measure", tmp_path / "a.parquet").stderr


def test_confidence_in_a_predicted_class(classes, tmp_path):
    names, label, proba = classes
    top = proba.argmax(axis=1)
    path = tmp_path / "a.csv"
    pl.DataFrame({"label": names[label], "confidence": proba.max(axis=1), "guess": names[top]}).write_csv(
        path
    )
    said = run("measure", path, "--predicted", "guess", "--format", "json")
    assert value_of(said) == pytest.approx(recommended(label, proba))
    pl.DataFrame({"label": label, "confidence": proba.max(axis=1), "guess": top}).write_csv(path)
    assert "--predicted" in refuse("measure", path)
    assert value_of(run("measure", path, "--predicted", "guess", "--format", "json")) == value_of(said)


def test_rounding_beyond_one_is_clipped_when_asked(tmp_path, monkeypatch):
    from truecal.cli.input import files as _files

    scores = np.where(COLUMNS["score"] > 0.98, 1.0000012, COLUMNS["score"])
    path = tmp_path / "a.parquet"
    pl.DataFrame({"label": COLUMNS["label"], "score": scores}).write_parquet(path)
    assert "add --clip" in refuse("measure", path)
    truth = recommended(COLUMNS["label"], scores.clip(max=1))
    assert value_of(run("measure", path, "--clip", "--format", "json")) == pytest.approx(truth)
    monkeypatch.setattr(_files, "_MANY_ROWS", 500)
    assert value_of(run("measure", path, "--clip", "--format", "json")) == pytest.approx(truth, abs=2e-3)
    pl.DataFrame({"label": [0, 1], "score": [0.5, 1.7]}).write_parquet(path)
    assert "1.7" in refuse("measure", path, "--clip")


# --- Too large for memory --------------------------------------------------------------------------


def test_a_large_file_is_summarised(frame, truth, tmp_path, monkeypatch):
    from truecal.cli.input import files as _files

    monkeypatch.setattr(_files, "_MANY_ROWS", 500)
    frame.write_parquet(tmp_path / "large.parquet")
    result = run("measure", tmp_path / "large.parquet", "--group", "region", "--format", "json")
    assert value_of(result) == pytest.approx(truth, abs=2e-3)
    assert "has too many rows for this" in refuse("recalibrate", tmp_path / "large.parquet")
    high = frame.with_columns(score=pl.when(pl.col("score") > 0.99).then(1.7).otherwise("score"))
    high.write_parquet(tmp_path / "high.parquet")
    assert "1.7" in refuse("measure", tmp_path / "high.parquet")


@pytest.mark.parametrize("many_rows", [10**9, 2])
def test_predicted_classes_that_cannot_be_compared(many_rows, tmp_path, monkeypatch):
    from truecal.cli.input import files as _files

    monkeypatch.setattr(_files, "_MANY_ROWS", many_rows)
    path = tmp_path / "a.parquet"
    columns = {"confidence": [0.9, 0.8, 0.7], "label": [0, 1, 1]}
    pl.DataFrame({**columns, "guess": ["cat", "dog", "dog"]}).write_parquet(path)
    said = refuse("measure", path, "--predicted", "guess")
    assert "column 'label' holds numbers and column 'guess' text: they cannot be compared" in said
    pl.DataFrame({**columns, "guess": [0, None, 1]}).write_parquet(path)
    said = refuse("measure", path, "--predicted", "guess")
    assert "guess' has 1 missing" in said


def test_classes_of_a_large_file_are_of_the_type_of_its_labels(tmp_path, monkeypatch):
    from truecal.cli.input import files as _files

    path = tmp_path / "a.parquet"
    frame = pl.DataFrame({"a": [0.5, 0.2, 0.1], "b": [0.3, 0.7, 0.1], "c": [0.2, 0.1, 0.8], "y": [1, 2, 3]})
    frame.write_parquet(path)
    arguments = (
        "measure",
        path,
        "--label",
        "y",
        *["--score", "a", "--score", "b", "--score", "c", "--classes", "1,2,3"],
    )
    exact = value_of(run(*arguments, "--format", "json"))
    assert "--classes 'x' is no number" in refuse(*arguments[:-1], "x,y,z")
    monkeypatch.setattr(_files, "_MANY_ROWS", 2)
    assert value_of(run(*arguments, "--format", "json")) == pytest.approx(exact)
    assert run(*arguments, "--pos-label", "2").exit_code == 0


def test_files_of_a_folder_that_differ(tmp_path):
    pl.DataFrame({"score": [0.1, 0.9], "label": [0, 1]}).write_parquet(tmp_path / "a.parquet")
    other = pl.DataFrame({"score": [0.2, 0.8], "label": [0, 1]})
    other.with_columns(pl.col("score").cast(pl.Float32)).write_parquet(tmp_path / "b.parquet")
    assert json.loads(run("measure", tmp_path, "--format", "json").stdout)["n"] == 4
    other.rename({"score": "prob"}).write_parquet(tmp_path / "b.parquet")
    assert "cannot be read" in refuse("measure", tmp_path)


def test_a_large_file_has_no_more_groups_than_a_small_one(tmp_path, monkeypatch):
    from truecal.cli.input import files as _files

    monkeypatch.setattr(_files, "_MANY_ROWS", 500)
    path = tmp_path / "a.parquet"
    pl.DataFrame({"score": [0.5] * 2000, "label": [0, 1] * 1000, "row": range(2000)}).write_parquet(path)
    assert "has 2,000 different values" in refuse("measure", path, "--group", "row")
