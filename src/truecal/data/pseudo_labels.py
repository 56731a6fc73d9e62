r"""Labels that are not the truth, as pseudo-labels: numbers z with :math:`E[z \mid f] = P(y = 1 \mid f)`.

Whatever is linear in the labels, or uses products of residuals of different rows, stays unbiased if z takes the place
of an unseen label y. Only the noise of the labels changes: rows have a variance :math:`v = \mathrm{Var}(z \mid f)`
instead of :math:`f (1 - f)`. All are of the form :math:`z = f + c`, with a correction c that is 0 where nothing is
known:

- *judge and gold labels*: :math:`z = m + \frac{G}{\pi} (y - m)` with :math:`m = f + \lambda (q - f)`. G says whether
  the row has a gold label, :math:`\pi` is the probability of one, and q estimates
  :math:`P(y = 1 \mid \text{judge}, f)` from other gold rows. With :math:`\lambda = 0` only gold labels count;
- *fraction s of annotators*: z = s;
- *censored at a horizon t*: :math:`z = f + W (y - f)`, with W = 0 where the outcome at t is unknown, else 1 divided by
  the probability :math:`\hat G(\min(T, t)-)` of not being censored before, by Kaplan and Meier in strata of the score;
- *misclassified*, with sensitivity a and specificity b: :math:`z = (j - (1 - b)) / (a + b - 1)`.

References: Robins, Rotnitzky, Zhao (1994), JASA 89; Angelopoulos, Bates, Fannjiang, Jordan, Zrnic (2023), Science 382;
Angelopoulos, Duchi, Zrnic (2023), arXiv 2311.01453; Graf, Schmoor, Sauerbrei, Schumacher (1999), Statistics in Medicine
18; Gerds, Schumacher (2006), Biometrical Journal 48; Rogan, Gladen (1978), American Journal of Epidemiology 107.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.numeric import IntArray, expit, fit_logistic, logistic_objective, maximise
from truecal._lib.text import counted, percent
from truecal._lib.types import FloatArray
from truecal.data.extremes import inside
from truecal.exceptions import InputError

BoolArray = NDArray[np.bool_]

#: Gold labels, and gold labels of either class, that a judge needs beside it.
FEWEST_GOLD, FEWEST_OF_CLASS = 30, 5
#: Parts of the gold rows; the judge is described for each by the others.
_FOLDS = 5
#: A judge is described by about as many gold rows at most: more say the same.
_MOST_FITTED = 10_000
#: Rows whose probabilities are computed at a time, so that they stay in the cache.
_STEP = 1 << 15
#: Its probabilities are moved to calibrated scores by about as many rows at most.
_MOST_MOVED = 100_000
#: What `Gold` knows row by row.
_BY_ROW = ("label", "judge", "probability", "chance")
#: The ridge on the description of the judge is this many rows divided by those that the gold rows are worth.
_RIDGE_ROWS = 200.0
#: Columns of the judges themselves in that description, whose ridge is 1: a judge is expected to say something.
_JUDGES = slice(2, None, 2)
#: Logits of scores, and of a judge's probabilities, are those of values this far from 0 and 1.
_SCORE_END, _JUDGE_END, _CHANCE_END = 1e-4, 0.01, 1e-3
#: Variances of labels are estimated in so many bins of scores at most, each with this many rows at least. They are
#: shrunk towards a multiple of f (1 - f) as if that were known from this many rows more.
_MOST_BINS, _ROWS_PER_BIN, _PRIOR_ROWS = 16, 60, 4.0
#: Fewer rows may lie on a line by chance: their variance is at least that of true labels.
_FEWEST_ROWS = 10
#: Strata of the score for censoring: rows with a known outcome in each, and at most how many.
_ROWS_PER_STRATUM, _MOST_STRATA = 50, 10
#: A stratum needs this many rows at risk, and this probability of being uncensored, at the horizon.
_FEWEST_AT_RISK, _LEAST_UNCENSORED = 10, 0.05
#: P-value below which gold rows are reported not to be a random sample.
_NOT_RANDOM = 1e-3


_NONE: FloatArray = np.empty(0)


@dataclass(frozen=True, eq=False)
class Gold:
    r"""What is known of the rows of a judge beyond their pseudo-labels: how to draw gold labels again.

    Attributes
    ----------
    label : ndarray of int8, of shape (n,)
        Gold labels; -1 where there is none.
    judge : ndarray of int8, of shape (n,)
        What the (first) judge said, 0 or 1.
    probability : ndarray of shape (n,), or float
        :math:`\pi`, the probability of a gold label.
    chance : ndarray of shape (n,)
        q, the probability that the label is 1 given judge and score.
    share : float
        :math:`\lambda`, the share of the judge's correction that is used.
    factor : float
        Observed squared errors of q on gold rows divided by those expected.
    """

    label: NDArray[np.int8]
    judge: NDArray[np.int8]
    probability: FloatArray | float
    chance: FloatArray
    share: float
    factor: float

    @cached_property
    def rows(self) -> IntArray:
        """Rows with a gold label."""
        return np.flatnonzero(self.label >= 0)

    @cached_property
    def pi(self) -> FloatArray | float:
        """The probability of a gold label in these rows."""
        return self.probability[self.rows] if isinstance(self.probability, np.ndarray) else self.probability

    def at(self, score: FloatArray, chance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return z and m for some probabilities q of positive labels."""
        mean = score + self.share * (chance - score)
        value = mean.copy()
        value[self.rows] += (self.label[self.rows] - mean[self.rows]) / self.pi
        return value, mean

    def noise(self, chance: FloatArray, mean: FloatArray) -> FloatArray:
        """Return the mean square of y - m, :math:`k (q (1 - q) + (q - m)^2)`."""
        return np.asarray(self.factor * (chance * (1 - 2 * mean) + mean**2))

    def calibrated_chance(self, score: FloatArray, weight: FloatArray) -> FloatArray:
        """Return q moved on the logit scale, by a line in the logit of the score, so that the scores are calibrated.

        Mean and slope over all rows, or many of them, are then those of the scores, as under the hypothesis of a test.
        """
        offset, line = _logit(self.chance, _CHANCE_END), _logit(score, _SCORE_END)
        line -= float(line.mean())
        line /= max(float(line.std()), 1e-9)
        some = slice(None, None, max(1, len(score) // _MOST_MOVED))
        design = np.column_stack([np.ones_like(line[some]), line[some]])
        count = weight[some]
        moved = fit_logistic(design, offset[some], count, count * score[some], lower=-20.0, upper=20.0)
        line *= moved.x[1]
        line += moved.x[0]
        offset += line
        return inside(expit(offset), _CHANCE_END)

    def take(self, chosen: IntArray | BoolArray) -> Gold:
        """Return what is known of some rows."""
        columns = {
            name: value[chosen] for name, value in vars(self).items() if name in _BY_ROW and np.ndim(value)
        }
        return replace(self, **columns)


@dataclass(frozen=True, eq=False)
class Nuisance:
    """Estimated parameters of pseudo-labels, whose noise is shared by all rows.

    Attributes
    ----------
    slope : ndarray of shape (n, k)
        Derivative of each pseudo-label by each parameter.
    variance : ndarray of shape (k,)
        Variances of the parameters.
    """

    slope: FloatArray
    variance: FloatArray


@dataclass(frozen=True, eq=False)
class PseudoLabels:
    """Pseudo-labels of rows.

    Attributes
    ----------
    value, variance : ndarray of shape (n,)
        z and v.
    kind : str
        What the labels are, in words.
    notes : tuple of str
        What a reader of results must know about them.
    gold : Gold or None
        With a judge: how to draw gold labels again.
    nuisance : Nuisance or None
        Parameters that were estimated from other rows.
    votes : float
        A row says as much as so many true labels at most: more than 1 for means of annotators, infinity for means of an
        unknown number. The variance of a label at the rate q is at least q (1 - q) / votes.
    certain : bool
        Whether a value of 0 or 1 is the truth.
    score, weight : ndarray of shape (n,)
        Scores and weights of the rows, in a sample; before that they are empty.
    """

    value: FloatArray
    variance: FloatArray
    kind: str
    notes: tuple[str, ...] = ()
    gold: Gold | None = None
    nuisance: Nuisance | None = None
    votes: float = 1.0
    certain: bool = True
    score: FloatArray = field(default_factory=lambda: _NONE)
    weight: FloatArray = field(default_factory=lambda: _NONE)

    @cached_property
    def exact(self) -> bool:
        """Whether all are 0 or 1, are the truth, and no parameter was estimated: then they are ordinary labels."""
        certain = self.certain and self.gold is None and self.nuisance is None
        return certain and bool(((self.value == 0) | (self.value == 1)).all())

    @cached_property
    def n_noisy(self) -> float:
        """Number of rows with equal residuals r that would be as uncertain, (sum r^2)^2 / sum r^4, in a sample."""
        square = (self.weight * (self.score - self.value)) ** 2
        return float(square.sum()) ** 2 / max(float(square @ square), 1e-300)

    @property
    def too_few(self) -> str:
        """Why these rows are too few for an interval or a test; empty if they are enough."""
        if not self.certain and len(self.value) and (self.value == self.value[0]).all():
            return (
                "all labels are equal, which says nothing about their errors; labels of both kinds are needed"
            )
        if self.gold is None or (n := len(self.gold.rows)) >= FEWEST_GOLD:
            return ""
        return f"{counted(n, 'gold label')} in these rows are too few; at least {FEWEST_GOLD} are needed"

    def take(self, chosen: NDArray[np.intp] | BoolArray) -> PseudoLabels:
        """Return those of some rows."""
        nuisance = self.nuisance and replace(self.nuisance, slope=self.nuisance.slope[chosen])
        return replace(
            self,
            value=self.value[chosen],
            variance=self.variance[chosen],
            gold=self.gold and self.gold.take(chosen),
            nuisance=nuisance,
        )


class ImperfectLabels(ABC):
    """Labels of one of the kinds of `truecal.labels`, which take the place of ``y_true``."""

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))  # the first column

    def at(self, score: FloatArray, cluster: IntArray | None = None) -> PseudoLabels:
        """Return the pseudo-labels for scores; rows of the same cluster may depend on each other.

        Those for the last scores are kept: estimate, interval and test ask for them one after the other.
        """
        last: tuple[FloatArray, IntArray | None, PseudoLabels] | None = vars(self).get("_last")
        if last is not None and np.array_equal(last[0], score) and _same(last[1], cluster):
            return last[2]
        found = self._at(score, cluster)
        vars(self)["_last"] = (score, cluster, found)
        return found

    @abstractmethod
    def _at(self, score: FloatArray, cluster: IntArray | None) -> PseudoLabels:
        """Return the pseudo-labels for scores."""


