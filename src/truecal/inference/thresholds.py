r"""What acting on scores above a threshold gives: decision curves and selective prediction.

Someone who acts when the probability is at least t values a needless action at :math:`t / (1 - t)` of a missed one. The
*net benefit* of acting when the score is at least t is (Vickers and Elkin 2006)

.. math:: \mathrm{NB}(t) = \frac{\mathrm{TP}}{n} - \frac{t}{1 - t} \frac{\mathrm{FP}}{n} .

Acting always has the net benefit :math:`\bar y - (1 - \bar y)\, t / (1 - t)`, acting never has 0.

At threshold t the coverage is the share of rows with a score of at least t, and the selective accuracy is the share of
correct ones among them. Risk is one minus accuracy. The area under the risk-coverage curve (AURC) is the mean risk over
all coverages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from truecal._lib.checks import check_fraction
from truecal._lib.numeric import fit_logistic
from truecal._lib.text import level, percent
from truecal._lib.types import FloatArray
from truecal.data.arrays import Reading, takes_predictions
from truecal.data.clusters import Clusters, variance_factor
from truecal.data.question import as_sample
from truecal.data.sample import Sample, prefix_sums
from truecal.exceptions import InputError
from truecal.results import Result


@dataclass(frozen=True, eq=False)
class NetBenefit(Result):
    """A decision curve.

    Attributes
    ----------
    thresholds : ndarray of shape (k,)
        Thresholds t.
    net_benefit : ndarray of shape (k,)
        Net benefit of acting when the score is at least t.
    low, high : ndarray of shape (k,)
        Pointwise confidence interval of `net_benefit`.
    treat_all : ndarray of shape (k,)
        Net benefit of acting always. That of acting never is 0.
    gain, gain_low, gain_high : ndarray of shape (k,)
        Net benefit over the better of acting always and acting never, with a pointwise interval.
    interventions_avoided : ndarray of shape (k,)
        Actions that the model saves per 100 rows, compared with acting always, without missing more events.
    recalibrated : ndarray of shape (k,)
        Net benefit after a logistic recalibration that is fitted to the same rows.
    cost, cost_low, cost_high : ndarray of shape (k,)
        What miscalibration costs: `recalibrated` less `net_benefit`, with a pointwise interval.
    confidence_level : float
        Confidence level of the intervals.
    n : int or float
        Number of rows, or total weight.
    target : str
        What the scores are probabilities of.
    """

    thresholds: FloatArray
    net_benefit: FloatArray
    low: FloatArray
    high: FloatArray
    treat_all: FloatArray
    gain: FloatArray
    gain_low: FloatArray
    gain_high: FloatArray
    interventions_avoided: FloatArray
    recalibrated: FloatArray
    cost: FloatArray
    cost_low: FloatArray
    cost_high: FloatArray
    confidence_level: float
    n: float
    target: str

    def to_rows(self) -> list[dict[str, float]]:
        """Return one plain dictionary for each threshold."""
        return self._rows_of(vars(self))

    def __str__(self) -> str:
        interval = f"{level(self.confidence_level)} interval"
        head = f"{'threshold':>9}  {'net benefit':>11}  {interval:>18} {'treat all':>10}"
        lines = [
            f"{t:9.3g}  {value:11.4f}  {f'{low:.4f} to {high:.4f}':>18} {everyone:10.4f}"
            for t, value, low, high, everyone in zip(
                self.thresholds, self.net_benefit, self.low, self.high, self.treat_all, strict=True
            )
        ]
        return "\n".join([head, *lines])


@takes_predictions
def net_benefit(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    thresholds: ArrayLike | None = None,
    confidence_level: float = 0.95,
    **reading: Unpack[Reading],
) -> NetBenefit:
    """Return the decision curve of predictions.

    The net benefit is the share of hits less that of needless actions times the odds of the threshold. Its interval
    needs no resampling: it joins Wilson's intervals of the two shares (Zou and Donner 2008), which also hold with few
    events. With clusters or sampling weights a share counts as many rows as its variance is worth.

    Parameters
    ----------
    {predictions}
    thresholds : array-like, optional
        Thresholds strictly between 0 and 1; by default 0.01 to 0.99.
    confidence_level : float
        Confidence level of the pointwise intervals.
    {reading}

    Returns
    -------
    NetBenefit

    References
    ----------
    Vickers, Elkin (2006), Decision curve analysis: a novel method for evaluating prediction models, Medical Decision
    Making 26.
    Wilson (1927), Journal of the American Statistical Association 22, 209-212.
    Zou, Donner (2008), Construction of confidence limits about effect measures, Statistics in Medicine 27, 1693-1702.
    Sande, Vickers, Wynants, Van Calster (2022), on the uncertainty of net benefit, Diagnostic and Prognostic Research.

    Examples
    --------
    >>> import truecal
    >>> curve = truecal.net_benefit([1, 0, 1, 0], [0.9, 0.6, 0.4, 0.1], thresholds=[0.2, 0.5])
    >>> curve.net_benefit, curve.treat_all
    (array([0.4375, 0.    ]), array([0.375, 0.   ]))
    """
    check_fraction("confidence_level", confidence_level)
    sample = as_sample(y_true, y_proba, **reading)
    cut = read_thresholds(thresholds)
    odds = cut / (1 - cut)
    benefit = _Benefit(sample, confidence_level)
    first, last = np.zeros(len(cut), dtype=np.intp), np.full(len(cut), len(sample))
    acting = np.searchsorted(sample.score, cut, side="left")
    after = np.searchsorted(_recalibrated(sample), cut, side="left")
    model, everyone = benefit.estimate(acting, last, odds), benefit.value(first, last, odds)
    # The gain over acting always is lost on the rows below the threshold; over acting never it is made above it.
    below = benefit.estimate(first, acting, odds)
    # At the prevalence both are alike, and rounding must not decide.
    gain = np.where(everyone > 1e-12, -below[[0, 2, 1]], model)
    # Recalibration changes what is done between the two thresholds.
    moved = benefit.estimate(np.minimum(acting, after), np.maximum(acting, after), odds, at_threshold=True)
    cost = np.where(after < acting, moved, -moved[[0, 2, 1]])
    return NetBenefit(
        thresholds=cut,
        net_benefit=model[0],
        low=model[1],
        high=model[2],
        treat_all=everyone,
        gain=gain[0],
        gain_low=gain[1],
        gain_high=gain[2],
        interventions_avoided=100 * (model[0] - everyone) / odds,
        recalibrated=model[0] + cost[0],
        cost=cost[0],
        cost_low=cost[1],
        cost_high=cost[2],
        confidence_level=confidence_level,
        n=sample.n,
        target=sample.target,
    )


def read_thresholds(thresholds: ArrayLike | None) -> FloatArray:
    """Return checked thresholds; by default 0.01 to 0.99."""
    if thresholds is None:
        return np.arange(1, 100) / 100
    cut = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
    wrong = ~((cut > 0) & (cut < 1))
    if cut.ndim != 1 or cut.size == 0:
        raise InputError("must be a vector of numbers", argument="thresholds")
    if wrong.any():
        raise InputError(
            "must lie strictly between 0 and 1",
            argument="thresholds",
            count=int(wrong.sum()),
            first_row=int(wrong.argmax()),
            value=float(cut[wrong][0]),
        )
    return cut


def _recalibrated(sample: Sample) -> FloatArray:
    """Return the scores after logistic recalibration, in the same order; unchanged if it cannot be fitted."""
    inside = (sample.score > 0) & (sample.score < 1)
    score, count, positives = sample.score[inside], sample.count[inside], sample.positives[inside]
    if len(score) < 2 or not positives.any() or not (count - positives).any():
        return sample.score
    logit = np.log(score) - np.log1p(-score)
    unit = len(score) / float(count.sum())  # tolerances of the fit are those of about one row
    design = np.column_stack([np.ones_like(logit), logit])
    fit = fit_logistic(design, np.zeros_like(logit), count * unit, positives * unit)
    if fit.x[1] <= 0:  # a falling curve would reverse the order: recalibrate the level only
        fit = fit_logistic(np.ones((len(logit), 1)), logit, count * unit, positives * unit)
        logit = logit + fit.x[0]
    else:
        logit = design @ fit.x
    recalibrated = sample.score.copy()
    recalibrated[inside] = expit(logit)
    return np.maximum.accumulate(recalibrated)


class _Benefit:
    """Net benefit of acting on a range of score groups, with intervals."""

    def __init__(self, sample: Sample, confidence_level: float) -> None:
        self.sample = sample
        columns = (
            sample.positives,
            sample.count - sample.positives,
            sample.positives2,
            sample.weight2 - sample.positives2,
            sample.positives2 - sample.labels2,  # of labels other than 0 and 1: w^2 z (1 - z)
        )
        self.sums = [prefix_sums(column) for column in columns]
        self.squares = float(sample.weight2.sum())
        self.quantile = sample.quantile((1 - confidence_level) / 2)
        # A share of 0 or 1 has no variance; it is treated as estimated from this many rows or clusters.
        self.fewest = min(sample.degrees_of_freedom + 1, sample.n**2 / self.squares)

    def value(self, start: NDArray[np.intp], end: NDArray[np.intp], odds: FloatArray) -> FloatArray:
        """Return the net benefit of acting on the groups from `start` up to `end`."""
        hits, misses = ((sums[end] - sums[start]) / self.sample.n for sums in self.sums[:2])
        return np.asarray(hits - odds * misses)

    def estimate(
        self, start: NDArray[np.intp], end: NDArray[np.intp], odds: FloatArray, *, at_threshold: bool = False
    ) -> FloatArray:
        """Return the net benefit of acting on the groups from `start` up to `end`, with its interval.

        Rows `at_threshold` have a chance t of the event, and a variance of t / (1 - t) each. If they are few they may
        all be alike: the distance to the ends is then at least that of these rows and of one more.
        """
        n = self.sample.n
        hits, misses, hits2, misses2, both2 = (sums[end] - sums[start] for sums in self.sums)
        hits, misses = hits / n, misses / n
        if table := self.sample.clusters:
            moments = self._by_cluster(table, start, end, hits, misses)
        else:  # sums over rows of squares and products of their part in the shares of hits and of misses
            moments = np.stack(
                [
                    hits2 * (1 - 2 * hits) + hits**2 * self.squares - both2,
                    misses2 * (1 - 2 * misses) + misses**2 * self.squares - both2,
                    hits * misses * self.squares - hits * misses2 - misses * hits2 + both2,
                ]
            )
        variance, miss_variance, covariance = moments / n**2
        below, above = self._wilson(hits, variance)
        miss_below, miss_above = self._wilson(misses, miss_variance)
        # Neither share exceeds that of the rows, whose variance is known where one share is 0 and its own is not.
        rows = hits + misses
        most = rows + self._wilson(rows, variance + 2 * covariance + miss_variance)[1]
        above, miss_above = np.minimum(above, most - hits), np.minimum(miss_above, most - misses)
        product = np.sqrt(variance * miss_variance)
        correlation = np.divide(covariance, product, out=np.zeros_like(product), where=product > 0)
        least = np.zeros(len(odds))
        if at_threshold:
            least = self.quantile**2 * odds * (hits2 + misses2 + self.squares / n) / n**2
        halves = [
            np.sqrt(np.maximum(one**2 - 2 * correlation * one * other + other**2, least))
            for one, other in ((below, odds * miss_above), (above, odds * miss_below))
        ]
        value = self.value(start, end, odds)
        return np.stack([value, value - halves[0], value + halves[1]])

    def _wilson(self, share: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how far the ends of Wilson's interval lie below and above a share with this variance."""
        share = np.clip(share, 0.0, 1.0)  # labels that are not the truth may leave it
        binomial = share * (1 - share)
        known = (variance > 0) & (binomial > 0)
        size = np.where(known, binomial / np.where(known, variance, 1.0), self.fewest)
        return _wilson(share, size, self.quantile)

    def _by_cluster(
        self,
        table: Clusters,
        start: NDArray[np.intp],
        end: NDArray[np.intp],
        hits: FloatArray,
        misses: FloatArray,
    ) -> FloatArray:
        """Return sums over clusters of squares and products of their part in both shares, times G / (G - 1).

        That is `Sample.sum_covariance`, which takes six times as long for many thresholds: entries are in the order of
        groups, so that those of a range are a slice.
        """
        weight = np.bincount(table.cluster, table.weight, table.n_clusters)
        first, last = np.searchsorted(table.group, start), np.searchsorted(table.group, end)
        each = []
        for low, high, hit_rate, miss_rate in zip(first, last, hits, misses, strict=True):
            cluster, positives = table.cluster[low:high], table.positives[low:high]
            hit = np.bincount(cluster, positives, table.n_clusters) - hit_rate * weight
            negatives = table.weight[low:high] - positives
            miss = np.bincount(cluster, negatives, table.n_clusters) - miss_rate * weight
            each.append((hit @ hit, miss @ miss, hit @ miss))
        return np.array(each).T * variance_factor(table.n_clusters)


