"""Which column is what: guessed where that is unambiguous, asked for where it is not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from truecal.cli.input.files import Table

#: What a column of labels, or of scores, is usually called.
LABEL_NAMES = ("y_true", "label", "labels", "target", "y", "truth", "outcome", "correct", "true_label")
SCORE_NAMES = (
    "y_proba", "y_prob", "y_score", "y_pred_proba", "score", "scores", "proba", "prob", "probs",
    "probability", "probabilities", "p", "confidence",
)  # fmt: skip
#: One column for each class: p0, p1, p2 or prob_0, prob_1, prob_2 or 0, 1, 2.
_NUMBERED = re.compile(
    r"(p|prob|proba|score|y_proba|y_prob|y_score|class|probability)?_?(\d+)", re.IGNORECASE
)


def guess_column(table: Table, what: str, usual: Sequence[str]) -> str:
    """Return the one column with a usual name, or ask for it to be named."""
    found = [name for name in table.columns if name.strip().lower() in usual]
    if len(found) == 1:
        return found[0]
    why = f"several could be it ({', '.join(found)})" if found else "none has a usual name"
    columns = ", ".join(map(repr, table.columns[:20])) + (" ..." if len(table.columns) > 20 else "")
    raise ValueError(
        f"{table.source}: which column is the {what}? {why[0].upper()}{why[1:]}. "
        f"Name it with --{what}. Columns: {columns}."
    )


def guess_scores(table: Table, label: str, taken: Sequence[str]) -> list[str]:
    """Return the column of the scores, or those of several classes: p0, p1, p2, or the names of the labels.

    Parameters
    ----------
    table : Table
        The file.
    label : str
        Column of the labels.
    taken : sequence of str
        Columns that are something else.
    """
    free = [name for name in table.columns if name not in (label, *taken)]
    numbered = [(match, name) for name in free if (match := _NUMBERED.fullmatch(name.strip()))]
    stems = {(match[1] or "").lower() for match, _ in numbered}
    numbers = sorted(int(match[2]) for match, _ in numbered)
    usual = [name for name in free if name.strip().lower() in SCORE_NAMES]
    if (
        not usual
        and len(numbers) > 2
        and len(stems) == 1
        and numbers == list(range(numbers[0], numbers[-1] + 1))
    ):
        return [name for _, name in sorted(numbered, key=lambda pair: int(pair[0][2]))]
    if not usual and len(free) > 1:
        seen = {value for value in table.take([label])[label].tolist() if isinstance(value, str)}
        if len(seen) > 1 and seen <= set(free):
            return [name for name in free if name in seen]
    return [guess_column(table, "score", SCORE_NAMES)]


def classes_of(columns: Sequence[str], seen: Sequence[Any]) -> list[Any] | None:
    """Return the class of each column where its name says it; None to go by the order of the columns.

    Parameters
    ----------
    columns : sequence of str
        Names of several columns of scores.
    seen : sequence
        The labels that occur.

    Examples
    --------
    >>> classes_of(["prob_dog", "prob_cat"], ["cat", "dog"])
    ['dog', 'cat']
    >>> classes_of(["p2", "p1", "p0"], [0, 1, 2])
    [2, 1, 0]
    """
    same = [len(set(letters)) == 1 for letters in zip(*columns, strict=False)]
    n_same = same.index(False) if False in same else len(same)
    if seen and isinstance(seen[0], str):
        for names in (list(columns), [name[n_same:] for name in columns]):
            if set(seen) <= set(names):
                return names
        return list(columns)  # which `read` refuses, and says why
    ends = [re.search(r"(\d+)\s*$", name) for name in columns]
    numbers = [int(end[1]) for end in ends if end]
    if len(set(numbers)) == len(columns) and set(seen) <= set(numbers):
        return list(numbers)
    return None
