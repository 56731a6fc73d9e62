"""The command line. Each command is a module of its own, imported when it is called."""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import Any

import click

#: Every command, with the line that `truecal --help` shows for it.
COMMANDS = {
    "measure": "Measure the calibration error of the predictions in a file.",
    "report": "Write a calibration report as one HTML page.",
    "test": "Test the null hypothesis of perfect calibration.",
    "compare": "Compare the calibration of several models.",
    "recalibrate": "Choose a recalibrator by cross-validation and apply it.",
    "plan": "Plan the number of labels needed to detect an error.",
    "study": "Measure the bias of estimators where the truth is known.",
    "reproduce": "Reproduce the figures and tables of the paper.",
    "estimators": "List the estimators.",
}

#: Problems outside the program: bad input, files, missing packages.
_EXPECTED = (ValueError, OSError, ImportError)

_EPILOG = """\b
Exit codes: 0 done, or the answer is yes; 1 the answer is no; 2 bad input or a missing package.
Completion: eval "$(_TRUECAL_COMPLETE=bash_source truecal)", or zsh_source, or fish_source.
"""


class _Commands(click.Group):
    """Commands that are imported only when they run."""

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
        """Run a command. Bad input ends in one line on standard error and exit code 2."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", UserWarning
                )  # every result carries its notes, which are printed
                return super().invoke(ctx)
        except BrokenPipeError:
            raise  # click ends quietly when the reader of a pipe has gone
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
    message = for_command_line(error, columns)
    # Messages on the content of a file come from the library, which does not know its name.
    return f"{source}: {message}" if source and source not in message else message


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EPILOG)
@click.version_option(package_name="truecal")
def main() -> None:
    """Measure how far predicted probabilities are from the truth, and how sure one can be."""
