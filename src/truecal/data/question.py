r"""What is asked of predictions: which probability, of which rows, and how several answers combine.

A question is one of: the positive class, the top label, the k most probable classes, each class against the rest
(classwise), and the top label class by class. It has one sample, or several, which are either classes of the same rows
or parts with rows of their own.

With the predicted class c and its probability h, the top label asks for :math:`P(Y = c \mid h) = h`, and so lets an
error in one predicted class cancel that in another. Class by class it asks for :math:`P(Y = c \mid h, c) = h` (Gupta
and Ramdas 2022). With :math:`e_k` the error among rows with the predicted class k, the error is
:math:`\big(\sum_k P(c = k)\, e_k^p\big)^{1/p}`, at least that of the top label.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.checks import did_you_mean, hint_at_name
from truecal._lib.types import FloatArray
from truecal.data import arrays
from truecal.data.arrays import Reading
from truecal.data.faults import warn_of_classes
from truecal.data.labels import Codes, Labels, check_classes, event_of, read_clusters
from truecal.data.pseudo_labels import ImperfectLabels, PseudoLabels
from truecal.data.sample import Sample
from truecal.data.width_bins import bins_to_count
from truecal.exceptions import InputError, Remedy
from truecal.results import Estimate, classes_target, mean_over_classes

#: Probabilities of K classes, and the number of each row's true class.
Table = tuple[NDArray[Any], NDArray[Any]]

#: How a target says that clusters count the same, and not rows.
EQUAL_CLUSTERS = ", every cluster counted once"
#: Fewest rows, and standard errors of a mean, from which to conclude that labels are counted from 1.
_FEW_ROWS, _CLEAR = 10, 5.0


@dataclass(frozen=True, eq=False)
class Rows:
    """Checked predictions, row by row: 0/1 labels, scores in [0, 1], weights and clusters where there are any.

    Attributes
    ----------
    label : ndarray of shape (n,)
        Labels, 0 or 1.
    score : ndarray of shape (n,)
        Scores in [0, 1], in the type that they came in.
    weight : ndarray of shape (n,), or None
        Weights; None where every row counts once.
    event : str
        What the score is the probability of, in words.
    counts : bool
        Whether a weight of 2 stands for two rows, also where uncertainty is reported.
    cluster : ndarray of shape (n,), or None
        Number of the cluster of each row.
    equal_clusters : bool
        Whether the weights make every cluster count the same, instead of every row.
    pseudo : PseudoLabels or None
        Labels that are not the truth, of which `label` has the values.
    part : object
        The class or label, if each is asked about.
    """

    label: NDArray[Any]
    score: NDArray[Any]
    weight: FloatArray | None
    event: str
    counts: bool = False
    cluster: Codes | None = None
    equal_clusters: bool = False
    pseudo: PseudoLabels | None = None
    part: Any = None

    @property
    def target(self) -> str:
        """The event, and whether every cluster counts the same."""
        return f"{self.event}{EQUAL_CLUSTERS if self.equal_clusters else ''}"

    def take(self, chosen: NDArray[Any]) -> Rows:
        """Return some of the rows."""
        columns = {name: value[chosen] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return replace(self, **columns, pseudo=None if self.pseudo is None else self.pseudo.take(chosen))

    def kept(self) -> Rows:
        """Return the rows without those of weight 0."""
        return self if self.weight is None or self.weight.all() else self.take(self.weight > 0)

    @property
    def plain(self) -> bool:
        """Whether there are neither weights nor clusters, and labels are the truth."""
        return self.weight is None and self.cluster is None and self.pseudo is None

    def group(self, *, n_bins: int | None = None) -> Sample:
        """Return the sample; rows of weight 0 are left out.

        Parameters
        ----------
        n_bins : int, optional
            Number of equal-width bins, if the purpose only needs sums over them. Where that is quicker, a group of the
            sample then has all rows of a bin, with their mean score.
        """
        bins = bins_to_count(n_bins, self.score) if n_bins and self.plain else None
        if bins is not None:
            return bins.count(self.label, self.score, self.target)
        rows = self.kept()
        sampling = rows.weight is not None and not rows.counts
        if rows.pseudo is not None and rows.weight is None and rows.cluster is None:
            # Sorting takes most of the time, and estimate, interval and test ask one after the other.
            kept: dict[Any, Sample] = vars(rows.pseudo).setdefault("_samples", {})
            key = rows.target, rows.score.dtype
            if key not in kept:
                kept[key] = Sample.from_rows(rows.label, rows.score, target=rows.target, pseudo=rows.pseudo)
            return kept[key]
        return Sample.from_rows(
            rows.label,
            rows.score,
            rows.weight,
            target=rows.target,
            sampling=sampling,
            clusters=rows.cluster,
            equal_clusters=rows.equal_clusters,
            pseudo=rows.pseudo,
        )


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of predictions, with the samples that answer it.

    Attributes
    ----------
    samples : tuple of Sample
        One, one for each class of the same rows, or one for each part of the rows.
    rows : tuple of Rows, or None
        Their rows; None for a Sample, whose rows are gone.
    apart : bool
        Whether the samples have different rows, those of each predicted class, and count by their numbers.
    multilabel : bool
        Whether the samples are labels of the same rows, of which a row can have any number.
    """

    samples: tuple[Sample, ...]
    rows: tuple[Rows, ...] | None = None
    apart: bool = False
    multilabel: bool = False

    @property
    def single(self) -> bool:
        """Whether there is one sample, and nothing to combine."""
        return len(self.samples) == 1 and not self.apart

    @property
    def target(self) -> str:
        """What is measured, in words."""
        if self.apart:
            return f"top label, class by class ({len(self.samples)} predicted classes)"
        if self.multilabel and not self.single:
            return f"mean over {len(self.samples)} labels"
        return self.samples[0].target if self.single else classes_target(len(self.samples))

    @cached_property
    def share(self) -> FloatArray:
        """Share of each sample in what is measured: by its rows if these are its own, else all the same."""
        size = np.array([sample.n if self.apart else 1.0 for sample in self.samples])
        return np.asarray(size / size.sum())

    @cached_property
    def size_fields(self) -> dict[str, Any]:
        """Number of rows, effective number of rows and number of clusters, as results have them."""
        if not self.apart:
            return self.samples[0].size_fields
        n, cluster = sum(sample.n for sample in self.samples), self.cluster
        squares = [sample.weight2.sum() for sample in self.samples if not sample.counted]
        return {
            "n": n,
            "effective_size": n**2 / float(sum(squares)) if squares else None,
            "n_clusters": None if cluster is None else int(cluster.max()) + 1,
        }

    @cached_property
    def weight(self) -> FloatArray | None:
        """Weight of each row, part by part; None if every row counts once, or if rows were not kept."""
        weights = [rows.weight for rows in self._own_rows if rows.weight is not None]
        return np.concatenate(weights) if weights else None

    @cached_property
    def cluster(self) -> NDArray[np.intp] | None:
        """Number of the cluster of each row, part by part: a cluster may have rows in several parts."""
        clusters = [rows.cluster for rows in self._own_rows if rows.cluster is not None]
        return np.unique(np.concatenate(clusters), return_inverse=True)[1] if clusters else None

    @property
    def counts(self) -> bool:
        """Whether a weight of 2 stands for two rows."""
        return self.rows is not None and self.rows[0].counts

    @property
    def _own_rows(self) -> tuple[Rows, ...]:
        """All rows, each once."""
        return () if self.rows is None else self.rows if self.apart else self.rows[:1]

    @property
    def proba(self) -> FloatArray:
        """Probabilities of the classes, of shape (n, K)."""
        assert self.rows is not None
        return np.column_stack([rows.score for rows in self.rows]).astype(np.float64)

    def of_each(self) -> list[Question]:
        """Return the question about each class or part by itself."""
        if self.rows is None:
            return [Question((sample,)) for sample in self.samples]
        return [Question((sample,), (rows,)) for sample, rows in zip(self.samples, self.rows, strict=True)]

    def pooled(self) -> Rows:
        """Return the rows of all labels as one: each row is a cluster."""
        assert self.rows is not None
        first, times = self.rows[0], len(self.rows)
        cluster = np.arange(len(first.label)) if first.cluster is None else first.cluster
        return replace(
            first,
            label=np.concatenate([rows.label for rows in self.rows]),
            score=np.concatenate([rows.score for rows in self.rows]),
            weight=None if first.weight is None else np.tile(first.weight, times),
            cluster=np.tile(cluster, times),
            event=f"all {times} labels together",
        )

    def combine(self, estimates: Sequence[Estimate]) -> Estimate:
        """Return the estimate of the whole from those of the samples."""
        if self.single:
            return estimates[0]
        mean = mean_over_classes(estimates, [float(part) for part in self.share] if self.apart else None)
        return replace(mean, target=self.target, **self.size_fields)


