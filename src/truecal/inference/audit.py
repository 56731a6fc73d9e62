r"""Search subgroups for miscalibration, with the family-wise error under control.

Every combination of up to `max_depth` features is a way to cut the rows into segments. Each segment has the score
statistic of a logistic recalibration with 2 degrees of freedom: with residuals :math:`r = y - f`, logit scores L and
weights :math:`v = f (1 - f)`,

.. math:: T = U' I^{-1} U, \qquad U = \sum_i r_i (1, L_i)', \qquad I = \sum_i v_i (1, L_i)' (1, L_i) .

Under the null hypothesis labels are Bernoulli(f). Labels are drawn once per replicate for all segments together, so
the joint distribution of all T is right however the segments overlap, and p-values are adjusted by the step-down
maximum of Westfall and Young (1993). All rows together are one more hypothesis, because a model that is off everywhere
is off in most segments. With clusters the signs of whole clusters of residuals are flipped instead, scaled as
`truecal.multiscale._null` says; segments whose clusters hold too little information are not tested.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from truecal._lib.checks import as_generator, check_count, check_fraction
from truecal._lib.numeric import rejects
from truecal._lib.text import counted, counting, p_equals
from truecal._lib.types import FloatArray, RNGLike
from truecal.data.arrays import keywords_among
from truecal.data.extremes import AUDIT_END, inside
from truecal.data.groups import Feature, read_features
from truecal.data.question import read_rows, refuse_imperfect
from truecal.exceptions import InputError
from truecal.inference._test_result import NOT_TESTED, adjusted_pvalues
from truecal.multiscale import FlipScale, flip_scale
from truecal.results import Result

#: Replicates are drawn in blocks of about this many label draws, which bounds memory.
_BLOCK = 8_000_000
#: More segments than this are refused: the level of each would be tiny.
_MOST_SEGMENTS = 20_000
#: So are segments with more rows in total, which would need several GB.
_MOST_PLACES = 150_000_000
#: More combinations of features than this are refused, before any is looked at.
_MOST_COMBINATIONS = 50_000
#: Variance of the logarithm of drawn statistics, as a multiple of the doubt about the variance between clusters.
_DOUBT = 4.0
#: Name of the segment of all rows.
ALL_ROWS = "all rows"


@dataclass(frozen=True)
class Segment(Result):
    """One subgroup with its results.

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
    level_z, slope_z : float
        By how many standard errors of independent rows the observed rate is above the mean prediction, and the slope of
        the calibration curve above 1.
    statistic : float
        What is tested: the sum of the squares of both, a score statistic with 2 degrees of freedom.
    pvalue : float
        p-value of this segment alone, from the same draws.
    adjusted_pvalue : float
        p-value adjusted for all segments that were searched.
    tested : bool
        False if its clusters hold too little information for a test; the p-values are then 1.
    """

    name: str
    conditions: dict[str, str]
    n: int
    mean_score: float
    mean_label: float
    difference: float
    low: float
    high: float
    level_z: float
    slope_z: float
    statistic: float
    pvalue: float
    adjusted_pvalue: float
    tested: bool = True

    def __str__(self) -> str:
        return self.line()

    def line(self, n_resamples: int | None = None) -> str:
        """Return all numbers in one line.

        Parameters
        ----------
        n_resamples : int, optional
            Number of resamples, to mark the smallest p-value that they can give.
        """
        pvalue = f"adjusted p {_equals(self.adjusted_pvalue, n_resamples)}" if self.tested else NOT_TESTED
        return (
            f"{self.name}: n = {self.n:,}, mean prediction {self.mean_score:.3f}, observed rate {self.mean_label:.3f}, "
            f"difference {self.difference:+.3f} ({self.low:+.3f} to {self.high:+.3f}), level z {self.level_z:+.1f}, "
            f"slope z {self.slope_z:+.1f}, {pvalue}"
        )


@dataclass(frozen=True)
class Audit(Result):
    """Segments that were searched, and those in which the data contradict calibration.

    Attributes
    ----------
    segments : tuple of Segment
        All segments, smallest adjusted p-value first.
    whole : Segment
        All rows together; its adjusted p-value is for the same family.
    alpha : float
        Family-wise level.
    n : int
        Number of rows.
    n_searched : int
        Number of segments searched.
    n_skipped : int
        Number of segments left out because they have fewer than `min_rows` rows.
    identifiers : tuple of str
        Features that were left out because their values only name rows.
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
    whole: Segment
    alpha: float
    n: int
    n_searched: int
    n_skipped: int
    identifiers: tuple[str, ...]
    min_rows: int
    max_depth: int
    n_resamples: int
    method: str
    target: str

    @property
    def found(self) -> tuple[Segment, ...]:
        """Segments whose adjusted p-value is at most alpha."""
        return tuple(segment for segment in self.segments if rejects(segment.adjusted_pvalue, self.alpha))

    @property
    def off(self) -> bool:
        """Whether the data contradict calibration of all rows together."""
        return rejects(self.whole.adjusted_pvalue, self.alpha)

    @property
    def n_untested(self) -> int:
        """Number of segments whose clusters hold too little information for a test."""
        return sum(not segment.tested for segment in self.segments)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know before reading the segments: a model that is off as a whole first."""
        found = []
        if self.off:
            found.append(
                f"The model is off as a whole (mean prediction {self.whole.mean_score:.3f}, observed rate "
                f"{self.whole.mean_label:.3f}, level z {self.whole.level_z:+.1f}, slope z {self.whole.slope_z:+.1f}, "
                f"adjusted p {_equals(self.whole.adjusted_pvalue, self.n_resamples)}). Most segments share that error: "
                f"recalibrate first, then audit again."
            )
        if self.n_untested:
            found.append(
                f"{counted(self.n_untested, 'segment')} not tested: their clusters hold too little information, as "
                f"with few events."
            )
        if self.identifiers:
            found.append(f"Not searched, because the values only name rows: {_names(self.identifiers)}.")
        if self.n_skipped:
            found.append(
                f"{counted(self.n_skipped, 'segment')} with fewer than {self.min_rows} rows left out."
            )
        return tuple(found)

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the segments with their intervals; the options are those of `truecal.display.AuditDisplay.plot`."""
        from truecal.display import AuditDisplay

        return AuditDisplay.from_audit(self, ax=ax, **options)

    def __str__(self) -> str:
        return "\n".join([*self._remarks(), *(segment.line(self.n_resamples) for segment in self.found[:20])])

    def _notebook(self) -> tuple[str, list[list[str]]]:
        head = [
            "segment",
            "rows",
            "predicted",
            "observed",
            "difference",
            "simultaneous interval",
            "adjusted p",
        ]
        rows = [
            [
                segment.name, f"{segment.n:,}", f"{segment.mean_score:.3f}", f"{segment.mean_label:.3f}",
                f"{segment.difference:+.3f}", f"{segment.low:+.3f} to {segment.high:+.3f}",
                _equals(segment.adjusted_pvalue, self.n_resamples).removeprefix("= "),
            ]
            for segment in self.found
        ]  # fmt: skip
        return "\n".join(self._remarks()), [head, *rows] if rows else []

    def _remarks(self) -> list[str]:
        searched = (
            f"{counted(self.n_searched, 'segment')} of up to {counted(self.max_depth, 'feature')} and at least "
            f"{counted(self.min_rows, 'row')} searched; {counted(len(self.found), 'segment')} found at the family-wise "
            f"level {self.alpha:g}."
        )
        return [*self.remarks[: self.off], searched, *self.remarks[self.off :]]


