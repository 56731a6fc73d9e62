"""Readers of logs of Inspect and lm-evaluation-harness: whatever is wrong is an `InputError` that names the place."""

from __future__ import annotations

import importlib
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy.special import softmax

from truecal._lib.text import listing
from truecal.exceptions import InputError, MissingExtraError, show_value, warn_user
from truecal.integrations.llm._answers import Answer, Answers, right_or_wrong

T = TypeVar("T", str, int, dict[str, Any], list[Any])

#: Limits on what an archive may unpack to: one member, and all of them (or, in a large file, a multiple of its size).
#: Logs shrink to a tenth or so when they are compressed; a few megabytes that unpack to gigabytes are no log.
_MOST_BYTES_OF_A_MEMBER, _MOST_BYTES, _MOST_EXPANSION = 2**28, 2**30, 100

#: The number of Zstandard in zip files, which `zipfile` reads from Python 3.14 on.
_ZSTANDARD = 93

#: Names of scorers and metrics that are models.
_BY_MODEL = re.compile(
    r"model_?graded|judge|(^|_)grader|(llm|gpt\d*)_?(eval|scor|grad|rat)|^(g_?eval|prometheus)", re.IGNORECASE
)

_KINDS: dict[type, str] = {
    str: "text",
    int: "a whole number",
    dict: "an object",
    list: "a list",
}


def paths_of(paths: Any, patterns: Sequence[str]) -> list[Path]:
    """Return files: a path or several, where a folder stands for its files of these patterns."""
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    files: list[Path] = []
    for path in map(Path, given):
        inside = [path]
        if path.is_dir():
            inside = [file for pattern in patterns for file in sorted(path.rglob(pattern))]
        if not inside:
            raise InputError(f"{path} has no files {' or '.join(patterns)}")
        files += inside
    for file in files:
        if not file.is_file():
            raise InputError(f"{file} is not a file")
    return files


def names_a_model(scorer: str) -> bool:
    """Return whether the name of a scorer or a metric says that a model graded: model_graded_qa, llm_judge."""
    return _BY_MODEL.search(scorer) is not None


def read_json(content: bytes, where: str) -> Any:
    """Return the content of JSON in UTF-8."""
    try:
        return json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError(f"{where} is not UTF-8") from None
    except RecursionError:
        raise InputError(f"{where} is nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{where} is not JSON: {error}") from None


def read_object(content: bytes, where: str) -> dict[str, Any]:
    """Return a JSON object."""
    return as_object(read_json(content, where), where)


def as_object(value: Any, where: str) -> dict[str, Any]:
    """Return `value` if it is a JSON object."""
    if not isinstance(value, dict):
        raise InputError(f"{where} must be an object. Got {show_value(value)} instead")
    return value


def field(record: Mapping[str, Any], name: str, kind: type[T], where: str) -> T | None:
    """Return the value of a field that has this type; None where it is absent or null."""
    value = record.get(name)
    if value is None:
        return None
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InputError(f"{where}: {name!r} must be {_KINDS[kind]}. Got {show_value(value)} instead")
    return value


def identifier(record: Mapping[str, Any], name: str, where: str) -> str:
    """Return the field that names a question: a number or text."""
    value = record.get(name)
    if not isinstance(value, int | str) or isinstance(value, bool):
        raise InputError(f"{where}: {name!r} must be a whole number or text. Got {show_value(value)} instead")
    return str(value)


def _cluster(record: Mapping[str, Any], key: str | None, what: str, where: str = "") -> str | None:
    """Return what an answer belongs to, by a key of its record; None without a key."""
    if key is None:
        return None
    if record.get(key) is None:
        raise InputError(f"{what} has no {key!r}{where}")
    return str(record[key])


