"""Reliability curves: the observed frequency of each score, and bands around it.

A *consistency* band shows where the estimated curve would lie if the model were calibrated. A *confidence* band shows
where the true curve lies. For bins both kinds of confidence band are Clopper-Pearson intervals of the mean label. For
the isotonic curve they rest on one idea (Dimitriadis et al. 2023): if the curve rises, its mean over the rows below a
score is not above its value there, and its mean over the rows above is not below it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from truecal._lib.checks import as_generator, check_choice, check_count, check_flag, check_fraction
from truecal._lib.numeric import IntArray, isotonic_rate
from truecal._lib.types import FloatArray, RNGLike
from truecal.data.arrays import Reading, takes_predictions
from truecal.data.clusters import Clusters, variance_factor
from truecal.data.question import as_sample, refuse_imperfect
from truecal.data.sample import Sample
from truecal.estimators._binning import EqualMass, EqualWidth, cut, monotone_sweep, partition
from truecal.inference.dependence import are_single_rows
from truecal.inference.resample import redraws
from truecal.multiscale import Runs, analyse, enough_clusters
from truecal.multiscale import band as rising_band
from truecal.results import BinTable, Result

#: Samples with more distinct scores are merged into this many blocks of equal mass and as many of equal width.
#: Finer ones take time and cannot be seen in a picture.
_BLOCKS = 250

_RULES = {"em": EqualMass, "ew": EqualWidth}


@dataclass(frozen=True, eq=False)
class Reliability(Result):
    """The calibration curve of a sample, isotonic and binned, with consistency bands and bin intervals.

    A consistency band shows where the curve would lie, with probability `confidence_level` at each point, if
    the model were perfectly calibrated: labels are drawn from the scores, and the curve is fitted again. With clusters
    the residuals of whole clusters get random signs instead; with sampling weights sums of residuals are drawn from
    normal distributions that have their variances.

    Attributes
    ----------
    score : ndarray of shape (k,)
        Scores in ascending order; at most about a thousand, others are merged with their neighbours.
    label : ndarray of shape (k,)
        Isotonic (CORP) estimate of the observed frequency at each score.
    lower, upper : ndarray of shape (k,)
        Band of the isotonic curve; NaN without bands.
    bins : BinTable
        The bins.
    bins_lower, bins_upper : ndarray
        Band of the mean label of each bin; NaN without bands.
    interval_lower, interval_upper : ndarray
        Clopper-Pearson interval of the probability behind the mean label of each bin; with clusters or sampling
        weights that of the effective number of rows (Korn and Graubard 1998).
    confidence_level : float
        Level of bands and intervals.
    has_band : bool
        Whether bands were computed.
    n_bins : int
        Number of bins asked for, or chosen by the sweep.
    binning : str
        ``"em"`` for bins of equal mass, ``"ew"`` for bins of equal width.
    n : float
        Number of rows, or the total weight.
    target : str
        What the scores are probabilities of.
    n_clusters : int or None
        Number of clusters, if rows depend on each other.
    effective_size : float or None
        With sampling weights, Kish's effective number of rows.
    rates : Runs
        Rates of the bins and how well they are known.
    """

    _omitted: ClassVar[tuple[str, ...]] = ("rates",)

    score: FloatArray
    label: FloatArray
    lower: FloatArray
    upper: FloatArray
    bins: BinTable
    bins_lower: FloatArray
    bins_upper: FloatArray
    interval_lower: FloatArray
    interval_upper: FloatArray
    confidence_level: float
    has_band: bool
    n_bins: int
    binning: str
    n: float
    target: str
    n_clusters: int | None
    effective_size: float | None
    rates: Runs = field(repr=False)

    def bin_rows(self) -> list[dict[str, float]]:
        """Return one plain dictionary for each bin: its numbers, interval and band."""
        names = ("bins_lower", "bins_upper", "interval_lower", "interval_upper")
        return self._rows_of(
            {**vars(self.bins), "gap": self.bins.gap, **{name: getattr(self, name) for name in names}}
        )


@takes_predictions
def reliability_curve(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    n_bins: int | Literal["sweep"] = 15,
    binning: str = "em",
    band: bool = True,
    confidence_level: float = 0.95,
    n_resamples: int = 400,
    rng: RNGLike = None,
    **reading: Unpack[Reading],
) -> Reliability:
    """Return the isotonic and the binned calibration curve with their consistency bands.

    Parameters
    ----------
    {predictions}
    n_bins : int or "sweep"
        Number of bins; ``"sweep"`` for the largest number with increasing labels.
    binning : {"em", "ew"}
        Bins of equal mass or of equal width.
    band : bool
        Whether to compute consistency bands.
    confidence_level : float
        Level of the bands, at each point, and of the bin intervals.
    n_resamples : int
        Number of Monte Carlo resamples for the bands.
    {weights}
    clusters : array-like of shape (n,), optional
        Rows with the same value depend on each other. Fewer than 15 clusters say too little for a band, and the
        result has none.
    {classes}
    rng : seed or numpy.random.Generator, optional
        Random seed.

    Returns
    -------
    Reliability

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), PNAS; Bröcker, Smith (2007), Weather and Forecasting; Clopper,
    Pearson (1934), Biometrika; Korn, Graubard (1998), Survey Methodology.

    Examples
    --------
    >>> import truecal
    >>> calibrated = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.IdentityCurve())
    >>> curve = reliability_curve(*calibrated.sample(2000, rng=5), n_bins=5, rng=0)
    >>> ((curve.bins_lower <= curve.bins.mean_label) & (curve.bins.mean_label <= curve.bins_upper)).tolist()
    [True, True, True, True, True]
    """
    sample = as_sample(y_true, y_proba, **reading)
    rule = _RULES[check_choice("binning", binning, _RULES)](sample)
    n_bins = int(monotone_sweep(rule)[0]) if n_bins == "sweep" else check_count("n_bins", n_bins)
    n_resamples = check_count("n_resamples", n_resamples)
    tail = (1 - check_fraction("confidence_level", confidence_level)) / 2
    rows = sample.dependence
    band = check_flag("band", band) and enough_clusters(rows.n_clusters, rows.effective_number)
    division, bins = cut(rule, n_bins)
    rates, start = Runs(sample, division.start), _block_starts(sample, division.start)
    blocks = sample if len(start) == len(sample) else sample.merge_groups(start)
    curves, means = np.full((2, len(blocks)), np.nan), np.full((2, len(bins)), np.nan)
    if band:
        draws = _consistent_sums(
            sample, start, division.start, rates.widening(tail), n_resamples, as_generator(rng)
        )
        curves, means = _quantiles(blocks, np.searchsorted(start, division.start), draws, (tail, 1 - tail))
    # The isotonic fit is that of all scores; a block shows its mean.
    fitted = sample.isotonic * sample.count
    interval = rates.limits(tail)
    return Reliability(
        score=blocks.score,
        label=np.add.reduceat(fitted, start) / blocks.count,
        lower=curves[0],
        upper=curves[1],
        bins=bins,
        bins_lower=means[0],
        bins_upper=means[1],
        interval_lower=interval[0],
        interval_upper=interval[1],
        confidence_level=confidence_level,
        has_band=band,
        n_bins=n_bins,
        binning=binning,
        n=sample.n,
        target=sample.target,
        n_clusters=sample.size_fields["n_clusters"],
        effective_size=None if sample.counted else sample.effective_size,
        rates=rates,
    )


def _block_starts(sample: Sample, bins_start: IntArray) -> IntArray:
    """Return where blocks begin: narrow in score and in mass, and none crosses a bin edge."""
    if len(sample) <= 2 * _BLOCKS:
        return np.arange(len(sample))
    starts = (partition(rule(sample), _BLOCKS).start for rule in (EqualMass, EqualWidth))
    return np.unique(np.concatenate([bins_start, *starts]))


def _quantiles(
    blocks: Sample, bins_start: IntArray, draws: Iterator[FloatArray], tails: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Return the quantiles of the isotonic curve at each block, and of the mean label of each bin."""
    count = np.add.reduceat(blocks.count, bins_start)
    curves, means = [], []
    for positives in draws:
        curves.append(isotonic_rate(blocks.count, positives))
        means.append(np.add.reduceat(positives, bins_start) / count)
    return np.quantile(curves, tails, axis=0), np.clip(np.quantile(means, tails, axis=0), 0.0, 1.0)


