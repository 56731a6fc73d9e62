"""How much rows depend on each other: the correlation within clusters, and signs of clusters that were not named."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from truecal._lib.text import counted
from truecal._lib.types import FloatArray
from truecal.data.arrays import Reading, takes_predictions
from truecal.data.clusters import Clusters, variance_factor
from truecal.data.extremes import COARSE_CURVE_END, CURVE_END, inside
from truecal.data.question import as_sample
from truecal.data.sample import Sample
from truecal.exceptions import InputError, warn_user
from truecal.multiscale import analyse, enough_clusters
from truecal.results import Result

#: Fewest scores that occur more than once, and fewest rows with such a score, before ties are examined.
_MIN_TIES, _MIN_TIED_SHARE = 30, 0.5
#: Ties of one size point to a design such as five answers to each question; other ties must be more alike.
_SAME_SIZE, _ALIKE, _VERY_ALIKE = 0.6, 0.03, 0.3
#: Standard deviations by which labels must be more alike than chance allows.
_CLEAR = 4.0
#: Bins in which the mean residual is taken out, so that a smooth calibration curve is not taken for dependence.
_BINS = 16


@dataclass(frozen=True, eq=False)
class ClusterSummary(Result):
    r"""Clusters of rows, and how much the labels of a cluster depend on each other.

    Attributes
    ----------
    n_clusters : int
        Number of clusters.
    effective_clusters : float
        Number of clusters of equal size that would tell as much about how clusters differ,
        :math:`(\sum_c m_c)^2 / \sum_c m_c^2`; much smaller than `n_clusters` if few clusters hold most of the rows.
    n : float
        Number of rows, or the total weight.
    sizes : ndarray of shape (n_clusters,)
        Rows of each cluster.
    icc : float
        Intraclass correlation: that of the residuals label - g(score) of two rows of the same cluster, with g the
        estimated calibration curve. NaN if no cluster has two rows, or there is one cluster.
    icc_standard_error : float
        Its standard error.
    design_effect : float
        Variance of the mean residual divided by that of as many independent rows. NaN for one cluster.
    mean_residual : float
        Mean of score - label.
    standard_error : float
        Its clustered standard error, :math:`\sqrt{\frac{G}{G-1} \sum_c (\sum_{i \in c} (r_i - \bar r))^2} / n`.
    equal : bool
        Whether every cluster counts the same, instead of every row.
    """

    _omitted: ClassVar[tuple[str, ...]] = ("sizes",)
    _derived: ClassVar[tuple[str, ...]] = ("smallest", "median", "largest", "effective_size", "weighting")

    n_clusters: int
    effective_clusters: float
    n: float
    sizes: FloatArray
    icc: float
    icc_standard_error: float
    design_effect: float
    mean_residual: float
    standard_error: float
    equal: bool = False

    @property
    def smallest(self) -> float:
        """Rows of the smallest cluster."""
        return float(self.sizes.min())

    @property
    def median(self) -> float:
        """Median number of rows of a cluster."""
        return float(np.median(self.sizes))

    @property
    def largest(self) -> float:
        """Rows of the largest cluster."""
        return float(self.sizes.max())

    @property
    def effective_size(self) -> float:
        """Number of independent rows whose mean residual has the same variance."""
        return float(self.sizes.sum()) / self.design_effect

    @property
    def weighting(self) -> str:
        """What is weighted equally: ``"rows"``, or ``"clusters"``."""
        return "clusters" if self.equal else "rows"

    @property
    def enough(self) -> bool:
        """Whether there are enough clusters, of sufficiently equal size, to estimate how much they differ."""
        return enough_clusters(self.n_clusters, self.effective_clusters)

    def __str__(self) -> str:
        rows = float(self.sizes.sum())
        size = f"{self.smallest:,.10g}"
        if self.largest > self.smallest:
            size += f" to {self.largest:,.10g} (median {self.median:,.10g})"
        text = f"{counted(rows, 'row')} in {counted(self.n_clusters, 'cluster')} of {size}"
        if not self.enough:
            return f"{text}, too few to tell how much clusters differ"
        if not math.isnan(self.icc):
            text += f"; intraclass correlation {self.icc:.2f} ± {self.icc_standard_error:.2f}"
        worth = f"as precise as {self.effective_size:,.0f} independent rows"
        return f"{text}; design effect {self.design_effect:.2f}: {worth}"


@takes_predictions
def describe_clusters(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    **reading: Unpack[Reading],
) -> ClusterSummary:
    r"""Return the number and sizes of clusters, their intraclass correlation, and the design effect.

    With :math:`e_i = y_i - g(f_i)` the residuals of the estimated calibration curve and :math:`s_i^2 = g (1 - g)`,

    .. math:: \mathrm{ICC} = \frac{\sum_c \sum_{i \ne j \in c} e_i e_j}{\sum_c \sum_{i \ne j \in c} s_i s_j},
        \qquad \mathrm{deff} = 1 + \mathrm{ICC} \,
        \frac{\sum_c \sum_{i \ne j \in c} s_i s_j}{\sum_i s_i^2} .

    For m rows in each cluster the design effect is about :math:`1 + (m - 1)\,\mathrm{ICC}`: that many times more rows
    are needed than if they were independent. See `truecal.required_sample_size`.

    Parameters
    ----------
    {predictions}
    {reading}

    Returns
    -------
    ClusterSummary

    References
    ----------
    Ridout, Demétrio, Firth (1999), Estimating intraclass correlation for binary data, Biometrics 55.

    Examples
    --------
    >>> import numpy as np, truecal
    >>> rng = np.random.default_rng(0)
    >>> question = np.repeat(np.arange(400), 5)
    >>> p = rng.beta(3, 2, 400)
    >>> chance = rng.beta(p * 7 / 3, (1 - p) * 7 / 3)  # an intraclass correlation of 0.3
    >>> y = rng.random(2000) < chance[question]
    >>> print(truecal.describe_clusters(y, p[question], clusters=question))
    2,000 rows in 400 clusters of 5; intraclass correlation 0.29 ± 0.03; design effect 2.14: as precise as 934
    independent rows
    """
    sample = as_sample(y_true, y_proba, **reading)
    if sample.clusters is None:
        raise InputError(
            "are missing", argument="clusters", remedy="Name the rows that depend on each other."
        )
    return summary_of(sample, sample.clusters)


def clusters_of(sample: Sample) -> ClusterSummary | None:
    """Return the summary of the clusters that the user named, if any."""
    table = sample.clusters
    return summary_of(sample, table) if table and table.named else None


def summary_of(sample: Sample, table: Clusters) -> ClusterSummary:
    """Return the summary of the clusters of a sample, which are in `table`."""
    table = table.of_rows()
    core = analyse(sample)
    curve = inside(sample.score - core.gap, CURVE_END)[table.group]
    # The residual of the curve, from that of the scores, which is exact also where a group holds several scores.
    residual = table.residual(sample.score)
    error = table.weight * (curve - sample.score[table.group]) + residual
    rows = table.weight if table.rows is None else table.rows
    # The squares of single rows, whose weights are taken as equal within a cluster and score.
    squares = (table.positives * (1 - 2 * curve) + table.weight * curve**2) * table.weight / rows
    spread = table.weight * np.sqrt(curve * (1 - curve))

    def by_cluster(values: FloatArray) -> FloatArray:
        return np.bincount(table.cluster, values, table.n_clusters).astype(np.float64, copy=False)

    products = by_cluster(error) ** 2 - by_cluster(squares)
    alone = by_cluster(spread**2 / rows)
    pairs = np.where(table.sizes > 1, by_cluster(spread) ** 2 - alone, 0.0)
    factor = variance_factor(table.n_clusters)
    icc = standard_error = math.nan
    design_effect = 1.0
    if table.merged is not None:
        # Rows of a block are independent unless they belong to one cluster: pairs of these count, all of them alike.
        design_effect = 1 + float(products.sum() / alone.sum())
        n_pairs = float(np.square(table.merged).sum() - table.merged.sum())
        if n_pairs > 0:
            total = n_pairs * float(alone.sum()) / float(table.merged.sum())
            icc = float(products.sum()) / total
            spread_of_blocks = float(np.square(products - products.mean()).sum())
            standard_error = math.sqrt(factor * spread_of_blocks) / total
    elif table.n_clusters == 1:
        design_effect = math.nan
    elif pairs.sum() > 0:
        design = core.smooth.design(sample.score[np.newaxis])[0]
        none, full = _expected_products(table, spread / table.weight, design, core.smooth.inverse[0])
        icc = (float(products.sum()) - none) / (full - none)
        standard_error = math.sqrt(factor * float(np.square(products - icc * pairs).sum())) / (full - none)
        # Not below that of one row: a negative correlation that is mere noise must not promise precision.
        design_effect = max(1 + icc * float(pairs.sum() / alone.sum()), 1 / float(table.sizes.max()))
    mean = float(residual.sum()) / sample.n
    each = by_cluster(residual - mean * table.weight)
    # The residuals of one cluster sum to 0 about their own mean, which says nothing of others.
    error_of_mean = math.nan if table.n_clusters == 1 else math.sqrt(factor * float(each @ each)) / sample.n
    return ClusterSummary(
        n_clusters=table.n_named,
        effective_clusters=table.effective_number,
        n=sample.n,
        sizes=table.sizes if table.merged is None else table.merged,
        icc=icc,
        icc_standard_error=standard_error,
        design_effect=design_effect,
        mean_residual=mean,
        standard_error=error_of_mean,
        equal=table.equal,
    )


def _expected_products(
    table: Clusters, sd: FloatArray, design: FloatArray, inverse: FloatArray
) -> tuple[float, float]:
    r"""Return what products of residuals of the same cluster add up to for a correlation of 0 and of 1.

    The curve was fitted to the same labels and absorbs some of what they have in common. To first order
    the residual of row i is :math:`e_i = \varepsilon_i - s_i^2 x_i^\top H^{-1} \sum_j w_j x_j \varepsilon_j`, with
    :math:`\varepsilon` the residuals of the true curve and s their standard deviations. The expected sum of
    :math:`w_i w_j e_i e_j` over pairs of rows of a cluster is therefore linear in their correlation.
    """
    each = table.weight if table.rows is None else table.weight**2 / table.rows  # sum of w^2

    def by_cluster(values: FloatArray) -> FloatArray:
        """Return the sums of values times x, and of values."""
        columns = [*(values * column[table.group] for column in design), values]
        return np.stack([np.bincount(table.cluster, one, table.n_clusters) for one in columns], axis=1)

    def by_group(values: FloatArray) -> FloatArray:
        return np.bincount(table.group, values, design.shape[1]).astype(np.float64, copy=False)

    together, alone = by_cluster(table.weight * sd), by_cluster(each * sd**2)
    taken = by_cluster(table.weight * sd**2)[:, :3] @ inverse  # by the fit, from the sum of a cluster
    # For both correlations: covariances of w x e with the sum of w e over the same cluster, those of their sum over all
    # clusters, and how much the fit reduces the squares of single rows.
    leverage = np.sum(inverse @ design * design, axis=0)
    cases = [
        (
            alone,
            (design * by_group(each * sd**2)) @ design.T,
            leverage @ by_group(each**2 / table.weight * sd**4),
        ),
        (
            together * together[:, 3:],
            together[:, :3].T @ together[:, :3],
            np.sum(by_cluster(each * sd**3)[:, :3] @ inverse * together[:, :3]),
        ),
    ]
    found = []
    for shared, scores, reduction in cases:
        covariance = inverse @ scores @ inverse
        curve = np.sum(covariance @ design * design, axis=0) @ by_group(each * sd**4)
        squares = alone[:, 3].sum() - 2 * reduction + curve
        sums = shared[:, 3].sum() - 2 * np.sum(taken * shared[:, :3]) + np.sum(taken @ scores * taken)
        found.append(float(sums - squares))
    return found[0], found[1]


def warn_of_dependence(*samples: Sample) -> tuple[str, ...]:
    """Warn if rows look dependent and no clusters were named, and return the warning as a note.

    Of several samples, the first whose rows look dependent counts.
    """
    for text in map(suspected_dependence, samples):
        if text is not None:
            warn_user(text)
            return (text,)
    return ()


def are_single_rows(sample: Sample) -> bool:
    """Return whether a sample consists of independent rows that are counted, so that labels can be drawn one by one."""
    return sample.dependence.unit == "rows" and sample.counted and sample.whole


def suspected_dependence(sample: Sample) -> str | None:
    r"""Return a sentence that names `clusters` if rows of the same score are more alike than independent rows can be.

    Scores that repeat although they do not lie on a grid come from repeated rows, such as answers to one question.
    With :math:`e` the label less the score and less the mean of that in one of 16 bins, and :math:`E_g` its sum over
    the rows of score g, independent rows have :math:`\sum_g (E_g^2 - \sum_{i \in g} e_i^2)` near 0, with variance
    :math:`2 \sum_g m_g (m_g - 1) v_g^2`. A warning needs four standard deviations, and a correlation of 0.03 if most
    of these scores occur equally often, of 0.3 otherwise: scores of decision trees and of isotonic fits repeat too.
    """
    if sample.one_row_each or not are_single_rows(sample):
        return None
    tied = sample.count > 1
    count = sample.count[tied]
    # A few frequent scores are not repeated questions.
    few = len(count) < _MIN_TIES or len(count) ** 2 < 2 * count.sum()
    if few or count.sum() < _MIN_TIED_SHARE * sample.n or _is_grid(sample.score[tied]):
        return None
    place = np.minimum((sample.cumulative_count[:-1] * (_BINS / sample.n)).astype(np.intp), _BINS - 1)
    excess = sample.positives - sample.count * sample.score
    mean = np.bincount(place, excess, _BINS) / np.maximum(np.bincount(place, sample.count, _BINS), 1.0)
    curve = inside(sample.score + mean[place], COARSE_CURVE_END)[tied]
    positives = sample.positives[tied]
    squares = positives * (1 - 2 * curve) + count * curve**2
    products = float(((positives - count * curve) ** 2 - squares).sum())
    variance, pairs = curve * (1 - curve), count * (count - 1)
    correlation = min(products / float(pairs @ variance), 1.0)
    sizes, times = np.unique(count, return_counts=True)
    most_common = int(times.argmax())
    same_size = times[most_common] >= _SAME_SIZE * len(count)
    if products < _CLEAR * math.sqrt(2 * float(pairs @ variance**2)):
        return None
    if correlation < (_ALIKE if same_size else _VERY_ALIKE):
        return None
    often = f"{sizes[most_common]:.10g} times each" if same_size else "several times each"
    return (
        f"{len(count):,} scores occur {often}, and labels that share a score agree more than independent rows would "
        f"(correlation {correlation:.2f}). If these are repeated rows, the error is estimated too large, intervals "
        f"are too short and p-values too small: remove copies of a row, as a join makes them; for several answers to "
        f"one question, name the question with clusters (--cluster on the command line)."
    )


def _is_grid(score: FloatArray) -> bool:
    """Return whether ascending scores are equally spaced, with gaps, so that rounding explains why rows share them."""
    steps = np.diff(score)
    ratio = steps / steps.min()
    return bool((np.abs(ratio - np.rint(ratio)) < 1e-3).mean() > 0.9)
