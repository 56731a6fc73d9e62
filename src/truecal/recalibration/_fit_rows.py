"""The rows that a recalibrator is chosen on: checked, ordered, and split into folds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truecal._lib.checks import check_count
from truecal._lib.text import counted
from truecal._lib.types import FloatArray
from truecal.data.arrays import (
    equal_weights,
    read_weights,
    top_target,
    warn_of_other_order,
    weights_are_counts,
)
from truecal.data.labels import Codes, read_clusters
from truecal.data.question import as_samples
from truecal.data.sample import Sample
from truecal.estimators._binning import thinned
from truecal.exceptions import InputError
from truecal.inference.resample import require_whole_counts
from truecal.recalibration._scores import Scores, read_labels, read_scores

#: Rows on which recalibrators are compared one by one; more are merged or, of several classes or clusters, drawn.
MOST_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class FitRows:
    """Checked scores with the numbers of their classes, and weights and clusters if there are any.

    Attributes
    ----------
    scores : Scores
        Scores, in an order that does not depend on the one they came in.
    label : ndarray of shape (n,)
        Number of each row's class.
    weight : ndarray of shape (n,) or None
        Positive weights.
    counts : bool
        Whether a weight of 2 stands for two rows.
    cluster : ndarray of shape (n,) or None
        Number of each row's cluster, from 0.
    origin : ndarray of shape (n,)
        Position of each row in the input.
    n_given : int
        Number of rows in the input.
    target : str
        What the scores are probabilities of.
    grouped : bool
        Whether equal predictions were put together, as in a `Sample`; each weight counts several rows.
    """

    scores: Scores
    label: Codes
    weight: FloatArray | None
    counts: bool
    cluster: Codes | None
    origin: Codes
    n_given: int
    target: str
    grouped: bool = False

    @classmethod
    def read(cls, y: Any, scores: Any, given: str, **reading: Any) -> FitRows:
        """Check scores, labels and weights, or expand a Sample; rows of weight 0 are left out."""
        if isinstance(y, Sample):
            if given != "probabilities":
                raise InputError("must be 'probabilities' for a Sample", argument="input", value=given)
            as_samples(y, scores, **reading)
            return cls._of_sample(y)
        if scores is None:
            raise InputError(
                "is missing", argument="y_proba", remedy="Pass labels and probabilities, or one Sample."
            )
        columns = {name: reading[name] for name in ("sample_weight", "clusters")}
        warn_of_other_order(y_true=y, y_proba=scores, **columns)
        read, pos_label = read_scores(scores, given), reading["pos_label"]
        if pos_label is None:
            label, classes = read_labels(y, read, reading["labels"], questioned=True)
            pos_label = classes.tolist()[1]
        elif read.n_classes == 2:
            label, _ = read_labels(np.asarray(y) == pos_label, read)
        else:
            raise InputError(
                f"is for two classes. Scores have {read.n_columns} columns", argument="pos_label"
            )
        cluster = read_clusters(reading["clusters"], len(read))
        weight = read_weights(reading["sample_weight"], len(read))
        counts = weights_are_counts(weight, reading["weighting"], cluster)
        if reading["weighting"] == "clusters" and cluster is not None:
            weight = equal_weights(weight, cluster)
        return cls(
            scores=read,
            label=label,
            weight=weight,
            counts=counts,
            cluster=cluster,
            origin=np.arange(len(read)),
            n_given=len(read),
            target=f"P(y = {pos_label!r})" if read.n_classes == 2 else top_target(read.n_classes),
        )._in_order()

    @classmethod
    def _of_sample(cls, sample: Sample) -> FitRows:
        if not sample.counted:
            raise InputError(
                "is a Sample with sampling weights, which does not keep the weights of single rows",
                argument="y_true",
                remedy="Pass y_true, y_proba and sample_weight.",
            )
        require_whole_counts(sample, "Choosing a recalibrator")
        score, count, positives, cluster = sample.score, sample.count, sample.positives, None
        if (table := sample.clusters) is not None:
            score, count, positives = sample.score[table.group], table.weight, table.positives
            cluster = np.tile(table.cluster, 2)
        label, total = np.repeat([0, 1], len(score)), 2 * len(score)
        values = Scores(np.tile(score, 2).astype(sample.dtype), False, None, True)
        weight = np.concatenate([count - positives, positives])
        rows = cls(values, label, weight, True, cluster, np.arange(total), total, sample.target, grouped=True)
        return rows._in_order()

    @property
    def n(self) -> float:
        """Number of rows, or their total weight."""
        return len(self.label) if self.weight is None else float(self.weight.sum())

    @property
    def each(self) -> FloatArray:
        """Weight of each row, 1 where none were given."""
        return np.ones(len(self.label)) if self.weight is None else self.weight

    @property
    def squares(self) -> FloatArray:
        """Sum of the squared weights of the rows that each row stands for."""
        return self.each if self.counts else self.each**2

    def take(self, rows: NDArray[Any]) -> FitRows:
        """Return some of the rows."""
        return replace(
            self,
            scores=self.scores[rows],
            label=self.label[rows],
            weight=None if self.weight is None else self.weight[rows],
            cluster=None if self.cluster is None else self.cluster[rows],
            origin=self.origin[rows],
        )

    def sample_of(self, label: NDArray[Any], score: FloatArray, target: str) -> Sample:
        """Return the sample of these rows with other scores, and labels of 0 and 1."""
        sampling = self.weight is not None and not self.counts
        return Sample.from_rows(
            label, score, self.weight, target=target, sampling=sampling, clusters=self.cluster
        )

    def compared(self, rng: np.random.Generator) -> tuple[FitRows, str]:
        """Return the rows on which candidates are compared, and which these are, in words.

        Counts are taken apart into single rows, so that a `Sample` has the folds that its rows would have. Of more than
        `MOST_ROWS`, the scores are merged into blocks, and all rows take part; of several classes, or of rows in
        clusters, so many are drawn.
        """
        if self.weight is not None and not (self.counts and (self.weight == np.floor(self.weight)).all()):
            return self, counted(len(self.label), "row")
        total = int(self.n)
        if total <= MOST_ROWS:
            return self._taken_apart(), counted(total, "row")
        if self.scores.n_classes > 2 or self.cluster is not None:
            drawn = self._drawn(rng)._taken_apart()
            return drawn, f"{len(drawn.label):,} of the {total:,} rows"
        if self.scores.are_logits:
            return self, counted(total, "row")
        sample = Sample.from_rows(self.label, self.scores.columns[0].values, self.weight)
        blocks = thinned(sample)
        merged = "" if blocks is sample else f", with scores merged into {len(blocks):,} blocks"
        rows = self._of_sample(blocks)
        # The means of blocks would have another floor than the rows themselves.
        scores = replace(rows.scores, floor=self.scores.floor)
        return replace(rows, scores=scores, target=self.target), counted(total, "row") + merged

    def _taken_apart(self) -> FitRows:
        """Return single rows in place of counts."""
        if self.weight is None:
            return self
        rows = self.take(np.repeat(np.arange(len(self.label)), self.weight.astype(np.intp)))
        rows = replace(rows, weight=None, counts=False, grouped=False)._in_order()
        return replace(rows, scores=replace(rows.scores, floor=self.scores.floor))

    def _drawn(self, rng: np.random.Generator) -> FitRows:
        """Return about `MOST_ROWS` rows, drawn at random, or as many in whole clusters."""
        weight = self.each
        if self.cluster is None:
            drawn = rng.choice(int(weight.sum()), MOST_ROWS, replace=False)
            each = np.bincount(np.searchsorted(np.cumsum(weight), drawn, side="right"), minlength=len(weight))
            return replace(self.take(each > 0), weight=each[each > 0].astype(np.float64), counts=True)
        order = rng.permutation(int(self.cluster.max()) + 1)
        size = np.cumsum(np.bincount(self.cluster, weight)[order])
        # The cluster at the limit takes part whole if it is the first, else not at all.
        taken = order[: max(np.searchsorted(size, MOST_ROWS, side="right"), 1)]
        return self.take(np.isin(self.cluster, taken))._in_order()

    def _in_order(self) -> FitRows:
        """Return the rows that have weight, in an order that does not depend on the original one."""
        weight = self.each
        # A weighted sum of the columns tells rows apart, and small changes of the scores hardly change the order.
        columns, apart = self.scores.columns, np.cos(np.arange(self.scores.n_columns))
        key = columns[0].values if len(columns) == 1 else self.scores.values @ apart
        cluster = np.zeros(len(weight)) if self.cluster is None else self.cluster
        order = np.lexsort((cluster, weight, self.label, key))
        rows = self.take(order[weight[order] > 0])
        # One floor for all folds, so that no candidate reads an exact 0 otherwise than the model is judged by.
        rows = replace(rows, scores=rows.scores.with_floor(rows.weight))
        if rows.cluster is None:
            return rows
        return replace(rows, cluster=np.unique(rows.cluster, return_inverse=True)[1].reshape(-1))

    def folds(self, cv: int | ArrayLike, rng: np.random.Generator) -> tuple[FitRows, Codes]:
        """Return the rows and the fold of each; the rows of a cluster are in one fold.

        The rows behind the counts of a `Sample` may be in different folds, so that there may be more rows than before.
        """
        if np.ndim(cv):
            return self, self._given_folds(np.asarray(cv))
        number = check_count("cv", cv, at_least=2)
        units = self.n if self.grouped else len(self.label)
        units = units if self.cluster is None else len(np.unique(self.cluster))
        if number > units:
            what = "rows" if self.cluster is None else "clusters"
            raise InputError(
                f"must be at most the number of {what}, {units:g}. Got {number} instead", argument="cv"
            )
        # Without regard to labels. Folds that are balanced by label share each other's luck, and every
        # candidate seems to gain.
        if self.cluster is not None:
            return self, (rng.permutation(int(self.cluster.max()) + 1) % number)[self.cluster]
        if not self.grouped:
            return self, rng.permutation(len(self.label)) % number
        assert self.weight is not None
        each = rng.multinomial(self.weight.astype(np.int64), np.full(number, 1 / number))
        row, fold = np.nonzero(each)
        return replace(self.take(row), weight=each[row, fold].astype(np.float64)), fold

    def _given_folds(self, cv: NDArray[Any]) -> Codes:
        if self.grouped:
            raise InputError("must be a number for a Sample, which does not keep single rows", argument="cv")
        if cv.shape != (self.n_given,):
            raise InputError(
                f"has shape {cv.shape}. One fold is needed for each of {self.n_given} rows", argument="cv"
            )
        fold = np.unique(cv[self.origin], return_inverse=True)[1].reshape(-1)
        if fold.max() == 0:
            raise InputError("must have at least two different folds", argument="cv")
        if self.cluster is not None:
            pairs = np.unique(np.column_stack([self.cluster, fold]), axis=0)
            if len(pairs) > len(np.unique(self.cluster)):
                raise InputError(
                    "has clusters whose rows are in several folds",
                    argument="cv",
                    remedy="Put each cluster into one fold.",
                )
        return fold