def _consistent_sums(
    sample: Sample,
    start: IntArray,
    bins_start: IntArray,
    widening: FloatArray,
    n_resamples: int,
    rng: np.random.Generator,
) -> Iterator[FloatArray]:
    """Draw sums of labels in blocks of scores as those of a calibrated model with the noise of the data."""
    if are_single_rows(sample) and sample.noise is None:
        blocks = sample if len(start) == len(sample) else sample.merge_groups(start)
        for redrawn in redraws(blocks, n_resamples, rng=rng):
            yield redrawn.positives
        return
    bin_of = np.searchsorted(bins_start, start, side="right") - 1
    expected = np.add.reduceat(sample.count * sample.score, start)
    if sample.clusters:
        for flipped in _flips(sample, sample.clusters, start, n_resamples, rng):
            yield expected + widening[bin_of] * flipped
        return
    noise = _noise(sample, bins_start) if sample.noise is None else sample.noise
    sd = widening[bin_of] * np.sqrt(np.add.reduceat(noise, start))
    for _ in range(n_resamples):
        yield expected + sd * rng.standard_normal(len(sd))


def _noise(sample: Sample, bins_start: IntArray) -> FloatArray:
    r"""Return the variance of the weighted sum of labels of each score group of a calibrated model.

    It is :math:`\sum w^2 f (1 - f)`, times the ratio of squared residuals to this in the bin, which is not 1 if weights
    depend on labels, as where negatives were left out. One more row in each bin has the ratio 1.
    """

    def total(values: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(values, bins_start))

    bin_of = np.searchsorted(bins_start, np.arange(len(sample)), side="right") - 1
    model, count = sample.weight2 * sample.score * (1 - sample.score), total(sample.count)
    shift = total(sample.positives) / count - total(sample.score_sum) / count
    centre = np.clip(sample.score + shift[bin_of], 0.0, 1.0)
    observed = (sample.weight2 - sample.positives2) * centre**2 + sample.positives2 * (1 - centre) ** 2
    expected, rows = total(model), count**2 / total(sample.weight2)
    ratio = (total(observed) + expected / rows) / np.maximum(expected * (1 + 1 / rows), 1e-300)
    return np.asarray(model * ratio[bin_of])


