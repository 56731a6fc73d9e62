"""Reader of the samples that lm-evaluation-harness logs with ``--log_samples``: JSON lines, one for each question."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax

from truecal._lib.text import listing
from truecal.exceptions import CalibrationWarning, InputError, show_value
from truecal.integrations.llm._answers import Answer, Answers, right_or_wrong
from truecal.integrations.llm._log_files import (
    field,
    identifier,
    names_a_model,
    paths_of,
    read_lines,
    refuse_repeated,
)

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
    tasks = [_task(file) for file in files]
    find = _confidence if confidence is None else confidence

    def rows(judges: set[str]) -> Iterator[tuple[str, Answer]]:
        for file, task in zip(files, tasks, strict=True):
            for where, sample in _samples(file, filter):
                if grade is None and names_a_model(used := _metric(sample, where, metric)):
                    judges.add(used)
                for repeat, (one, correct) in enumerate(_graded(sample, where, metric, grade), 1):
                    yield where, _row(one, where, task, repeat, correct, find, cluster)

    judges: set[str] = set()
    answers = Answers.from_rows(
        refuse_repeated(rows(judges)),
        model=model,
        task=", ".join(dict.fromkeys(tasks)),
        scale=scale,
        clustered_by=cluster,
    )
    if judges:
        answers = replace(answers, judge=", ".join(sorted(judges)))
        warnings.warn(answers.doubt, CalibrationWarning, stacklevel=2)
    return answers


def _task(file: Path) -> str:
    """Return the name of the task; the file's name is samples_TASK_TIME.jsonl."""
    return file.stem.removeprefix("samples_").rsplit("_", 1)[0]


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


def _row(
    sample: Mapping[str, Any],
    where: str,
    task: str,
    repeat: int,
    value: Any,
    find: Callable[[Mapping[str, Any]], Any],
    cluster: str | None,
) -> Answer:
    group = None
    if cluster is not None:
        document = field(sample, "doc", dict, where) or {}
        if document.get(cluster) is None:
            raise InputError(f"{where}: document {show_value(sample['doc_id'])} of {task} has no {cluster!r}")
        group = str(document[cluster])
    return Answer(f"{task}/{sample['doc_id']}", repeat, right_or_wrong(value), find(sample), cluster=group)


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
