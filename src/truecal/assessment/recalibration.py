"""Whether and how to recalibrate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from truecal._lib.text import counted
from truecal._lib.types import FloatArray
from truecal.assessment.plan import thinned
from truecal.data import read_rows
from truecal.data.sample import Sample
from truecal.exceptions import InputError
from truecal.plotdata.reliability import Reliability, reliability_curve
from truecal.recalibration import IdentityCalibration
from truecal.recalibration.selection import CandidateScore, Selection, select_recalibrator
from truecal.results import Result

#: Rows on which recalibrators are compared one by one; more are merged or, of several classes or clusters, drawn.
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
    """What recalibrators are compared on.

    Attributes
    ----------
    arguments : dict
        Labels and probabilities with their clusters, or a `Sample`, as `select_recalibrator` takes them.
    n : int
        Number of rows.
    about : str
        How many rows, and of how many, in words.
    """

    arguments: dict[str, Any]
    n: int
    about: str

    @classmethod
    def of(
        cls, label: NDArray[Any], score: FloatArray, cluster: NDArray[np.intp] | None, total: int
    ) -> TrainingRows:
        """Return rows that are all, or some, of a total."""
        n = len(label)
        about = counted(n, "row") if n == total else f"{n:,} of the {total:,} rows"
        return cls({"y_true": label, "y_proba": score, "clusters": cluster}, n, about)

    def identity(self) -> IdentityCalibration:
        """Return the recalibrator that changes nothing."""
        if "y_proba" in self.arguments:
            return IdentityCalibration().fit(self.arguments["y_proba"], self.arguments["y_true"])
        return IdentityCalibration().fit([0.0, 1.0], [0, 1])

    def reversed_by(self, selection: Selection) -> bool:
        """Return whether the chosen recalibrator gives lower probabilities to higher scores, on the whole."""
        if selection.held_out is None:  # several classes have no common ranking
            return False
        score = self.arguments["y_proba"] if "y_proba" in self.arguments else self.arguments["y_true"].score
        before, after = (values - values.mean() for values in (score, selection.transform(score)))
        return bool(before @ after < -0.5 * np.linalg.norm(before) * np.linalg.norm(after))


def training_rows(
    sample: Sample, y_true: Any, y_proba: Any, rng: np.random.Generator, **reading: Any
) -> TrainingRows:
    """Return the rows to compare recalibrators on: of the top label all classes, else those of the sample.

    If there are more than `MOST_TRAINING_ROWS`, their scores are merged into blocks, and all rows take part; of several
    classes, or of rows in clusters, so many are drawn.

    Parameters
    ----------
    sample : Sample
        The predictions.
    y_true, y_proba, **reading
        What the sample was made of.
    rng : Generator
        Draws rows.
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
        total = len(label)
        if total > MOST_TRAINING_ROWS:
            chosen = _draw_rows(total, cluster, rng)
            label, score = label[chosen], score[chosen]
            cluster = None if cluster is None else cluster[chosen]
        return TrainingRows.of(label, score, cluster, total)
    table, total = sample.clusters, int(sample.n)
    if table is None and total > MOST_TRAINING_ROWS:
        blocks = thinned(sample)
        merged = "" if blocks is sample else f", with scores merged into {len(blocks):,} blocks"
        return TrainingRows({"y_true": blocks}, total, counted(total, "row") + merged)
    score, count, positives = sample.score, sample.count, sample.positives
    if table is not None:
        score, count, positives = sample.score[table.group], table.weight, table.positives
    kinds = np.concatenate([count - positives, positives]).astype(np.int64)
    if total > MOST_TRAINING_ROWS:
        drawn = rng.choice(total, MOST_TRAINING_ROWS, replace=False)
        kinds = np.bincount(np.searchsorted(np.cumsum(kinds), drawn, side="right"), minlength=len(kinds))
    label, score = np.repeat(np.repeat([0, 1], len(score)), kinds), np.repeat(np.tile(score, 2), kinds)
    cluster = None if table is None else np.repeat(np.tile(table.cluster, 2), kinds)
    return TrainingRows.of(label, score, cluster, total)


def _draw_rows(total: int, cluster: NDArray[np.intp] | None, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return about `MOST_TRAINING_ROWS` of the rows, drawn at random; of clusters whole ones."""
    if cluster is None:
        return rng.permutation(total)[:MOST_TRAINING_ROWS]
    place = rng.permutation(int(cluster.max()) + 1)[cluster]
    order = np.argsort(place, kind="stable")
    # The cluster at the limit takes part whole if it is the first, else not at all.
    return np.asarray(order[place[order] < max(place[order[MOST_TRAINING_ROWS]], 1)])


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
    try:
        selection = select_recalibrator(
            **rows.arguments, criterion="log_loss", n_resamples=_RESAMPLES, rng=rng
        )
    except InputError as error:  # a handful of rows cannot be cut into folds
        return Recalibration("identity", f"Recalibrators could not be compared: {error}", n_rows=rows.n)
    best = selection[selection.chosen]
    if not selection.leave_alone and best.difference + _SHOWN * best.difference_se >= 0:
        selection = replace(selection, chosen="identity", recalibrator=rows.identity(), held_out=None)
    common: dict[str, Any] = {
        "chosen": selection.chosen,
        "criterion": "log loss",
        "candidates": selection.candidates,
        "n_rows": rows.n,
        "selection": selection,
    }
    if selection.leave_alone:
        advice = (
            f"Leave the model as it is. The data contradict perfect calibration, but no recalibrator was shown to "
            f"reduce the log loss of held-out rows (5-fold cross-validation, {rows.about})."
        )
        return Recalibration(advice=advice, **common)
    before, gain = selection["identity"].criterion, -best.difference
    advice = (
        f"Recalibrate with {_LABELS[selection.chosen]}. It reduces the log loss of held-out rows from {before:.4f} to "
        f"{best.criterion:.4f}, by {gain:.4f} (standard error {best.difference_se:.4f}; 5-fold cross-validation, "
        f"{rows.about})."
    )
    if rows.reversed_by(selection):
        advice += (
            " It reverses the ranking: rows with a higher score get a lower one. If the scores are probabilities of "
            "another class, correct that instead."
        )
    kind = type(selection.recalibrator).__name__
    code = (
        f"from truecal.recalibration import {kind}\n"
        f"recalibrator = {kind}().fit(p_validation, y_validation)\n"
        f"p_recalibrated = recalibrator.transform(p_new)"
    )
    curve = None
    if selection.held_out is not None:
        curve = reliability_curve(selection.held_out, band=False, confidence_level=confidence_level)
    return Recalibration(advice=advice, reliability=curve, code=code, **common)
