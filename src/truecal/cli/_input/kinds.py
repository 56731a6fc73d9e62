"""Labels that are not the truth, from the options and columns that describe them to `truecal.labels`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import numpy as np

from truecal._lib.text import counted, listing
from truecal.cli._input.columns import LABEL_NAMES, Columns, Reading
from truecal.cli._input.files import open_table
from truecal.cli._input.labels import as_label, pair_of
from truecal.cli._input.table import Table, as_array, free_name
from truecal.cli._input.values import MARKS, Field, Frame, called
from truecal.cli._options import column_option
from truecal.exceptions import InputError

if TYPE_CHECKING:
    import polars as pl

    from truecal.data.pseudo_labels import ImperfectLabels

Function = TypeVar("Function", bound=Callable[..., Any])

#: The options of each kind of labels; those in the second tuple are needed.
_KINDS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("a judge", ("judge", "gold", "gold_probability"), ("gold",)),
    ("soft labels", ("soft",), ()),
    ("censored outcomes", ("time", "event", "horizon", "strata"), ("time", "event", "horizon")),
    ("misclassified labels", ("sensitivity", "specificity", "validated"), ("sensitivity", "specificity")),
)
#: Names, in the frame of a plan, of what the labels are made from; rows without a gold label are kept.
JUDGE, GOLD, CHANCE = "judge of the row", "gold label of the row", "probability of the row"
TIME, EVENT, STRATUM, LABEL = "time of the row", "event of the row", "stratum of the row", "label of the row"


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def labels_options(command: Function) -> Function:
    """Add the options for labels that are not the truth."""
    options = (
        column_option(
            "--judge",
            multiple=True,
            help="Column of a judge's labels or probabilities; repeat for several judges.",
        ),
        column_option(
            "--gold",
            help="Column of gold labels, empty where there is none, or a file of them that is joined by id. The judge "
            "is --judge, or else the label column.",
        ),
        column_option(
            "--gold-probability",
            help="Column of the probabilities with which rows were chosen for a gold label, if they differ.",
        ),
        click.option("--soft", is_flag=True, help="The labels are fractions of annotators who said 1."),
        column_option(
            "--time", help="Column of times to the event or to censoring; with --event and --horizon."
        ),
        column_option(
            "--event", help="Column of events: 0 censored, 1 the event, 2 and more competing events."
        ),
        click.option("--horizon", type=float, help="Time by which the event is predicted."),
        column_option(
            "--strata",
            help="Number of strata of the score in which censoring is estimated, or a column of strata.",
        ),
        click.option("--sensitivity", type=float, help="Probability that a positive is labelled 1."),
        click.option("--specificity", type=float, help="Probability that a negative is labelled 0."),
        click.option(
            "--validated",
            nargs=2,
            type=int,
            metavar="N1 N0",
            help="Positives and negatives from which sensitivity and specificity were estimated.",
        ),
    )
    taken = {name for param in getattr(command, "__click_params__", ()) for name in param.opts}
    for decorate, name in reversed(list(zip(options, OPTIONS, strict=True))):
        if name not in taken:
            command = decorate(command)
    return command


@dataclass(frozen=True)
class LabelKind:
    """What labels that are not the truth are made from: the options of the same names."""

    judge: tuple[str, ...] = ()
    gold: str | None = None
    gold_probability: str | None = None
    soft: bool = False
    time: str | None = None
    event: str | None = None
    horizon: float | None = None
    strata: str | None = None
    sensitivity: float | None = None
    specificity: float | None = None
    validated: tuple[int, int] | None = None

    @classmethod
    def from_options(cls, given: dict[str, Any]) -> tuple[LabelKind | None, dict[str, Any]]:
        """Return the kind that options ask for, None if they ask for none, and the other options."""
        own = {field.name for field in fields(cls)}
        kind = cls(**{name: value for name, value in given.items() if name in own})
        rest = {name: value for name, value in given.items() if name not in own}
        # The first option that was given of each kind, and what that kind needs.
        asked = [(found[0], needed) for _, names, needed in _KINDS if (found := kind._given(names))]
        if not asked:
            return None, rest
        (first, needed), *others = asked
        if others:
            raise InputError(
                f"{first} and {others[0][0]} describe different kinds of labels; give one of them"
            )
        if lacking := [_option(name) for name in needed if not kind._given([name])]:
            raise InputError(f"needs {' and '.join(lacking)}", argument=first)
        return kind, rest

    def _given(self, names: Sequence[str]) -> list[str]:
        """Return which of these options were given, as they are written."""
        return [_option(name) for name in names if getattr(self, name) not in ((), None, False)]

    @property
    def name(self) -> str:
        """What the labels are, in words."""
        return next(what for what, names, _ in _KINDS if self._given(names))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it names."""
        single = (self.gold, self.gold_probability, self.time, self.event)
        strata = (self.strata,) if self.strata and not self.strata.isdigit() else ()
        return tuple(dict.fromkeys([*self.judge, *(name for name in single if name), *strata]))

    @property
    def uses_label(self) -> bool:
        """Whether the label column is one of them: soft, misclassified, or a judge's."""
        return self.time is None and not self.judge

    def complete(self, columns: Columns) -> LabelKind:
        """Refuse options that do not go together; take the label column as the judge where none is named."""
        if columns.predicted:
            raise InputError(
                f"cannot be combined with {self.name}",
                argument="--predicted",
                remedy="Labels then say whether the prediction was right.",
            )
        if not self.uses_label and columns.label:
            option = "--judge" if self.judge else "--time"
            raise InputError(f"and {option} name the labels twice; give one of them", argument="--label")
        if len(columns.label) > 1:
            raise InputError(
                f"names {len(columns.label)} columns, and {self.name} are in one", argument="--label"
            )
        return replace(self, judge=columns.label) if self.gold and not self.judge else self

    def values(
        self, frame: Frame, columns: Columns, reading: Reading, *, several_scores: bool
    ) -> tuple[dict[str, pl.Expr], list[str]]:
        """Return the columns that the labels are made from, and what was detected."""
        binary = _Binary(frame, None if several_scores else reading.pos_label)
        values: dict[str, pl.Expr] = {}
        if self.gold:
            parts = [part for name in self.judge for part in frame.expand(name)]
            values |= {f"{JUDGE} {k}": binary.read(part) for k, part in enumerate(parts)}
            values[GOLD] = binary.read(_one(frame, self.gold))
            if self.gold_probability:
                (values[CHANCE],) = frame.numbers([_one(frame, self.gold_probability)])
        elif self.time:
            assert self.event is not None
            (values[TIME],) = frame.numbers([_one(frame, self.time)])
            values[EVENT] = binary.read(_one(frame, self.event))
            if self.strata and not self.strata.isdigit():
                values[STRATUM] = frame.names_of_rows(frame.field(self.strata))
        else:
            part = _one(frame, columns.label[0])
            values[LABEL] = frame.numbers([part])[0] if self.soft else binary.read(part)
        return values, binary.notes

    def labels(self, rows: pl.DataFrame) -> ImperfectLabels:
        """Return the labels of these rows."""
        from truecal import labels

        def column(name: str) -> Any:
            return as_array(rows[name].cast(_float()))

        if self.gold:
            judges = [column(name) for name in rows.columns if name.startswith(JUDGE)]
            chance = column(CHANCE) if self.gold_probability else None
            return labels.judged(np.column_stack(judges), column(GOLD), chance)
        if self.time:
            assert self.horizon is not None
            strata: Any = None
            if self.strata:
                strata = int(self.strata) if self.strata.isdigit() else rows[STRATUM].to_numpy()
            return labels.censored(column(TIME), column(EVENT), horizon=self.horizon, strata=strata)
        if self.soft:
            return labels.soft(column(LABEL))
        assert self.sensitivity is not None
        assert self.specificity is not None
        return labels.misclassified(
            column(LABEL),
            sensitivity=self.sensitivity,
            specificity=self.specificity,
            validated=self.validated,
        )

    def names(self, columns: Columns) -> dict[str, str]:
        """Return what messages call the arguments of `truecal.labels`."""
        given = {
            "judge": self.judge,
            "gold": (self.gold,),
            "probability": (self.gold_probability,),
            "time": (self.time,),
            "event": (self.event,),
            "strata": (self.strata,) if self.strata and not self.strata.isdigit() else (),
            "fraction": columns.label,
            "label": columns.label,
        }
        return {name: called(list(filter(None, some))) for name, some in given.items() if any(some)}


