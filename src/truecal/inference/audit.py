r"""Search subgroups for miscalibration, with the family-wise error under control.

Every combination of up to `max_depth` features is a way to cut the rows into segments. Each segment has the score
statistic of a logistic recalibration with 2 degrees of freedom: with residuals :math:`r = y - f`, logit scores L and
weights :math:`v = f (1 - f)`,

.. math:: T = U' I^{-1} U, \qquad U = \sum_i r_i (1, L_i)', \qquad I = \sum_i v_i (1, L_i)' (1, L_i) .

Under the null hypothesis labels are Bernoulli(f). Labels are drawn once per replicate for all segments together, so
the joint distribution of all T is right however the segments overlap, and p-values are adjusted by the step-down
maximum of Westfall and Young (1993). With clusters the signs of whole clusters of residuals are flipped instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import chdtrc

from truecal._lib.checks import as_generator, check_count, check_fraction
from truecal._lib.text import counted, format_pvalue
from truecal._lib.types import FloatArray, RNGLike
from truecal.data.features import Feature, read_features
from truecal.data.predictions import read_rows
from truecal.exceptions import InputError
from truecal.inference.multiplicity import adjusted_pvalues
from truecal.results import Result

#: Replicates are drawn in blocks of about this many label draws, which bounds memory.
_BLOCK = 8_000_000
#: More segments than this are refused: nobody reads them, and the level of each would be tiny.
_MOST_SEGMENTS = 20_000


@dataclass(frozen=True)
class Segment(Result):
    """One subgroup, and what was found in it.

    Attributes
    ----------
    name : str
        The conditions that define it, such as ``"age: 30 to 45, sex: 'f'"``.
    conditions : dict
        Level of each feature that defines it.
    n : int
        Number of rows.
    mean_score, mean_label : float
        Mean prediction and observed rate.
    difference : float
        Observed rate less mean prediction.
    low, high : float
        Interval of the expected difference, simultaneous over all segments.
    statistic : float
        Score statistic with 2 degrees of freedom.
    pvalue : float
        p-value of this segment alone, from the chi-square distribution.
    adjusted_pvalue : float
        p-value adjusted for all segments that were searched.
    """

    name: str
    conditions: dict[str, str]
    n: int
    mean_score: float
    mean_label: float
    difference: float
    low: float
    high: float
    statistic: float
    pvalue: float
    adjusted_pvalue: float

    def __str__(self) -> str:
        return (
            f"{self.name}: n = {self.n:,}, mean prediction {self.mean_score:.3f}, observed rate {self.mean_label:.3f}, "
            f"difference {self.difference:+.3f} ({self.low:+.3f} to {self.high:+.3f}), "
            f"adjusted p {_equals(self.adjusted_pvalue)}"
        )


@dataclass(frozen=True)
class Audit(Result):
    """Segments that were searched, and those in which the data contradict calibration.

    Attributes
    ----------
    segments : tuple of Segment
        All segments, smallest adjusted p-value first.
    alpha : float
        Family-wise level.
    n : int
        Number of rows.
    n_searched : int
        Number of segments searched.
    n_skipped : int
        Number of segments left out because they have fewer than `min_rows` rows.
    min_rows : int
        Smallest number of rows of a segment.
    max_depth : int
        Largest number of features that define a segment.
    n_resamples : int
        Number of Monte Carlo resamples.
    method : str
        How the null distribution was made.
    target : str
        What the scores are probabilities of.
    """

    segments: tuple[Segment, ...]
    alpha: float
    n: int
    n_searched: int
    n_skipped: int
    min_rows: int
    max_depth: int
    n_resamples: int
    method: str
    target: str

    @property
    def found(self) -> tuple[Segment, ...]:
        """Segments whose adjusted p-value is at most alpha."""
        return tuple(segment for segment in self.segments if segment.adjusted_pvalue <= self.alpha)

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the segments with their intervals; the options are those of `truecal.display.AuditDisplay.plot`."""
        from truecal.display import AuditDisplay

        return AuditDisplay(self).plot(ax=ax, **options)

    def __str__(self) -> str:
        searched = (
            f"{counted(self.n_searched, 'segment')} of up to {counted(self.max_depth, 'feature')} and at least "
            f"{counted(self.min_rows, 'row')} searched; {counted(len(self.found), 'segment')} found at the family-wise "
            f"level {self.alpha:g}."
        )
        return "\n".join([searched, *map(str, self.found[:20])])