def _wilson(share: FloatArray, size: FloatArray, quantile: float) -> tuple[FloatArray, FloatArray]:
    """Return how far the ends of Wilson's interval lie below and above a share of so many rows."""
    squared = quantile**2
    shift = squared / size * (0.5 - share)
    half = quantile * np.sqrt(share * (1 - share) / size + squared / (4 * size**2))
    scale = 1 + squared / size
    return np.maximum(half - shift, 0.0) / scale, np.maximum(half + shift, 0.0) / scale


@dataclass(frozen=True, eq=False)
class RiskCoverage(Result):
    """Accuracy of the most confident rows, for every threshold of the score.

    Attributes
    ----------
    threshold : ndarray of shape (k,)
        Distinct scores in descending order; rows with at least this score are answered.
    coverage : ndarray of shape (k,)
        Share of the rows that are answered.
    accuracy : ndarray of shape (k,)
        Share of correct ones among them: the selective accuracy.
    mean_score : ndarray of shape (k,)
        Their mean score, which is the accuracy that a calibrated model would have.
    lower, upper : ndarray of shape (k,)
        Pointwise confidence interval of the accuracy (Wilson's, with the effective number of rows of clusters or
        sampling weights).
    aurc : float
        Area under the risk-coverage curve; smaller is better.
    confidence_level : float
        Level of the intervals.
    n : int or float
        Number of rows, or total weight.
    target : str
        What the scores are probabilities of.
    """

    threshold: FloatArray
    coverage: FloatArray
    accuracy: FloatArray
    mean_score: FloatArray
    lower: FloatArray
    upper: FloatArray
    aurc: float
    confidence_level: float
    n: float
    target: str

    @property
    def risk(self) -> FloatArray:
        """One minus the accuracy."""
        return np.asarray(1 - self.accuracy)

    def at(self, coverage: float) -> dict[str, float]:
        """Return threshold, coverage, accuracy, mean score and interval at the largest coverage up to the given one.

        Equal scores are answered together, so the exact coverage may not be possible.

        Parameters
        ----------
        coverage : float
            Share of rows to answer, above 0 and at most 1.
        """
        if not 0 < coverage <= 1:
            raise InputError(f"must be above 0 and at most 1. Got {coverage} instead", argument="coverage")
        place = max(int(np.searchsorted(self.coverage, coverage + 1e-12, side="right")) - 1, 0)
        names = ("threshold", "coverage", "accuracy", "mean_score", "lower", "upper")
        return {name: float(getattr(self, name)[place]) for name in names}

    def __str__(self) -> str:
        lines = [f"Selective accuracy of {self.target}, n = {self.n:.10g}, AURC {self.aurc:.4f}"]
        for share in (1.0, 0.8, 0.5):
            at = self.at(share)
            interval = f"{percent(at['lower'])} to {percent(at['upper'])} ({level(self.confidence_level)})"
            lines.append(
                f"  score >= {at['threshold']:.3g}: coverage {percent(at['coverage'])}, "
                f"accuracy {percent(at['accuracy'])}, {interval}"
            )
        return "\n".join(dict.fromkeys(lines))


