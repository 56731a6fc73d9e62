"""Numbers behind pictures: histograms of scores, the binned error against the number of bins, calibration plots."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from truecal._lib.checks import check_choice, check_count, check_norm
from truecal._lib.types import FloatArray, NormLike
from truecal.data.arrays import Reading, takes_predictions
from truecal.data.extremes import N_INTERVALS, Resolution, resolution_of
from truecal.data.question import as_sample, no_use_for_clusters
from truecal.data.sample import Sample
from truecal.estimators._registry import get_estimator
from truecal.exceptions import InputError
from truecal.inference.c_statistic import c_statistic
from truecal.inference.reliability import Reliability, reliability_curve
from truecal.inference.weak_calibration import (
    CalibrationIndex,
    Parameter,
    WeakCalibration,
    calibration_index,
    weak_calibration,
)
from truecal.multiscale import analyse
from truecal.results import Result
from truecal.simulation import BetaScores, ScoreDistribution, Study

#: ``"linear"``; ``"logit"``, equal steps of log(c / (1 - c)); ``"complement"``, equal steps of -log(1 - c).
SCALES = ("linear", "logit", "complement")

#: Scores nearer to an end than this are put into the outermost bin.
_DEEPEST = 1e-16


@dataclass(frozen=True, eq=False)
class ScoreHistogram(Result):
    """Shares of the scores in bins, those of exactly 0 and 1 apart.

    Attributes
    ----------
    scale : str
        The scale on which bins are of equal width: ``"linear"``, ``"logit"`` or ``"complement"``.
    edges : ndarray of shape (k + 1,)
        Edges of the bins, scores; complements are in `complement_edges`.
    complement_edges : ndarray of shape (k + 1,)
        1 - edges, without loss near 1.
    share : ndarray of shape (k,)
        Share of all rows with a score in each bin, scores of exactly 0 and 1 left out.
    at_zero, at_one : float
        Shares of the scores of exactly 0 and exactly 1.
    expected : ndarray of shape (k,), or None
        What a distribution expects in each bin, if one was given.
    expected_at_zero, expected_at_one : float
        Shares that it expects to be rounded to 0 and 1.
    n : float
        Number of rows, or the total weight.
    target : str
        What the scores are probabilities of.
    """

    scale: str
    edges: FloatArray
    complement_edges: FloatArray
    share: FloatArray
    at_zero: float
    at_one: float
    expected: FloatArray | None
    expected_at_zero: float
    expected_at_one: float
    n: float
    target: str

    @property
    def width(self) -> FloatArray:
        """Widths of the bins on their scale: scores, or powers of ten of the odds or of 1 - score."""
        place = _place(self.edges, self.complement_edges, self.scale)
        return np.diff(place) / (1 if self.scale == "linear" else math.log(10))

    @property
    def rows(self) -> FloatArray:
        """Rows in each bin, those of exactly 0 and 1 in the outermost bins."""
        rows = self.share * self.n
        rows[0] += self.at_zero * self.n
        rows[-1] += self.at_one * self.n
        return rows


def axis_top(largest: float) -> float:
    """Return where a linear axis of probabilities ends: at 1, or just above the largest one if all are low.

    Examples
    --------
    >>> [axis_top(value) for value in (0.9, 0.55, 0.31, 0.004)]
    [1.0, 0.6, 0.4, 0.004]
    """
    tops = (round(digit * 10.0**-power, 7) for power in range(6, 0, -1) for digit in (1, 2, 4, 6, 8))
    return next((top for top in tops if largest <= top <= 0.6), 1.0)


@takes_predictions
def score_histogram(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    fit: ScoreDistribution | None = None,
    scale: str = "linear",
    n_bins: int = 40,
    **reading: Unpack[Reading],
) -> ScoreHistogram:
    """Return the histogram of the scores and, beside it, what a distribution expects.

    Where scores are multiples of 1/N, as rounded ones are, all bins hold the same number of possible scores;
    otherwise rounding would make a comb of the histogram. For the same reason an expected share counts what
    would be *rounded* to the scores of its bin.

    Parameters
    ----------
    {predictions}
    fit : ScoreDistribution, optional
        The distribution to compare with.
    scale : {"linear", "logit", "complement"}
        On which scale bins are of equal width.
    n_bins : int
        Approximate number of bins.
    {weights}
    clusters : None
        Refused: no uncertainty is reported, so clusters would have no effect.
    {classes}

    Returns
    -------
    ScoreHistogram

    Examples
    --------
    >>> import truecal
    >>> population = truecal.paper.population("resnet110_c10")
    >>> y, p = population.sample(20_000, rng=0)
    >>> histogram = score_histogram(y, p, fit=population.scores, scale="complement", n_bins=8)
    >>> histogram.share.round(3).tolist()
    [0.141, 0.173, 0.138, 0.111, 0.088, 0.066, 0.057, 0.048]
    >>> histogram.expected.round(3).tolist()
    [0.144, 0.169, 0.136, 0.109, 0.087, 0.07, 0.056, 0.05]
    """
    no_use_for_clusters(reading.pop("clusters", None), "score_histogram")
    sample = as_sample(y_true, y_proba, **reading)
    check_choice("scale", scale, SCALES)
    n_bins = check_count("n_bins", n_bins)
    inside = (sample.score > 0) & (sample.score < 1)
    resolution = resolution_of(sample.score, sample.dtype)
    score = sample.score[inside]
    if scale == "linear":
        edges, complement = _linear_edges(resolution.parts, n_bins)
    else:
        edges, complement = _log_edges(scale, score, resolution, n_bins)
    place = np.searchsorted(
        _place(edges, complement, scale)[1:-1], _place(score, 1 - score, scale), side="right"
    )
    share = np.bincount(place, weights=sample.count[inside], minlength=len(edges) - 1) / sample.n
    expected, low, high = None, 0.0, 0.0
    if fit is not None:
        # What is rounded to 0 and to 1 stands apart; between them the outermost bins take all that is left.
        first, last = resolution.at_zero / 2, resolution.at_one / 2
        low = float(fit.cdf(first))
        high = float(_above(fit, np.array(last)))
        edge_low, edge_high = np.append(first, edges[1:-1]), np.append(complement[1:-1], last)
        below = np.append(fit.cdf(edge_low), 1 - high)
        above = np.append(1 - low, _above(fit, edge_high))
        # Differences from the nearer end keep their digits.
        expected = np.maximum(np.where(edges[1:] <= 0.5, np.diff(below), -np.diff(above)), 0)
    return ScoreHistogram(
        scale=scale,
        edges=edges,
        complement_edges=complement,
        share=share,
        at_zero=_share_at(sample, 0.0),
        at_one=_share_at(sample, 1.0),
        expected=expected,
        expected_at_zero=low,
        expected_at_one=high,
        n=sample.n,
        target=sample.target,
    )


@dataclass(frozen=True)
class ScoreSummary(Result):
    """Numbers that describe the scores of a sample.

    Attributes
    ----------
    mean_score, observed_rate : float
        Mean of the scores and mean of the labels.
    quantiles : dict
        Quantiles of the scores by name: ``min``, ``5%``, ``25%``, ``50%``, ``75%``, ``95%``, ``max``.
    distinct : int
        Number of distinct scores.
    at_zero, at_one : float
        Shares of rows with a score of exactly 0 and exactly 1.
    largest_tie : float
        Largest share of rows that have the same score.
    """

    mean_score: float
    observed_rate: float
    quantiles: dict[str, float]
    distinct: int
    at_zero: float
    at_one: float
    largest_tie: float


def summarize_scores(sample: Sample) -> ScoreSummary:
    """Return the numbers that describe the scores of a sample.

    Examples
    --------
    >>> summary = summarize_scores(Sample.from_predictions([0, 1, 1, 1], [0.2, 0.5, 0.5, 1.0]))
    >>> summary.mean_score, summary.observed_rate, summary.largest_tie
    (0.55, 0.75, 0.5)
    """
    at = np.array([0, 0.05, 0.25, 0.5, 0.75, 0.95, 1])
    order = np.searchsorted(sample.cumulative_count[1:], at * sample.n)
    quantiles = sample.score[np.minimum(order, len(sample) - 1)].tolist()
    names = ("min", "5%", "25%", "50%", "75%", "95%", "max")
    return ScoreSummary(
        mean_score=float(sample.score @ sample.count) / sample.n,
        observed_rate=float(sample.positives.sum()) / sample.n,
        quantiles=dict(zip(names, quantiles, strict=True)),
        distinct=len(sample),
        at_zero=_share_at(sample, 0.0),
        at_one=_share_at(sample, 1.0),
        largest_tie=float(sample.count.max()) / sample.n,
    )


def _share_at(sample: Sample, score: float) -> float:
    return float(sample.count[sample.score == score].sum() / sample.n)


def _linear_edges(parts: int, n_bins: int) -> tuple[FloatArray, FloatArray]:
    """Return edges between 0 and 1; those of `parts` intervals between possible scores lie between them."""
    if 1 < parts <= 25 * n_bins:
        # The possible scores strictly inside are 1/N ... (N - 1)/N. Prefer a width that divides their number.
        smallest = math.ceil(parts / n_bins)
        width = next((w for w in range(smallest, 2 * smallest) if (parts - 1) % w == 0), smallest)
        middle = (np.arange(1, parts, width)[1:] - 0.5) / parts
        edges = np.concatenate([[0.0], middle, [1.0]])
    else:
        edges = np.linspace(0, 1, n_bins + 1)
    return edges, 1 - edges


def _log_edges(
    scale: str, score: FloatArray, resolution: Resolution, n_bins: int
) -> tuple[FloatArray, FloatArray]:
    """Return edges in equal steps of log(c / (1 - c)), or of -log(1 - c), that begin and end at powers of ten."""
    first, last = (_decades(float(end.min(initial=1.0))) for end in (score, 1 - score))
    if scale == "complement":
        complement = _snapped(10.0 ** -np.linspace(0, last, n_bins + 1), resolution.at_one)
        edges = 1 - complement
    else:
        steps = np.linspace(-first, last, n_bins + 1) * math.log(10)
        low, high = _snapped(expit(steps), resolution.at_zero), _snapped(expit(-steps), resolution.at_one)
        edges, complement = np.where(steps < 0, low, 1 - high), np.where(steps < 0, 1 - low, high)
    apart = np.diff(_place(edges, complement, scale), prepend=-np.inf) > 0
    return edges[apart], complement[apart]


def _above(scores: ScoreDistribution, complement: FloatArray) -> FloatArray:
    """Return P(1 - C < complement), to full precision where the distribution allows."""
    if isinstance(scores, BetaScores):
        return BetaScores(scores.b, scores.a).cdf(complement)
    return 1 - scores.cdf(1 - np.maximum(complement, 2.0**-53))


def _place(score: FloatArray, complement: FloatArray, scale: str) -> FloatArray:
    """Return where scores lie on a scale."""
    if scale == "linear":
        return score
    # The outermost edges may be 0 and 1 themselves, and stay the outermost.
    place = -np.log(np.maximum(complement, 1e-300))
    return place if scale == "complement" else place + np.log(np.maximum(score, 1e-300))


def _decades(smallest: float) -> int:
    """Return how many powers of ten below 1 the values span, at least one."""
    return max(1, math.ceil(-math.log10(max(smallest, _DEEPEST)) - 1e-9))


def _snapped(edges: FloatArray, spacing: float) -> FloatArray:
    """Return edges; those near an end are moved halfway between two possible scores."""
    near = edges < N_INTERVALS * spacing
    edges[near] = (np.ceil(edges[near] / spacing) - 0.5) * spacing
    return edges


#: How many numbers of bins are tried by default, up to how many times that of the sweep.
_TRIED, _BEYOND = 48, 4


@dataclass(frozen=True, eq=False)
class BinCounts(Result):
    """The binned error for several numbers of bins.

    Attributes
    ----------
    n_bins : ndarray of shape (k,)
        Numbers of bins, ascending.
    value : ndarray of shape (k,)
        The binned error with each; of simulations, its mean.
    value_se : ndarray of shape (k,)
        Monte Carlo standard error of a mean of simulations; zero for one sample.
    sweep_bins, sweep_value : float
        The number of bins that the sweep chooses, and its error; of simulations, their means.
    true_error : float or None
        The truth, where it is known.
    binning : str
        ``"em"`` or ``"ew"``.
    norm : float
        Order of the norm.
    n : float
        Number of rows.
    target : str
        What the scores are probabilities of, or which population was drawn from.
    """

    n_bins: NDArray[np.int64]
    value: FloatArray
    value_se: FloatArray
    sweep_bins: float
    sweep_value: float
    true_error: float | None
    binning: str
    norm: float
    n: float
    target: str


def bin_counts(
    y_true: Any,
    y_proba: Any = None,
    *,
    binning: str = "em",
    norm: NormLike = 2,
    n_bins: Iterable[int] | None = None,
    true_error: float | None = None,
    **reading: Any,
) -> BinCounts:
    """Return the binned error of a sample for several numbers of bins.

    Parameters
    ----------
    y_true, y_proba
        Labels and probabilities as in `truecal.estimate`, or a `Sample` in place of both.
    binning : {"em", "ew"}
        Bins of equal mass or of equal width.
    norm : float, "l1" or "l2"
        Order of the norm.
    n_bins : iterable of int, optional
        Numbers of bins; by default from 1 to four times the sweep's choice.
    true_error : float, optional
        The true error, if it is known.
    **reading
        As in `truecal.estimate`: ``sample_weight``, ``pos_label``, ``labels``, ``multiclass``.

    Returns
    -------
    BinCounts

    Examples
    --------
    >>> import truecal
    >>> population = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
    >>> curve = bin_counts(*population.sample(1000, rng=0), n_bins=[1, 4, 16, 64], true_error=population.true_error())
    >>> curve.value.round(3).tolist(), round(curve.true_error, 3)
    ([0.15, 0.163, 0.17, 0.191], 0.183)
    >>> curve.sweep_bins, round(curve.sweep_value, 3)
    (13.0, 0.17)
    """
    sample = as_sample(y_true, y_proba, **reading)
    check_choice("binning", binning, ("em", "ew"))
    norm = check_norm(norm)
    sweep = get_estimator(f"{binning}_sweep")(sample, norm=norm)
    chosen = sweep.n_bins or 1
    if n_bins is None:
        most = max(64, min(_BEYOND * chosen, len(sample)))
        tried = np.unique(np.geomspace(1, most, _TRIED).round().astype(np.int64))
    else:
        tried = np.unique([check_count("n_bins", b) for b in n_bins])
    binned = get_estimator(f"{binning}_bin")
    return BinCounts(
        n_bins=tried,
        value=np.array([binned(sample, norm=norm, n_bins=int(b)).value for b in tried]),
        value_se=np.zeros(len(tried)),
        sweep_bins=float(chosen),
        sweep_value=sweep.value,
        true_error=true_error,
        binning=binning,
        norm=norm,
        n=sample.n,
        target=sample.target,
    )


def bin_counts_of_study(
    study: Study, *, population: str | None = None, n: int | None = None, binning: str = "em"
) -> BinCounts:
    """Return the mean binned error of simulations for several numbers of bins.

    Parameters
    ----------
    study : Study
        With the estimators ``{"estimator": "em_bin", "n_bins": b}`` for several b, and ``"em_sweep"``.
    population : str, optional
        Name of the population; optional if there is only one.
    n : int, optional
        Sample size; optional if there is only one.
    binning : {"em", "ew"}
        As in `bin_counts`.

    Examples
    --------
    >>> import truecal
    >>> square = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
    >>> choices = [{"estimator": "em_bin", "n_bins": b} for b in (2, 8, 32)]
    >>> study = truecal.bias_study(
    ...     {"square": square}, estimators=[*choices, "em_sweep"], sizes=[500], repeats=100, rng=0
    ... )
    >>> curve = bin_counts_of_study(study)
    >>> curve.value.round(3).tolist(), round(curve.true_error, 3)
    ([0.164, 0.183, 0.201], 0.183)
    """
    check_choice("binning", binning, ("em", "ew"))
    population = _only("population", population, [row["population"] for row in study.rows])
    n = _only("n", n, [row["n"] for row in study.rows])
    rows = {row["estimator"]: row for row in study.rows if row["population"] == population and row["n"] == n}
    label = re.compile(rf"{binning}_bin\(n_bins=(\d+)\)")
    found = {int(match[1]): row for name, row in rows.items() if (match := label.fullmatch(name))}
    if not found:
        raise InputError(
            f"The study has no {binning}_bin with given numbers of bins for {population!r} at n = {n}. Add "
            f"{{'estimator': '{binning}_bin', 'n_bins': b}} for several b to its estimators."
        )
    tried = sorted(found)
    sweep: Mapping[str, Any] = rows.get(f"{binning}_sweep", {})
    return BinCounts(
        n_bins=np.array(tried),
        value=np.array([found[b]["mean"] for b in tried]),
        value_se=np.array([found[b]["bias_se"] for b in tried]),
        sweep_bins=sweep.get("mean_bins") or math.nan,
        sweep_value=sweep.get("mean", math.nan),
        true_error=found[tried[0]]["true_error"],
        binning=binning,
        norm=found[tried[0]]["norm"],
        n=n,
        target=population,
    )


def _only(name: str, given: Any, values: list[Any]) -> Any:
    """Return the requested value, or the only one."""
    known = list(dict.fromkeys(values))
    if given is None and len(known) == 1:
        return known[0]
    if given not in known:
        shown = ", ".join(map(repr, known))
        raise InputError(f"must be one of {shown}. Got {given!r} instead", argument=name, value=given)
    return given


#: Points of a curve, and bins of the histograms of the two outcomes.
_POINTS, _OUTCOME_BINS = 400, 60


@dataclass(frozen=True, eq=False)
class CalibrationPlot(Result):
    """The parts of a calibration plot.

    Attributes
    ----------
    score : ndarray of shape (k,)
        Predicted risks in ascending order.
    flexible : ndarray of shape (k,)
        Observed risk by the curve behind ICI, E50, E90 and Emax.
    logistic : ndarray of shape (k,)
        Observed risk by the logistic model with the calibration intercept and slope; NaN if it cannot be fitted.
    groups : Reliability
        Groups of equal size: mean predicted risk, observed frequency and its interval.
    edges : ndarray of shape (b + 1,)
        Edges of the bins of the two histograms.
    events, others : ndarray of shape (b,)
        Rows with and without the event in each bin of predicted risks.
    weak : WeakCalibration
        O:E, calibration intercept and slope.
    index : CalibrationIndex
        ICI, E50, E90 and Emax.
    c_statistic : Parameter
        C statistic.
    """

    score: FloatArray
    flexible: FloatArray
    logistic: FloatArray
    groups: Reliability
    edges: FloatArray
    events: FloatArray
    others: FloatArray
    weak: WeakCalibration
    index: CalibrationIndex
    c_statistic: Parameter


@takes_predictions
def calibration_plot(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    n_groups: int = 10,
    confidence_level: float = 0.95,
    **reading: Unpack[Reading],
) -> CalibrationPlot:
    """Return what a calibration plot shows.

    Parameters
    ----------
    {predictions}
    n_groups : int
        Number of groups of equal size.
    confidence_level : float
        Level of all intervals.
    {reading}

    Returns
    -------
    CalibrationPlot

    Examples
    --------
    >>> import truecal
    >>> data = truecal.datasets.load("flights")
    >>> plot = calibration_plot(data.y_true, data.y_proba)
    >>> len(plot.groups.bins), round(float(plot.weak.slope), 2)
    (10, 0.83)
    """
    sample = as_sample(y_true, y_proba, **reading)
    weak = weak_calibration(sample, confidence_level=confidence_level)
    core = analyse(sample)
    some = np.unique(np.linspace(0, len(core.score) - 1, _POINTS).astype(np.intp))
    score = core.score[some]
    with np.errstate(divide="ignore", invalid="ignore"):
        logistic = expit(float(weak.joint_intercept) + float(weak.slope) * logit(score))
    edges = np.linspace(0, 1, _OUTCOME_BINS + 1)
    events = np.histogram(sample.score, edges, weights=sample.positives)[0]
    return CalibrationPlot(
        score=score,
        flexible=np.clip(score - core.gap[some], 0.0, 1.0),
        logistic=logistic,
        groups=reliability_curve(sample, n_bins=n_groups, band=False, confidence_level=confidence_level),
        edges=edges,
        events=events,
        others=np.histogram(sample.score, edges, weights=sample.count)[0] - events,
        weak=weak,
        index=calibration_index(sample, confidence_level=confidence_level),
        c_statistic=c_statistic(sample, confidence_level=confidence_level),
    )