def _same(first: IntArray | None, second: IntArray | None) -> bool:
    return first is second or (first is not None and second is not None and np.array_equal(first, second))


# --- A judge and gold labels -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Judged(ImperfectLabels):
    """What judges said in all rows, and gold labels in some.

    Attributes
    ----------
    judge : ndarray of shape (n, k)
        Labels or probabilities of k judges.
    gold : ndarray of shape (n,)
        Gold labels, NaN where there is none.
    probability : ndarray of shape (n,), or None
        Probability of a gold label; None for a random sample of the rows.
    """

    judge: FloatArray
    gold: FloatArray
    probability: FloatArray | None = None

    def _at(self, score: FloatArray, cluster: IntArray | None) -> PseudoLabels:
        """Return :math:`z = m + (G / pi) (y - m)`."""
        rows = np.flatnonzero(~np.isnan(self.gold))
        if len(rows) == len(score):
            return PseudoLabels(self.gold, score * (1 - score), "gold labels")
        label = np.full(len(score), -1, dtype=np.int8)
        label[rows] = self.gold[rows]
        judge = (self.judge[:, 0] > 0.5).astype(np.int8)
        pi = len(rows) / len(score) if self.probability is None else self.probability
        logit = _logit(score, _SCORE_END)
        gold = Gold(label, judge, pi, _NONE, 1.0, 1.0)
        own = np.broadcast_to(gold.pi, len(rows))
        chance = _chance_given_judge(self.judge, score, logit, gold, own, cluster)
        y, f, q, w = self.gold[rows], score[rows], chance[rows], 1 / own**2
        use = w * (1 - own)
        energy = float(use @ (q - f) ** 2)
        share = float(use @ ((q - f) * (y - f))) / energy if energy > 0 else 0.0
        half = float(w.mean()) / 2
        factor = (float(w @ (y - q) ** 2) + half) / (float(w @ (q * (1 - q))) + half)
        gold = replace(gold, chance=chance, share=min(max(share, 0.0), 1.0), factor=factor)
        value, mean = gold.at(score, chance)
        # Over all rows that may get a gold label, not only those that did: few rows would make it a rough estimate.
        variance = gold.noise(chance, mean)
        variance /= pi
        mean -= score
        variance += np.square(mean, out=mean)
        kind = f"judge + {len(rows):,} gold"
        return PseudoLabels(value, variance, kind, self._notes(logit, gold), gold)

    def _notes(self, logit: FloatArray, gold: Gold) -> tuple[str, ...]:
        right = gold.judge[gold.rows] == gold.label[gold.rows]
        positive = gold.label[gold.rows] == 1
        agreement = (
            f"Judge against gold: right in {percent(right.mean(), 0)} of {counted(len(right), 'gold row')} "
            f"(positives {percent(right[positive].mean(), 0)}, negatives {percent(right[~positive].mean(), 0)})."
        )
        notes = [agreement]
        if gold.share == 0:
            notes.append("The judge adds nothing to the gold labels, which count alone.")
        if gold.factor > 1.5:
            notes.append(
                f"Gold labels vary {gold.factor:.1f} times as much about what judge and score predict as expected; "
                f"intervals use the observed variation."
            )
        pvalue = _gold_at_random(logit, self.judge, gold.rows, self.probability)
        if pvalue < _NOT_RANDOM:
            what = (
                "Gold rows do not look like a random sample of all rows"
                if self.probability is None
                else "Gold rows do not follow the given probabilities"
            )
            notes.append(
                f"{what}: they depend on score or judge (p < 0.001). Pass the probability with which each row was "
                f"chosen as probability=."
            )
        else:
            drawn = (
                "a random sample of all rows"
                if self.probability is None
                else "drawn with the given probabilities"
            )
            notes.append(f"Gold rows are taken to be {drawn}; score and judge do not contradict this.")
        return tuple(notes)


