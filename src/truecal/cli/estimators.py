"""``truecal estimators``: the registry as a table."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from truecal._lib.text import WIDTH
from truecal.cli._options import Command, shared
from truecal.cli._output import Output

if TYPE_CHECKING:
    from truecal.estimators._registry import EstimatorSpec


@click.command("estimators", cls=Command)
@shared("format")
def command(style: str) -> None:
    """List the estimators with what they estimate."""
    from truecal import list_estimators

    specs = list_estimators()
    keys = ("name", "summary", "estimand", "norms", "reference", "aliases")
    content = {"results": [{key: getattr(spec, key) for key in keys} for spec in specs]}
    Output(style).finish(
        "estimators", lambda: content, lambda: "\n".join(line for spec in specs for line in _lines(spec))
    )


def _lines(spec: EstimatorSpec) -> list[str]:
    """Return the name of an estimator with what it does, what it estimates, and where it comes from."""
    names = ", ".join((spec.name, *spec.aliases))
    text = f"{spec.summary} Estimates the {spec.estimand}. {spec.reference}"
    return textwrap.wrap(text, WIDTH, initial_indent=f"{names:<14}", subsequent_indent=" " * 14)
