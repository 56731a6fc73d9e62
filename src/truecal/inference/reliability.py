"""Reliability curves: the observed frequency of each score, and bands around it.

A *consistency* band shows where the estimated curve would lie if the model were calibrated. A *confidence* band shows
where the true curve lies. For bins both kinds of confidence band are Clopper-Pearson intervals of the mean label. For
the isotonic curve they rest on one idea (Dimitriadis et al. 2023): if the curve rises, its mean over the rows below a
score is not above its value there, and its mean over the rows above is not below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import betaincinv, ndtri, stdtrit

from truecal._lib.checks import as_generator, check_choice, check_count, check_flag, check_fraction
from truecal._lib.numeric import IntArray
from truecal._lib.optimize import isotonic_rate
from truecal._lib.types import FloatArray, RNGLike
from truecal.data.question import as_sample, refuse_clusters, refuse_imperfect
from truecal.data.reading import Reading, takes_predictions
from truecal.data.sample import Clusters, Sample
from truecal.estimators._binning import (
    EqualMass,
    EqualWidth,
    monotone_sweep,
    partition,
    summarize_bins,
)
from truecal.exceptions import InputError
from truecal.inference.dependence import summary_of
from truecal.inference.resample import redraws
from truecal.multiscale import analyse, enough_clusters
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
    the residuals of whole clusters get random signs instead.

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
    """

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
    n_clusters: int | None = None

    def bin_rows(self) -> list[dict[str, float]]:
        """Return one plain dictionary for each bin: its numbers, interval and band."""
        names = ("bins_lower", "bins_upper", "interval_lower", "interval_upper")
        columns = [getattr(self, name).tolist() for name in names]
        return [
            {**row, **dict(zip(names, ends, strict=True))}
            for row, *ends in zip(self.bins.to_rows(), *columns, strict=True)
        ]


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
    table = sample.clusters
    rule = _RULES[check_choice("binning", binning, _RULES)](sample)
    n_bins = int(monotone_sweep(rule)[0]) if n_bins == "sweep" else check_count("n_bins", n_bins)
    n_resamples = check_count("n_resamples", n_resamples)
    tail = (1 - check_fraction("confidence_level", confidence_level)) / 2
    band = check_flag("band", band) and (
        table is None or enough_clusters(table.n_clusters, table.effective_number)
    )
    if band and table is None and not sample.whole and sample.noise is None:
        raise InputError(
            "has fractional values, so labels cannot be drawn for the band",
            argument="sample_weight",
            remedy="Pass band=False for the curve without it.",
        )
    cut = partition(rule, n_bins)
    bins = summarize_bins(sample, cut)
    start = _block_starts(sample, cut.start)
    blocks = sample if len(start) == len(sample) else sample.merge_groups(start)
    inside = None if table is None else bin_clusters(sample, table, cut.start)
    curves, means = np.full((2, len(blocks)), np.nan), np.full((2, len(bins)), np.nan)
    if band:
        tails = (tail, 1 - tail)
        curves, means = _bands(
            sample,
            blocks,
            start,
            np.searchsorted(start, cut.start),
            None if inside is None else inside.widening(confidence_level),
            tails,
            n_resamples,
            as_generator(rng),
        )
    # The isotonic fit is that of all scores; a block shows its mean.
    fitted = sample.isotonic * sample.count
    count = bins.count
    if inside is not None:
        count = inside.effective / inside.widening(confidence_level) ** 2
    elif sample.squares is not None:
        count = bins.count**2 / np.add.reduceat(sample.squares, cut.start)
    rate = bins.mean_label
    if sample.pseudo is not None:  # rows with true labels that would be as uncertain
        rate = np.clip(rate, 0.0, 1.0)
        if inside is None and sample.noise is not None:
            middle = (rate * count + 0.5) / (count + 1)
            count = middle * (1 - middle) * bins.count**2 / np.add.reduceat(sample.noise, cut.start)
    interval = clopper_pearson(count * rate, count, confidence_level)
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
    )


def clopper_pearson(
    positives: FloatArray, count: FloatArray, confidence_level: float
) -> tuple[FloatArray, FloatArray]:
    """Return both ends of the exact interval of a binomial probability (Clopper, Pearson 1934).

    Examples
    --------
    >>> low, high = clopper_pearson(np.array([0.0, 5.0]), np.array([10.0, 10.0]), 0.95)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.1871]), array([0.3085, 0.8129]))
    """
    tail = (1 - confidence_level) / 2
    negatives = np.maximum(count - positives, 0.0)
    low = betaincinv(np.maximum(positives, 1e-300), negatives + 1, tail)
    high = betaincinv(positives + 1, np.maximum(negatives, 1e-300), 1 - tail)
    return np.where(positives > 0, low, 0.0), np.where(negatives > 0, high, 1.0)


