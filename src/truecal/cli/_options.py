"""Options that several commands share."""

from __future__ import annotations

import math
import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from truecal._lib.checks import read_norm
from truecal.cli._output import VERBOSE, Output, check_target, say
from truecal.exceptions import InputError

#: What gives a command an option.
Option = Callable[[Any], Any]

#: The output file of a command.
OUTPUT = click.Path(dir_okay=False, path_type=Path)


#: The format that the end of a file's name implies; --input-format takes them, too.
SUFFIXES = {
    ".csv": "csv", ".tsv": "tsv", ".txt": "csv", ".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl",
    ".ndjson": "jsonl", ".json": "jsonl", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".npz": "npz", ".npy": "npy", ".eval": "eval", ".xlsx": "excel", ".xls": "excel", ".xlsm": "excel", ".ods": "excel",
}  # fmt: skip
_FORMATS = [*dict.fromkeys(SUFFIXES.values())]
#: What --multiclass takes, beside top_5 and the like.
MULTICLASS = ("top", "classwise", "top_by_class", "top_k", "multilabel", "canonical")
#: Examples in the help of each command; bundled data makes them run anywhere, and the tests run all of them.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "measure": (
        "truecal measure flights",
        "truecal measure flights --score naive_bayes --group origin",
        "truecal measure digits --multiclass classwise --format json --no-bins",
    ),
    "report": ("truecal report flights --group origin -o flights.html",),
    "test": (
        "truecal test flights --score balanced",
        "truecal test flights --at-most 0.05",
    ),
    "compare": ("truecal compare flights --score boosting --score balanced",),
    "audit": ("truecal audit flights --feature origin --feature carrier",),
    "monitor": (
        "truecal monitor flights --every 500 --once",
        "truecal monitor flights --every 500 --at-most 0.1 --group origin",
    ),
    "recalibrate": ("truecal recalibrate flights --score balanced --write better.csv",),
    "plan": ("truecal plan --error 0.1", "truecal plan --rows 1000"),
    "sql": ("truecal sql --dialect postgres --table predictions --label y --score p",),
    "study": ("truecal study study.toml -o results.csv",),
    "reproduce": ("truecal reproduce --list",),
    "estimators": ("truecal estimators",),
}


class Command(click.Command):
    """A command whose help has examples, and that refuses an option given twice instead of using the last."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        examples = EXAMPLES.get(self.name or "", ())
        if examples:
            with formatter.section("Examples"):
                for line in examples:
                    words = textwrap.wrap(line, formatter.width - 8, break_on_hyphens=False)
                    formatter.write(f"  {f' {chr(92)}{chr(10)}      '.join(words)}\n")
        super().format_epilog(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the command itself first, then those that say how the file is read."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        reading = _written("table", "scores", "cells")
        for title, wanted in (("Options", False), ("Options of how FILE is read", True)):
            shown = [one for one in options if (one.opts[-1] in reading) is wanted]
            if records := [record for one in shown if (record := one.get_help_record(ctx))]:
                with formatter.section(title):
                    formatter.write_dl(records)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = [word.partition("=")[0] for word in args[: args.index("--") if "--" in args else None]]
        self._refuse_kinds_of_labels(words)
        self._refuse_repeated(words, ctx)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if "unexpected extra argument" not in error.message or all(
                one.name != "file" for one in self.params
            ):
                raise
            hint = "One FILE is read: quote a pattern, such as 'part-*.csv'; models are columns of it."
            raise click.UsageError(f"{error.message.removesuffix('.')}. {hint}", ctx=ctx) from error

    def _refuse_repeated(self, words: list[str], ctx: click.Context) -> None:
        """Refuse options that are given twice, of which click would take the last."""
        single = {
            name: option
            for option in self.params
            if isinstance(option, click.Option) and not option.multiple and not option.is_flag
            for name in option.opts
        }
        for option, times in Counter(single[word] for word in words if word in single).items():
            if times > 1:
                raise click.UsageError(f"{option.opts[-1]} is given more than once.", ctx=ctx)

    def _refuse_kinds_of_labels(self, words: list[str]) -> None:
        """Refuse options for labels that are not the truth in commands that need true labels."""
        known = {name for param in self.params for name in param.opts}
        other = [word for word in words if word in _written("labels") - known]
        if other and "--label" in known:
            raise InputError(
                f"{self.name} needs true labels: {other[0]} is an option of measure, test, report and compare"
            )


class Fraction(click.ParamType):  # type: ignore[type-arg]
    """A number, or a percentage with its sign: 3% is 0.03."""

    name = "fraction"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        try:
            return float(f"{float(text[:-1]) / 100:.15g}") if text.endswith("%") else float(text)
        except ValueError:
            return self.fail(
                f"{value!r} is not a number such as 0.03, or a percentage such as 3%.", param, ctx
            )


class Norm(click.ParamType):  # type: ignore[type-arg]
    """The order of a norm: a number, or l1, l2 or max."""

    name = "float"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        named = read_norm(value)
        return float(click.FLOAT.convert(value, param, ctx)) if math.isnan(named) else named


class Multiclass(click.ParamType):  # type: ignore[type-arg]
    """What to measure for several classes: one of a few words, or top_5 with any number."""

    name = "multiclass"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in MULTICLASS or re.fullmatch("top_[1-9][0-9]*", value):
            return str(value)
        return self.fail(
            f"{value!r} is not one of {', '.join(MULTICLASS)}, or top_ and a number.", param, ctx
        )

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(word) for word in MULTICLASS if word.startswith(incomplete)]


def complete_columns(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the columns of FILE that begin with some letters, for completion in a shell."""
    from truecal.cli._input.files import open_table

    try:
        columns = open_table(ctx.params["file"] or ctx.args[0]).columns
    except Exception:  # completion must never end in an error
        return []
    return [name for name in columns if name.startswith(incomplete)]


