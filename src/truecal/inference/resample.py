"""Resampling: labels drawn from the scores, classes drawn from their probabilities, rows drawn with replacement.

*Consistency resampling* keeps the scores and draws the labels with the scores as their probabilities. A statistic on
such draws has its distribution under perfect calibration, for these scores. A group of equal scores takes one binomial
draw whatever its size, so 10^9 rows in 10^5 cells cost as much as any other 10^5 groups.

References: Bröcker, Smith (2007), Weather and Forecasting 22, 651-661; Vaicenavicius et al. (2019), AISTATS.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from truecal._lib.checks import as_generator, check_count
from truecal._lib.types import FloatArray, RNGLike
from truecal.data.sample import Sample
from truecal.exceptions import InputError, Remedy
from truecal.multiscale import rank_pvalue


def redraws(sample: Sample, n_resamples: int, *, rng: RNGLike = None) -> Iterator[Sample]:
    r"""Return an iterator over independent samples with the same scores and labels drawn from them.

    In each group, independently,

    .. math:: \text{positives}_g \sim \mathrm{Binomial}(\text{count}_g, \text{score}_g) .

    Where a group is a cell of different scores, its mean score stands for all of them. The variance is then
    too large by the variance of the scores within the cell, a fraction of about 10^-7 for cells 10^-3 wide.

    Examples
    --------
    >>> from truecal.data import as_sample
    >>> sample = as_sample([0, 1, 1, 1], [0.2, 0.5, 0.5, 0.9])
    >>> [draw.positives.tolist() for draw in redraws(sample, 3, rng=3)]
    [[1.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
    """
    n_resamples = check_count("n_resamples", n_resamples)
    require_whole_counts(sample, "resampling labels")
    return _redraws(sample, n_resamples, as_generator(rng))


def _redraws(sample: Sample, n_resamples: int, rng: np.random.Generator) -> Iterator[Sample]:
    several = np.flatnonzero(sample.count > 1)
    rows, chance = sample.count[several].astype(np.int64), sample.score[several]
    for _ in range(n_resamples):
        # For a single row a comparison is twenty times as fast as a binomial draw. Uniform numbers lie in
        # [0, 1), so a score of 0 never gives a positive label and a score of 1 always does.
        positives = (rng.random(len(sample)) < sample.score).astype(np.float64)
        if len(several):
            positives[several] = rng.binomial(rows, chance)
        yield sample.with_positives(positives)


def redraw_classes(
    proba: NDArray[np.floating], n_resamples: int, *, rng: RNGLike = None
) -> Iterator[NDArray[np.intp]]:
    """Return an iterator over draws of one class for each row, with the probabilities of that row.

    Examples
    --------
    >>> proba = np.array([[0.2, 0.8, 0.0], [0.0, 0.0, 1.0]])
    >>> [draw.tolist() for draw in redraw_classes(proba, 3, rng=1)]
    [[1, 2], [0, 2], [1, 2]]
    """
    n_resamples = check_count("n_resamples", n_resamples)
    rng = as_generator(rng)
    upper = np.cumsum(proba, axis=1, dtype=np.float64)
    upper /= upper[:, -1:]
    return ((upper[:, :-1] <= rng.random((len(upper), 1))).sum(axis=1) for _ in range(n_resamples))


def bootstrap(sample: Sample, rng: RNGLike = None) -> Sample:
    """Return a sample of the same size whose rows are drawn from these with replacement.

    Rows that agree in score and label are drawn together, by one multinomial, so the cost depends on the
    number of groups. A group that is not drawn is left out.

    References
    ----------
    Efron (1979), Annals of Statistics 7, 1-26.

    Examples
    --------
    >>> from truecal.data import as_sample
    >>> sample = as_sample([0, 1, 1, 1], [0.2, 0.5, 0.5, 0.9])
    >>> drawn = bootstrap(sample, rng=0)
    >>> drawn.score.tolist(), drawn.count.tolist(), drawn.positives.tolist()
    ([0.2, 0.5], [1.0, 3.0], [0.0, 3.0])
    """
    require_whole_counts(sample, "the bootstrap")
    rng = as_generator(rng)
    rows = round(sample.n)
    if rows == len(sample):
        count = np.bincount(rng.integers(rows, size=rows), minlength=rows).astype(np.float64)
        positives = count * sample.positives
    else:
        kinds = np.concatenate([sample.count - sample.positives, sample.positives])
        negatives, positives = rng.multinomial(rows, kinds / rows).astype(np.float64).reshape(2, -1)
        count = negatives + positives
    return without_empty(sample, count, positives)


def row_factors(
    n_rows: int,
    n_resamples: int,
    *,
    counts: FloatArray | None = None,
    clusters: NDArray[np.intp] | None = None,
    rng: RNGLike = None,
) -> Iterator[FloatArray]:
    """Return an iterator over bootstrap draws: the factor by which the weight of each row changes.

    Multiplied with the weights of rows, the factors make a weighted sample a bootstrap resample of it.

    Examples
    --------
    >>> [draw.tolist() for draw in row_factors(3, 2, rng=0)]
    [[0.0, 2.0, 1.0], [3.0, 0.0, 0.0]]
    >>> [draw.tolist() for draw in row_factors(3, 2, clusters=np.array([0, 0, 1]), rng=0)]
    [[0.0, 0.0, 2.0], [1.0, 1.0, 1.0]]
    """
    n_resamples, generator = check_count("n_resamples", n_resamples), as_generator(rng)
    unit, several = (np.arange(n_rows), counts) if clusters is None else (clusters, None)
    n_units, total = int(unit.max()) + 1, 0 if several is None else int(several.sum())
    for _ in range(n_resamples):
        if several is None:
            times = np.bincount(generator.integers(n_units, size=n_units), minlength=n_units)
            yield times.astype(np.float64)[unit]
        else:
            yield generator.multinomial(total, several / total) / several


def cluster_rows(sample: Sample) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.intp]]:
    """Return score, residual and weight of each pair of a cluster and a score, and the cluster.

    Sampling weights are scaled so that their sum is the effective number of rows.
    """
    table = sample.clusters
    assert table is not None
    scale = 1.0 if sample.counted else sample.n / float(sample.weight2.sum())
    score = sample.score[table.group]
    return score, table.residual(sample.score) * scale, table.weight * scale, table.cluster


def require_whole_counts(sample: Sample, purpose: str) -> None:
    """Raise InputError for a sample with fractional weights, which do not count rows."""
    if not sample.whole:
        raise InputError(
            f"must be whole numbers, which count rows, for {purpose}. Fractional weights do not give the number of "
            f"rows, and so the noise of the labels",
            argument="sample_weight",
            remedy=Remedy.COUNTS,
        )


def rank_among(
    statistic: float, null: FloatArray, rng: np.random.Generator
) -> tuple[float, tuple[float, float]]:
    """Return the p-value of a statistic among draws and its range over ties: differences by rounding are ties."""
    rounding = 1e-9 * float(np.ptp(null)) + 1e-12 * abs(statistic)
    return rank_pvalue(statistic, null, rng, rounding)


def impossible_labels(*samples: Sample) -> tuple[str, ...]:
    """Return a note on labels that scores of exactly 0 and 1 rule out."""
    if len(samples) == 1:
        wrong = count_impossible(samples[0])
    else:  # a true class of probability 0; another of probability 1 is the same row
        wrong = sum(float(sample.positives[sample.score == 0].sum()) for sample in samples)
    if not wrong:
        return ()
    rows = "1 row has" if wrong == 1 else f"{wrong:,.6g} rows have"
    if not samples[0].counted:
        rows = f"Rows with a total weight of {wrong:,.4g} have"
    return (f"{rows} a label that a score of exactly 0 or 1 rules out.",)


def count_impossible(sample: Sample) -> float:
    """Return how many rows, or how much weight, have a label that a score of exactly 0 or 1 rules out."""
    if sample.pseudo is not None:  # a label that is not the truth rules nothing out
        return 0.0
    above_0, from_1 = np.searchsorted(sample.score, 0, side="right"), np.searchsorted(sample.score, 1)
    misses = sample.count[from_1:] - sample.positives[from_1:]
    return float(sample.positives[:above_0].sum() + misses.sum())


def without_empty(sample: Sample, count: FloatArray, positives: FloatArray) -> Sample:
    """Return the groups of a sample that have a positive count, with new counts and labels."""
    kept = count > 0
    return Sample(
        score=sample.score[kept],
        count=count[kept],
        positives=positives[kept],
        dtype=sample.dtype,
        target=sample.target,
    )
