"""Tables of cells, as the query of ``truecal sql`` returns them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truecal._lib.text import listing
from truecal.cli._errors import naming
from truecal.cli.input.columns import Columns
from truecal.cli.input.files import open_table
from truecal.cli.input.loaded import Predictions
from truecal.cli.input.values import Frame
from truecal.data.sql import CLUSTER, find_columns, read_cells
from truecal.exceptions import InputError


def load_cells(
    file: str,
    *,
    group: Sequence[str] = (),
    counts: bool = False,
    input_format: str | None = None,
    encoding: str | None = None,
    **others: Any,
) -> Predictions:
    """Read a file of cells.

    Parameters
    ----------
    file, input_format, encoding
        As for `open_table`.
    group : sequence of str
        Columns of groups; other groups are merged.
    counts : bool
        Whether weights are counts.
    **others
        Options that describe rows, which must not be given.
    """
    given = [name for name, value in others.items() if value]
    if given:
        options = listing([f"--{name.replace('_', '-')}" for name in given])
        raise InputError(f"--cells cannot be combined with {options}, which the query has applied already")
    table = open_table(file, input_format, encoding)
    with naming(table.source, {}):
        found = find_columns(table.columns)
        cluster = found.pop(CLUSTER, None)
        known = list(found.values())
        frame = Frame(table, [*known, *group, *([cluster] if cluster else [])])
        columns = dict(zip(known, frame.numbers([frame.field(name) for name in known]), strict=True))
        columns |= zip(group, frame.groups(group), strict=True)
        if cluster:
            columns[cluster] = frame.names_of_rows(frame.field(cluster))
        rows = table.collect(frame.lazy.select(**columns))
        weights = "counts" if counts else "sampling"
        cells = read_cells(rows, by=list(group), weights=weights)
    left = [name for name in table.columns if name not in (*known, *group, cluster)]
    notes = [f"merged the groups of {listing(left)}; --group measures each"] if left else []
    return Predictions(
        table=table,
        columns=Columns(group=tuple(group), cluster=cluster),
        notes=tuple(notes),
        options={"multiclass": None},
        cells=dict(cells),
        n_rows=int(rows[found["rows"]].sum()),
    )
