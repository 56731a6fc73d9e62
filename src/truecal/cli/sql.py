"""``truecal sql``: a query that reduces a table in a database to cells."""

from __future__ import annotations

from typing import Any

import click

from truecal.cli._options import Command, output_options
from truecal.cli._output import Output
from truecal.data.sql import DIALECTS, cells_query


@click.command("sql", cls=Command)
@click.option(
    "--dialect",
    type=click.Choice(list(DIALECTS)),
    metavar="NAME",
    required=True,
    help=f"The database: {', '.join(DIALECTS)}.",
)
@click.option("--table", required=True, help="Table or view: name, schema.name, or {{ ref('name') }} of dbt.")
@click.option("--label", required=True, help="Column of the true labels, 0 and 1.")
@click.option("--score", required=True, help="Column of the probability of the positive label.")
@click.option("--weight", help="Column of weights.")
@click.option("--group", multiple=True, help="Column of groups; repeat it to cross several.")
@click.option("--cluster", help="Column with cluster IDs; rows of a cluster may depend on each other.")
@click.option("--pos-label", help="The positive label: a number, true, or text.")
@click.option("--neg-label", help="The other label, if they are neither 0 and 1 nor true and false.")
@output_options
def command(
    out: Output,
    table: str,
    group: tuple[str, ...],
    pos_label: str | None,
    neg_label: str | None,
    **columns: str,
) -> None:
    """Print one GROUP BY query that reduces a table in a database to at most 65,536 cells for each group.

    Save its result as CSV or Parquet, and read it with: truecal measure FILE --cells. Rows with missing or impossible
    values are counted by the query and refused when its result is read. Names are quoted, and read as the database
    reads them; put a name in double quotes to keep its case.
    """
    labels = {"pos_label": _label(pos_label), "neg_label": _label(neg_label)}
    query = cells_query(table, by=group, **columns, **labels)
    out.finish("sql", lambda: {"dialect": columns["dialect"], "query": query}, lambda: query, fit=False)


def _label(text: str | None) -> Any:
    """Return a label as a number or a boolean if it reads like one; in single quotes it is text."""
    if text is None or text.lower() in ("true", "false"):
        return None if text is None else text.lower() == "true"
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