#: The options as they are written.
OPTIONS = tuple(_option(field.name) for field in fields(LabelKind))


class _Binary:
    """Columns of labels as 0 and 1: numbers, booleans, or words such as no and yes."""

    def __init__(self, frame: Frame, pos_label: str | None) -> None:
        self.frame, self.pos_label = frame, pos_label
        self.notes: list[str] = []

    def read(self, part: Field) -> pl.Expr:
        """Return the numbers of a column, null where a value is missing."""
        import polars as pl

        found = self.frame.labels(part)
        values, seen = found.values, found.seen
        if found.kind == "text":
            seen = [word for word in seen if word.lower() not in MARKS]
            values = pl.when(~values.str.to_lowercase().is_in(MARKS)).then(values)
        if self.pos_label is not None:
            positive = as_label(self.pos_label, found.kind, "--pos-label")
            return pl.when(values.is_not_null()).then(values == positive)
        if found.kind != "text" or not seen:
            return values.cast(pl.Float64, strict=False)
        pair = pair_of(seen)
        if pair is None:
            raise part.error(
                f"holds {listing(seen)}",
                remedy="Write 0 and 1, or name the positive label with --pos-label.",
            )
        note = f"using {pair[1]!r} as the positive label"
        self.notes += [note] if note not in self.notes else []
        lower = values.str.to_lowercase()
        return pl.when(lower.is_in(pair)).then(lower == pair[1])