@takes_predictions
def risk_coverage(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    **reading: Unpack[Reading],
) -> RiskCoverage:
    """Return the accuracy of the most confident rows as a function of how many are answered.

    For a language model the labels say whether each answer is correct, and the scores are its confidences.

    Parameters
    ----------
    {predictions}
    confidence_level : float
        Level of the intervals.
    {reading}

    Returns
    -------
    RiskCoverage

    References
    ----------
    Geifman, El-Yaniv (2017), Selective classification for deep neural networks, NeurIPS; Wilson (1927), JASA.

    Examples
    --------
    >>> from truecal.inference.thresholds import risk_coverage
    >>> curve = risk_coverage([1, 1, 1, 0, 1, 0], [0.9, 0.9, 0.8, 0.8, 0.6, 0.5])
    >>> curve.coverage.round(2), curve.accuracy.round(2)
    (array([0.33, 0.67, 0.83, 1.  ]), array([1.  , 0.75, 0.8 , 0.67]))
    >>> round(curve.at(0.7)["accuracy"], 2)
    0.75
    """
    tail = (1 - check_fraction("confidence_level", confidence_level)) / 2
    sample = as_sample(y_true, y_proba, **reading)
    score, count, positives = sample.score[::-1], sample.count[::-1], sample.positives[::-1]
    kept = np.cumsum(count)
    accuracy = np.minimum(np.cumsum(positives) / kept, 1.0)
    effective = kept**2 / np.cumsum(sample.weight2[::-1])
    if sample.clusters:
        effective = _effective_sizes(sample.clusters, kept, accuracy, effective)
    below, above = _wilson(accuracy, effective, sample.quantile(tail))
    return RiskCoverage(
        threshold=score.astype(np.float64),
        coverage=kept / sample.n,
        accuracy=accuracy,
        mean_score=np.cumsum(score * count) / kept,
        lower=np.maximum(accuracy - below, 0.0),
        upper=np.minimum(accuracy + above, 1.0),
        aurc=float(count @ (1 - accuracy) / sample.n),
        confidence_level=confidence_level,
        n=sample.n,
        target=sample.target,
    )