def audit(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    features: Any,
    *,
    max_depth: int = 2,
    n_bins: int = 4,
    min_rows: int = 50,
    alpha: float = 0.05,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    multiclass: str | None = None,
    clusters: Any = None,
    n_resamples: int = 999,
    rng: RNGLike = None,
) -> Audit:
    """Search all segments of up to `max_depth` features for miscalibration.

    The family-wise error is exact if labels are independent given the scores: the probability of reporting any segment,
    if the model is calibrated in all of them, is at most `alpha`.

    Parameters
    ----------
    y_true, y_proba : array-like
        Labels and probabilities.
    features : dict of columns, data frame or 2-d array
        What defines the segments. Numbers with more than `n_bins` values are cut at their quantiles; other values are
        levels of their own. Missing values are a level of their own.
    max_depth : {1, 2, 3}
        Largest number of features that define a segment.
    n_bins : int
        Number of quantile bins of a numeric feature.
    min_rows : int
        Segments with fewer rows are left out and counted.
    alpha : float
        Family-wise level.
    pos_label, labels, multiclass
        See `truecal.Sample.from_predictions`.
    clusters : array-like, optional
        Rows with the same value depend on each other.
    n_resamples : int
        Number of Monte Carlo resamples.
    rng : seed or numpy.random.Generator, optional
        Random generator.

    Returns
    -------
    Audit

    References
    ----------
    Westfall, Young (1993), Resampling-based multiple testing, Wiley.

    Examples
    --------
    >>> import numpy as np, truecal
    >>> rng = np.random.default_rng(0)
    >>> region, sex, p = rng.integers(0, 4, 4000), rng.integers(0, 2, 4000), rng.uniform(0.2, 0.8, 4000)
    >>> y = rng.random(4000) < p + 0.15 * ((region == 2) & (sex == 1))
    >>> result = truecal.audit(y, p, {"region": region, "sex": sex}, rng=0)
    >>> result.n_searched, result.found[0].name
    (14, 'region: 2, sex: 1')
    """
    if check_count("max_depth", max_depth) > 3:
        raise InputError("must be 1, 2 or 3", argument="max_depth", value=max_depth)
    check_count("n_bins", n_bins, at_least=2)
    check_count("min_rows", min_rows)
    check_fraction("alpha", alpha)
    check_count("n_resamples", n_resamples)
    generator = as_generator(rng)
    reading = {"pos_label": pos_label, "labels": labels, "multiclass": multiclass, "clusters": clusters}
    rows, *others = read_rows(y_true, y_proba, **reading)
    if others:
        raise InputError(
            "makes one sample per class, and an audit takes one", argument="multiclass='classwise'"
        )
    score, label = rows.score.astype(np.float64), rows.label.astype(np.float64)
    columns = read_features(features, len(score), n_bins=n_bins)
    found, skipped = _segments(columns, max_depth, min_rows)
    if not found:
        raise InputError(
            f"has no segment of at least {counted(min_rows, 'row')}",
            argument="features",
            remedy="Lower min_rows.",
        )
    statistic = _Statistic(score, found)
    observed, _ = statistic.of((label - score)[:, np.newaxis])
    drawn, largest = [], []
    for block in _null_residuals(score, rows.cluster, label - score, n_resamples, generator):
        statistics, z = statistic.of(block)
        drawn.append(statistics)
        largest.append(np.abs(z).max(axis=0))
    adjusted = adjusted_pvalues(observed[:, 0], np.concatenate(drawn, axis=1))
    critical = float(np.quantile(np.concatenate(largest), 1 - alpha, method="higher"))
    segments = [
        statistic.segment(number, conditions, label, critical, observed[number, 0], adjusted[number])
        for number, (conditions, _) in enumerate(found)
    ]
    segments.sort(key=lambda segment: (segment.adjusted_pvalue, segment.pvalue, segment.name))
    return Audit(
        segments=tuple(segments),
        alpha=alpha,
        n=len(score),
        n_searched=len(segments),
        n_skipped=skipped,
        min_rows=min_rows,
        max_depth=max_depth,
        n_resamples=n_resamples,
        method="labels drawn from the scores" if rows.cluster is None else "signs of whole clusters flipped",
        target=rows.target,
    )


#: Conditions of a segment, and the rows in it.
_Membership = tuple[dict[str, str], NDArray[np.intp]]


