"""Which of two or more models is better calibrated, and how sure that is."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from truecal._lib.checks import check_fraction
from truecal._lib.numeric import rejects
from truecal._lib.text import level as percent_of
from truecal._lib.text import p_equals, shorten
from truecal._lib.types import NormLike
from truecal.data import Question, read_rows
from truecal.data.arrays import Reading, takes_predictions
from truecal.data.sample import Sample
from truecal.exceptions import InputError, Remedy
from truecal.inference._test_result import holm
from truecal.inference.c_statistic import c_statistic
from truecal.inference.dependence import warn_of_dependence
from truecal.inference.interval import check_interval_norm, check_resolution, interval_of
from truecal.multiscale import analyse, difference
from truecal.results import Interval, Result

#: A C statistic this close to 1/2 is reported if another model's is better.
_NO_DISCRIMINATION = 0.55


@dataclass(frozen=True)
class Comparison(Result):
    """The calibration errors of two models, and their difference.

    Attributes
    ----------
    errors : tuple of float
        Calibration error of each model, by the default estimator.
    intervals : tuple of Interval
        Confidence interval for each.
    difference : float
        Error of the first less that of the second: negative if the first is better calibrated.
    interval : Interval
        Confidence interval for the true difference.
    pvalue : float
        Two-sided p-value of equal errors; the smallest level at which an interval leaves out 0.
    paired : bool
        Whether both models were evaluated on the same rows.
    n : tuple of float
        Number of rows of each.
    norm : float
        Order of the norm.
    c_statistics : tuple of float
        Probability that a random positive has a higher score than a random negative, for each model: what
        calibration says nothing about. NaN if only one outcome occurs.
    names : tuple of str
        Names of the models.
    adjusted_pvalue : float or None
        p-value adjusted for all pairs, where several models were compared.
    notes : tuple of str
        What a reader of the numbers must know.
    """

    errors: tuple[float, float]
    intervals: tuple[Interval, Interval]
    difference: float
    interval: Interval
    pvalue: float
    paired: bool
    n: tuple[float, float]
    norm: float
    c_statistics: tuple[float, float]
    names: tuple[str, str] = ("A", "B")
    adjusted_pvalue: float | None = None
    notes: tuple[str, ...] = ()

    _derived = ("verdict",)

    @property
    def separated(self) -> bool:
        """Whether the data show a difference, at the level of the interval (of the family, if adjusted)."""
        if self.adjusted_pvalue is not None:
            return self.interval.low > 0 or self.interval.high < 0
        return rejects(self.pvalue, 1 - self.interval.level)

    @property
    def verdict(self) -> str:
        """One sentence on which is better calibrated."""
        adjusted = self.adjusted_pvalue is not None
        p = ("adjusted " if adjusted else "") + p_equals(
            self.pvalue if self.adjusted_pvalue is None else self.adjusted_pvalue
        )
        if not self.separated:
            first, second = self.names
            return (
                f"No difference in calibration between {first} and {second} was found: {self.errors[0]:.4f} against "
                f"{self.errors[1]:.4f}, difference {self.interval}, {p}."
            )
        winner = 0 if self.difference < 0 else 1
        better, other = self.names[winner], self.names[1 - winner]
        ends = (
            (self.interval.low, self.interval.high) if winner else (-self.interval.high, -self.interval.low)
        )
        sentence = (
            f"{better} is better calibrated: {self.errors[winner]:.4f} against "
            f"{self.errors[1 - winner]:.4f} ({other}), smaller by {ends[0]:.4f} to {ends[1]:.4f} "
            f"({percent_of(self.interval.level)}), {p}."
        )
        return sentence + _discrimination(
            self.names[winner], self.c_statistics[winner], self.c_statistics[1 - winner]
        )

    def __str__(self) -> str:
        return "\n".join([self.verdict, *(f"Note: {note}" for note in self.notes)])


def _discrimination(name: str, mine: float, other: float) -> str:
    """Return a warning if the better calibrated model hardly separates the outcomes and another one does."""
    if not (mine <= _NO_DISCRIMINATION and other - mine > 0.05):
        return ""
    return (
        f" But {name} hardly separates the outcomes (C statistic {mine:.2f} against {other:.2f}): a "
        f"constant prediction can be calibrated and useless."
    )


@dataclass(frozen=True)
class RankedModel(Result):
    """One of several models.

    Attributes
    ----------
    name : str
        Its name.
    error : float
        Calibration error, by the default estimator.
    interval : Interval
        Confidence interval, simultaneous over the models.
    c_statistic : float
        Its C statistic.
    not_separated_from_best : bool
        Whether the data do not show that it is worse than the model with the smallest error.
    """

    name: str
    error: float
    interval: Interval
    c_statistic: float
    not_separated_from_best: bool


@dataclass(frozen=True)
class Ranking(Result):
    """Several models in order of their calibration errors, and all pairs.

    Attributes
    ----------
    models : tuple of RankedModel
        The models, smallest error first.
    pairs : tuple of Comparison
        Every pair, with intervals that hold together and p-values adjusted by Holm's method.
    confidence_level : float
        Simultaneous level of the intervals.
    notes : tuple of str
        What a reader of the numbers must know.
    """

    models: tuple[RankedModel, ...]
    pairs: tuple[Comparison, ...]
    confidence_level: float
    notes: tuple[str, ...] = ()

    _derived = ("verdict",)

    @property
    def verdict(self) -> str:
        """One sentence on what the data can tell apart."""
        best, *others = self.models
        tied = [model.name for model in others if model.not_separated_from_best]
        if not tied:
            rest = "both others" if len(others) == 2 else f"all {len(others)} others"
            sentence = f"{best.name} is better calibrated than {rest}."
        elif len(tied) == len(others):
            sentence = (
                f"The data cannot separate {best.name}, which has the smallest error, from any of the others."
            )
        else:
            sentence = (
                f"{best.name} has the smallest error; the data cannot separate it from {', '.join(tied)}."
            )
        highest = max(model.c_statistic for model in others)
        return sentence + _discrimination(best.name, best.c_statistic, highest)

    def __str__(self) -> str:
        names = [shorten(model.name) for model in self.models]
        width = max(5, *map(len, names))
        heading = f"{percent_of(self.confidence_level)} interval"
        rows = [
            f"{name:{width}}  {model.error:7.4f}  {model.interval.low:.4f} to {model.interval.high:.4f}  "
            f"{model.c_statistic:11.3f}"
            for name, model in zip(names, self.models, strict=True)
        ]
        head = f"{'model':{width}}  {'error':>7}  {heading:16}  {'C statistic':>11}"
        return "\n".join([head, *rows, "", self.verdict, *(f"Note: {note}" for note in self.notes)])


@takes_predictions
def compare(
    y_true: Any,
    y_proba: Any,
    y_proba_b: Any = None,
    *,
    y_true_b: Any = None,
    norm: NormLike = 2,
    confidence_level: float = 0.95,
    resolution: int | None = None,
    names: tuple[str, str] = ("A", "B"),
    **reading: Unpack[Reading],
) -> Comparison | Ranking:
    r"""Compare the calibration errors of two models, or rank several.

    The variance of the difference is :math:`\tau_A^2 + \tau_B^2 - 2 c`, with the variances :math:`\tau^2` of the two
    errors. For models on the same rows, c is their covariance, which may be negative: it comes from the correlation of
    the rows' influence on the two errors, less what the noise of the same labels adds to it. Where an error is not
    established that correlation cannot be known, and the worst one, -1, is used: the price of validity is that small
    samples seldom show a difference from a model that may be calibrated. On different rows c is 0.

    Models that order the rows alike, as before and after recalibration, have the same calibration curve. For norm 2 the
    difference of their squared errors is then that of their Brier scores, and Student's t is used instead.

    Several models are compared pair by pair. Their intervals hold together at `confidence_level` (Bonferroni), and
    p-values are adjusted by Holm's method.

    Parameters
    ----------
    y_true : array-like or Sample
        Labels of all models, or of the first. A `Sample` holds the first model, and `y_proba` is then the `Sample` of
        the second, on other rows.
    y_proba : array-like, or dict of array-like
        Probabilities of the first model; or of all models by name, on the same rows.
    y_proba_b : array-like, optional
        Probabilities of the second model.
    y_true_b : array-like, optional
        Labels of the second model if it was evaluated on other rows.
    norm : {1, 2, "l1", "l2"}
        Order of the norm.
    confidence_level : float
        Level of all intervals.
    resolution : int, optional
        Largest number of intervals of scores in each of which upper ends allow any error; see
        `truecal.confidence_interval`.
    names : tuple of str
        Names of two models that are not given as a dict.
    {reading}
        These hold for all models, so none is possible beside Samples.

    Returns
    -------
    Comparison
        For two models: both errors, their difference, and intervals for all three.
    Ranking
        For a dict of three models or more.

    Examples
    --------
    >>> import truecal
    >>> y, p = truecal.paper.population("resnet110_c100").sample(5000, rng=0)
    >>> recalibrated = truecal.paper.population("resnet110_c100").curve(p)
    >>> truecal.compare(y, {"raw": p, "recalibrated": recalibrated}).verdict[:33]
    'recalibrated is better calibrated'
    >>> truecal.compare(y, {"raw": p, "half": (p + recalibrated) / 2, "recalibrated": recalibrated}).verdict
    'recalibrated is better calibrated than both others.'
    """
    order = check_interval_norm(norm, "to compare models")
    level, resolution = check_fraction("confidence_level", confidence_level), check_resolution(resolution)
    if isinstance(y_true, Sample):
        models = [*zip(names, _two_samples(y_true, y_proba, y_proba_b, y_true_b, reading), strict=True)]
    else:
        named = _named(y_proba, y_proba_b, names)
        if len(named) > 2 and y_true_b is not None:
            raise InputError("goes with two models only", argument="y_true_b")
        labels = [y_true, *[y_true if y_true_b is None else y_true_b] * (len(named) - 1)]
        models = [
            (name, _read(truth, proba, reading))
            for truth, (name, proba) in zip(labels, named.items(), strict=True)
        ]
    samples = [model.samples[0] for _, model in models]
    notes = (*warn_of_dependence(*samples), *samples[0].label_notes)
    result: Comparison | Ranking
    if len(models) > 2:
        result = _rank(models, order, level, resolution)
    else:
        result = _compare(models, order, level, resolution, paired=y_true_b is None)
    return replace(result, notes=notes)


#: A model's name, and the question about it.
_Named = tuple[str, Question]


def _read(y_true: Any, y_proba: Any, reading: Reading) -> Question:
    """Return the question about one model; its rows can be paired with those of another."""
    rows = read_rows(y_true, y_proba, **reading)
    if len(rows) > 1:
        raise InputError(
            "must be one class at a time for compare", argument="multiclass", remedy=Remedy.ONE_CLASS
        )
    return Question((rows[0].group(),), rows)


def _two_samples(
    first: Sample, second: Any, y_proba_b: Any, y_true_b: Any, reading: Reading
) -> tuple[Question, Question]:
    given = [
        name
        for name, value in {**reading, "y_proba_b": y_proba_b, "y_true_b": y_true_b}.items()
        if value is not None
    ]
    if given or not isinstance(second, Sample):
        extra = f" Leave out {', '.join(given)}." if given else ""
        raise InputError(
            "must be the Sample of the second model if y_true is a Sample",
            argument="y_proba",
            remedy=f"Two Samples are compared as different rows; pass arrays to pair rows.{extra}",
        )
    return Question((first,)), Question((second,))


def _named(y_proba: Any, y_proba_b: Any, names: tuple[str, str]) -> dict[str, Any]:
    if isinstance(y_proba, Mapping):
        if y_proba_b is not None:
            raise InputError("cannot be given beside a dict of models", argument="y_proba_b")
        if len(y_proba) < 2:
            raise InputError("must have at least two models", argument="y_proba")
        return {str(name): one for name, one in y_proba.items()}
    if y_proba_b is None:
        raise InputError(
            "is missing", argument="y_proba_b", remedy="Pass a second model, or a dict of models."
        )
    if len(names) != 2 or names[0] == names[1]:
        raise InputError("must be two different names", argument="names", value=names)
    return dict(zip(names, (y_proba, y_proba_b), strict=True))


def _compare(
    models: Sequence[_Named], norm: float, level: float, resolution: int | None, *, paired: bool = True
) -> Comparison:
    """Compare two models; `paired` if they were judged on the same rows, as far as rows are known."""
    (first, one), (second, other) = models
    cores = (analyse(one.samples[0]), analyse(other.samples[0]))
    pair = None
    if paired and one.rows is not None and other.rows is not None:
        pair = one.rows[0], other.rows[0]
    found = difference(*cores, pair, norm=norm)
    return Comparison(
        errors=(cores[0].error(norm), cores[1].error(norm)),
        intervals=(
            interval_of(one, norm, level, resolution=resolution),
            interval_of(other, norm, level, resolution=resolution),
        ),
        difference=found.reported,
        interval=Interval(*found.interval(level, resolution), level),
        pvalue=found.pvalue,
        paired=pair is not None,
        n=(one.samples[0].n, other.samples[0].n),
        norm=norm,
        c_statistics=(c_statistic(one.samples[0]).value, c_statistic(other.samples[0]).value),
        names=(first, second),
    )


def _rank(models: Sequence[_Named], norm: float, level: float, resolution: int | None) -> Ranking:
    errors = {name: analyse(model.samples[0]).error(norm) for name, model in models}
    models = sorted(models, key=lambda model: errors[model[0]])
    chosen = list(itertools.combinations(models, 2))
    pairs = [_compare(two, norm, 1 - (1 - level) / len(chosen), resolution) for two in chosen]
    adjusted = holm([pair.pvalue for pair in pairs]).tolist()
    pairs = [replace(pair, adjusted_pvalue=p) for pair, p in zip(pairs, adjusted, strict=True)]
    own = 1 - (1 - level) / len(models)
    tied = {models[0][0], *(pair.names[1] for pair in pairs[: len(models) - 1] if not pair.separated)}
    ranked = [
        RankedModel(
            name=name,
            error=errors[name],
            interval=interval_of(model, norm, own, resolution=resolution),
            c_statistic=c_statistic(model.samples[0]).value,
            not_separated_from_best=name in tied,
        )
        for name, model in models
    ]
    return Ranking(tuple(ranked), tuple(pairs), level)
