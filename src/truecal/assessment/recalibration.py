"""Whether and how to recalibrate."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from truecal._lib.text import counted
from truecal._lib.types import FloatArray
from truecal.data import read_rows
from truecal.data.sample import Sample
from truecal.exceptions import InputError
from truecal.plotdata.reliability import Reliability, reliability_curve
from truecal.recalibration import IdentityCalibration
from truecal.recalibration.selection import CandidateScore, Selection, select_recalibrator
from truecal.results import Result

#: Rows on which recalibrators are compared; more take time and do not change the choice.
MOST_TRAINING_ROWS = 10_000
#: Resamples of the standard errors in that comparison.
_RESAMPLES = 40
#: Standard errors by which the gain of a recalibrator must exceed 0.
_SHOWN = 1.645
_LABELS = {
    "temperature": "temperature scaling",
    "platt": "Platt scaling",
    "beta": "beta calibration",
    "isotonic": "isotonic regression",
    "histogram": "histogram binning",
}


@dataclass(frozen=True, eq=False)
class Recalibration(Result):
    """Whether and how to recalibrate.

    Attributes
    ----------
    chosen : str
        Name of the recommended recalibrator; ``"identity"`` to leave the model as it is.
    advice : str
        What to do and why, in plain sentences.
    criterion : str
        The proper score by which candidates were compared; empty if none were.
    candidates : tuple of CandidateScore
        The cross-validated score of each candidate; empty if none were compared.
    n_rows : int
        Number of rows on which candidates were compared.
    selection : Selection or None
        The comparison; its `transform` recalibrates new scores.
    reliability : Reliability or None
        Calibration curve of the cross-validated recalibrated scores, for one column of scores.
    code : str
        Three lines of Python that recalibrate; empty if there is nothing to do.
    """

    _omitted: ClassVar[tuple[str, ...]] = ("selection", "reliability")

    chosen: str
    advice: str
    criterion: str = ""
    candidates: tuple[CandidateScore, ...] = ()
    n_rows: int = 0
    selection: Selection | None = None
    reliability: Reliability | None = None
    code: str = ""

    @property
    def leave_alone(self) -> bool:
        """Whether the model is best left as it is."""
        return self.chosen == "identity"


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Labels and probabilities to compare recalibrators on: one column of scores, or one for each class."""

    label: NDArray[Any]
    score: FloatArray
    total: float
    cluster: NDArray[np.intp] | None = None

    def at_most(self, n: int, rng: np.random.Generator) -> TrainingRows:
        """Return about `n` of the rows, drawn at random; of clusters whole ones."""
        if len(self.label) <= n:
            return self
        if self.cluster is None:
            chosen = rng.permutation(len(self.label))[:n]
        else:
            place = rng.permutation(int(self.cluster.max()) + 1)[self.cluster]
            order = np.argsort(place, kind="stable")
            last = place[order[n - 1]]
            # The cluster at the limit takes part whole if it is the first, else not at all.
            chosen = order[place[order] < max(last, 1)]
        return replace(
            self,
            label=self.label[chosen],
            score=self.score[chosen],
            cluster=None if self.cluster is None else self.cluster[chosen],
        )


def training_rows(
    sample: Sample, y_true: Any, y_proba: Any, rng: np.random.Generator, **reading: Any
) -> TrainingRows:
    """Return at most `MOST_TRAINING_ROWS` rows: of the top label all classes, else those of the sample.

    Parameters
    ----------
    sample : Sample
        The predictions.
    y_true, y_proba, **reading
        What the sample was made of.
    rng : Generator
        Draws rows without replacement if there are more.
    """
    if y_proba is not None and sample.target.startswith("top label"):
        reading = {**reading, "multiclass": "classwise"}
        classes = read_rows(y_true, y_proba, **reading)
        score = np.column_stack([rows.score for rows in classes]).astype(np.float64)
        label = np.column_stack([rows.label for rows in classes]).argmax(axis=1)
        weight, cluster = classes[0].weight, classes[0].cluster
        if weight is not None:
            times = weight.astype(np.intp)
            score, label = np.repeat(score, times, axis=0), np.repeat(label, times)
            cluster = None if cluster is None else np.repeat(cluster, times)
        return TrainingRows(label, score, float(len(label)), cluster).at_most(MOST_TRAINING_ROWS, rng)
    table = sample.clusters
    score, count, positives = sample.score, sample.count, sample.positives
    if table is not None:
        score, count, positives = sample.score[table.group], table.weight, table.positives
    kinds = np.concatenate([count - positives, positives]).astype(np.int64)
    if sample.n > MOST_TRAINING_ROWS:
        drawn = rng.choice(int(sample.n), MOST_TRAINING_ROWS, replace=False)
        kinds = np.bincount(np.searchsorted(np.cumsum(kinds), drawn, side="right"), minlength=len(kinds))
    label = np.repeat([0, 1], [kinds[: len(score)].sum(), kinds[len(score) :].sum()])
    cluster = None
    if table is not None:
        cluster = np.unique(np.repeat(np.tile(table.cluster, 2), kinds), return_inverse=True)[1].reshape(-1)
    return TrainingRows(label, np.repeat(np.tile(score, 2), kinds), sample.n, cluster)


