"""``truecal test``: test the calibration of a file of predictions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from truecal._lib.checks import check_fraction
from truecal._lib.numeric import rejects
from truecal._lib.text import as_table, counted, format_pvalue, level, statistic
from truecal.cli._options import (
    Command,
    Fraction,
    complete_estimators,
    option,
    output_options,
    shared,
)
from truecal.cli._output import Output, as_notes, stage, wrapped

if TYPE_CHECKING:
    from truecal.cli._input.predictions import Predictions
    from truecal.inference._test_result import Decision, TestResult

#: Groups whose names are listed below the table.
_MOST_NAMES = 10


@click.command("test", cls=Command)
@shared("scores", "table", "labels", "group", "cells")
@click.option(
    "--method",
    shell_complete=complete_estimators,
    help="Test, or an estimator as its statistic; see 'truecal estimators'.  [default: multiscale]",
)
@click.option("--at-most", type=Fraction(), help="Test whether the error is below this; 0.05 is 5%.")
@shared("resolution", "norm")
@option("--alpha", 0.05, float, "Significance level of the test.")
@shared("resamples", "seed")
@output_options
def command(
    file: str,
    out: Output,
    method: str | None,
    at_most: float | None,
    resolution: int | None,
    norm: float,
    alpha: float,
    resamples: int,
    seed: int,
    **reading: Any,
) -> None:
    """Test the null hypothesis that the probabilities in FILE are perfectly calibrated.

    The exit code is 1 if the hypothesis is rejected, else 0. With --group it is rejected if it is for any
    group, with adjusted p-values. It is 2 if nothing was tested, because clusters hold too little information.

    With --at-most the null hypothesis is that the calibration error is at least that large. The exit code is 0
    if the error is shown to be smaller, in every group, and else 1.
    """
    from truecal.cli._input.predictions import load
    from truecal.estimators._registry import MULTISCALE
    from truecal.inference.calibration_test import calibration_test
    from truecal.inference.dependence import suspected_dependence

    check_fraction("alpha", alpha)
    with stage("reading"):
        predictions = load(file, **reading)
        arguments = predictions.arguments()
    options: dict[str, Any] = {"norm": norm, "n_resamples": resamples, "rng": seed, "at_most": at_most}
    options |= {"resolution": resolution, "method": method or MULTISCALE}
    with stage("testing"), predictions.naming():
        grouped = bool(predictions.columns.group)
        tests = predictions.group_tests(**options)
        if not grouped:
            tests = {"": calibration_test(**arguments, **options)}
        decisions = {} if at_most is None else {name: test.decide(alpha) for name, test in tests.items()}
    tested = _Tested(predictions, tests, decisions, alpha, at_most)
    doubt = suspected_dependence(predictions.sample) if grouped and len(arguments) == 1 else None
    out.finish("test", tested.content, lambda: tested.text(doubt), predictions)
    raise SystemExit(0 if tested.passed else 1 if tested.any_tested else 2)


@dataclass(frozen=True)
class _Tested:
    """The tests of all rows (under "") or of each group, with the decisions that --at-most asks for."""

    predictions: Predictions
    tests: dict[str, TestResult]
    decisions: dict[str, Decision]
    alpha: float
    at_most: float | None

    @property
    def grouped(self) -> bool:
        """Whether groups were asked for."""
        return bool(self.predictions.columns.group)

    @cached_property
    def any_tested(self) -> bool:
        """Whether clusters held enough information anywhere."""
        return any(test.tested for test in self.tests.values())

    @cached_property
    def passed(self) -> bool:
        """Whether the answer is yes: not rejected, or shown to be below the limit."""
        from truecal.inference._test_result import SHOWN

        if self.at_most is None:
            return self.any_tested and min(map(_pvalue, self.tests.values())) > self.alpha
        return all(decision.state == SHOWN for decision in self.decisions.values())

    def content(self) -> dict[str, Any]:
        """Return the result for JSON."""
        rejected = self.any_tested and self.passed == (self.at_most is not None)
        content = {"alpha": self.alpha, "at_most": self.at_most, "rejected": rejected, "passed": self.passed}
        content["tested"] = self.any_tested
        each = {name: self._content_of(name) for name in self.tests}
        if self.grouped:
            return {**content, "results": [{"group": name, **one} for name, one in each.items()]}
        return {**content, "result": each[""]}

    def _content_of(self, name: str) -> dict[str, Any]:
        decision = {"decision": self.decisions[name].to_dict()} if self.decisions else {}
        return {**self.tests[name].to_dict(), **decision}

    def text(self, doubt: str | None) -> str:
        """Return the test or the table of groups, the outcome in a sentence, and notes."""
        if not self.grouped:
            return f"{self.tests['']}\n\n{wrapped(self._outcome())}"
        if self.at_most is None:
            table = _table(self.tests, self.predictions, self.alpha)
        else:
            table = _decision_table(self.decisions, self.tests, self.predictions)
        notes = [*_why(self.tests), *self.predictions.reversals(), *([doubt] if doubt else [])]
        return "\n".join([table, "", wrapped(self._outcome()), *as_notes(notes)])

    def _outcome(self) -> str:
        if self.at_most is not None:
            return _in_groups(self.decisions, self.at_most) if self.grouped else self.decisions[""].verdict
        if not self.any_tested:
            return f"Perfect calibration was not tested{' in any group' if self.grouped else ''}."
        where = _rejected(self.tests, self.alpha) if self.grouped else ""
        return (
            f"Perfect calibration is {'not ' if self.passed else ''}rejected at level {self.alpha:g}{where}."
        )


def _pvalue(test: TestResult) -> float:
    return test.pvalue if test.adjusted_pvalue is None else test.adjusted_pvalue


def _why(tests: dict[str, TestResult]) -> list[str]:
    """Return why groups were not tested, the name of the first one with each reason."""
    reasons: dict[str, list[str]] = {}
    for name, test in tests.items():
        if not test.tested:
            reasons.setdefault(test.why_not_tested, []).append(name)
    return [
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {reason}"
        for reason, names in reasons.items()
    ]


def _rejected(tests: dict[str, TestResult], alpha: float) -> str:
    """Return in how many groups perfect calibration is rejected, and in which."""
    names = [name for name, test in tests.items() if rejects(_pvalue(test), alpha)]
    more = len(names) - _MOST_NAMES
    which = "; ".join([*names[:_MOST_NAMES], *([f"and {more} more"] if more > 0 else [])])
    number = f"in {len(names) or 'any'} of {counted(len(tests), 'group')}"
    untested = sum(not test.tested for test in tests.values())
    number += f" ({untested:,} not tested)" if untested else ""
    return f" {number}: {which}" if names else f" {number}"


def _in_groups(decisions: dict[str, Decision], at_most: float) -> str:
    """Return in how many groups the error is shown to be below the limit, contradicted or neither."""
    states = Counter(decision.state for decision in decisions.values())
    parts = ", ".join(f"{state} in {number}" for state, number in states.items())
    return f"A calibration error below {at_most:g} is {parts} of {counted(len(decisions), 'group')}."


def _decision_table(
    decisions: dict[str, Decision], tests: dict[str, TestResult], predictions: Predictions
) -> str:
    first = next(iter(decisions.values()))
    head = [
        *_sizes_head(predictions),
        "error",
        f"{level(1 - first.alpha)} limits",
        "p",
        f"below {first.at_most:g}",
        "rows needed",
    ]
    body = [
        [
            name,
            predictions.size(tests[name]),
            f"{one.error:.4f}",
            f"{one.lower:.4f}, {one.upper:.4f}",
            format_pvalue(one.pvalue),
            one.state,
            "-" if one.n_needed is None else f"{one.n_needed:,}",
        ]
        for name, one in decisions.items()
    ]
    return as_table(head, body)


def _table(tests: dict[str, TestResult], predictions: Predictions, alpha: float) -> str:
    from truecal.estimators._registry import MULTISCALE

    # An estimator as the statistic is an error; the statistic of the multiscale test means nothing to a reader.
    is_error = all(test.method != MULTISCALE for test in tests.values())
    head = [*_sizes_head(predictions), *(["statistic"] if is_error else []), "p", "adjusted p", "rejected"]
    body = [
        [
            name,
            predictions.size(test),
            *([statistic(test.statistic)] if is_error else []),
            format_pvalue(test.pvalue, test.n_resamples) if test.tested else "-",
            test.shown_pvalue,
            "yes" if rejects(_pvalue(test), alpha) else "no" if test.tested else "-",
        ]
        for name, test in tests.items()
    ]
    return as_table(head, body)


def _sizes_head(predictions: Predictions) -> list[str]:
    """Return the heads of the columns of groups and of their sizes."""
    return [
        ", ".join(predictions.columns.group),
        "effective n" if predictions.has_sampling_weights else "rows",
    ]