def refuse_repeated(rows: Iterable[tuple[str, Answer]]) -> Iterator[Answer]:
    """Yield answers that come with the place they were read from, and refuse the same one twice."""
    places: dict[tuple[str, int], str] = {}
    for where, row in rows:
        key = (row.question, row.repeat)
        if key in places:
            raise InputError(
                f"{where}: answer {row.repeat} to question {show_value(row.question)} was also in {places[key]}",
                remedy="Pass the log of one run, without copies.",
            )
        places[key] = where
        yield row


def read_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the JSON object of each line and its place; only a line feed ends a line."""
    for number, line in enumerate(read_whole(path).split(b"\n"), 1):
        if line.strip():
            where = f"{path.name}, line {number}"
            yield where, read_object(line, where)


def read_whole(path: Path) -> bytes:
    """Return the bytes of a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


# --- Zip files --------------------------------------------------------------------------------------


def list_members(path: Path) -> dict[str, zipfile.ZipInfo]:
    """Return the members of a zip file by name, if it does not unpack to more than a log would.

    A name may come twice: Inspect writes a sample again that it has run again, and the last one counts.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {member.filename: member for member in archive.infolist()}
        size = path.stat().st_size
    except Exception as error:  # whatever zipfile and struct raise on a damaged file
        raise _damaged(str(path), error) from None
    total, largest = 0, ""
    for name, member in members.items():
        total += member.file_size
        if member.file_size > _MOST_BYTES_OF_A_MEMBER:
            largest = f" ({name!r} alone to {member.file_size:,})"
    if largest or total > max(_MOST_BYTES, _MOST_EXPANSION * size):
        raise InputError(
            f"{path} has {size:,} bytes and would unpack to {total:,}{largest}, more than a log of Inspect does",
            remedy="Is it the right file? If so, read it with inspect_ai and write it as JSON.",
        )
    return members


def read_members(path: Path, members: Sequence[zipfile.ZipInfo]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the JSON object of each member of a zip file, and its place."""
    with zipfile.ZipFile(path) as archive:
        for member in members:
            where = f"{path.name}, {member.filename}"
            try:
                content = _unpack(archive, path, member)
            except MissingExtraError:
                raise
            except Exception as error:  # whatever zipfile, zlib and struct raise on a damaged file
                raise _damaged(where, error) from None
            yield where, read_object(content, where)


def _damaged(where: str, error: Exception) -> InputError:
    reason = str(error) or type(error).__name__
    return InputError(f"{where} is damaged: {reason}", remedy="Copy the log again from where it was written.")


def _unpack(archive: zipfile.ZipFile, path: Path, member: zipfile.ZipInfo) -> bytes:
    """Return the content of a member; never more than the directory of the archive says."""
    if member.compress_type != _ZSTANDARD or hasattr(zipfile, "ZIP_ZSTANDARD"):  # which Python 3.14 has
        return archive.read(member)
    try:
        zstandard = importlib.import_module("zstandard")
    except ImportError:
        raise MissingExtraError(
            "zstandard", extra="llm", purpose="Reading .eval files before Python 3.14"
        ) from None
    with path.open("rb") as file:
        file.seek(member.header_offset)
        # The local header has 30 bytes; the last four are the lengths of the name and of the extra field.
        lengths = struct.unpack("<HH", file.read(30)[26:])
        file.seek(sum(lengths), 1)
        packed = file.read(member.compress_size)
    # Large members consist of several frames.
    reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
    content = bytes(reader.read(member.file_size))
    if zlib.crc32(content) != member.CRC:
        raise zipfile.BadZipFile("Bad CRC-32")
    return content


# --- Inspect (the package inspect_ai): `.eval` and `.json` files ---------------------------------------------

#: Where a confidence is looked for, one after the other.
Finder = Callable[[Mapping[str, Any], Mapping[str, Any]], Any]