def _chance_given_judge(
    judge: FloatArray,
    score: FloatArray,
    offset: FloatArray,
    gold: Gold,
    probability: FloatArray,
    cluster: IntArray | None,
) -> FloatArray:
    """Return q: for gold rows from other gold rows, for the rest from all of them.

    Logistic regressions of gold labels on judge, score and their products, with the score as an offset and a ridge.
    """
    rows = gold.rows
    label, start = gold.label[rows].astype(np.float64), offset[rows]
    said = [one if ((one == 0) | (one == 1)).all() else _logit(one, _JUDGE_END) for one in judge.T]
    standards = [_standards(values[rows]) for values in (offset, *said)]

    def design_of(some: IntArray | slice) -> FloatArray:
        """Return the columns of some rows: a line in the logit, whose level and slope depend on the judges."""
        line, *judges = (
            (values[some] - mean) / spread
            for values, (mean, spread) in zip((offset, *said), standards, strict=True)
        )
        pairs = [product for column in judges for product in (column, column * line)]
        return np.vstack([np.ones_like(line), line, *pairs])

    fold = _folds(score[rows], judge[rows], label, None if cluster is None else cluster[rows])
    design = np.ascontiguousarray(design_of(rows).T)
    own, mean = np.empty(len(rows)), np.zeros(design.shape[1])
    for number in range(_FOLDS):
        others = np.flatnonzero(fold != number)
        others = others[:: max(1, len(others) // _MOST_FITTED)]
        if len(others) == 0:  # all gold rows are in one cluster
            own[fold == number] = start
            continue
        fitted = _fit_ridge(
            design[others], label[others], start[others], 1 / probability[others], score[rows[others]]
        )
        own[fold == number] = (start + design @ fitted)[fold == number]
        mean += fitted / _FOLDS
    chance = np.empty(len(score))
    for first in range(0, len(score), _STEP):
        some = slice(first, first + _STEP)
        chance[some] = expit(offset[some] + mean @ design_of(some))
    chance[rows] = expit(own)
    return np.clip(chance, _CHANCE_END, 1 - _CHANCE_END, out=chance)


def _folds(score: FloatArray, judge: FloatArray, label: FloatArray, cluster: IntArray | None) -> IntArray:
    """Return the fold of each gold row, which does not depend on the order of rows; clusters are kept together."""
    if cluster is not None:
        number = np.unique(cluster, return_inverse=True)[1]
        mean = np.bincount(number, score) / np.bincount(number)
        place = np.empty(len(mean), dtype=np.intp)
        place[np.argsort(mean, kind="stable")] = np.arange(len(mean))
        return np.asarray(place[number] % _FOLDS)
    order = np.argsort(score)
    if (np.diff(score[order]) == 0).any():
        order = np.lexsort((label, *judge.T, score))
    fold = np.empty(len(score), dtype=np.intp)
    fold[order] = np.arange(len(score)) % _FOLDS
    return fold


def _fit_ridge(
    design: FloatArray, label: FloatArray, offset: FloatArray, weight: FloatArray, score: FloatArray
) -> FloatArray:
    """Return the coefficients of a logistic regression with a ridge that is weaker if labels hold more information."""
    worth = max(float(np.sum(4 * score * (1 - score))), 1.0)
    ridge = np.full(design.shape[1], max(1.0, _RIDGE_ROWS / worth))
    ridge[0] *= 0.1
    ridge[_JUDGES] = 1.0
    weight = weight / weight.mean()
    likelihood = logistic_objective(design, offset, weight, weight * label)

    def penalised(b: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        value, gradient, hessian = likelihood(b)
        return value - 0.5 * float(ridge @ b**2), gradient - ridge * b, hessian - np.diag(ridge)

    return maximise(penalised, np.zeros(design.shape[1]), lower=-50.0, upper=50.0).x


def _gold_at_random(
    logit: FloatArray, judge: FloatArray, rows: IntArray, probability: FloatArray | None
) -> float:
    """Return the p-value of a score test that gold rows were drawn with their probabilities."""
    from scipy.special import chdtrc

    if probability is None:  # a constant, which is estimated
        share, x = len(rows) / len(logit), np.vstack([logit, *judge.T])
        x -= x.mean(axis=1, keepdims=True)
        total, covariance = x[:, rows].sum(axis=1), share * (1 - share) * (x @ x.T)
    else:
        x = np.vstack([np.ones_like(logit), logit, *judge.T])
        total = x[:, rows].sum(axis=1) - x @ probability
        covariance = (x * (probability * (1 - probability))) @ x.T
    found, _, rank, _ = np.linalg.lstsq(covariance, total, rcond=1e-9)
    return float(chdtrc(max(int(rank), 1), max(float(total @ found), 0.0)))


def _standards(values: FloatArray) -> tuple[float, float]:
    """Return mean and standard deviation."""
    return float(values.mean()), max(float(values.std()), 1e-3)


def _logit(values: FloatArray, end: float) -> FloatArray:
    values = inside(values, end)
    values /= 1 - values
    return np.log(values, out=values)


# --- Annotators ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Soft(ImperfectLabels):
    """Fractions of annotators, or relative frequencies.

    Attributes
    ----------
    fraction : ndarray of shape (n,)
        Share of positive votes.
    n_annotators : ndarray of shape (n,), or None
        Number of votes.
    """

    fraction: FloatArray
    n_annotators: FloatArray | None = None

    def _at(self, score: FloatArray, cluster: IntArray | None) -> PseudoLabels:
        """Return the fractions themselves."""
        note = (
            "Soft labels are taken to be fractions of annotators, or frequencies, whose mean at a score is the rate of "
            "positives there. A model's probabilities are not: pass those with truecal.labels.judged."
        )
        kind, votes = "soft labels", math.inf
        if self.n_annotators is not None:
            votes = 1 / float(np.mean(1 / self.n_annotators))
            low, high = self.n_annotators.min(), self.n_annotators.max()
            kind += f" of {low:g} annotators" if low == high else f" of {low:g} to {high:g} annotators"
        variance = variance_by_score(self.fraction, score)
        return PseudoLabels(self.fraction, variance, kind, (note,), votes=votes)


# --- Misclassification -----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Misclassified(ImperfectLabels):
    """Labels that are right with known probabilities.

    Attributes
    ----------
    label : ndarray of shape (n,)
        Labels, 0 and 1.
    sensitivity, specificity : float
        Probability that a positive is labelled 1, and a negative 0.
    validated : tuple of float or None
        Number of positives and of negatives from which the two were estimated; None if they are known.
    """

    label: FloatArray
    sensitivity: float
    specificity: float
    validated: tuple[float, float] | None = None

    @property
    def youden(self) -> float:
        """Sensitivity + specificity - 1, by which errors of labels are magnified."""
        return self.sensitivity + self.specificity - 1

    @property
    def rate_variances(self) -> FloatArray:
        """Variances of the estimated sensitivity and specificity, with one right and one wrong label added to each."""
        if self.validated is None:
            return np.zeros(2)
        rate, n = np.array([self.sensitivity, self.specificity]), np.array(self.validated, dtype=np.float64)
        shrunk = (rate * n + 1) / (n + 2)
        return np.asarray(shrunk * (1 - shrunk) / n)

    def _at(self, score: FloatArray, cluster: IntArray | None) -> PseudoLabels:
        """Return :math:`(j - (1 - b)) / (a + b - 1)`."""
        value = (self.label - (1 - self.specificity)) / self.youden
        nuisance, known = None, "known"
        if self.validated is not None:
            slope = np.column_stack([-value, 1 - value]) / self.youden
            nuisance = Nuisance(slope, self.rate_variances)
            known = f"estimated from {self.validated[0]:,g} positives and {self.validated[1]:,g} negatives"
        kind = f"misclassified labels (sensitivity {self.sensitivity:g}, specificity {self.specificity:g})"
        note = (
            f"Sensitivity and specificity are {known}, and taken to be the same at all scores. These data cannot show "
            f"whether they are: errors that depend on the score would look like miscalibration. Gold labels in some of "
            f"the rows (truecal.labels.judged) need no such assumption."
        )
        certain = self.youden == 1  # labels that are all 0 may hide events, though none needs a correction
        variance = variance_by_score(value, score)
        if (value == value[0]).all():  # which shows no variance: that of a calibrated model
            rate = 1 - self.specificity + self.youden * score
            variance = np.maximum(rate * (1 - rate), 1e-9) / self.youden**2
        return PseudoLabels(value, variance, kind, (note,), nuisance=nuisance, certain=certain)


# --- Censoring -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Censored(ImperfectLabels):
    """Times to an event, of which some are censored, and the event by a horizon as the label.

    Attributes
    ----------
    time : ndarray of shape (n,)
        Time of the event, or of censoring.
    event : ndarray of shape (n,)
        0 if censored, else the number of the cause.
    horizon : float
        By when the event must have occurred.
    strata : int, ndarray of int, or None
        Number of strata of the score, or the stratum of each row.
    cause : int
        Which event counts.
    """

    time: FloatArray
    event: FloatArray
    horizon: float
    strata: int | IntArray | None = None
    cause: int = 1

    @cached_property
    def seen(self) -> BoolArray:
        """Which rows have a known outcome at the horizon."""
        return np.asarray((self.event != 0) | (self.time >= self.horizon))

    @cached_property
    def label(self) -> FloatArray:
        """Outcome at the horizon where it is known; 0 elsewhere."""
        return np.asarray((self.event == self.cause) & (self.time <= self.horizon), dtype=np.float64)

    def _at(self, score: FloatArray, cluster: IntArray | None) -> PseudoLabels:
        """Return :math:`f + W (y - f)`."""
        kind = f"outcomes at {self.horizon:g}, {percent(1 - self.seen.mean(), 0)} censored before"
        if self.seen.all():
            return PseudoLabels(self.label, score * (1 - score), kind)
        stratum, by_score, uncensored = self._strata(score)
        least = float(uncensored[self.seen].min())
        value = score.copy()
        value[self.seen] += ((self.label - score) / uncensored)[self.seen]
        n = int(stratum.max()) + 1
        where = f"{counted(n, 'stratum', 'strata')}{' of the score' if by_score else ''}"
        note = (
            f"{counted(int((~self.seen).sum()), 'row')} of {len(score):,} censored before {self.horizon:g}. Censoring "
            f"is taken to be independent of the outcome within each of {where}. The smallest probability of being "
            f"uncensored is {least:.2g}, so that a row counts for up to {1 / least:.1f}."
        )
        return PseudoLabels(value, variance_by_score(value, score), kind, (note,))

    def _too_late(self, rows: IntArray) -> InputError:
        """Return the error of a horizon up to which too few rows were followed."""
        lost = self.time[rows][~self.seen[rows]]
        at_risk = int(np.count_nonzero(self.time[rows] >= lost.max()))
        return InputError(
            f"is too late for these data: {counted(at_risk, 'row')} of {len(rows):,} in a stratum had a follow-up "
            f"until {float(lost.max()):g}, where rows are still censored, and too few beyond",
            argument="horizon",
            value=self.horizon,
            remedy="Choose an earlier horizon, or fewer strata.",
        )

    def _strata(self, score: FloatArray) -> tuple[IntArray, bool, FloatArray]:
        """Return the stratum of each row, whether strata are those of the score, and the rows' chances to be seen.

        Small strata of the score are merged.
        """
        by_score = not isinstance(self.strata, np.ndarray)
        known = int(np.count_nonzero(self.seen))
        n = max(1, min(_MOST_STRATA, known // _ROWS_PER_STRATUM)) if self.strata is None else self.strata
        stratum = _bins_of_equal_mass(score, n) if isinstance(n, int) else n
        while True:
            number = range(int(stratum.max()) + 1)
            rows = [np.flatnonzero(stratum == k) for k in number]
            chance: list[Any] = [self._uncensored(some) for some in rows]
            poor = next((k for k in number if chance[k] is None), None)
            if poor is None:
                break
            if len(rows) == 1 or not by_score:
                raise self._too_late(rows[poor])
            before, after = (len(rows[k]) if 0 <= k < len(rows) else math.inf for k in (poor - 1, poor + 1))
            stratum = stratum - (stratum > (poor - 1 if before <= after else poor))
        uncensored = np.empty(len(score))
        uncensored[np.concatenate(rows)] = np.concatenate(chance)
        return stratum, by_score, uncensored

    def _uncensored(self, rows: IntArray) -> FloatArray | None:
        """Return the Kaplan-Meier probability of not being censored before, for rows of a stratum that are seen.

        Before the time of the row, or the horizon. Of equal times, events come before censorings. None if too few
        rows were followed until the last censoring before the horizon, or the probability is small there.
        """
        time = self.time[rows]
        times, lost = np.sort(time), np.sort(time[self.event[rows] == 0])
        later = len(times) - np.searchsorted(times, lost, side="right")
        at_risk = later + np.searchsorted(lost, lost, side="right") - np.arange(len(lost))
        survival = np.concatenate([[1.0], np.cumprod(1 - 1 / at_risk)])
        before = int(np.searchsorted(lost, self.horizon, side="left"))
        if before > 0:
            followed = len(times) - np.searchsorted(times, lost[before - 1], side="left")
            if followed < _FEWEST_AT_RISK or survival[before] < _LEAST_UNCENSORED:
                return None
        chance = np.full(len(time), survival[before])
        early = np.flatnonzero((time < self.horizon) & self.seen[rows])
        chance[early] = survival[np.searchsorted(lost, time[early], side="left")]
        return chance


# --- Variances -------------------------------------------------------------------------------------


def variance_by_score(value: FloatArray, score: FloatArray) -> FloatArray:
    """Return the variance of labels given the score: that about a line, in bins of equal mass.

    Examples
    --------
    >>> variance_by_score(np.array([0.2, 0.4, 0.2, 0.4]), np.array([0.3, 0.3, 0.3, 0.3])).round(3)
    array([0.21, 0.21, 0.21, 0.21])
    """
    place = _bins_of_equal_mass(score, max(1, min(_MOST_BINS, len(score) // _ROWS_PER_BIN)))
    n_bins = int(place.max()) + 1
    count = np.bincount(place, minlength=n_bins).astype(np.float64)

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(place, values, n_bins).astype(np.float64, copy=False)

    x = score - (total(score) / count)[place]
    z = value - (total(value) / count)[place]
    xx, xz = total(x**2), total(x * z)
    rest = np.maximum(total(z**2) - np.divide(xz**2, xx, out=np.zeros(n_bins), where=xx > 1e-12), 0.0)
    model = total(score * (1 - score)) / count
    prior = model * float(rest.sum()) / max(float(count @ model), 1e-300)
    variance = (rest + _PRIOR_ROWS * prior) / (np.maximum(count - 2, 1.0) + _PRIOR_ROWS)
    if len(score) < _FEWEST_ROWS:
        variance = np.maximum(variance, model)
    return np.asarray(np.maximum(variance, 1e-9)[place])


def _bins_of_equal_mass(score: FloatArray, n_bins: int) -> IntArray:
    """Return the bin of each row, numbered without gaps; equal scores are in one bin."""
    if n_bins == 1:
        return np.zeros(len(score), dtype=np.intp)
    first = np.arange(1, n_bins) * len(score) // n_bins
    edges = np.unique(np.partition(score, first)[first])
    place = np.searchsorted(edges, score, side="right")
    number = np.cumsum(np.bincount(place) > 0) - 1  # the first bin is empty if many scores are the smallest
    return np.asarray(number[place])