def ask(y_true: Any, y_proba: Any = None, *, n_bins: int | None = None, **reading: Any) -> Question:
    """Check predictions, and return what is asked of them.

    Parameters
    ----------
    y_true, y_proba, **reading
        As for `truecal.Sample.from_predictions`; or a `Sample` alone.
    n_bins : int, optional
        As for `Rows.group`.

    Examples
    --------
    >>> ask([2, 0], [[0.1, 0.2, 0.7], [0.4, 0.5, 0.1]], multiclass="classwise").target
    'mean over 3 classes, each against the rest'
    """
    multiclass, table = reading.get("multiclass"), None
    if multiclass == arrays.TOP_BY_CLASS:
        rows = _parts(y_true, y_proba, reading)
    elif multiclass == arrays.MULTILABEL:
        rows = _labels(y_true, y_proba, reading)
    elif isinstance(y_true, Sample):
        return Question(as_samples(y_true, y_proba, **reading))
    else:
        rows, table = _read(y_true, y_proba, **reading)
        rows = tuple(one.kept() for one in rows)
    bins = bins_to_count(n_bins, table[0]) if n_bins and table is not None and rows[0].plain else None
    if bins is not None and table is not None:
        samples: Iterable[Sample] = bins.count_classes(*table, [one.target for one in rows])
    else:
        samples = (one.group(n_bins=n_bins) for one in rows)
    apart, multilabel = multiclass == arrays.TOP_BY_CLASS, multiclass == arrays.MULTILABEL
    return Question(tuple(samples), rows, apart=apart, multilabel=multilabel)


