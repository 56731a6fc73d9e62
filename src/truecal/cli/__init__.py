"""The command line. Each command is a module of its own, imported when it is called."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from typing import Any, NoReturn

import click

#: Every command, with the line that `truecal --help` shows for it.
COMMANDS = {
    "measure": "Measure the calibration error of the predictions in a file.",
    "report": "Write a calibration report as one HTML page.",
    "test": "Test the null hypothesis of perfect calibration.",
    "compare": "Compare the calibration of several models.",
    "audit": "Search the features in a file for miscalibrated segments.",
    "monitor": "Watch the calibration of predictions over time.",
    "recalibrate": "Choose a recalibrator by cross-validation and apply it.",
    "plan": "Plan the number of labels needed to detect an error.",
    "sql": "Print a query that reduces a table in a database to cells.",
    "study": "Measure the bias of estimators where the truth is known.",
    "reproduce": "Reproduce the figures and tables of the paper.",
    "estimators": "List the estimators.",
}

#: Bytes of address space with which NumPy, SciPy and Polars can be loaded and used.
_LEAST_ADDRESSES = 1_500_000_000

#: Exit code of a bug, EX_SOFTWARE of sysexits.h; Python's own would be 1, which means that the answer is no.
_INTERNAL = 70
_ISSUES = "https://github.com/truecal/truecal/issues"

_EPILOG = """\b
Exit codes: 0 success, or the check passed; 1 the check
failed; 2 bad input or a missing package; 70 an internal
error, which is a bug in truecal.
Completion in the shell (zsh and fish: zsh_source, fish_source):
eval "$(_TRUECAL_COMPLETE=bash_source truecal)"
"""


class _Commands(click.Group):
    """Commands that are imported only when they run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"truecal.cli.{'measure' if name == 'estimators' else name}")
        command: click.Command = module.estimators if name == "estimators" else module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from truecal._lib.checks import did_you_mean

            hint = did_you_mean(args[0], COMMANDS) or f"Commands: {', '.join(COMMANDS)}."
            ctx.fail(f"No such command {args[0]!r}. {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def make_context(self, *args: Any, **options: Any) -> click.Context:
        """Read the options; click itself would exit with 1 if interrupted, which means that the answer is no."""
        try:
            return super().make_context(*args, **options)
        except KeyboardInterrupt:
            _interrupted()

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an interrupt exits with 130."""
        try:
            return self._run(ctx)
        except KeyboardInterrupt:
            _interrupted()

    def _run(self, ctx: click.Context) -> Any:
        """Run a command.

        Bad input ends in one line on standard error and exit code 2. A bug ends in a traceback and exit code 70, since
        1 means that the answer is no.
        """
        from truecal._lib.text import use_terminal
        from truecal.exceptions import CalibrationWarning, InputError, MissingExtraError

        try:
            use_terminal()
            _limit_threads()
            _check_address_space()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CalibrationWarning)  # the results carry them as notes
                return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise  # click reports them, and ends quietly when the reader of a pipe has gone
        except InputError as error:
            from truecal.cli._output import describe

            _fail(describe(error), 2)
        except MissingExtraError as error:
            _fail(str(error), 2)
        except MemoryError:
            _fail("not enough memory for this.", 2)
        except OSError as error:
            reason = f"{error.strerror or error}".rstrip(".")
            _fail(f"{error.filename or 'standard output'}: {reason}.", 2)
        except Exception as error:
            loky = sys.modules.get("joblib.externals.loky.process_executor")
            if loky is not None and isinstance(error, loky.BrokenProcessPool):
                _fail("a worker process was killed, perhaps for lack of memory. Use a smaller --n-jobs.", 2)
            _fail_internally(error)
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # a bug in Polars
                raise
            _fail_internally(error)


def _limit_threads() -> None:
    """Limit linear algebra to one thread: products here are many and small, so more threads do not help."""
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def _check_address_space() -> None:
    """Reject a memory limit (``ulimit -v``) too small for the libraries, which would abort without a message."""
    if sys.platform == "win32":
        return
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    if limit < _LEAST_ADDRESSES:
        message = f"the memory of this process is limited to {limit / 1e9:.1f} GB (ulimit -v). "
        _fail(f"{message}At least {_LEAST_ADDRESSES / 1e9:.1f} GB of address space are needed.", 2)
    if limit < 10 * _LEAST_ADDRESSES:  # every thread reserves some of it
        for name in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS"):
            os.environ.setdefault(name, "1")


def _fail_internally(error: BaseException) -> None:
    """Report a bug, with its traceback."""
    import traceback

    from truecal._lib.text import printable

    click.echo(printable("".join(traceback.format_exception(error))), err=True)
    what = f"internal error ({type(error).__name__}). This is a bug in truecal, and no result"
    _fail(f"{what}. Please report it with the lines above: {_ISSUES}", _INTERNAL)


def _interrupted() -> NoReturn:
    _fail("interrupted.", 130)


def _fail(message: str, code: int) -> NoReturn:
    from truecal._lib.text import fitted, printable, text_width

    text = f"truecal: {printable(message)}"
    click.echo(fitted(text, text_width()) if sys.stderr.isatty() else text, err=True)
    sys.exit(code)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EPILOG)
@click.version_option(package_name="truecal")
def main() -> None:
    """Measure how far predicted probabilities are from the truth, and how sure one can be."""
