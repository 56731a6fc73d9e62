"""The command line. Each command is a module of its own, imported when it is called."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

#: Every command, with the line that `truecal --help` shows for it.
COMMANDS = {
    "measure": "Measure how far the probabilities in a file are from the truth.",
    "report": "Write a report on them, as one HTML page.",
    "test": "Test whether every one of them could be right.",
    "compare": "Compare the calibration of several models.",
    "recalibrate": "Choose a recalibrator, and apply it.",
    "plan": "Plan how many labels it takes to find an error.",
    "study": "Measure the bias of estimators on populations with known truth.",
    "reproduce": "Make the figures and tables of the paper again.",
    "estimators": "List the estimators.",
}

#: What went wrong outside the program: bad input, files, missing packages.
_EXPECTED = (ValueError, OSError, ImportError)


class _Commands(click.Group):
    """A group that knows its commands' names and imports a command only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"truecal.cli.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what is wrong with its input is one sentence on standard error, and exit code 2."""
        try:
            return super().invoke(ctx)
        except _EXPECTED as error:
            click.echo(f"truecal: {error}", err=True)
            sys.exit(2)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="truecal")
def main() -> None:
    """Tell how far predicted probabilities are from the truth, and how sure one can be."""
