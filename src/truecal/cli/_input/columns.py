"""Roles of columns: detected if unambiguous, otherwise the user must name them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import polars as pl

from truecal._lib.text import counted, listing
from truecal.cli._input.files import open_table
from truecal.cli._input.table import Table, free_name, repeated
from truecal.exceptions import InputError

#: Conventional names of columns.
LABEL_NAMES = ("y_true", "label", "labels", "target", "y", "truth", "outcome", "correct", "true_label")
_SCORE_NAMES = (
    "y_proba", "y_prob", "y_score", "y_pred_proba", "score", "scores", "proba", "prob", "probs",
    "probability", "probabilities", "p", "confidence",
)  # fmt: skip
#: Names of labels where no column has one of those.
_OTHER_LABEL_NAMES = ("result", "winner", "won", "gold")
#: One column for each class: p0, p1, p2 or prob_0, prob_1, prob_2 or 0, 1, 2.
_NUMBERED = re.compile(
    r"(p|prob|proba|score|y_proba|y_prob|y_score|y_pred_proba|class|probability|logit|logits)?_?(\d+)",
    re.IGNORECASE,
)
#: One column for one class: p_home, prob_dog.
_OF_CLASS = re.compile(r"(?:p|prob|proba|probability|score|pred|y_proba|y_prob)[ _.-](\w+)", re.IGNORECASE)
#: Predictions from the most probable on: pred_1 and prob_1, top1_class and top1_prob.
_RANKED = re.compile(
    r"(?:top[ _.-]?(\d+)[ _.-]?)?"
    r"(?:(pred|prediction|class|label|guess|pred(?:icted)?[ _.-]?(?:class|label))|(?:prob|proba|probability|score|p"
    r"|confidence|conf))[ _.-]?(\d+)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Reading:
    """How the columns are read: the options of the command line of the same names.

    With `keep_logits` logits are checked, but not turned into probabilities.
    """

    pos_label: str | None = None
    classes: str | None = None
    multiclass: str | None = None
    logits: bool = False
    log_probabilities: bool = False
    percent: bool = False
    scale: float | None = None
    normalize: bool = False
    clip: bool = False
    missing: tuple[str, ...] = ()
    drop_missing: bool = False
    counts: bool = False
    equal_clusters: bool = False
    keep_logits: bool = False

    @property
    def largest(self) -> float | None:
        """The largest possible score, if it is not 1."""
        return 100 if self.percent else self.scale

    @property
    def weighting(self) -> str | None:
        """What weights mean, if that was given."""
        return "counts" if self.counts else "clusters" if self.equal_clusters else None


@dataclass(frozen=True)
class Columns:
    """The columns of a table that are used.

    Attributes
    ----------
    label : tuple of str
        The column of labels, or one column of 0 and 1 for each class.
    score : tuple of str
        The column of scores, or one for each class, or one for each model.
    weight, cluster, predicted : str, or None
        Columns of weights, of clusters, and of the predicted class.
    group : tuple of str
        Columns of groups, which are crossed.
    feature : tuple of str
        Columns of features, for an audit.
    label_columns : tuple of str
        Columns that labels which are not the truth are made from, beside that of labels.
    detected : tuple of str
        What was not given but detected, as sentences.
    """

    label: tuple[str, ...] = ()
    score: tuple[str, ...] = ()
    weight: str | None = None
    cluster: str | None = None
    predicted: str | None = None
    group: tuple[str, ...] = ()
    feature: tuple[str, ...] = ()
    label_columns: tuple[str, ...] = ()
    detected: tuple[str, ...] = ()

    @property
    def used(self) -> list[str]:
        """All of these columns."""
        single = [name for name in (self.weight, self.cluster, self.predicted) if name]
        return [*self.label, *self.score, *self.label_columns, *self.group, *self.feature, *single]

    def complete(self, table: Table, *, logits: bool = False, labelled: bool = True) -> Columns:
        """Expand patterns and detect the columns of labels, if there are any, and scores where they were not given."""
        given = replace(
            self,
            label=_expand(table, self.label),
            score=_expand(table, self.score),
            cluster=self.cluster or table.cluster or None,
            feature=(),
        )
        others = replace(given, label=(), score=()).used
        label = given.label
        if labelled and not label:
            label = _detect_label(table, [*others, *given.score])
        ranked = () if given.score or given.predicted else _ranked(table, [*label, *others])
        score = given.score or ranked[:1] or _detect_scores(table, label, others, logits=logits)
        chosen = replace(given, label=label, score=score, predicted=ranked[1] if ranked else given.predicted)
        chosen._refuse_conflicts()
        feature = tuple(name for name in _expand(table, self.feature) if name not in chosen.used)
        return replace(chosen, feature=feature, detected=chosen._beside(given))

    def _beside(self, given: Columns) -> tuple[str, ...]:
        """Return a sentence on the columns that were not given."""
        detected = []
        if not given.score:
            detected.append(f"{listing(self.score)} as the score{'s' if len(self.score) > 1 else ''}")
        if self.predicted != given.predicted:
            detected.append(f"{self.predicted!r} as the predicted class")
        if self.label != given.label:
            detected.append(f"{listing(self.label)} as the label")
        return (f"using {' and '.join(detected)}",) if detected else ()

    def _refuse_conflicts(self) -> None:
        for option, names in (("label", self.label), ("score", self.score), ("group", self.group)):
            if repeated(names):
                raise InputError(f"{repeated(names)[0]} is given more than once", argument=f"--{option}")
        truth = (*self.label, *self.label_columns)
        if both := [name for name in truth if name in self.score]:
            raise InputError(f"column {both[0]!r} is both the label and the score")
        if both := [name for name in truth if name in self.group]:
            raise label_as_group(both[0])

    def to_dict(self) -> dict[str, Any]:
        """Return the names of the columns."""
        return {name: value for name, value in vars(self).items() if value and name != "detected"}


def label_as_group(name: str) -> InputError:
    """Return the error for groups defined by the label: given the outcome, only 0 and 1 are calibrated."""
    return InputError(
        f"column {name!r} is both the label and a group",
        remedy="Choose groups that are known before the outcome; for the predicted class, name its column.",
    )


def _expand(table: Table, names: Sequence[str]) -> tuple[str, ...]:
    """Return names of columns; a pattern such as ``logit_*`` stands for all that match, in their order."""
    expanded: list[str] = []
    for name in names:
        matches = [column for column in table.columns if fnmatchcase(column, name)]
        is_pattern = name not in table.columns and any(mark in name for mark in "*?[")
        if is_pattern and not matches:
            raise InputError(
                f"{table.source} has no column that matches {name!r}. It has: {listing(table.columns, 20)}"
            )
        expanded += matches if is_pattern else [name]
    return tuple(expanded)


def _detect_label(table: Table, taken: Sequence[str]) -> tuple[str, ...]:
    """Return the one column with a conventional name, or the only one that is left beside the scores."""
    if table.label:
        return (table.label,)
    free = [name for name in table.columns if name not in taken]
    for names in (LABEL_NAMES, _OTHER_LABEL_NAMES):
        if candidates := [name for name in free if name.lower() in names]:
            break
    left = [name for name in free if name.lower() not in _SCORE_NAMES]
    if not candidates and len(free) <= 2 and len(left) == 1:
        candidates = left
    if len(candidates) == 1:
        return (candidates[0],)
    raise _undetected(table, "label", candidates)


def _detect_scores(
    table: Table, label: Sequence[str], taken: Sequence[str], *, logits: bool
) -> tuple[str, ...]:
    """Return the column of scores, or those of several classes: p0, p1, p2, or the names of the labels."""
    if table.scores:
        return table.scores
    free = [name for name in table.columns if name not in (*label, *taken)]
    usual = [name for name in free if name.lower() in _SCORE_NAMES]
    if len(usual) == 1:
        return (usual[0],)
    found = () if usual else _numbered(free, logits=logits)
    if not usual and not found and free and len(label) == 1:
        found = _named_after(_text_labels(table, label[0]), free)
    if not found:
        raise _undetected(table, "score", usual)
    return found


def _named_after(labels: set[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns named after the labels: one for each, or the only one of them."""
    if len(labels) > 1 and labels <= set(names):
        return tuple(name for name in names if name in labels)
    named = {name: found for name in names if (found := class_named(name, sorted(labels)))}
    each = len(set(named.values())) == len(named) == len(labels) > 1
    return tuple(named) if each or len(named) == 1 else ()