def read_eval_log(
    path: str | Path,
    *,
    scorer: str | None = None,
    confidence: str | Finder = "confidence",
    cluster: str | None = None,
    scale: str = "fraction",
) -> Answers:
    """Read the answers of an evaluation that Inspect logged. inspect_ai itself is not needed.

    The id of a sample is its question, and epochs are repeated answers to it. A log of an evaluation that stopped early
    is read with a warning, and `Answers.sentence` says so. So are grades by a model (``model_graded_qa`` and the like),
    whose mistakes count as those of the answers. Whatever else is wrong with a file is an `InputError`.

    Parameters
    ----------
    path : str or Path
        A log file, ``.eval`` or ``.json``, or a folder that has one.
    scorer : str, optional
        Name of the scorer whose grade is used; needed if there are several.
    confidence : str or callable
        The confidence is ``score.metadata[confidence]`` or ``score.value[confidence]``; without such a key it is read
        from the text that the model wrote. A function ``(sample, score) -> str, float or None`` gets both as the
        dictionaries of the log.
    cluster : str, optional
        Key of the sample's metadata that names what questions belong together by, such as a passage. By default
        each question is a cluster.
    scale : {"fraction", "percent"}
        As in `parse_confidence`.

    Returns
    -------
    Answers
    """
    files = paths_of(path, ["*.eval", "*.json"])
    if len(files) > 1:
        raise InputError(
            f"{path} has {len(files)} logs: {listing([file.name for file in files], 5)}",
            remedy="Pass one of them.",
        )
    header, samples = _open(files[0])
    where = files[0].name
    described = field(header, "eval", dict, where) or {}
    model, task = (field(described, name, str, where) or "" for name in ("model", "task"))
    find = confidence if callable(confidence) else partial(_stated_or_written, confidence)
    read = ((place, _answer(sample, place, scorer, find, cluster)) for place, sample in samples)
    rows = list(refuse_repeated(read))
    if not rows:
        raise InputError(f"{where} has no samples")
    incomplete = _what_is_missing(header, len(rows), where)
    if incomplete:
        warn_user(f"{where}: {incomplete}")
    answers = Answers.from_rows(
        rows, model=model, task=task, scale=scale, clustered_by=cluster, incomplete=incomplete
    )
    if answers.doubt:
        warn_user(f"{where}: {answers.doubt}")
    return answers


def is_model(scorer: str, score: Mapping[str, Any]) -> bool:
    """Return whether a scorer of Inspect was a model, by its name or by the dialogue that it kept.

    Parameters
    ----------
    scorer : str
        Its name.
    score : mapping
        A score of the log.

    Examples
    --------
    >>> is_model("model_graded_qa", {}), is_model("match", {}), is_model("mine", {"metadata": {"grading": []}})
    (True, False, True)
    """
    return names_a_model(scorer) or "grading" in (score.get("metadata") or {})


def grade(value: Any) -> bool | None:
    """Return whether a score of Inspect means right or wrong; None for anything else, such as partial credit.

    Parameters
    ----------
    value : object
        ``Score.value``.

    Examples
    --------
    >>> [grade(value) for value in ("C", "I", 1, 0.0, True, "P", 0.5)]
    [True, False, True, False, True, None, None]
    """
    if isinstance(value, str):
        return {"C": True, "I": False}.get(value)
    return right_or_wrong(value.get("correct") if isinstance(value, Mapping) else value)


def is_refusal(score: Mapping[str, Any]) -> bool:
    """Return whether a score says that the model did not answer.

    Parameters
    ----------
    score : mapping
        A score of the log.
    """
    return score.get("value") == "N" or score.get("reason") in ("refusal", "no_response")


def stated(score: Mapping[str, Any], key: str) -> Any:
    """Return the confidence that a scorer stored with its score, or None.

    Parameters
    ----------
    score : mapping
        A score of the log.
    key : str
        Its name in the metadata or in the value.
    """
    value = score.get("value")
    for place in (score.get("metadata") or {}, value if isinstance(value, Mapping) else {}):
        if key in place:
            return place[key]
    return None


def _stated_or_written(key: str, sample: Mapping[str, Any], score: Mapping[str, Any]) -> Any:
    found = stated(score, key)
    return _completion(sample) if found is None else found


