"""The scale of scores: from percentages, 0 to 10, log probabilities or logits to probabilities.

Nothing is guessed. Each option is compared with the values; what contradicts it is refused, what is odd is noted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from truecal._lib.text import counted
from truecal.cli._input.columns import Reading
from truecal.cli._input.values import Field, Frame, called
from truecal.data.faults import ROUNDING, ScoreValues, look_at
from truecal.exceptions import InputError, Remedy

#: One in this many values counts as many.
_MANY = 20
#: Logits whose probabilities differ from 0 or 1 by less than 1e-13 are rare.
_LARGE_LOGIT = 30


def read_scores(frame: Frame, fields: Sequence[Field]) -> tuple[list[pl.Expr], list[str]]:
    """Return columns of scores as numbers, fractions or with --logits logits, and notes on what is odd."""
    scores, notes = _on_scale(frame, fields)
    if not frame.reading.normalize:
        return scores, notes
    if len(fields) < 2:
        raise InputError("needs a column of scores for each class", argument="--normalize")
    total = pl.sum_horizontal(*scores)
    rule = " whose sum is not positive and cannot be normalised"
    frame.refuse(total <= 0, [part.name for part in fields], "row", rule)
    found = frame.ask(low=total.min(), high=total.max())
    note = f"divided rows by their sum, from {found['low']:.6g} to {found['high']:.6g}"
    return [score / total for score in scores], [*notes, note]


def _on_scale(frame: Frame, fields: Sequence[Field]) -> tuple[list[pl.Expr], list[str]]:
    """Return the scores on the scale from 0 to 1, or as logits, after a look at their values."""
    reading = frame.reading
    _check_options(reading)
    scale = reading.largest
    raw = frame.numbers(fields, percent=scale == 100)
    scores = [value / scale for value in raw] if scale else raw
    if reading.log_probabilities:
        scores = [value.exp() for value in raw]
    if reading.clip and not reading.logits:
        scores = [_clipped(score) for score in scores]
    if not (scale or reading.log_probabilities or reading.logits):
        return scores, []
    return scores, _check(frame, fields, raw, scores)


def _check(
    frame: Frame, fields: Sequence[Field], raw: Sequence[pl.Expr], scores: Sequence[pl.Expr]
) -> list[str]:
    """Refuse values that contradict their scale; return notes on what is odd."""
    values = look_at(raw, ask=lambda questions: frame.ask(**questions))
    names, reading = called([part.name for part in fields]), frame.reading
    if reading.logits:
        return _check_logits(values, names, len(fields))
    outside = [score.is_not_nan() & ((score < 0) | (score > 1)) for score in scores]
    found = frame.ask(**{f"n{k}": bad.sum() for k, bad in enumerate(outside)})
    for k, part in enumerate(fields):
        if n := found[f"n{k}"]:
            rule, remedy = _rule_and_remedy(values, n, reading.largest)
            row, value = frame.first(outside[k], part.values)
            if remedy is Remedy.MISSING_CODE:
                row, value = frame.first(raw[k] == values.code)[0], values.code
            problem = f"has {counted(n, 'value')} {rule}"
            raise part.error(problem, first_row=row, value=value, remedy=remedy)
    if reading.largest:
        return _check_scale(values, names, reading.largest, reading)
    if values.n and values.code is not None and values.code < 0:
        raise _code_error(values, names)
    return []


def _check_options(reading: Reading) -> None:
    given = {
        "--percent": reading.percent,
        "--scale": reading.scale is not None,
        "--logits": reading.logits,
        "--log-probabilities": reading.log_probabilities,
    }
    names = [name for name, value in given.items() if value]
    if len(names) > 1:
        raise InputError(f"{' and '.join(names)} cannot be combined", remedy="Scores are on one scale.")
    if reading.scale is not None and not 0 < reading.scale < math.inf:
        problem = f"must be a positive number, the largest possible score. Got {reading.scale:g} instead"
        raise InputError(problem, argument="--scale")


def _clipped(score: pl.Expr) -> pl.Expr:
    return pl.when((score - 0.5).abs() < 0.5 + ROUNDING).then(score.clip(0, 1)).otherwise(score)


def _rule_and_remedy(values: ScoreValues, n_outside: int, largest: float | None) -> tuple[str, Remedy | str]:
    """Return the rule of the scale that values break, and what to do; None is the scale of log probabilities."""
    fix = "Remove or fix these rows; add --clip if this is rounding."
    if largest is None:
        rule = "above 0, which log probabilities cannot be"
        if values.negative:
            return rule, "For logits use --logits instead of --log-probabilities."
        return (
            rule,
            "They look like probabilities: leave out --log-probabilities." if values.high <= 1 else fix,
        )
    rule = "outside 0% to 100%" if largest == 100 else f"outside 0 to {largest:g}"
    if values.code is not None and (values.code < 0 or values.code > largest):
        return rule, Remedy.MISSING_CODE
    if values.low < 0 and values.negative > 1:
        return rule, "For logits use --logits instead, for log probabilities --log-probabilities."
    if _MANY * n_outside > values.n and values.high <= 100:
        likely = 10 if values.high <= 10 else 100
        return rule, f"If the scores run from 0 to {likely}, use {_option(values)} instead."
    return rule, fix


def _check_scale(values: ScoreValues, names: str, scale: float, reading: Reading) -> list[str]:
    """Refuse fractions that are called something else; return notes on what is odd."""
    if scale <= 1 or not values.n or values.high <= 0:
        return []
    _refuse_other_scale(values, names, scale, "--percent" if reading.percent else f"--scale {scale:g}")
    if values.high <= 0.5 or (scale == 100 and values.high <= 10):
        limit, other = (0.5, "from 0 to 1") if values.high <= 0.5 else (10, "from 0 to 10")
        return [f"no value of {names} is above {limit:g}: are they {other}, and not on a scale of {scale:g}?"]
    few = 10 * values.between >= values.n and 10 * values.doubles < values.between
    if few or (scale == 100 and values.between and not values.doubles):
        less = (
            f"{counted(values.between, 'value')} of {names} between 0 and 1, and {values.doubles or 'none'}"
        )
        return [f"{less} from 1 to 2: are some of them probabilities, and not on a scale of {scale:g}?"]
    return []


def _refuse_other_scale(values: ScoreValues, names: str, scale: float, option: str) -> None:
    """Refuse values that are fractions, in part or all of them, or from 0 to 10."""
    if values.is_mixed:
        problem = f"has {counted(values.between, 'value')} between 0 and 1 and {values.above:,} above: some look like"
        problem += f" fractions and others are on a scale of {scale:g}"
        raise InputError(problem, argument=names, remedy="Write all of them on one scale.")
    if 0.5 < values.high <= 1:
        problem = f"has no value above 1 (the largest is {values.high:g}), so they look like fractions"
        raise InputError(problem, argument=names, remedy=f"Leave out {option}.")
    if scale == 100 and values.high == 10:
        problem = "has no value above 10, and 10 itself, so they look like scores from 0 to 10"
        raise InputError(problem, argument=names, remedy=f"Use --scale 10 instead of {option}.")


def _check_logits(values: ScoreValues, names: str, n_columns: int) -> list[str]:
    """Refuse logits that are probabilities, percentages, log probabilities or codes; return notes on doubts."""
    if not values.n:
        return []
    if values.code is not None and (n_columns == 1 or not values.above):
        raise _code_error(values, names)
    if values.low >= 0 and values.high <= 1:
        problem = "has all values in [0, 1], so they look like probabilities"
        raise InputError(problem, argument=names, remedy="Leave out --logits.")
    if n_columns > 1:
        return []  # the softmax of log probabilities is right, too
    notes = []
    if values.high <= 0:
        if _MANY * values.nearly_zero >= values.n:
            problem = f"has no positive value, and {values.nearly_zero:,} just below 0, so they look like log"
            remedy = "Use --log-probabilities instead of --logits."
            raise InputError(f"{problem} probabilities", argument=names, remedy=remedy)
        notes.append(
            f"no value of {names} is positive: are they log probabilities (--log-probabilities), and not logits?"
        )
    if values.low >= 0:
        if values.high > _LARGE_LOGIT or not values.fractional:
            option = _option(values)
            scores = {"--scale 10": "scores from 0 to 10", "--percent": "percentages"}.get(option, "scores")
            problem = f"has no negative value, and values up to {values.high:g}, so they look like {scores}"
            raise InputError(problem, argument=names, remedy=f"Use {option} instead of --logits.")
        notes.append(f"no value of {names} is negative: are they something else, and not logits?")
    return notes


def _option(values: ScoreValues) -> str:
    """Return the option for scores from 0 to 10, to 100 or to more."""
    return "--scale 10" if values.high <= 10 else "--percent" if values.high <= 100 else "--scale"


def _code_error(values: ScoreValues, names: str) -> InputError:
    """Return the error of a number that seems to stand for missing values."""
    n = values.at_low if values.code == values.low else values.at_high
    problem = f"has {counted(n, 'value')} of {values.code}, far from the others"
    return InputError(problem, argument=names, value=values.code, remedy=Remedy.MISSING_CODE)
