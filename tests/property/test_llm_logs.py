"""Logs of language models with damaged bytes and changed types: each is read, or refused by an `InputError`."""

import copy
import io
import json
import tempfile
import warnings
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truecal.exceptions import CalibrationWarning, InputError
from truecal.integrations.llm import read_eval_log, read_lm_eval_samples

N = 6


def inspect_sample(k):
    text = f"A. Confidence: {60 + 5 * k}%"
    output = {"choices": [{"message": {"content": [{"type": "text", "text": text}]}}]}
    score = {"value": "CI"[k % 2], "metadata": {"confidence": text} if k % 2 else None}
    return {
        "id": k, "epoch": 1, "metadata": {"page": f"p{k // 2}"}, "output": output, "scores": {"graded": score},
    }  # fmt: skip


def lm_eval_sample(k):
    responses = [[[str(-0.1 * k), "True"], ["-1.5", "False"]], [f"A (9{k}% sure)"]][k % 2]
    return {
        "doc_id": k, "doc": {"page": f"p{k // 2}"}, "filter": "none", "metrics": ["acc"], "acc": k % 3 > 0,
        "filtered_resps": responses, "resps": [responses],
    }  # fmt: skip


EVAL = {
    "status": "success",
    "eval": {"model": "m", "task": "t", "dataset": {"samples": N}, "config": {"epochs": 1}},
    "samples": [inspect_sample(k) for k in range(N)],
}
LINES = [lm_eval_sample(k) for k in range(N)]


def write_json(log):
    return json.dumps(log).encode()


def write_eval(log):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, one in enumerate(log["samples"]):
            archive.writestr(f"samples/{number}_epoch_1.json", json.dumps(one))
        archive.writestr("header.json", json.dumps({**log, "samples": None}))
    return file.getvalue()


def write_lines(log):
    return b"".join(json.dumps(one).encode() + b"\n" for one in log)


#: The content of a log, how it is written, the name of the file and its reader.
FORMATS = {
    "json": (EVAL, write_json, "log.json", read_eval_log),
    "eval": (EVAL, write_eval, "log.eval", read_eval_log),
    "jsonl": (LINES, write_lines, "samples_t_2026.jsonl", read_lm_eval_samples),
}
odd_values = st.sampled_from(
    [None, True, 0, -1, 2**70, 0.5, float("nan"), float("inf"), "", "x", "\ud800", [], [1], [[]], {}, {"a": 1}, [None]]
)  # fmt: skip


def places(value, path=()):
    """Yield the path of each value inside a log, the log itself left out."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield (*path, key)
        yield from places(part, (*path, key))


PLACES = {name: list(places(log)) for name, (log, *_) in FORMATS.items()}


@st.composite
def changed(draw, name):
    """Return a log in which a few values have another type or are gone."""
    log = copy.deepcopy(FORMATS[name][0])
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from(PLACES[name]))
        place = log
        try:
            for key in path:
                place = place[key]
            if draw(st.booleans()):
                place[last] = copy.deepcopy(draw(odd_values))  # the next change may be inside it
            else:
                del place[last]
        except (LookupError, TypeError):  # an earlier change took it away
            continue
    return log


@st.composite
def damaged(draw, name):
    """Return the bytes of a log, cut short or with a few of them replaced."""
    log, write, *_ = FORMATS[name]
    content = write(log)
    if draw(st.booleans()):
        return content[: draw(st.integers(0, len(content)))]
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        content = content[:start] + draw(st.binary(max_size=4)) + content[start + draw(st.integers(0, 4)) :]
    return content


def read(name, content, **options):
    """Read a log, and expect answers or a refusal that names the file in one line."""
    *_, file, reader = FORMATS[name]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        path = Path(folder) / file
        path.write_bytes(content)
        try:
            answers = reader(path, **options)
        except InputError as error:
            message = str(error)
        else:
            message = ""
    if message:
        assert "\n" not in message
        assert file in message or "No answer has both" in message
        return
    assert 0 < answers.n <= 2 * N
    assert ((answers.confidence >= 0) & (answers.confidence <= 1)).all()
    assert answers.to_dict()["n"] == answers.n


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_changed_types(name, data):
    log = data.draw(changed(name))
    if name == "eval" and not isinstance(log.get("samples"), list):
        return
    read(name, FORMATS[name][1](log), cluster=data.draw(st.sampled_from([None, "page"])))


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_bytes(name, data):
    read(name, data.draw(damaged(name)))