def complete_estimators(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of estimators that begin with some letters, for completion in a shell."""
    from truecal.estimators._registry import list_estimators

    names = (name for spec in list_estimators() for name in (spec.name, *spec.aliases))
    return [name for name in names if name.startswith(incomplete)]


def check_estimators(names: Iterable[str]) -> None:
    """Refuse names that are not estimators; report packages whose estimators cannot be loaded.

    Other packages are looked for only if a name is not one of truecal's own, for that takes long.
    """
    from truecal.estimators._registry import get_estimator

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            for name in names:
                get_estimator(name)
        finally:
            for warning in caught:
                say(str(warning.message))


def column_option(*names: str, **settings: Any) -> Option:
    """Return an option that names a column of FILE."""
    return click.option(*names, shell_complete=complete_columns, **settings)


def _set_verbose(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    ctx.meta[VERBOSE] = value


def option(name: str, default: Any, type: Any, help: str) -> Option:
    """Return an option with a default, which the help shows."""
    return click.option(name, type=type, default=default, show_default=True, help=help)


#: Options that several commands share, each declared once; some names stand for several options.
_SHARED: dict[str, Option | tuple[Option, ...]] = {
    "table": (
        click.argument("file", type=click.Path(allow_dash=True)),
        column_option(
            "--label",
            multiple=True,
            help="Column of the true labels, detected if it has a conventional name; repeat it for one-hot labels.",
        ),
        column_option("--weight", help="Column of sampling weights."),
        click.option("--counts", is_flag=True, help="The weights are counts: 2 stands for two rows."),
        column_option(
            "--cluster", help="Column with cluster IDs; rows of a cluster may depend on each other."
        ),
        click.option(
            "--equal-clusters", is_flag=True, help="Every cluster counts the same, instead of every row."
        ),
        click.option("--pos-label", help="The positive label, if labels are not 0 and 1."),
        click.option("--logits", is_flag=True, help="The scores are logits: apply the sigmoid or softmax."),
        click.option("--log-probabilities", is_flag=True, help="The scores are logarithms of probabilities."),
        click.option("--percent", is_flag=True, help="The scores are percentages, from 0 to 100."),
        click.option(
            "--scale", type=float, help="Largest possible score, such as 10 for scores from 0 to 10."
        ),
        click.option("--clip", is_flag=True, help="Clip scores that rounding left just outside [0, 1]."),
        click.option(
            "--missing",
            multiple=True,
            help="Value that stands for a missing score, label or weight, such as -999 or n/a; repeatable.",
        ),
        click.option("--drop-missing", is_flag=True, help="Leave out rows with missing values."),
        click.option(
            "--input-format",
            type=click.Choice(_FORMATS),
            metavar="FORMAT",
            help=f"Override the format inferred from the file name: {', '.join(_FORMATS)}.",
        ),
        click.option("--encoding", help="Encoding of a text file.  [default: utf-8]"),
        click.option("-q", "--quiet", is_flag=True, help="Do not report the columns that were detected."),
        click.option(
            "-v",
            "--verbose",
            is_flag=True,
            expose_value=False,
            callback=_set_verbose,
            help="Report how FILE was read and how long each step took.",
        ),
    ),
    "scores": (
        column_option(
            "--score",
            multiple=True,
            help="Column of the scores; repeat it, or use a pattern such as 'prob_*', for one column per class.",
        ),
        column_option(
            "--predicted", help="Column of the predicted class, if the score is the confidence in it."
        ),
        click.option("--normalize", is_flag=True, help="Divide the scores of all classes by their sum."),
        click.option(
            "--multiclass",
            type=Multiclass(),
            metavar="NAME",
            help="What to measure for several classes: top, classwise, top_by_class, top_5 (or another number), "
            "canonical, or multilabel (columns are labels, of which a row can have any number).  [default: top]",
        ),
        click.option(
            "--classes",
            help="The class of each score column, such as a,b,c, if column names are not class names.",
        ),
    ),
    "labels": (
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
    ),
    "group": column_option(
        "--group",
        multiple=True,
        help="Column of groups; repeat it to cross several. P-values are adjusted for the number of groups.",
    ),
    "cells": click.option(
        "--cells", is_flag=True, help="FILE holds cells: the result of the query that 'truecal sql' prints."
    ),
    "norm": option("--norm", 2, Norm(), "Order of the norm, or l1, l2 or max."),
    "resolution": click.option(
        "--resolution",
        type=click.IntRange(min=1),
        help="Largest number of intervals of scores in each of which upper limits allow any error. Fewer give "
        "shorter limits; choose it before you look at the labels.  [default: by the number of rows and the scores]",
    ),
    "resamples": option("--resamples", 999, int, "Number of Monte Carlo resamples."),
    "seed": option("--seed", 0, click.IntRange(min=0), "Random seed."),
    "n-jobs": option("--n-jobs", 1, int, "Number of workers; -1 for all cores."),
    "format": click.option(
        "--format", "style", type=click.Choice(["table", "json"]), default="table", show_default=True
    ),
}


def shared(*names: str) -> Option:
    """Give a command options that several commands share, in this order, except those that it has already."""
    options = [each if isinstance(each, tuple) else (each,) for each in map(_SHARED.__getitem__, names)]

    def add(command: Any) -> Any:
        for decorate in reversed([one for each in options for one in each]):
            command = decorate(command)
            params = command.__click_params__
            if any(set(params[-1].opts) <= set(one.opts) for one in params[:-1]):
                params.pop()
        return command

    return add


def _written(*groups: str) -> set[str]:
    """Return shared options as they are written."""

    def nothing() -> None: ...

    return {name for param in shared(*groups)(nothing).__click_params__ for name in param.opts}


#: Arguments that are files to read.
_INPUTS = ("file", "other", "fresh")


def output_options(command: Callable[..., Any]) -> Any:
    """Give a command the options for the format and the output file, which it takes as one argument `out`."""

    @wraps(command)
    def run(style: str, output: Path | None, **options: Any) -> Any:
        check_target(output, *filter(None, (options.get(name) for name in _INPUTS)))
        return command(out=Output(style, output, options.pop("quiet", False)), **options)

    return shared("format")(click.option("-o", "--output", type=OUTPUT, help="File to write to.")(run))
