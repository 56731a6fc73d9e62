"""Gold labels in a file of their own, joined to the rows of another by the name of the question."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from truecal._lib.text import counted, listing
from truecal.cli.input.columns import LABEL_NAMES
from truecal.cli.input.files import open_table
from truecal.cli.input.kinds import LabelKind
from truecal.cli.input.table import Table, free_name
from truecal.exceptions import InputError

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