#: Signs that are drawn at a time.
_MOST_SIGNS = 4_000_000


def _flips(
    sample: Sample, table: Clusters, start: IntArray, n_resamples: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Draw sums of residuals around the estimated curve in blocks of scores, with a random sign for each cluster."""
    curve = sample.score - analyse(sample).gap
    error = table.residual(sample.score) + table.weight * (curve - sample.score)[table.group]
    block = np.searchsorted(start, table.group, side="right") - 1
    sums = sparse.csr_array((error, (table.cluster, block)), shape=(table.n_clusters, len(start)))
    factor = math.sqrt(variance_factor(table.n_clusters))
    size = max(_MOST_SIGNS // table.n_clusters, 1)
    for first in range(0, n_resamples, size):
        signs = rng.integers(0, 2, (min(size, n_resamples - first), table.n_clusters)) * 2.0 - 1.0
        yield from factor * np.asarray(signs @ sums)


KINDS = ("pointwise", "simultaneous")


@dataclass(frozen=True, eq=False)
class ConfidenceBand(Result):
    """Lower and upper limits of the true calibration curve.

    Attributes
    ----------
    score : ndarray of shape (k,)
        Scores in ascending order.
    lower, upper : ndarray of shape (k,)
        Limits of the observed frequency in the long run at each score, or of its mean over each bin.
    kind : {"pointwise", "simultaneous"}
        Whether the confidence level holds at each score, or at all of them together.
    confidence_level : float
        The confidence level.
    assumption : str
        What is assumed about the curve.
    """

    score: FloatArray
    lower: FloatArray
    upper: FloatArray
    kind: str
    confidence_level: float
    assumption: str


@takes_predictions
def confidence_band(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    kind: str = "simultaneous",
    confidence_level: float = 0.95,
    **reading: Unpack[Reading],
) -> ConfidenceBand:
    r"""Return a confidence band for a rising calibration curve.

    ``"pointwise"``: at each score, the lower Clopper-Pearson limit of the mean label of the :math:`n^{2/3}` rows at
    and below that score, and the upper limit of as many at and above it. ``"simultaneous"``: the best of the limits
    from runs of scores of many lengths, with the error probability divided among them, so that the whole curve lies
    inside with the stated probability. Both are guaranteed in samples of any size if the curve rises and rows are
    independent. With sampling weights or clusters they rest on estimated variances.

    Parameters
    ----------
    {predictions}
    kind : {"pointwise", "simultaneous"}
        What the level refers to.
    confidence_level : float
        The confidence level.
    {weights}
    clusters : array-like of shape (n,), optional
        Rows with the same value depend on each other.
    {classes}

    Returns
    -------
    ConfidenceBand

    References
    ----------
    Dimitriadis et al. (2023), Biometrika; see `truecal.confidence_interval`. Korn, Graubard (1998), Survey
    Methodology.

    Examples
    --------
    >>> import truecal
    >>> from truecal.inference.reliability import confidence_band
    >>> population = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
    >>> band = confidence_band(*population.sample(2000, rng=0))
    >>> bool(((band.lower <= band.score**2) & (band.score**2 <= band.upper)).all())
    True
    """
    check_choice("kind", kind, KINDS)
    tail = 1 - check_fraction("confidence_level", confidence_level)
    sample = as_sample(y_true, y_proba, **reading)
    refuse_imperfect(sample, "a confidence band")
    lower, upper = rising_band(sample, tail, simultaneous=kind == "simultaneous")
    # A limit beyond the estimate would be of no use to a reader, and moving it away keeps the guarantee.
    lower, upper = np.minimum(lower, sample.isotonic), np.maximum(upper, sample.isotonic)
    kept = _corners(lower, upper)
    return ConfidenceBand(
        sample.score[kept], lower[kept], upper[kept], kind, confidence_level, "the curve rises"
    )


def bin_confidence_band(curve: Reliability, kind: str) -> ConfidenceBand:
    """Return Clopper-Pearson intervals of the bins of a curve, for each or for all of them together."""
    check_choice("kind", kind, KINDS)
    share = 1 if kind == "pointwise" else len(curve.bins)
    lower, upper = curve.rates.limits((1 - curve.confidence_level) / (2 * share))
    return ConfidenceBand(
        curve.bins.mean_score,
        lower,
        upper,
        kind,
        curve.confidence_level,
        "none; limits are of the mean of each bin",
    )


def _corners(lower: FloatArray, upper: FloatArray) -> Any:
    """Return which points are needed to draw the band: those where it changes, at most about a thousand."""
    change = (np.diff(lower) != 0) | (np.diff(upper) != 0)
    kept = np.flatnonzero(np.append(change, True) | np.append(True, change))
    return kept[np.unique(np.linspace(0, len(kept) - 1, min(len(kept), 1000)).astype(int))]