def as_samples(
    y_true: Any, y_proba: Any = None, *, logits: bool = False, **reading: Any
) -> tuple[Sample, ...]:
    """Check predictions and group them; one sample, or for ``multiclass="classwise"`` one for each class.

    A `Sample` alone is returned as it is.

    Examples
    --------
    >>> as_samples([2, 0], [[0.1, 0.2, 0.7], [0.4, 0.5, 0.1]])
    (Sample(n=2, groups=2, target='top label of 3 classes'),)
    """
    if not isinstance(y_true, Sample):
        return tuple(rows.group() for rows in read_rows(y_true, y_proba, logits=logits, **reading))
    given = [name for name, value in {"y_proba": y_proba, **reading}.items() if value is not None]
    if given:
        raise InputError(
            "cannot be given beside a Sample, which already holds labels, scores, weights and clusters",
            argument=" and ".join(given),
            remedy="Give them when the Sample is built: Sample.from_predictions(...).",
        )
    return (y_true,)


def as_sample(y_true: Any, y_proba: Any = None, **reading: Any) -> Sample:
    """Return the single sample of the predictions; questions with several, such as classwise, are refused.

    Examples
    --------
    >>> as_sample([0, 1], [0.2, 0.9])
    Sample(n=2, groups=2, target='P(y = 1)')
    """
    samples = as_samples(y_true, y_proba, **reading)
    if len(samples) > 1:
        raise InputError(
            f"'classwise' gives {len(samples)} samples, and only one can be used here",
            argument="multiclass",
            value="classwise",
            remedy=Remedy.ONE_CLASS,
        )
    return samples[0]


def refuse_clusters(sample: Sample, purpose: str) -> None:
    """Refuse a sample with clusters where rows are taken to be independent."""
    if sample.clusters is not None:
        raise InputError(
            f"are not supported by {purpose}, which takes rows to be independent",
            argument="clusters",
            remedy=Remedy.NO_CLUSTERS,
        )


def refuse_imperfect(given: Sample | Rows, purpose: str) -> None:
    """Refuse labels that are not the truth where they are taken to be."""
    if given.pseudo is not None:
        raise InputError(
            f"holds {given.pseudo.kind}, and {purpose} needs true labels, 0 and 1",
            argument="y_true",
        )


