"""Log files that are damaged, hostile or not what they are taken for."""

import json
import zipfile

import pytest

from truecal.exceptions import InputError
from truecal.integrations.llm import _log_files
from truecal.integrations.llm._answers import Answer
from truecal.integrations.llm._log_files import (
    field,
    identifier,
    list_members,
    paths_of,
    read_json,
    read_lines,
    read_members,
    refuse_repeated,
)


def test_folders_stand_for_their_files(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.jsonl").touch()
    assert paths_of(tmp_path, ["*.jsonl"]) == [tmp_path / "sub" / "a.jsonl"]
    assert paths_of([str(tmp_path / "sub" / "a.jsonl")], ["*.eval"]) == [tmp_path / "sub" / "a.jsonl"]
    with pytest.raises(InputError, match=r"has no files \*\.eval"):
        paths_of(tmp_path, ["*.eval"])
    with pytest.raises(InputError, match="absent is not a file"):
        paths_of(tmp_path / "absent", ["*.eval"])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "here is not JSON: Expecting property name"),
        (b"", "here is not JSON"),
        (b'{"a": "\xff"}', "here is not UTF-8"),
        (b"[" * 10**6, "here is nested too deeply"),
        (b"9" * 10**4, "here is not JSON"),
    ],
)
def test_what_is_not_json(content, says):
    with pytest.raises(InputError, match=says):
        read_json(content, "here")


def test_a_byte_order_mark_is_not_content():
    assert read_json(b"\xef\xbb\xbf[1]", "here") == [1]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_only_a_line_feed_ends_a_line(mark, tmp_path):
    path = tmp_path / "lines.jsonl"
    lines = [{"text": f"a{mark}b", "k": k} for k in range(3)]
    path.write_bytes("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines).encode())
    assert [one for _, one in read_lines(path)] == lines


def test_lines_are_named(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text("{}\n\n[1]\n")
    with pytest.raises(InputError, match=r"^lines\.jsonl, line 3 must be an object\. Got \[1\] instead\.$"):
        list(read_lines(path))


@pytest.mark.parametrize(
    ("value", "kind", "says"),
    [
        ([1], dict, r"'a' must be an object\. Got \[1\]"),
        (3, list, "must be a list"),
        (True, int, "must be a whole number"),
        ("x", int, "must be a whole number"),
        (1.0, str, "must be text"),
    ],
)
def test_fields_have_their_type(value, kind, says):
    with pytest.raises(InputError, match=f"^here: .*{says}"):
        field({"a": value}, "a", kind, "here")
    assert field({"a": None}, "a", kind, "here") is None


@pytest.mark.parametrize("value", [None, [1], True, 1.5])
def test_a_question_has_a_name(value):
    assert identifier({"id": 3}, "id", "here") == "3"
    with pytest.raises(InputError, match="here: 'id' must be a whole number or text"):
        identifier({"id": value}, "id", "here")


def test_the_same_answer_twice_is_refused():
    rows = [
        ("a", Answer("q", 1, True, 0.5)),
        ("b", Answer("q", 2, True, 0.5)),
        ("c", Answer("q", 1, True, 0.5)),
    ]
    with pytest.raises(
        InputError, match=r"^c: answer 1 to question 'q' was also in a\. Pass the log of one run"
    ):
        list(refuse_repeated(rows))


def archive(path, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members:
            file.writestr(name, content)
    return path


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_a_member_twice_the_last_counts(tmp_path):
    """As in Inspect, which writes the sample again when it has run it again."""
    path = archive(tmp_path / "log.eval", [("a.json", '{"k": 1}'), ("b.json", "{}"), ("a.json", '{"k": 2}')])
    members = list_members(path)
    assert [one for _, one in read_members(path, list(members.values()))] == [{"k": 2}, {}]


@pytest.mark.parametrize("limit", ["_MOST_BYTES_OF_A_MEMBER", "_MOST_BYTES"])
def test_what_unpacks_to_far_more_is_not_read(limit, tmp_path, monkeypatch):
    path = archive(tmp_path / "bomb.eval", [(f"{k}.json", b" " * 10**5 + b"{}") for k in range(10)])
    assert len(list_members(path)) == 10
    monkeypatch.setattr(_log_files, limit, 99_999)
    with pytest.raises(InputError, match=r"bomb\.eval has [\d,]+ bytes and would unpack to 1,000,020"):
        list_members(path)


@pytest.mark.parametrize(
    "compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_a_damaged_member_is_named(compression, tmp_path):
    path = archive(tmp_path / "log.eval", [("a.json", json.dumps({"k": list(range(100))}))], compression)
    content = bytearray(path.read_bytes())
    content[45] ^= 255
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"^log\.eval, a\.json is damaged: .* Copy the log again"):
        list(read_members(path, list(list_members(path).values())))


def test_a_zip_file_cut_short_is_damaged(tmp_path):
    path = archive(tmp_path / "log.eval", [("a.json", "{}")])
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match="is damaged"):
        list_members(path)
