"""Files in the forms that people have: archives, spreadsheets, lists as text, names of classes, the top classes."""

import io
import re
import zipfile

import numpy as np
import pytest

from support.command_line import COLUMNS, refuse, run, value_of, write_csv

LABEL, SCORE = COLUMNS["label"], COLUMNS["score"]
PLAIN = {"label": LABEL, "score": SCORE}


def _value(path, *options):
    return value_of(run("measure", path, "--format", "json", "--no-bins", *options))


def _zip(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return write_csv(tmp_path_factory.mktemp("forms") / "plain.csv", PLAIN).read_text()


def test_the_one_file_of_an_archive_is_read(tmp_path, text, truth):
    path = _zip(tmp_path / "a.csv.zip", {"rows/": "", "rows/a.csv": text, "__MACOSX/rows/._a.csv": "x"})
    assert _value(path) == pytest.approx(truth)
    assert _value(_zip(tmp_path / "b.zip", {"a.tsv": text.replace(",", "\t")})) == pytest.approx(truth)


def test_of_several_files_in_an_archive_none_is_chosen(tmp_path, text):
    message = refuse("measure", _zip(tmp_path / "two.zip", {"a.csv": text, "b.csv": text}))
    assert "two.zip holds 2 files: 'a.csv', 'b.csv'. Unpack it and name one of them" in message
    assert "holds 0 files." in refuse("measure", _zip(tmp_path / "none.zip", {}))


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, text, monkeypatch):
    monkeypatch.setattr("truecal.cli._input.files._MOST_UNPACKED", len(text) - 1)
    message = refuse("measure", _zip(tmp_path / "a.zip", {"a.csv": text}))
    assert "a.zip unpacks to 0.0 GB. Save it as Parquet" in message


def test_a_damaged_archive_is_refused(tmp_path, text):
    whole = _zip(tmp_path / "a.zip", {"a.csv": text * 50}).read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[:200])
    assert "cut.zip cannot be read as zip" in refuse("measure", tmp_path / "cut.zip")
    flipped = bytearray(whole)
    flipped[2000] ^= 255
    (tmp_path / "flipped.zip").write_bytes(flipped)
    assert "flipped.zip cannot be read as zip: Bad CRC-32" in refuse("measure", tmp_path / "flipped.zip")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_a_damaged_member_of_an_archive_is_refused(tmp_path, text, method):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as archive:
        archive.writestr("a.csv", text * 50)
    damaged = bytearray((tmp_path / "a.zip").read_bytes())
    damaged[60:100] = bytes(40)
    (tmp_path / "damaged.zip").write_bytes(damaged)
    assert "damaged.zip cannot be read as zip" in refuse("measure", tmp_path / "damaged.zip")
    other = bytearray((tmp_path / "a.zip").read_bytes())
    for start, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        other[other.index(start) + place] = 99  # a compression that Python does not know
    (tmp_path / "other.zip").write_bytes(other)
    assert "other.zip cannot be read as zip" in refuse("measure", tmp_path / "other.zip")


def test_a_spreadsheet_needs_an_extra_package(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "fastexcel", None)
    path = tmp_path / "a.xlsx"
    path.write_bytes(b"PK\x03\x04....")
    assert "pip install 'truecal[excel]'" in refuse("measure", path)


def test_the_first_sheet_of_a_spreadsheet_is_read(tmp_path, truth):
    pytest.importorskip("fastexcel")
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [["label", "score"], *zip(LABEL.tolist(), SCORE.tolist(), strict=True)]:
        book.active.append(list(row))
    other = book.create_sheet("more")
    for row in (["label", "score"], [1, 0.5]):
        other.append(row)
    book.save(tmp_path / "a.xlsx")
    assert _value(tmp_path / "a.xlsx") == pytest.approx(truth)
    messages = run("measure", tmp_path / "a.xlsx").stderr
    assert "using the sheet 'Sheet', the first of 2" in messages
    (tmp_path / "bad.xlsx").write_bytes(b"PK\x03\x04....")
    assert "bad.xlsx cannot be read as a spreadsheet" in refuse("measure", tmp_path / "bad.xlsx")


@pytest.mark.parametrize("form", ['"[{0}, {1}]"', "[{0} {1}]", '"({0}, {1})"', "[ {0};  {1} ]"])
def test_lists_as_text_are_lists(tmp_path, truth, form):
    lists = [form.format(float(1 - p), float(p)) for p in SCORE]
    assert _value(write_csv(tmp_path / "a.csv", {"label": LABEL, "probs": lists})) == pytest.approx(truth)