def no_use_for_clusters(clusters: Any, function: str) -> None:
    """Refuse `clusters` where no uncertainty is reported, instead of ignoring them."""
    if clusters is not None:
        raise InputError(
            f"have no effect on {function}, which reports no uncertainty",
            argument="clusters",
            remedy=Remedy.NO_CLUSTERS,
        )


# --- From arrays to rows ---------------------------------------------------------------------------


def read_rows(y_true: Any, y_proba: Any, **reading: Any) -> tuple[Rows, ...]:
    """Check predictions, and return their rows in the order in which they came; K of them for classwise.

    Examples
    --------
    >>> (rows,) = read_rows([2, 0], [[0.1, 0.2, 0.7], [0.4, 0.5, 0.1]])
    >>> rows.score.tolist(), rows.label.tolist()
    ([0.7, 0.5], [True, False])
    """
    return _read(y_true, y_proba, **reading)[0]


def _read(
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: Any = None,
    weighting: str | None = None,
    pos_label: Any = None,
    labels: Any = None,
    multiclass: str | None = None,
    clusters: Any = None,
    logits: bool = False,
    **unknown: Any,
) -> tuple[tuple[Rows, ...], Table | None]:
    """Return the rows, and for classwise the table that they were read from."""
    _refuse_unknown(unknown)
    if y_proba is None:
        raise InputError(
            "is missing", argument="y_proba", remedy="Pass labels and probabilities, or one Sample."
        )
    arrays.warn_of_other_order(y_true=y_true, y_proba=y_proba, sample_weight=sample_weight, clusters=clusters)
    arrays.check_multiclass(multiclass, pos_label)
    proba, names = _read_scores(y_proba, logits=logits)
    classes = None if labels is None else _names_of_classes(labels)
    if isinstance(y_true, ImperfectLabels):
        common = _weights_and_clusters(sample_weight, weighting, clusters, len(proba))
        chosen = _choose_score(y_true, proba, names if classes is None else classes, multiclass, pos_label)
        return (_rows_of_pseudo_labels(y_true, *chosen, common),), None
    truth = Labels(y_true, len(proba))
    _refuse_other_order(names, truth.column_names)
    common = _weights_and_clusters(sample_weight, weighting, clusters, len(proba))
    if proba.ndim == 1 and classes is None and (multiclass is None or pos_label is not None):
        event = f"P(y = {1 if pos_label is None else arrays.to_python(pos_label)!r})"
        return (Rows(truth.binary(pos_label), proba, event=event, **common),), None
    return _read_classes(truth, proba, names, classes, pos_label, multiclass, common)


def _read_classes(
    truth: Labels,
    proba: NDArray[np.floating[Any]],
    names: list[Any] | None,
    classes: list[Any] | None,
    pos_label: Any,
    multiclass: str | None,
    common: dict[str, Any],
) -> tuple[tuple[Rows, ...], Table | None]:
    """Return the rows for probabilities of several classes, and for classwise the table that they were read from."""
    if proba.ndim == 1:
        proba = np.column_stack([1 - proba, proba])
        if classes is not None and pos_label is not None:  # the one column is that of pos_label
            classes.sort(key=lambda label: bool(label == pos_label))
    column, found = truth.columns(proba.shape[1], pos_label=pos_label, classes=classes, names=names)
    if classes is None and found == list(range(len(found))):
        refuse_counted_from_one(column, proba)
    if multiclass == "classwise" and pos_label is None:
        rows = (
            Rows(column == k, proba[:, k], event=arrays.class_target(found, k), part=name, **common)
            for k, name in enumerate(found)
        )
        return tuple(rows), (proba, column)
    if multiclass is not None and multiclass.startswith("top_"):
        return (Rows(**_top_k(proba, column, multiclass), **common),), None
    k, event = event_of(found, multiclass, None if pos_label is None else truth.as_label(pos_label))
    if k is None:
        return (Rows(proba.argmax(axis=1) == column, proba.max(axis=1), event=event, **common),), None
    return (Rows(column == k, proba[:, k], event=event, **common),), None