def audit(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    features: Any,
    *,
    max_depth: int = 2,
    n_bins: int = 4,
    min_rows: int = 50,
    alpha: float = 0.05,
    n_resamples: int = 999,
    clusters: Any = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    multiclass: str | None = None,
    rng: RNGLike = None,
) -> Audit:
    """Search all segments of up to `max_depth` features for miscalibration.

    The family-wise error is exact if labels are independent given the scores: the probability of reporting any segment,
    if the model is calibrated in all of them, is at most `alpha`. With clusters it is approximate. All rows together
    are one of the hypotheses: a model that is off everywhere is off in most segments, and `Audit.whole` says so.

    Parameters
    ----------
    y_true, y_proba : array-like
        Labels and probabilities.
    features : dict of columns, data frame or 2-d array
        What defines the segments. Numbers with more than `n_bins` values are cut at their quantiles; other values are
        levels of their own. Missing values are a level of their own. Columns whose values only name rows, such as
        ``id``, are left out and listed. At most 50,000 combinations of features are searched.
    max_depth : {1, 2, 3}
        Largest number of features that define a segment.
    n_bins : int
        Number of quantile bins of a numeric feature.
    min_rows : int
        Segments with fewer rows are left out and counted.
    alpha : float
        Family-wise level.
    n_resamples : int
        Number of Monte Carlo resamples.
    clusters : array-like, optional
        Rows with the same value depend on each other.
    pos_label, labels, multiclass
        See `truecal.Sample.from_predictions`.
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
    rows, *others = read_rows(y_true, y_proba, **keywords_among(locals()))
    refuse_imperfect(rows, "audit")
    if others:
        raise InputError(
            "makes one sample per class, and an audit takes one", argument="multiclass='classwise'"
        )
    score, label = rows.score.astype(np.float64), rows.label.astype(np.float64)
    columns, identifiers = _searched(read_features(features, len(score), n_bins=n_bins))
    check_combinations(len(columns), max_depth)
    found, skipped = _segments(columns, max_depth, min_rows)
    hypotheses = [*found, ({}, np.arange(len(score)))]  # all rows are the last one
    statistic = _Statistic(score, [members for _, members in hypotheses])
    residual = label - score
    null: _LabelDraws | _SignFlips = _LabelDraws(score, statistic)
    if rows.cluster is not None:
        null = _SignFlips(score, residual, rows.cluster, statistic)
    half, tests = _test_all(statistic, residual, null, alpha, n_resamples, generator)
    segments = [
        _segment(
            conditions,
            score[members],
            label[members],
            half[k],
            {name: tests[name][k].item() for name in tests},
        )
        for k, (conditions, members) in enumerate(hypotheses)
    ]
    whole = segments.pop()
    segments.sort(key=lambda one: (not one.tested, one.adjusted_pvalue, one.pvalue, -one.statistic, one.name))
    return Audit(
        segments=tuple(segments),
        whole=whole,
        alpha=alpha,
        n=len(score),
        n_searched=len(segments),
        n_skipped=skipped,
        identifiers=identifiers,
        min_rows=min_rows,
        max_depth=max_depth,
        n_resamples=n_resamples,
        method=null.method,
        target=rows.target,
    )


def _searched(columns: Sequence[Feature]) -> tuple[list[Feature], tuple[str, ...]]:
    """Return the features to search, and the names of those that only name rows."""
    identifiers = tuple(column.name for column in columns if column.identifier)
    searched = [column for column in columns if not column.identifier]
    if not searched:
        raise InputError(
            "only name rows: there is nothing to search", argument="features", value=_names(identifiers)
        )
    return searched, identifiers


def _segment(
    conditions: dict[str, str], score: FloatArray, label: FloatArray, half: float, test: dict[str, Any]
) -> Segment:
    """Return a segment of rows with these scores and labels; `half` is half of the width of its interval."""
    mean, rate = float(score.mean()), float(label.mean())
    return Segment(
        name=", ".join(f"{name}: {value}" for name, value in conditions.items()) or ALL_ROWS,
        conditions=conditions,
        n=len(score),
        mean_score=mean,
        mean_label=rate,
        difference=rate - mean,
        low=max(rate - mean - half, -1.0),
        high=min(rate - mean + half, 1.0),
        **test,
    )


def check_combinations(n_features: int, max_depth: int) -> None:
    """Refuse so many features that looking at all combinations would take hours."""
    many = sum(math.comb(n_features, depth) for depth in range(1, max_depth + 1))
    if many > _MOST_COMBINATIONS:
        raise InputError(
            f"are {n_features:,}, which have {many:,} combinations of up to {max_depth}. At most "
            f"{_MOST_COMBINATIONS:,} are searched",
            argument="features",
            remedy="Name fewer features (--feature on the command line), or lower max_depth (--max-depth).",
        )


#: Conditions of a segment, and the rows in it.
_Membership = tuple[dict[str, str], NDArray[Any]]


def _segments(columns: Sequence[Feature], max_depth: int, min_rows: int) -> tuple[list[_Membership], int]:
    """Return all segments with enough rows, each set of rows once, and the number of those with too few."""
    found: dict[bytes, _Membership] = {}
    index = np.int32 if len(columns[0].code) < 2**31 else np.int64
    skipped = places = 0
    for depth in range(1, min(max_depth, len(columns)) + 1):
        for chosen in itertools.combinations(columns, depth):
            code = np.zeros(len(chosen[0].code), dtype=np.int64)
            for column in chosen:
                code = code * len(column.levels) + column.code
            order = np.argsort(code, kind="stable").astype(index)
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
                key = hashlib.blake2b(rows.tobytes(), digest_size=16).digest()
                if key not in found:
                    # A copy, because a part of `order` would keep all of it.
                    found[key] = dict(reversed(conditions.items())), rows.copy()
                    places += len(rows)
            _check_most(len(found), _MOST_SEGMENTS, "segments")
            _check_most(places, _MOST_PLACES, "rows of segments, which need too much memory")
    if not found:
        raise InputError(
            f"has no segment of at least {counted(min_rows, 'row')}",
            argument="features",
            remedy="Lower min_rows.",
        )
    return list(found.values()), skipped


def _check_most(number: int, most: int, what: str) -> None:
    if number > most:
        raise InputError(
            f"make more than {most:,} {what}",
            argument="features",
            remedy="Pass fewer features, or lower max_depth or n_bins, or raise min_rows.",
        )


class _Statistic:
    """The score statistics of all segments, for residuals in columns."""

    def __init__(self, score: FloatArray, members: Sequence[NDArray[Any]]) -> None:
        self.members, rows = members, np.concatenate(members)
        start = np.cumsum([0, *map(len, members)])
        ones = np.ones(len(rows), dtype=np.float32)
        self.member = sparse.csr_array((ones, rows, start), shape=(len(members), len(score)))
        moved = inside(score, AUDIT_END)
        self.logit = (np.log(moved) - np.log1p(-moved)).astype(np.float32)
        variance = score * (1 - score)
        exact = self.member.astype(np.float64)
        weight = exact @ variance
        cross, square = exact @ (variance * self.logit), exact @ (variance * self.logit**2)
        # Half a row of noise keeps segments whose scores are nearly certain from dominating the maximum.
        self.information = weight + 0.5
        self.centre = np.divide(cross, weight, out=np.zeros_like(cross), where=weight > 0)
        self.spread = square - self.centre * cross + 0.5

    def of(self, residual: NDArray[Any]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the statistics, and the standardised level and slope, one column per replicate."""
        residual = residual.astype(np.float32, copy=False)
        total = self.member @ residual
        along = self.member @ (residual * self.logit[:, np.newaxis]) - self.centre[:, np.newaxis] * total
        level = total / np.sqrt(self.information)[:, np.newaxis]
        slope = along / np.sqrt(self.spread)[:, np.newaxis]
        return np.asarray(level**2 + slope**2, dtype=np.float64), np.asarray(level), np.asarray(slope)