def test_lists_as_text_are_checked_like_others(tmp_path):
    lists = ['"[0.2, 0.8]"'] * 10
    lists[3] = '"[0.2, 0.3, 0.5]"'
    message = refuse("measure", write_csv(tmp_path / "a.csv", {"label": [0, 1] * 5, "probs": lists}))
    assert "column 'probs' has lists of different lengths (first at row 4)" in message
    lists[3] = '"[0.2, x]"'
    message = refuse("measure", write_csv(tmp_path / "b.csv", {"label": [0, 1] * 5, "probs": lists}))
    assert "column 'probs[1]' has 1 non-numeric value (first at row 4: 'x')" in message


@pytest.mark.parametrize(
    ("words", "name"), [("AH", "p_home"), (["away", "home"], "prob_home"), (["Away", "Home"], "score.home")]
)
def test_the_positive_label_is_in_the_name_of_the_scores(tmp_path, truth, words, name):
    columns = {"game": np.arange(600), name: SCORE, "winner": np.array(list(words))[LABEL]}
    path = write_csv(tmp_path / "a.csv", columns)
    assert _value(path) == pytest.approx(truth)
    messages = run("measure", path).stderr
    assert f"using {words[1]!r} as the positive label, by the name of column {name!r}." in messages


def test_the_name_of_the_scores_can_be_the_negative_word(tmp_path, truth):
    answer = np.array(["yes", "no"])[LABEL].astype(object)
    answer[:5] = "NA"
    path = write_csv(tmp_path / "a.csv", {"p_no": SCORE, "label": answer})
    result = run("measure", path, "--drop-missing", "--format", "json")
    assert "using 'no' as the positive label, by the name of column 'p_no'." in result.stderr
    assert value_of(result) == pytest.approx(
        _value(write_csv(tmp_path / "b.csv", {"label": LABEL[5:], "score": SCORE[5:]}))
    )


def test_columns_of_classes_are_named_by_letters(tmp_path):
    rng = np.random.default_rng(3)
    proba = rng.dirichlet([1, 1, 1], 400).round(5)
    proba[:, 0] = (1 - proba[:, 1:].sum(axis=1)).round(5)
    result = np.array(list("HDA"))[[rng.choice(3, p=row / row.sum()) for row in proba]]
    columns = {f"p_{name}": proba[:, k] for k, name in enumerate(("home", "draw", "away"))}
    path = write_csv(tmp_path / "a.csv", {"date": np.arange(400), **columns, "result": result})
    found = run("measure", path, "--format", "json", "--no-bins")
    assert "using the labels 'H' for 'p_home', 'D' for 'p_draw', 'A' for 'p_away'." in found.stderr
    named = run("measure", path, "--score", "p_*", "--classes", "H,D,A", "--format", "json", "--no-bins")
    assert value_of(found) == value_of(named)


@pytest.mark.parametrize(
    "names", [("pred_{}", "prob_{}"), ("top{}_class", "top{}_prob"), ("class{}", "conf{}")]
)
def test_of_the_first_five_classes_the_first_is_measured(tmp_path, names):
    rng = np.random.default_rng(4)
    proba = rng.dirichlet([0.3] * 12, 500)
    label = np.array([rng.choice(12, p=row) for row in proba])
    order = np.argsort(-proba, axis=1)[:, :5]
    columns = {"label": label}
    for k in range(5):
        columns[names[0].format(k + 1)] = order[:, k]
        columns[names[1].format(k + 1)] = np.take_along_axis(proba, order, 1)[:, k]
    path = write_csv(tmp_path / "top.csv", columns)
    found = run("measure", path, "--format", "json", "--no-bins")
    top = write_csv(tmp_path / "own.csv", {"label": label == order[:, 0], "score": proba.max(axis=1)})
    assert value_of(found) == pytest.approx(_value(top))
    assert f"{names[0].format(1)!r} as the predicted class" in found.stderr
    columns[names[1].format(2)] = columns[names[1].format(1)] + (np.arange(500) < 7) * 0.001
    message = refuse("measure", write_csv(tmp_path / "bad.csv", columns))
    assert f"{names[1].format(1)!r} is not the largest of the scores in 7 rows" in message