def _numbered(names: Sequence[str], *, logits: bool) -> tuple[str, ...]:
    """Return the columns of one family such as p0, p1, p2, in this order; none if numbers are left out."""
    matches = [match for name in names if (match := _NUMBERED.fullmatch(name))]
    family = [(int(match[2]), (match[1] or "").lower(), match[0]) for match in matches]
    family = sorted(member for member in family if logits == member[1].startswith("logit"))
    numbers = [number for number, _, _ in family]
    is_complete = len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1))
    if len({stem for _, stem, _ in family}) == 1 and (is_complete or numbers in ([1], [0, 1])):
        return tuple(name for _, _, name in family)
    return ()


def class_named(name: str, labels: Sequence[str]) -> str | None:
    """Return the label that the name of a column of scores ends in, or begins with if it is a letter, else None.

    Examples
    --------
    >>> class_named("p_home", ["A", "H"]), class_named("prob_Dog", ["cat", "dog"]), class_named("p_x", ["A", "H"])
    ('H', 'dog', None)
    """
    match = _OF_CLASS.fullmatch(name)
    end = match[1].lower() if match and not match[1].isdecimal() else ""
    same = [label for label in labels if label.lower() == end] or [
        label for label in labels if len(label) == 1 and label.lower() == end[:1]
    ]
    return same[0] if len(same) == 1 else None