class _LabelDraws:
    """Rows are independent: labels are drawn from the scores."""

    method = "labels drawn from the scores"

    def __init__(self, score: FloatArray, statistic: _Statistic) -> None:
        self.chance = score.astype(np.float32)[:, np.newaxis]
        self.scales = [FlipScale(1.0, float(deviation)) for deviation in np.sqrt(statistic.information)]

    def draw(self, size: int, rng: np.random.Generator) -> tuple[NDArray[Any], FloatArray]:
        """Return residuals, one replicate per column, and zeros: their variance is known."""
        label = rng.random((len(self.chance), size), dtype=np.float32) < self.chance
        return label.astype(np.float32) - self.chance, np.zeros(size)


class _SignFlips:
    """Rows of a cluster depend on each other: the signs of the residuals of whole clusters are drawn.

    If all rows hold too little information, so does every segment: some would seem to hold enough by chance.
    """

    method = "signs of whole clusters flipped"

    def __init__(
        self, score: FloatArray, residual: FloatArray, cluster: NDArray[np.intp], statistic: _Statistic
    ) -> None:
        self.residual, self.cluster = residual.astype(np.float32)[:, np.newaxis], cluster
        excess, ones = -residual, np.ones(len(score))
        known = flip_scale(score, excess, ones, cluster).too_little
        self.scales = [
            flip_scale(score[rows], excess[rows], ones[rows], cluster[rows], known)
            for rows in statistic.members
        ]

    def draw(self, size: int, rng: np.random.Generator) -> tuple[NDArray[Any], FloatArray]:
        """Return residuals, one replicate per column, and the uncertainty of their variance, as normal deviates."""
        sign = rng.integers(0, 2, (int(self.cluster.max()) + 1, size)).astype(np.float32) * 2 - 1
        return sign[self.cluster] * self.residual, rng.normal(size=size)


