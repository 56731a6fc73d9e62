"""``truecal estimators``: the registry as a table."""

from __future__ import annotations

import click

from truecal.cli._output import finish


@click.command("estimators")
@click.option("--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True)
def command(style: str) -> None:
    """List the estimators with what they estimate."""
    from truecal import list_estimators

    specs = list_estimators()
    if style == "json":
        keys = ("name", "summary", "estimand", "norms", "reference", "aliases")
        rows = [{key: getattr(spec, key) for key in keys} for spec in specs]
        finish("estimators", {"results": rows}, "", style=style, output=None)
        return

    from rich.console import Console
    from rich.table import Table

    table = Table("name", "what it does", "estimand", "reference", box=None, header_style="bold")
    for spec in specs:
        table.add_row(spec.name, spec.summary, spec.estimand, spec.reference)
    console = Console()
    console.print(table, width=console.width if console.is_terminal else 160)