def _segments(columns: Sequence[Feature], max_depth: int, min_rows: int) -> tuple[list[_Membership], int]:
    """Return all segments with enough rows, each set of rows once, and the number of those with too few."""
    found: dict[bytes, _Membership] = {}
    skipped = 0
    for depth in range(1, min(max_depth, len(columns)) + 1):
        for chosen in itertools.combinations(columns, depth):
            code = np.zeros(len(chosen[0].code), dtype=np.int64)
            for column in chosen:
                code = code * len(column.levels) + column.code
            order = np.argsort(code, kind="stable")
            distinct, start = np.unique(code[order], return_index=True)
            for value, rows in zip(distinct.tolist(), np.split(order, start[1:]), strict=True):
                if len(rows) < min_rows:
                    skipped += 1
                    continue
                conditions = {}
                for column in reversed(chosen):
                    value, number = divmod(value, len(column.levels))
                    conditions[column.name] = column.levels[number]
                # The same rows under more conditions are the same hypothesis.
                found.setdefault(rows.tobytes(), (dict(reversed(conditions.items())), rows))
            if len(found) > _MOST_SEGMENTS:
                raise InputError(
                    f"make more than {_MOST_SEGMENTS:,} segments",
                    argument="features",
                    remedy="Pass fewer features, or lower max_depth or n_bins, or raise min_rows.",
                )
    return list(found.values()), skipped


class _Statistic:
    """The score statistics of all segments, for residuals in columns."""

    def __init__(self, score: FloatArray, segments: Sequence[_Membership]) -> None:
        rows = np.concatenate([members for _, members in segments])
        start = np.cumsum([0, *(len(members) for _, members in segments)])
        ones = np.ones(len(rows), dtype=np.float32)
        self.score, self.segments = score, segments
        self.member = sparse.csr_array((ones, rows, start), shape=(len(segments), len(score)))
        inside = np.clip(score, 1e-6, 1 - 1e-6)
        self.logit = (np.log(inside) - np.log1p(-inside)).astype(np.float32)
        variance = score * (1 - score)
        exact = self.member.astype(np.float64)
        self.weight = exact @ variance
        cross, square = exact @ (variance * self.logit), exact @ (variance * self.logit**2)
        # Half a row of noise keeps segments whose scores are nearly certain from dominating the maximum.
        self.information = self.weight + 0.5
        self.centre = np.divide(cross, self.weight, out=np.zeros_like(cross), where=self.weight > 0)
        self.spread = square - self.centre * cross + 0.5

    def of(self, residual: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """Return the statistics, and the standardised sums of the residuals, one column per replicate."""
        residual = residual.astype(np.float32, copy=False)
        total = self.member @ residual
        along = self.member @ (residual * self.logit[:, np.newaxis]) - self.centre[:, np.newaxis] * total
        z = total / np.sqrt(self.information)[:, np.newaxis]
        return np.asarray(z**2 + along**2 / self.spread[:, np.newaxis], dtype=np.float64), np.asarray(z)

    def segment(
        self,
        number: int,
        conditions: dict[str, str],
        label: FloatArray,
        critical: float,
        statistic: float,
        adjusted: float,
    ) -> Segment:
        members = self.segments[number][1]
        n, rate, score = len(members), float(label[members].mean()), float(self.score[members].mean())
        half = critical * float(np.sqrt(self.information[number])) / n
        return Segment(
            name=", ".join(f"{name}: {value}" for name, value in conditions.items()),
            conditions=conditions,
            n=n,
            mean_score=score,
            mean_label=rate,
            difference=rate - score,
            low=max(rate - score - half, -1.0),
            high=min(rate - score + half, 1.0),
            statistic=float(statistic),
            pvalue=float(chdtrc(2, statistic)),
            adjusted_pvalue=float(adjusted),
        )


def _null_residuals(
    score: FloatArray,
    clusters: NDArray[np.intp] | None,
    residual: FloatArray,
    n_resamples: int,
    generator: np.random.Generator,
) -> Any:
    """Yield residuals under the null hypothesis, one replicate per column, in blocks."""
    step = max(1, min(n_resamples, _BLOCK // len(score)))
    single = score.astype(np.float32)[:, np.newaxis]
    for first in range(0, n_resamples, step):
        size = min(step, n_resamples - first)
        if clusters is None:
            label = generator.random((len(score), size), dtype=np.float32) < single
            yield label.astype(np.float32) - single
        else:
            sign = generator.integers(0, 2, (int(clusters.max()) + 1, size)).astype(np.float32) * 2 - 1
            yield sign[clusters] * residual.astype(np.float32)[:, np.newaxis]


def _equals(pvalue: float) -> str:
    shown = format_pvalue(pvalue)
    return shown if shown.startswith("<") else f"= {shown}"