def _effective_sizes(table: Clusters, kept: FloatArray, accuracy: FloatArray, most: FloatArray) -> FloatArray:
    """Return how many independent rows would give each accuracy its variance; at most the rows or clusters there are.

    The variance is sum r_c^2 C / (C - 1) / kept^2 with r_c = hits_c - accuracy rows_c, whose three sums of squares
    grow entry by entry as the threshold falls.
    """
    # By cluster, and within it from the highest score down: what a cluster has before and after each entry.
    order = np.lexsort((-table.group, table.cluster))
    cluster, place = table.cluster[order], len(kept) - 1 - table.group[order]
    is_first = np.append(True, cluster[1:] != cluster[:-1])
    run = np.cumsum(is_first) - 1
    after, before = [], []
    for column in (table.weight[order], table.positives[order]):
        total = np.cumsum(column)
        start = (total - column)[is_first]
        after.append(total - start[run])
        before.append(after[-1] - column)

    def grown(entries: FloatArray) -> FloatArray:
        return np.cumsum(np.bincount(place, entries, len(kept)))

    rows, both, hits = (
        grown(after[i] * after[j] - before[i] * before[j]) for i, j in ((0, 0), (0, 1), (1, 1))
    )
    n_clusters = grown(is_first.astype(np.float64))
    squares = np.maximum(hits - 2 * accuracy * both + accuracy**2 * rows, 0.0)
    variance = squares * n_clusters / np.maximum(n_clusters - 1, 1) / kept**2
    spread = accuracy * (1 - accuracy)
    # With accuracy 0 or 1 there is no variance to see, so clusters count as rows.
    seen = variance > 1e-12 * np.maximum(spread, 1e-12)
    return np.where(
        seen, np.minimum(spread / np.where(seen, variance, 1.0), most), np.minimum(n_clusters, most)
    )
