"""The command line. Each command is a module of its own, imported when it is called."""

from __future__ import annotations

import importlib
import sys
import warnings
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

_EPILOG = """\b
Exit codes: 0 done; 1 the answer is "no", where a command asks something; 2 bad input.
Completion: eval "$(_TRUECAL_COMPLETE=bash_source truecal)", or zsh_source, or fish_source.
"""


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
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", UserWarning
                )  # every result carries its notes, which are printed
                return super().invoke(ctx)
        except BrokenPipeError:
            raise  # click ends quietly when nobody reads on
        except _EXPECTED as error:
            click.echo(f"truecal: {_in_words(error, ctx)}", err=True)
            sys.exit(2)
        except KeyboardInterrupt:
            click.echo("truecal: interrupted.", err=True)
            sys.exit(130)


def _in_words(error: Exception, ctx: click.Context) -> str:
    from truecal.cli._words import for_command_line

    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}."
    if not isinstance(error, ValueError):
        return str(error)
    source, columns = ctx.meta.get("truecal.words", ("", {}))
    message = for_command_line(str(error), columns)
    # Messages on the content of a file come from the library, which does not know its name.
    return f"{source}: {message}" if source and source not in message else message


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EPILOG)
@click.version_option(package_name="truecal")
def main() -> None:
    """Tell how far predicted probabilities are from the truth, and how sure one can be."""