def _names_of_classes(labels: Any) -> list[Any]:
    return arrays.to_array(labels, "labels")[0].ravel().tolist()


def _choose_score(
    truth: ImperfectLabels,
    proba: NDArray[np.floating[Any]],
    names: list[Any] | None,
    multiclass: str | None,
    pos_label: Any,
) -> tuple[NDArray[np.floating[Any]], str]:
    """Return the scores that labels which are not the truth are compared with, and the event in words."""
    arrays.check_length(truth, "y_true", len(proba), "y_proba")
    if multiclass not in (None, "top"):
        raise InputError(
            f"{multiclass!r} needs true labels: those of truecal.labels say whether one label is right",
            argument="multiclass",
            value=multiclass,
            remedy="Use 'top', or choose a class with pos_label.",
        )
    if proba.ndim == 1:
        return proba, "P(y = 1)"
    classes = list(range(proba.shape[1])) if names is None else names
    check_classes(classes, proba.shape[1])
    k, target = event_of(classes, multiclass, pos_label)
    return proba.max(axis=1) if k is None else proba[:, k], target


def _rows_of_pseudo_labels(
    truth: ImperfectLabels, score: NDArray[np.floating[Any]], event: str, common: dict[str, Any]
) -> Rows:
    """Return rows whose labels are of one of the kinds of `truecal.labels`."""
    pseudo = truth.at(score.astype(np.float64), common["cluster"])
    if pseudo.exact:
        return Rows(pseudo.value == 1, score, event=event, **common)
    if common["counts"]:
        raise InputError(
            "'counts' needs true labels: rows that count several times would share the noise of one label",
            argument="weighting",
            value="counts",
            remedy="Repeat each row as often as it counts, if these are different rows.",
        )
    if not ((score > 0) & (score < 1)).any():
        raise InputError(
            f"holds only 0 and 1, and {pseudo.kind} need probabilities between them",
            argument="y_proba",
            remedy="Pass probabilities, or true labels.",
        )
    return Rows(pseudo.value, score, event=event, pseudo=pseudo, **common)


def _refuse_unknown(keywords: dict[str, Any]) -> None:
    """Reject unknown keywords that a function passed on."""
    for name in keywords:
        hint = hint_at_name(name) or did_you_mean(name, Reading.__annotations__)
        raise TypeError(f"unexpected keyword argument {name!r}{f'. {hint}' if hint else ''}")


def _read_scores(y_proba: Any, *, logits: bool) -> tuple[NDArray[np.floating[Any]], list[Any] | None]:
    """Return probabilities, in one dimension if they have one column, and the names of several columns."""
    proba, names = arrays.read_logits(y_proba) if logits else arrays.read_probabilities(y_proba)
    if not logits:  # of which some round to 1
        warn_of_classes(proba)
    return proba[:, 0] if proba.ndim == 2 and proba.shape[1] == 1 else proba, names


def _refuse_other_order(names: list[Any] | None, others: list[Any] | None) -> None:
    """Refuse one-hot labels and probabilities with the same columns in another order."""
    if names and others and names != others and set(names) == set(others):
        raise InputError(
            "have the same columns in another order",
            remedy="Give them one order.",
            argument="y_true and y_proba",
        )


def _weights_and_clusters(sample_weight: Any, kind: str | None, clusters: Any, n: int) -> dict[str, Any]:
    """Return the attributes of `Rows` that do not depend on the class."""
    cluster = read_clusters(clusters, n)
    weight = arrays.read_weights(sample_weight, n)
    counts = arrays.weights_are_counts(weight, kind, cluster)
    common = {"weight": weight, "counts": counts, "cluster": cluster, "equal_clusters": False}
    if kind == "clusters" and cluster is not None:
        common |= {"weight": arrays.equal_weights(weight, cluster), "equal_clusters": True}
    return common