def _ranked(table: Table, taken: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of the highest probability and of its class where each row has the first few classes."""
    found: dict[tuple[bool, int], str] = {}
    for name in table.columns:
        match = _RANKED.fullmatch(name) if name not in taken else None
        number = match and (match[1] or match[3])
        if match and number:
            found.setdefault((match[2] is not None, int(number)), name)
    ranks = sorted(number for is_class, number in found if is_class and (False, number) in found)
    if len(ranks) < 2:
        return ()
    scores = [found[False, number] for number in ranks]
    values = table.scan(scores).select(pl.all().cast(pl.Float64, strict=False))
    rows = table.collect(values.select(n=(pl.max_horizontal(pl.all()) > pl.nth(0)).sum()))
    if rows.item():
        problem = f"{table.source}: {scores[0]!r} is not the largest of the scores in {rows.item():,} rows"
        raise InputError(problem, remedy="Name the score and its class with --score and --predicted.")
    return (scores[0], found[True, ranks[0]])


def _text_labels(table: Table, label: str) -> set[str]:
    frame = table.scan([label])
    if frame.collect_schema()["c0"] not in (pl.String, pl.Categorical, pl.Enum):
        return set()
    values = frame.select(pl.col("c0").cast(pl.String).str.strip_chars().drop_nulls().unique())
    return set(table.collect(values)["c0"].to_list())


def _undetected(table: Table, role: str, candidates: Sequence[str]) -> InputError:
    why = f"Several could be it ({', '.join(candidates)})" if candidates else "None has a conventional name"
    return InputError(
        f"{table.source}: which column is the {role}? {why}",
        remedy=f"Name it with --{role}. Columns: {listing(table.columns, 20)}.",
    )


# --- Gold labels in a file of their own, joined by the name of the question -----------------------

#: Names of columns that name a question, an attempt at it, and gold labels.
_KEY = re.compile(
    r"^((question|sample|prompt|problem|task|item|doc|document|row|example|answer|case|patient)[ _.-]?)?"
    r"(id|uid|key|no|nr|number)$|^question$",
    re.IGNORECASE,
)
_REPEAT = ("epoch", "repeat", "attempt")
_GOLD = ("gold", "gold_label", "human", "human_label", *LABEL_NAMES)


def join_gold(table: Table, file: str) -> tuple[Table, str]:
    """Return a table with the gold labels of another file as a column, and the name of that column."""
    if table.is_large:
        raise InputError(f"{table.source} has too many rows for a file of gold labels")
    gold = open_table(file)
    keys = _keys(table, gold)
    label = _gold_column(gold, [key for _, key in keys])
    names = [f"c{k}" for k in range(len(keys))]
    texts = [_key_text(name) for name in names]
    mine, theirs = ([*side] for side in zip(*keys, strict=True))
    known = gold.collect(gold.scan([*theirs, label])).select(*texts, gold=pl.col(f"c{len(keys)}"))
    rows = table.collect(table.scan(mine)).select(*texts)
    shown = " and ".join(map(repr, theirs))
    again = known.select(names).filter(known.select(names).is_duplicated())
    if again.height:
        raise InputError(
            f"{file} has several rows with {shown} {listing([*again.row(0)])}", remedy="Keep one."
        )
    several = rows.filter(rows.is_duplicated()).join(known, on=names, how="semi")
    if several.height:
        raise InputError(
            f"{table.source} has several rows with {shown} {listing([*several.row(0)])}, and {file} one label",
            remedy="Add a column that tells them apart to both, such as epoch.",
        )
    joined = rows.join(known, on=names, how="left", maintain_order="left")
    n_found = joined["gold"].count()
    if not n_found:
        raise InputError(
            f"none of the {known.height:,} rows of {file} has a {shown} that is in {table.source}",
            remedy=f"There it is {listing(rows.get_column(names[0]).head(3).to_list())}, and so on.",
        )
    note = f"joined {counted(n_found, 'gold label')} of {file} by {shown}"
    if left := known["gold"].count() - n_found:
        note += f"; {left:,} of its labels belong to no row that is used"
    name = free_name("gold label", table.columns, "'")
    return _with_column(table, name, joined["gold"], note), name


def _key_text(name: str) -> Any:
    """Return a key as text; 3.0 becomes 3."""
    return pl.col(name).cast(pl.String).str.strip_chars().str.replace(r"\.0$", "")


def _keys(table: Table, gold: Table) -> list[tuple[str, str]]:
    """Return the columns of both that name a question, and attempts at it where both have them."""
    shared = [name for name in gold.columns if name in table.columns and _KEY.match(name)]
    mine, theirs = ([name for name in one.columns if _KEY.match(name)] for one in (table, gold))
    if shared:
        found = [(shared[0], shared[0])]
    elif len(mine) == 1 and len(theirs) == 1:
        found = [(mine[0], theirs[0])]
    else:
        raise InputError(
            f"which column names the rows of both {table.source} and {gold.source}? Columns: "
            f"{listing(table.columns, 10)}; {listing(gold.columns, 10)}",
            remedy="Give it the same name in both, such as id.",
        )
    repeats = [next((name for name in one.columns if name.lower() in _REPEAT), None) for one in (table, gold)]
    return [*found, (repeats[0], repeats[1])] if repeats[0] and repeats[1] else found


def _gold_column(gold: Table, keys: Sequence[str]) -> str:
    free = [name for name in gold.columns if name not in keys]
    usual = [name for name in _GOLD if name in (one.lower() for one in free)]
    if usual:
        return next(name for name in free if name.lower() == usual[0])
    if len(free) == 1:
        return free[0]
    raise InputError(
        f"{gold.source}: which column holds the gold labels? Columns: {listing(gold.columns, 20)}",
        remedy="Call it gold.",
    )


def _with_column(table: Table, name: str, values: Any, note: str) -> Table:
    """Return a table with a further column."""
    frame = table.scan(table.columns) if isinstance(table.frame, Mapping) else table.frame
    columns, notes = (*table.columns, name), (*table.notes, note)
    return replace(table, columns=columns, notes=notes, frame=frame.with_columns(values.alias(name)))