def _one(frame: Frame, name: str) -> Field:
    parts: Sequence[Field] = frame.expand(name)
    if len(parts) > 1:
        raise parts[0].error(
            f"is one of {len(parts)} parts of {called([name])}; one value in each row is needed"
        )
    return parts[0]


def _float() -> Any:
    import polars as pl

    return pl.Float64


# --- Gold labels in a file of their own, joined by the name of the question -----------------------

#: Names of columns that name a question, an attempt at it, and gold labels.
_KEY = re.compile(
    r"^((question|sample|prompt|problem|task|item|doc|document|row|example|answer|case|patient)[ _.-]?)?"
    r"(id|uid|key|no|nr|number)$|^question$",
    re.IGNORECASE,
)
_REPEAT = ("epoch", "repeat", "attempt")
_GOLD = ("gold", "gold_label", "human", "human_label", *LABEL_NAMES)


def join_gold(table: Table, kind: LabelKind) -> tuple[Table, LabelKind]:
    """Return a table with the gold labels of another file as a column, and the kind of labels that uses it."""
    import polars as pl

    if kind.gold is None or kind.gold in table.columns or not Path(kind.gold).is_file():
        return table, kind
    if table.is_large:
        raise InputError(f"{table.source} has too many rows for a file of gold labels")
    gold = open_table(kind.gold)
    keys = _keys(table, gold)
    label = _label(gold, [key for _, key in keys])
    names = [f"c{k}" for k in range(len(keys))]
    texts = [_text(name) for name in names]
    mine, theirs = ([*side] for side in zip(*keys, strict=True))
    known = gold.collect(gold.scan([*theirs, label])).select(*texts, gold=pl.col(f"c{len(keys)}"))
    rows = table.collect(table.scan(mine)).select(*texts)
    shown = " and ".join(map(repr, theirs))
    again = known.select(names).filter(known.select(names).is_duplicated())
    if again.height:
        raise InputError(
            f"{kind.gold} has several rows with {shown} {listing([*again.row(0)])}", remedy="Keep one."
        )
    several = rows.filter(rows.is_duplicated()).join(known, on=names, how="semi")
    if several.height:
        raise InputError(
            f"{table.source} has several rows with {shown} {listing([*several.row(0)])}, and {kind.gold} one label",
            remedy="Add a column that tells them apart to both, such as epoch.",
        )
    joined = rows.join(known, on=names, how="left", maintain_order="left")
    n_found = joined["gold"].count()
    if not n_found:
        raise InputError(
            f"none of the {known.height:,} rows of {kind.gold} has a {shown} that is in {table.source}",
            remedy=f"There it is {listing(rows.get_column(names[0]).head(3).to_list())}, and so on.",
        )
    note = f"joined {counted(n_found, 'gold label')} of {kind.gold} by {shown}"
    if left := known["gold"].count() - n_found:
        note += f"; {left:,} of its labels belong to no row that is used"
    name = free_name("gold label", table.columns, "'")
    return _with_column(table, name, joined["gold"], note), replace(kind, gold=name)


def _text(name: str) -> Any:
    """Return a key as text; 3.0 is 3."""
    import polars as pl

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


def _label(gold: Table, keys: Sequence[str]) -> str:
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
    columns, notes = (*table.columns, name), (*table.notes, note)
    if isinstance(table.frame, Mapping):
        array = values.cast(str).fill_null("").to_numpy().astype(str)
        return replace(table, columns=columns, notes=notes, frame={**table.frame, name: array})
    frame = table.frame.with_columns(values.alias(name))
    return replace(table, columns=columns, notes=notes, frame=frame)