@pytest.mark.parametrize(
    ("stray", "every", "words"),
    [
        (
            "2",
            100,
            "has 6 labels other than 0 and 1 (first at row 38: 2). If 2 stands for a missing value, add",
        ),
        (
            "-",
            50,
            "has 12 labels other than 0 and 1 (first at row 38: '-'). If '-' stands for a missing value, add",
        ),
        (
            "Total",
            600,
            "has 1 label other than 0 and 1 (first at row 38: 'Total'). If this row is a footer, remove",
        ),
    ],
)
def test_a_few_labels_beside_two_others_are_counted(tmp_path, stray, every, words):
    label = LABEL.astype(str).astype(object)
    label[37::every] = stray
    path = write_csv(tmp_path / "a.csv", {"label": label, "score": SCORE})
    message = refuse("measure", path)
    assert words in message
    options = re.search(r"--missing .*--drop-missing", message)[0].replace("'", "").split()
    kept = label != stray
    whole = write_csv(tmp_path / "b.csv", {"label": LABEL[kept], "score": SCORE[kept]})
    assert _value(path, *options) == _value(whole)


def test_many_labels_of_a_third_class_are_classes(tmp_path):
    path = write_csv(tmp_path / "a.csv", {"label": np.arange(600) % 3, "score": SCORE})
    assert "For several classes name one column for each with --score" in refuse("measure", path)


def test_fractions_among_labels_are_those_of_annotators(tmp_path):
    for k, every in enumerate((2, 200)):
        label = LABEL.astype(float)
        label[::every] = 0.25
        path = write_csv(tmp_path / f"{k}.csv", {"label": label, "score": SCORE})
        assert "For fractions of annotators add --soft" in refuse("measure", path)


def test_a_footer_among_the_scores_is_named(tmp_path):
    score = [*map(str, SCORE), "Total"]
    message = refuse("measure", write_csv(tmp_path / "a.csv", {"label": [*LABEL, 300], "score": score}))
    assert (
        "has 1 non-numeric value (first at row 601: 'Total'). If this row is a footer, remove it" in message
    )


def test_fractions_of_one_percent_among_percentages_are_noted(tmp_path):
    score = np.maximum((100 * SCORE).round(), 2)
    score[[3, 9]] = 0.4
    path = write_csv(tmp_path / "a.csv", {"label": LABEL, "score": score})
    assert "2 values of column 'score' between 0 and 1" in run("measure", path, "--percent").stderr
    score[10] = 1.5
    path = write_csv(tmp_path / "b.csv", {"label": LABEL, "score": score})
    assert "between 0 and 1" not in run("measure", path, "--percent").stderr


def test_several_labels_are_each_a_question(tmp_path):
    import truecal

    rng = np.random.default_rng(5)
    proba = rng.uniform(size=(300, 3)).round(4)
    labels = (rng.uniform(size=(300, 3)) < proba).astype(int)
    names = ("toxic", "insult", "threat")
    columns = dict(zip(names, labels.T, strict=True))
    columns |= {f"p_{name}": proba[:, names.index(name)] for name in reversed(names)}
    path = write_csv(tmp_path / "a.csv", columns)
    options = [word for name in names for word in ("--label", name)]
    options += ["--score", "p_*", "--multiclass", "multilabel"]
    expected = truecal.estimate(labels, proba, multiclass="multilabel").value
    assert _value(path, *options) == pytest.approx(expected, rel=1e-12)
    tested = truecal.calibration_test(labels[:, ::-1], proba[:, ::-1], multiclass="multilabel", rng=0)
    assert f"p = {tested.pvalue:.2g}" in run("test", path, *options, code=(0, 1)).stdout
    assert "2 columns of labels for 3 columns" in refuse("measure", path, *options[2:])
    assert "cannot be combined with --group" in refuse("measure", path, *options, "--pos-label", "1")


def test_an_archive_can_come_with_a_format(tmp_path, text, truth):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        archive.writestr("rows", text)
    (tmp_path / "a.zip").write_bytes(memory.getvalue())
    assert _value(tmp_path / "a.zip", "--input-format", "csv") == pytest.approx(truth)


def test_several_archives_are_joined_and_several_files_of_arrays_are_refused(tmp_path, text):
    rows = text.splitlines(keepends=True)
    for k, part in enumerate((rows[:300], rows[:1] + rows[300:])):
        _zip(tmp_path / f"part{k}.zip", {"part.csv": "".join(part)})
        np.savez(tmp_path / f"part{k}.npz", **PLAIN)
    whole = _zip(tmp_path / "whole.csv.zip", {"whole.csv": text})
    assert _value(tmp_path / "part*.zip") == _value(whole)
    message = refuse("measure", tmp_path / "part*.npz")
    assert "part*.npz matches 2 files of the format npz. Name one of them." in message