def advise_recalibration(
    rows: TrainingRows, *, confidence_level: float, rng: np.random.Generator
) -> Recalibration:
    """Return whether a recalibrator improves the log loss of held-out rows, and by how much.

    Parameters
    ----------
    rows : TrainingRows
        Rows of a model whose calibration was rejected.
    confidence_level : float
        Level of the intervals in the diagram.
    rng : Generator
        Draws folds and resamples.
    """
    n = len(rows.label)
    try:
        selection = select_recalibrator(
            rows.label,
            rows.score,
            criterion="log_loss",
            n_resamples=_RESAMPLES,
            rng=rng,
            clusters=rows.cluster,
        )
    except InputError as error:  # a handful of rows cannot be cut into folds
        return Recalibration("identity", f"Recalibrators could not be compared: {error}", n_rows=n)
    best = selection[selection.chosen]
    if not selection.leave_alone and best.difference + _SHOWN * best.difference_se >= 0:
        identity = IdentityCalibration().fit(rows.score, rows.label)
        selection = replace(selection, chosen="identity", recalibrator=identity)
    seen = counted(n, "row") if n == rows.total else f"{n:,} of the {rows.total:,.10g} rows"
    common: dict[str, Any] = {
        "chosen": selection.chosen,
        "criterion": "log loss",
        "candidates": selection.candidates,
        "n_rows": n,
        "selection": selection,
    }
    if selection.leave_alone:
        advice = (
            f"Leave the model as it is. The data contradict perfect calibration, but no recalibrator was shown to "
            f"reduce the log loss of held-out rows (5-fold cross-validation, {seen})."
        )
        return Recalibration(advice=advice, **common)
    before, gain = selection["identity"].criterion, -best.difference
    advice = (
        f"Recalibrate with {_LABELS[selection.chosen]}. It reduces the log loss of held-out rows from {before:.4f} to "
        f"{best.criterion:.4f}, by {gain:.4f} (standard error {best.difference_se:.4f}; 5-fold cross-validation, "
        f"{seen})."
    )
    kind = type(selection.recalibrator).__name__
    code = (
        f"from truecal.recalibration import {kind}\n"
        f"recalibrator = {kind}().fit(p_validation, y_validation)\n"
        f"p_recalibrated = recalibrator.transform(p_new)"
    )
    curve = (
        _held_out_curve(selection.recalibrator, rows, confidence_level, rng) if rows.score.ndim == 1 else None
    )
    return Recalibration(advice=advice, reliability=curve, code=code, **common)


def _held_out_curve(
    recalibrator: Any, rows: TrainingRows, confidence_level: float, rng: np.random.Generator
) -> Reliability:
    """Return the calibration curve of scores that were recalibrated without their own rows."""
    unit = np.arange(len(rows.label)) if rows.cluster is None else rows.cluster
    fold, score = rng.permutation(int(unit.max()) + 1)[unit] % 5, np.empty(len(rows.label))
    for k in range(5):
        train = fold != k
        fitted = copy.deepcopy(recalibrator).fit(rows.score[train], rows.label[train])
        score[~train] = fitted.transform(rows.score[~train])
    return reliability_curve(
        rows.label, score, band=False, confidence_level=confidence_level, clusters=rows.cluster
    )