def _completion(sample: Mapping[str, Any]) -> str | None:
    """Return the text that the model wrote; None if there is none."""
    output = sample.get("output") or {}
    text = output.get("completion")
    choices = output.get("choices")
    if not text and isinstance(choices, list) and choices:
        message = choices[0].get("message") if isinstance(choices[0], Mapping) else None
        text = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(text, list):
        parts = (part for part in text if isinstance(part, Mapping) and part.get("type") == "text")
        text = "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    return text if isinstance(text, str) and text else None


def _answer(
    sample: Mapping[str, Any], where: str, scorer: str | None, find: Finder, cluster: str | None
) -> Answer:
    """Return the answer of a sample."""
    question, repeat = identifier(sample, "id", where), field(sample, "epoch", int, where)
    if repeat is None:
        repeat = 1
    elif not 0 <= repeat < 2**31:
        raise InputError(f"{where}: 'epoch' must be the number of an epoch. Got {show_value(repeat)} instead")
    field(sample, "output", dict, where)
    metadata = field(sample, "metadata", dict, where) or {}
    group = _cluster(metadata, cluster, f"{where}: sample {show_value(question)}", " in its metadata")
    scores = field(sample, "scores", dict, where)
    if not scores:  # the sample ended with an error
        return Answer(question, repeat, None, None, cluster=group)
    if scorer is None and len(scores) > 1:
        raise InputError(
            f"{where} has the scorers {listing(list(scores), 5)}", remedy="Choose one with scorer=."
        )
    if scorer is not None and scorer not in scores:
        raise InputError(f"{where} has no scorer {scorer!r}, but {listing(list(scores), 5)}")
    name = next(iter(scores)) if scorer is None else scorer
    score = as_object(scores[name], f"{where}: the score of {name!r}")
    field(score, "metadata", dict, where)
    judge, right = name if is_model(name, score) else "", grade(score.get("value"))
    return Answer(question, repeat, right, find(sample, score), is_refusal(score), group, judge)


def _what_is_missing(header: Mapping[str, Any], n_logged: int, where: str) -> str:
    """Return a sentence if the evaluation stopped early or fewer answers are logged than were planned, else nothing."""
    described = field(header, "eval", dict, where) or {}
    config = field(described, "config", dict, where) or {}
    dataset = field(described, "dataset", dict, where) or {}
    names = field(dataset, "sample_ids", list, where)
    n_questions = field(dataset, "samples", int, where) if names is None else len(names)
    planned = (n_questions or 0) * (field(config, "epochs", int, where) or 1)
    status = field(header, "status", str, where) or "success"
    count = f"{n_logged:,} of {planned:,} answers are in its log" if n_logged < planned else ""
    if status != "success":
        return f"The evaluation did not finish (status: {status}){count and ': ' + count}."
    return f"The evaluation is not complete: {count}." if count else ""


def _open(path: Path) -> tuple[dict[str, Any], Iterator[tuple[str, dict[str, Any]]]]:
    """Return the header of a log, and its samples one by one, each with its place."""
    if not zipfile.is_zipfile(path):
        return _open_json(path)
    members = list_members(path)
    first = next((members[name] for name in ("header.json", "_journal/start.json") if name in members), None)
    if first is None:
        raise InputError(f"{path} is not a log of Inspect: it has no header.json")
    ((_, header),) = read_members(path, [first])
    if first.filename != "header.json":
        header["status"] = "started"  # the journal of an evaluation that did not end
    samples = [
        member for name, member in members.items() if name.startswith("samples/") and name.endswith(".json")
    ]
    return header, read_members(path, samples)