def _test_all(
    statistic: _Statistic,
    residual: FloatArray,
    null: _LabelDraws | _SignFlips,
    alpha: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> tuple[FloatArray, dict[str, NDArray[Any]]]:
    """Return the half-widths of simultaneous intervals, and the tests of all segments, as `Segment` has them."""
    observed, level_z, slope_z = (one[:, 0] for one in statistic.of(residual[:, np.newaxis]))
    # The variance between clusters is uncertain in all segments alike. The largest of many statistics lies far out in
    # the tail, where that matters most.
    spread = np.sqrt(_DOUBT * np.array([scale.doubt for scale in null.scales]))[:, np.newaxis]
    factor = np.array([scale.factor for scale in null.scales])
    deviation = np.array([scale.deviation for scale in null.scales])
    deviation = np.where(deviation > 0, deviation, np.sqrt(statistic.information))
    relative = factor * np.sqrt(statistic.information) / deviation
    informed = np.array([not scale.too_little for scale in null.scales])
    drawn, largest = [], []
    step = max(1, min(n_resamples, _BLOCK // len(residual)))
    for first in counting(range(0, n_resamples, step), "audit"):
        block, doubt = null.draw(min(step, n_resamples - first), rng)
        statistics, level, _ = statistic.of(block)
        drawn.append(statistics * factor[:, np.newaxis] ** 2 * np.exp(spread * doubt))
        scaled = np.abs(level) * relative[:, np.newaxis]
        largest.append(scaled[informed if informed.any() else ~informed].max(axis=0))
    draws = np.concatenate(drawn, axis=1)
    reached = np.count_nonzero(draws >= observed[:, np.newaxis] * (1 - 1e-9), axis=1)
    pvalue = (1 + reached) / (n_resamples + 1)
    tested = np.array([not scale.reason(p) for scale, p in zip(null.scales, pvalue, strict=True)])
    pvalue[~tested] = 1.0
    adjusted = pvalue.copy()
    if tested.any():
        adjusted[tested] = np.maximum(adjusted_pvalues(observed[tested], draws[tested]), pvalue[tested])
    critical = float(np.quantile(np.concatenate(largest), 1 - alpha, method="higher"))
    results = {
        "level_z": level_z,
        "slope_z": slope_z,
        "statistic": observed,
        "pvalue": pvalue,
        "adjusted_pvalue": adjusted,
        "tested": tested,
    }
    return critical * deviation / [len(one) for one in statistic.members], results


def _names(names: Sequence[str]) -> str:
    """Return the first six names, and how many others there are."""
    return ", ".join(names[:6]) + (f" and {len(names) - 6:,} others" if len(names) > 6 else "")


def _equals(pvalue: float, n_resamples: int | None = None) -> str:
    return p_equals(pvalue, n_resamples).removeprefix("p ")
