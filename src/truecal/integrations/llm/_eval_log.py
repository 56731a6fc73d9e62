"""Reader of the logs of Inspect (the package inspect_ai): `.eval` and `.json` files."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from truecal._lib.text import listing
from truecal.exceptions import CalibrationWarning, InputError, show_value
from truecal.integrations.llm._answers import Answer, Answers, right_or_wrong
from truecal.integrations.llm._log_files import (
    as_object,
    field,
    identifier,
    list_members,
    names_a_model,
    paths_of,
    read_json,
    read_members,
    read_whole,
    refuse_repeated,
)

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
    find = confidence if callable(confidence) else _finder(confidence)
    judges: set[str] = set()
    rows = list(
        refuse_repeated(
            (place, _row(sample, place, scorer, find, cluster, judges)) for place, sample in samples
        )
    )
    if not rows:
        raise InputError(f"{where} has no samples")
    incomplete = _what_is_missing(header, len(rows), where)
    if incomplete:
        warnings.warn(f"{where}: {incomplete}", CalibrationWarning, stacklevel=2)
    answers = Answers.from_rows(
        rows,
        model=model,
        task=task,
        scale=scale,
        clustered_by=cluster,
        incomplete=incomplete,
        judge=", ".join(sorted(judges)),
    )
    if answers.doubt:
        warnings.warn(f"{where}: {answers.doubt}", CalibrationWarning, stacklevel=2)
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


def _finder(key: str) -> Finder:
    def find(sample: Mapping[str, Any], score: Mapping[str, Any]) -> Any:
        found = stated(score, key)
        return _completion(sample) if found is None else found

    return find


def _completion(sample: Mapping[str, Any]) -> str | None:
    """Return the text that the model wrote; None if there is none."""
    output = sample.get("output") or {}
    text = output.get("completion")
    choices = output.get("choices")
    if not text and isinstance(choices, list) and choices:
        message = choices[0].get("message") if isinstance(choices[0], Mapping) else None
        text = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(text, list):
        texts = [
            part.get("text") for part in text if isinstance(part, Mapping) and part.get("type") == "text"
        ]
        text = "\n".join(part for part in texts if isinstance(part, str))
    return text if isinstance(text, str) and text else None


def _row(
    sample: Mapping[str, Any],
    where: str,
    scorer: str | None,
    find: Finder,
    cluster: str | None,
    judges: set[str],
) -> Answer:
    """Return the answer of a sample; the scorer is added to `judges` if it was a model."""
    question, repeat = identifier(sample, "id", where), field(sample, "epoch", int, where)
    if repeat is None:
        repeat = 1
    elif not 0 <= repeat < 2**31:
        raise InputError(f"{where}: 'epoch' must be the number of an epoch. Got {show_value(repeat)} instead")
    field(sample, "output", dict, where)
    metadata = field(sample, "metadata", dict, where) or {}
    group = None
    if cluster is not None:
        if metadata.get(cluster) is None:
            raise InputError(f"{where}: sample {show_value(question)} has no {cluster!r} in its metadata")
        group = str(metadata[cluster])
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
    if is_model(name, score):
        judges.add(name)
    return Answer(question, repeat, grade(score.get("value")), find(sample, score), is_refusal(score), group)


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