def _open_json(path: Path) -> tuple[dict[str, Any], Iterator[tuple[str, dict[str, Any]]]]:
    """Return the header and the samples of a log in one JSON file."""
    content = read_whole(path)
    if content.startswith(b"PK"):
        raise InputError(
            f"{path} is a zip file without its end", remedy="Copy the log again from where it was written."
        )
    try:
        log = read_json(content, "it")
    except InputError as error:
        raise InputError(
            f"{path} is not a log of Inspect: neither a zip file nor JSON ({error.problem})"
        ) from None
    if not isinstance(log, dict) or "samples" not in log:
        raise InputError(f"{path} is not a log of Inspect: it has no samples")
    samples = field(log, "samples", list, path.name) or []
    places = (f"{path.name}, sample {number}" for number in range(1, len(samples) + 1))
    return log, ((place, as_object(sample, place)) for place, sample in zip(places, samples, strict=True))


# --- lm-evaluation-harness: what it logs with ``--log_samples``, JSON lines, one for each question -------------

_NUMBER = re.compile(r"-?(inf|[\d.]+(e-?\d+)?)")


def read_lm_eval_samples(
    paths: str | Path | Sequence[str | Path],
    *,
    metric: str | None = None,
    filter: str | None = None,
    confidence: Callable[[Mapping[str, Any]], Any] | None = None,
    grade: Callable[[Mapping[str, Any]], bool | None] | None = None,
    cluster: str | None = None,
    scale: str = "fraction",
    model: str = "",
) -> Answers:
    """Read logged samples. lm_eval itself is not needed.

    For multiple choice the confidence is the softmax of the log-likelihoods of the choices, at its largest, as ``acc``
    grades it. For generated text it is read from the text. A document is a question; the documents of several files
    (the subjects of MMLU, say) are told apart by their task.

    With ``repeats`` in the task, the harness logs all answers to a question and grades one. All of them are read, as
    one cluster, if the metric is a list with a grade for each answer, or if `grade` is given. Where the name of the
    metric says that a model graded (``llm_judge``), a warning says what that may do.

    Parameters
    ----------
    paths : str, Path or several
        Files ``samples_*.jsonl``, or a folder that has some.
    metric : str, optional
        Which logged metric says whether the answer is right; by default ``acc`` or ``exact_match``, or the only one.
    filter : str, optional
        Name of the filter whose answers are used; needed if there are several.
    confidence : callable, optional
        ``(sample) -> str, float or None`` for confidences that are elsewhere; it gets the dictionary of the log.
    grade : callable, optional
        ``(sample) -> bool or None`` in place of the logged metric. It is called for each repeat, with that answer alone
        in ``sample["filtered_resps"]``.
    cluster : str, optional
        Key of the document that names what questions belong together by, such as a passage.
    scale : {"fraction", "percent"}
        As in `parse_confidence`.
    model : str
        Name of the model, for the sentence; logs of samples do not have it.

    Returns
    -------
    Answers
    """
    files = paths_of(paths, ["samples_*.jsonl"])
    # The files' names are samples_TASK_TIME.jsonl.
    tasks = [file.stem.removeprefix("samples_").rsplit("_", 1)[0] for file in files]
    find = _confidence if confidence is None else confidence

    def read() -> Iterator[tuple[str, Answer]]:
        for file, task in zip(files, tasks, strict=True):
            for where, sample in _samples(file, filter):
                used = "" if grade is not None else _metric(sample, where, metric)
                judge = used if names_a_model(used) else ""
                question = f"{task}/{sample['doc_id']}"
                document = {} if cluster is None else field(sample, "doc", dict, where) or {}
                what = f"{where}: document {show_value(sample['doc_id'])} of {task}"
                group = _cluster(document, cluster, what)
                for repeat, (one, value) in enumerate(_graded(sample, where, metric, grade), 1):
                    right = right_or_wrong(value)
                    yield where, Answer(question, repeat, right, find(one), cluster=group, judge=judge)

    rows, task = list(refuse_repeated(read())), ", ".join(dict.fromkeys(tasks))
    answers = Answers.from_rows(rows, model=model, task=task, scale=scale, clustered_by=cluster)
    if answers.doubt:
        warn_user(answers.doubt)
    return answers


