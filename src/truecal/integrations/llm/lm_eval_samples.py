"""Reader of the samples that lm-evaluation-harness logs with ``--log_samples``: JSON lines, one for each question."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax

from truecal.exceptions import InputError
from truecal.integrations.llm.answers import Answer, Answers, paths_of

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
    one cluster, if the metric is a list with a grade for each answer, or if `grade` is given.

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
    rows = [
        _row(one, task, repeat, correct, find, cluster)
        for file, task in zip(files, tasks, strict=True)
        for sample in _samples(file, filter)
        for repeat, (one, correct) in enumerate(_graded(sample, metric, grade), 1)
    ]
    seen = [(row.question, row.repeat) for row in rows]
    if len(set(seen)) < len(seen):
        raise InputError("The files have the same question of the same task twice; pass the files of one run")
    return Answers.from_rows(rows, model=model, task=", ".join(dict.fromkeys(tasks)), scale=scale)


def _task(file: Path) -> str:
    """Return the name of the task; the file's name is samples_TASK_TIME.jsonl."""
    return file.stem.removeprefix("samples_").rsplit("_", 1)[0]


def _samples(file: Path, chosen: str | None) -> Iterator[dict[str, Any]]:
    filters: dict[str, None] = {}
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError:
        raise InputError(f"{file} is not a readable file") from None
    for number, line in enumerate(lines, 1):
        try:
            sample = json.loads(line)
            name = sample.get("filter", "none")
            sample["doc_id"], sample["filtered_resps"]
        except (ValueError, KeyError, AttributeError):
            raise InputError(f"Line {number} of {file.name} is not a logged sample of lm_eval") from None
        filters[name] = None
        if chosen is None and len(filters) > 1:
            raise InputError(
                f"{file.name} has the filters {', '.join(filters)}", remedy="Choose one with filter=."
            )
        if chosen in (None, name):
            yield sample
    if chosen is not None and chosen not in filters:
        raise InputError(f"{file.name} has no filter {chosen!r}; it has {', '.join(filters)}")


def _graded(
    sample: Mapping[str, Any], metric: str | None, grade: Callable[[Mapping[str, Any]], bool | None] | None
) -> list[tuple[Mapping[str, Any], Any]]:
    """Return the sample with its grade; where the task has repeats, once for each answer if there are grades for it."""
    every = _texts(sample["filtered_resps"]) or _texts(sample.get("resps", ()))
    repeats: list[Mapping[str, Any]] = [{**sample, "filtered_resps": [text]} for text in every]
    if grade is not None:
        return [(one, grade(one)) for one in repeats or [sample]]
    value = sample.get(_metric(sample, metric))
    if isinstance(value, list):
        if len(value) != len(repeats):
            raise InputError(
                f"Document {sample['doc_id']} has {len(value)} grades and {len(repeats)} answers",
                remedy="Grade them with grade=.",
            )
        return list(zip(repeats, value, strict=True))
    if _texts(sample["filtered_resps"]):
        raise InputError(
            f"Document {sample['doc_id']} has {len(repeats)} answers and one grade",
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
    task: str,
    repeat: int,
    value: Any,
    find: Callable[[Mapping[str, Any]], Any],
    cluster: str | None,
) -> Answer:
    correct = bool(value) if isinstance(value, int | float) and value in (0, 1) else None
    group = None
    if cluster is not None:
        if cluster not in sample["doc"]:
            raise InputError(f"Document {sample['doc_id']} of {task} has no {cluster!r}")
        group = str(sample["doc"][cluster])
    return Answer(f"{task}/{sample['doc_id']}", repeat, correct, find(sample), cluster=group)


def _metric(sample: Mapping[str, Any], metric: str | None) -> str:
    known = list(sample.get("metrics", []))
    if metric is not None:
        if metric not in known:
            raise InputError(f"There is no metric {metric!r}; there are {', '.join(known)}")
        return metric
    usual = [name for name in ("acc", "exact_match") if name in known] or known
    if len(usual) != 1:
        raise InputError(f"There are the metrics {', '.join(known)}", remedy="Choose one with metric=.")
    return str(usual[0])


def _confidence(sample: Mapping[str, Any]) -> Any:
    answers = sample["filtered_resps"]
    if answers and isinstance(answers[0], list) and len(answers) > 1:
        likelihood = np.array([float(one[0]) for one in answers])
        return float(softmax(likelihood).max())
    first = answers[0] if answers else None
    return first if isinstance(first, str) else None
