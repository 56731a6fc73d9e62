"""Logs of language models as tables: a row for each answer that has a grade and a confidence."""

from __future__ import annotations

from pathlib import Path

from truecal.cli.input.table import Table


def open_log(source: str, path: Path) -> Table:
    """Return the answers of a log of Inspect: question, epoch, whether the answer is right, and its confidence."""
    from truecal.integrations.llm import read_eval_log

    answers = read_eval_log(path)
    columns = {
        "question": answers.question.astype(str),
        "epoch": answers.repeat,
        "correct": answers.correct,
        "confidence": answers.confidence,
    }
    return Table(
        source,
        tuple(columns),
        columns,
        label="correct",
        cluster="" if answers.clusters is None else "question",
        scores=("confidence",),
        notes=tuple(filter(None, (answers.left_out, answers.incomplete))),
        doubt=answers.doubt,
    )