def _samples(file: Path, chosen: str | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the samples of a file that passed the chosen filter, each with its place."""
    filters: dict[str, None] = {}
    for where, sample in read_lines(file):
        if sample.get("doc_id") is None or sample.get("filtered_resps") is None:
            raise InputError(
                f"{where} is not a logged sample of lm_eval: it has no doc_id or no filtered_resps"
            )
        identifier(sample, "doc_id", where)
        for name in ("filtered_resps", "resps", "metrics"):
            field(sample, name, list, where)
        name = field(sample, "filter", str, where) or "none"
        filters[name] = None
        if chosen is None and len(filters) > 1:
            raise InputError(
                f"{file.name} has the filters {listing(list(filters), 5)}", remedy="Choose one with filter=."
            )
        if chosen in (None, name):
            yield where, sample
    if not filters:
        raise InputError(f"{file} has no samples")
    if chosen is not None and chosen not in filters:
        raise InputError(f"{file.name} has no filter {chosen!r}; it has {listing(list(filters), 5)}")


def _graded(
    sample: Mapping[str, Any],
    where: str,
    metric: str | None,
    grade: Callable[[Mapping[str, Any]], bool | None] | None,
) -> list[tuple[Mapping[str, Any], Any]]:
    """Return the sample with its grade; where the task has repeats, once for each answer if there are grades for it."""
    every = _texts(sample["filtered_resps"]) or _texts(sample.get("resps") or ())
    repeats: list[Mapping[str, Any]] = [{**sample, "filtered_resps": [text]} for text in every]
    if grade is not None:
        return [(one, grade(one)) for one in repeats or [sample]]
    value = sample.get(_metric(sample, where, metric))
    if isinstance(value, list):
        if len(value) != len(repeats):
            raise InputError(
                f"{where}: document {show_value(sample['doc_id'])} has {len(value)} grades and {len(repeats)} answers",
                remedy="Grade them with grade=.",
            )
        return list(zip(repeats, value, strict=True))
    if _texts(sample["filtered_resps"]):
        raise InputError(
            f"{where}: document {show_value(sample['doc_id'])} has {len(repeats)} answers and one grade",
            remedy="Grade each with grade=, or choose another filter with filter=.",
        )
    return [(sample, value)]


def _texts(responses: Sequence[Any]) -> list[str]:
    """Return the texts of a question that was answered several times, else nothing."""
    texts = responses[0] if len(responses) == 1 else None
    if not isinstance(texts, list) or len(texts) < 2 or not all(isinstance(text, str) for text in texts):
        return []
    # A log-likelihood and whether it is the greedy choice are logged as text, too.
    return [] if len(texts) == 2 and texts[1] in ("True", "False") and _NUMBER.fullmatch(texts[0]) else texts


def _metric(sample: Mapping[str, Any], where: str, metric: str | None) -> str:
    known = [str(name) for name in sample.get("metrics") or ()]
    listed = listing(known, 5) or "none"
    if metric is not None:
        if metric not in known:
            raise InputError(f"{where}: there is no metric {metric!r}; there are {listed}")
        return metric
    usual = [name for name in ("acc", "exact_match") if name in known] or known
    if len(usual) != 1:
        raise InputError(f"{where}: there are the metrics {listed}", remedy="Choose one with metric=.")
    return usual[0]


def _confidence(sample: Mapping[str, Any]) -> Any:
    """Return the largest probability of the choices, or the text of the answer; None if it has neither."""
    answers = sample["filtered_resps"]
    first = answers[0] if answers else None
    if not isinstance(first, list) or len(answers) == 1:
        return first if isinstance(first, str) else None
    try:
        likelihood = np.array([float(one[0]) for one in answers])
    except (IndexError, KeyError, TypeError, ValueError, OverflowError):
        return None
    return float(softmax(likelihood).max()) if np.isfinite(likelihood.max()) else None