def _parts(y_true: Any, y_proba: Any, reading: dict[str, Any]) -> tuple[Rows, ...]:
    """Return the rows of each class that is predicted, without those of weight 0."""
    if isinstance(y_true, Sample):
        raise InputError(
            f"{arrays.TOP_BY_CLASS!r} needs the probabilities of all classes, and a Sample has one column",
            argument="multiclass",
        )
    if reading.get("pos_label") is not None:
        raise InputError(
            f"cannot be combined with multiclass={arrays.TOP_BY_CLASS!r}: the top class differs from row to row",
            argument="pos_label",
        )
    classes = [rows.kept() for rows in read_rows(y_true, y_proba, **{**reading, "multiclass": "classwise"})]
    top = np.column_stack([rows.score for rows in classes]).argmax(axis=1)
    chosen = [(rows, np.flatnonzero(top == k)) for k, rows in enumerate(classes)]
    return tuple(
        replace(rows.take(which), event=f"P(y = {rows.part!r}) where it is the top label")
        for rows, which in chosen
        if len(which)
    )


def _labels(y_true: Any, y_proba: Any, reading: dict[str, Any]) -> tuple[Rows, ...]:
    """Return the rows of each label, without those of weight 0."""
    if isinstance(y_true, Sample | ImperfectLabels) or reading.get("pos_label") is not None:
        raise InputError(
            f"{arrays.MULTILABEL!r} needs 0 or 1 for each label and row, and a probability for each",
            argument="multiclass",
            value=arrays.MULTILABEL,
        )
    (truth, names), (proba, columns) = arrays.to_array(y_true, "y_true"), arrays.to_array(y_proba, "y_proba")
    _refuse_other_order(columns, names)
    if truth.ndim != 2 or truth.shape != proba.shape:
        raise InputError(
            f"has shape {truth.shape}, y_proba has {proba.shape}. For {arrays.MULTILABEL!r} both have a column for "
            f"each label",
            argument="y_true",
        )
    named = columns or names or list(range(truth.shape[1]))
    if reading.get("labels") is not None:
        named = _names_of_classes(reading["labels"])
    check_classes(named, truth.shape[1])
    options = {**reading, "multiclass": None, "labels": None}
    found = []
    for k, name in enumerate(named):
        try:
            (rows,) = read_rows(truth[:, k], proba[:, k], **options)
        except InputError as error:
            fault = {key: vars(error)[key] for key in ("problem", "count", "first_row", "value", "remedy")}
            raise InputError(**fault, argument=f"{error.argument}, label {name!r},") from None
        found.append(replace(rows.kept(), event=f"label {name!r}", part=name))
    return tuple(found)


def refuse_counted_from_one(
    column: NDArray[Any],
    proba: NDArray[np.floating[Any]],
    argument: str = "y_true",
    remedy: str | Remedy = Remedy.LABELS,
) -> None:
    """Refuse labels without 0 if the class of the column before is clearly the more probable one.

    Labels from 1 to K lie outside the classes 0 to K - 1, unless the last one does not occur.
    """
    if not len(column) or proba.shape[1] < 3 or column.min() < 1:
        return
    rows, column = np.arange(len(column)), column.astype(np.intp)
    given, before = proba[rows, column].astype(np.float64), proba[rows, column - 1].astype(np.float64)
    gain = before - given
    if len(rows) >= _FEW_ROWS and gain.mean() > _CLEAR * gain.std() / math.sqrt(len(rows)):
        raise InputError(
            f"has no label 0, and the probabilities fit labels that are counted from 1: the mean probability of the "
            f"true class is then {before.mean():.3g}, and {given.mean():.3g} if the first column is class 0",
            argument=argument,
            remedy=remedy,
        )


def _top_k(proba: NDArray[np.floating[Any]], column: NDArray[Any], multiclass: str) -> dict[str, Any]:
    """Return whether the true class is among the k most probable ones, their total probability, and the event."""
    classes = proba.shape[1]
    k = min(5, classes - 1) if multiclass == "top_k" else int(multiclass.removeprefix("top_"))
    if not 1 <= k < classes:
        raise InputError(
            f"'top_{k}' needs more than {k} classes. Got {classes} instead",
            argument="multiclass",
            value=multiclass,
        )
    # A stable order of the negative values: of equal probabilities the first columns count, as for the top label.
    best = np.argsort(-proba, axis=1, kind="stable")[:, :k]
    score = np.minimum(np.take_along_axis(proba, best, axis=1).sum(axis=1, dtype=np.float64), 1.0)
    label = (best == column[:, np.newaxis]).any(axis=1)
    return {"label": label, "score": score, "event": arrays.top_target(classes, k)}