def _block_starts(sample: Sample, bins_start: IntArray) -> IntArray:
    """Return where blocks begin: narrow in score and in mass, and none crosses a bin edge."""
    if len(sample) <= 2 * _BLOCKS:
        return np.arange(len(sample))
    starts = (partition(rule(sample), _BLOCKS).start for rule in (EqualMass, EqualWidth))
    return np.unique(np.concatenate([bins_start, *starts]))


def _bands(
    sample: Sample,
    blocks: Sample,
    start: IntArray,
    bins_start: IntArray,
    widening: FloatArray | None,
    tails: tuple[float, float],
    n_resamples: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Return the quantiles of the isotonic curve at each block, and of the mean label of each bin."""
    curves, means = np.empty((n_resamples, len(blocks))), np.empty((n_resamples, len(bins_start)))
    count = np.add.reduceat(blocks.count, bins_start)

    def keep(row: int, positives: FloatArray) -> None:
        curves[row] = isotonic_rate(blocks.count, positives)
        means[row] = np.add.reduceat(positives, bins_start) / count

    if sample.clusters is not None and widening is not None:
        scale = np.repeat(widening, np.diff(bins_start, append=len(blocks)))
        consistent_draws(sample, sample.clusters, start, scale, n_resamples, rng, keep)
        np.clip(curves, 0.0, 1.0, out=curves)
        np.clip(means, 0.0, 1.0, out=means)
    elif sample.noise is not None:
        sd, expected = np.sqrt(np.add.reduceat(sample.noise, start)), blocks.count * blocks.score
        for row in range(n_resamples):
            keep(row, expected + sd * rng.standard_normal(len(sd)))
        np.clip(curves, 0.0, 1.0, out=curves)
        np.clip(means, 0.0, 1.0, out=means)
    else:
        for row, redrawn in enumerate(redraws(blocks, n_resamples, rng=rng)):
            keep(row, redrawn.positives)
    return np.quantile(curves, tails, axis=0), np.quantile(means, tails, axis=0)


#: Signs that are drawn at a time.
_MOST_SIGNS = 4_000_000


@dataclass(frozen=True, eq=False)
class ClusterBins:
    r"""The clusters of each bin of scores: how many rows they are worth, and how well their variance is known.

    Attributes
    ----------
    effective : ndarray of shape (n_bins,)
        Number of independent rows that would determine the observed rate as well, :math:`\bar y (1 - \bar y) / V` with
        the jackknife variance V over clusters; at most the number of rows. If all labels of a bin agree, each cluster
        counts as one row; a bin with a single cluster counts as none.
    freedom : ndarray of shape (n_bins,)
        Degrees of freedom of V: one less than the number of clusters, fewer if sizes differ.
    """

    effective: FloatArray
    freedom: FloatArray

    def widening(self, confidence_level: float) -> FloatArray:
        """Return the ratio of the quantile of Student's t to the normal one."""
        tail = (1 - confidence_level) / 2
        return np.asarray(stdtrit(self.freedom, tail) / ndtri(tail))


def bin_clusters(sample: Sample, table: Clusters, start: NDArray[np.intp]) -> ClusterBins:
    r"""Return what the clusters of each bin say about its observed rate.

    Cluster c of a bin has weight :math:`m_c` and excess :math:`E_c = \sum_{i \in c} w_i (y_i - \bar y)`. The jackknife
    variance of the rate is :math:`V = \frac{G-1}{G} \sum_c (E_c / (m - m_c))^2`. The degrees of freedom are those of a
    sum of squares with variances :math:`v_c = m_c (1 + (m_c - 1) \mathrm{ICC})`, which is
    :math:`(\sum v_c)^2 / \sum v_c^2`, less 1.
    """
    n_bins = len(start)
    place = np.searchsorted(start, table.group, side="right") - 1
    key, pair = np.unique(place * table.n_clusters + table.cluster, return_inverse=True)
    of_pair = key // table.n_clusters
    rows = table.weight if table.rows is None else table.rows
    weight, positives, count = (
        np.bincount(pair, values).astype(np.float64) for values in (table.weight, table.positives, rows)
    )

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(of_pair, values, n_bins).astype(np.float64, copy=False)

    clusters, mass = total(np.ones(len(key))), total(weight)
    rate = total(positives) / mass
    others = (mass[of_pair] - weight) / mass[of_pair]
    share = (positives - rate[of_pair] * weight) / mass[of_pair]
    share = np.divide(share, others, out=np.zeros_like(share), where=others > 1e-12)
    variance = (clusters - 1) / clusters * total(share**2)
    effective = np.divide(rate * (1 - rate), variance, out=clusters.copy(), where=variance > 1e-12)
    icc = summary_of(sample, table).icc
    spread = count * (1 + (count - 1) * (0.0 if math.isnan(icc) else min(max(icc, 0.0), 1.0)))
    freedom = np.maximum(total(spread) ** 2 / total(spread**2) - 1, 1.0)
    return ClusterBins(np.where(clusters > 1, np.minimum(effective, total(count)), 0.0), freedom)


def consistent_draws(
    sample: Sample,
    table: Clusters,
    start: NDArray[np.intp],
    scale: FloatArray,
    n_resamples: int,
    rng: np.random.Generator,
    keep: Callable[[int, FloatArray], None],
) -> None:
    """Draw sums of labels of a calibrated model whose clusters vary as much as those of the data.

    The residuals of each cluster around the estimated calibration curve are multiplied by a random sign and added to
    the scores, which are the observed frequencies of a calibrated model.
    """
    curve = sample.score - analyse(sample).gap
    error = table.residual(sample.score) + table.weight * (curve - sample.score)[table.group]
    block = np.searchsorted(start, table.group, side="right") - 1
    sums = sparse.csr_array(
        (error * scale[block], (table.cluster, block)), shape=(table.n_clusters, len(start))
    )
    factor = math.sqrt(table.n_clusters / max(table.n_clusters - 1, 1))
    expected = np.add.reduceat(sample.count * sample.score, start)
    size = max(_MOST_SIGNS // table.n_clusters, 1)
    for first in range(0, n_resamples, size):
        n = min(size, n_resamples - first)
        signs = rng.integers(0, 2, (n, table.n_clusters)) * 2.0 - 1.0
        for row, drawn in enumerate(expected + factor * np.asarray(signs @ sums), start=first):
            keep(row, drawn)


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
    from all intervals of a grid, with the error probability divided among them, so that the whole curve lies inside
    with the stated probability. Both are guaranteed in samples of any size if the curve rises.

    Parameters
    ----------
    {predictions}
    kind : {"pointwise", "simultaneous"}
        What the level refers to.
    confidence_level : float
        The confidence level.
    {weights}
        Weights must be counts.
    clusters : array-like, optional
        Not supported: the limits are for independent rows.
    {classes}

    Returns
    -------
    ConfidenceBand

    References
    ----------
    Dimitriadis et al. (2023), Biometrika; see `truecal.confidence_interval`.

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
    _check_independent(sample)
    lower, upper = rising_band(sample, tail) if kind == "simultaneous" else _windows(sample, tail)
    # A limit beyond the estimate would be of no use to a reader, and moving it away keeps the guarantee.
    lower, upper = np.minimum(lower, sample.isotonic), np.maximum(upper, sample.isotonic)
    kept = _corners(lower, upper)
    return ConfidenceBand(
        sample.score[kept], lower[kept], upper[kept], kind, confidence_level, "the curve rises"
    )


def bin_confidence_band(curve: Reliability, kind: str) -> ConfidenceBand:
    """Return Clopper-Pearson intervals of the bins of a curve, for each or for all of them together.

    Parameters
    ----------
    curve : Reliability
        The curve.
    kind : {"pointwise", "simultaneous"}
        What the level refers to; ``"simultaneous"`` divides the error probability among the bins (Bonferroni).
    """
    check_choice("kind", kind, KINDS)
    share = 1 if kind == "pointwise" else len(curve.bins)
    count = curve.bins.count
    lower, upper = clopper_pearson(
        count * curve.bins.mean_label, count, 1 - (1 - curve.confidence_level) / share
    )
    return ConfidenceBand(
        curve.bins.mean_score,
        lower,
        upper,
        kind,
        curve.confidence_level,
        "none; limits are of the mean of each bin",
    )


def _check_independent(sample: Sample) -> None:
    refuse_clusters(sample, "a confidence band")
    refuse_imperfect(sample, "a confidence band")
    if sample.squares is not None or not sample.whole:
        raise InputError(
            "must be counts for a confidence band, which needs independent rows",
            argument="sample_weight",
            remedy="Leave it out, or pass whole numbers with weighting='counts'.",
        )


def _windows(sample: Sample, tail: float) -> tuple[FloatArray, FloatArray]:
    """Return limits from the rows at and below each score, and at and above it."""
    rows = np.concatenate([[0.0], np.cumsum(sample.count)])
    ones = np.concatenate([[0.0], np.cumsum(sample.positives)])
    width = sample.n ** (2 / 3)
    # Windows depend on the scores alone. Each ends with a whole group, so it holds at least `width` rows if it can.
    here = np.arange(len(sample))
    first = np.clip(np.searchsorted(rows, rows[1:] - width, side="right") - 1, 0, here)
    last = np.clip(np.searchsorted(rows, rows[:-1] + width, side="left"), here + 1, len(sample))
    level = 1 - tail
    lower, _ = clopper_pearson(ones[here + 1] - ones[first], rows[here + 1] - rows[first], level)
    _, upper = clopper_pearson(ones[last] - ones[here], rows[last] - rows[here], level)
    return lower, upper


def _corners(lower: FloatArray, upper: FloatArray) -> Any:
    """Return which points are needed to draw the band: those where it changes, at most about a thousand."""
    change = (np.diff(lower) != 0) | (np.diff(upper) != 0)
    kept = np.flatnonzero(np.append(change, True) | np.append(True, change))
    return kept[np.unique(np.linspace(0, len(kept) - 1, min(len(kept), 1000)).astype(int))]
