"""What to do next: recalibrate or leave alone, and how many rows would show more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import chdtri, chndtr, expit, logit

from truecal._lib.numeric import find_root
from truecal._lib.types import FloatArray
from truecal.assessment._groups import has_logit, rank_of
from truecal.data import read_rows
from truecal.data.arrays import is_top_label
from truecal.data.sample import Sample
from truecal.estimators._binning import thinned
from truecal.exceptions import InputError
from truecal.inference.reliability import Reliability, reliability_curve
from truecal.recalibration.selection import CandidateScore, Selection, select_recalibrator
from truecal.results import Result

_LABELS = {
    "temperature": "temperature scaling",
    "platt": "Platt scaling",
    "beta": "beta calibration",
    "isotonic": "isotonic regression",
    "histogram": "histogram binning",
    "vector": "vector scaling",
    "dirichlet": "Dirichlet calibration",
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


def recalibration_rows(sample: Sample, y_true: Any, y_proba: Any, **reading: Any) -> dict[str, Any]:
    """Return the predictions to choose a recalibrator on: those of all classes, if the top label is assessed."""
    if y_proba is None or not is_top_label(sample.target):
        return {"y_true": sample}
    classes = read_rows(y_true, y_proba, **{**reading, "multiclass": "classwise"})
    return {
        "y_true": np.column_stack([rows.label for rows in classes]).argmax(axis=1),
        "y_proba": np.column_stack([rows.score for rows in classes]),
        "sample_weight": classes[0].weight,
        "weighting": None if classes[0].weight is None else "counts",
        "clusters": classes[0].cluster,
    }


def _reverses(selection: Selection, sample: Sample) -> bool:
    """Return whether the chosen recalibrator gives lower probabilities to higher scores, on the whole."""
    if selection.held_out is None:  # several classes have no common ranking
        return False
    before, after = (values - values.mean() for values in (sample.score, selection.transform(sample.score)))
    return bool(before @ after < -0.5 * np.linalg.norm(before) * np.linalg.norm(after))


def advise_recalibration(
    sample: Sample, rows: dict[str, Any], *, confidence_level: float, rng: np.random.Generator
) -> Recalibration:
    """Return whether a recalibrator improves the log loss of held-out rows, and by how much."""
    try:
        selection = select_recalibrator(**rows, confidence_level=confidence_level, rng=rng)
    except InputError as error:  # a handful of rows cannot be cut into folds
        return Recalibration(
            "identity", f"Recalibrators could not be compared: {error}", n_rows=int(sample.n)
        )
    best = selection[selection.chosen]
    common: dict[str, Any] = {
        "chosen": selection.chosen,
        "criterion": "log loss",
        "candidates": selection.candidates,
        "n_rows": int(selection.n),
        "selection": selection,
    }
    if selection.leave_alone:
        advice = (
            f"Leave the model as it is. The data contradict perfect calibration, but no recalibrator was shown to "
            f"reduce the log loss of held-out rows (5-fold cross-validation, {selection.compared_on})."
        )
        return Recalibration(advice=advice, **common)
    before, gain = selection["identity"].criterion, -best.difference
    advice = (
        f"Recalibrate with {_LABELS[selection.chosen]}. It reduces the log loss of held-out rows from {before:.4f} to "
        f"{best.criterion:.4f}, by {gain:.4f} (standard error {best.difference_se:.4f}; 5-fold cross-validation, "
        f"{selection.compared_on})."
    )
    advice += f" {selection.outlook}" if selection.outlook else ""
    if _reverses(selection, sample):
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


#: Power, level and errors of the plan, and the fewest rows that it names.
_POWER, _ALPHA, _ERRORS = 0.95, 0.05, (0.01, 0.02, 0.05, 0.1)
_FEWEST = 50


@dataclass(frozen=True)
class PlannedRows(Result):
    """How many rows with scores like these detect an error of a given size.

    Attributes
    ----------
    true_error : float
        The l2 calibration error to detect.
    level_shift, slope : int or None
        Rows needed if all logits are shifted (by the direction that needs more), and if all are too extreme by a
        factor; at least 50. None if no such curve has this error.
    power, alpha : float
        Probability of detection, and significance level of the test.
    """

    true_error: float
    level_shift: int | None
    slope: int | None
    power: float = _POWER
    alpha: float = _ALPHA


def plan_rows(sample: Sample, *, design_effect: float = 1.0) -> tuple[PlannedRows, ...]:
    r"""Return how many rows detect errors of several sizes, by the noncentral chi-square distribution.

    For a curve g the score test of level and slope has noncentrality :math:`n\,u' I^{-1} u` with
    :math:`u = E[(g - f) x]`, :math:`I = E[f (1 - f) x x']` and x = (1, logit f). The omnibus test, of which it is a
    part, needs about as many rows for such curves.
    """
    sample = thinned(sample)
    inside = has_logit(sample.score)
    score, count = sample.score[inside], sample.count[inside]
    if not len(score):
        return ()
    share = count / sample.n
    design = np.column_stack([np.ones_like(score), logit(score)])
    information = (design.T * (share * score * (1 - score))) @ design
    inverse = np.linalg.pinv(information, rcond=1e-9, hermitian=True)
    degrees = int(rank_of(information))
    critical = float(chdtri(degrees, _ALPHA))
    needed = find_root(lambda shift: float(chndtr(critical, degrees, shift)) - (1 - _POWER), 1e-6, 100)

    def rows(direction: FloatArray, error: float) -> int | None:
        """Return the number of rows for curves that differ from the scores in one direction."""

        def gap(size: float) -> FloatArray:
            return np.asarray(expit(design @ (np.array([0.0, 1.0]) + size * direction)) - score)

        def excess(size: float) -> float:
            return math.sqrt(float(share @ gap(size) ** 2)) - error

        largest = 1.0 if direction[1] else 20.0
        if excess(largest) <= 0:
            return None
        moment = gap(find_root(excess, 0.0, largest)) * share @ design
        strength = float(moment @ inverse @ moment)
        # The approximation needs some rows.
        return max(math.ceil(design_effect * needed / strength), _FEWEST) if strength > 0 else None

    up, flat = np.array([1.0, 0.0]), np.array([0.0, -1.0])
    plans = []
    for error in _ERRORS:
        shifts = [n for n in (rows(up, error), rows(-up, error)) if n]
        plans.append(PlannedRows(error, max(shifts, default=None), rows(flat, error)))
    return tuple(plan for plan in plans if plan.level_shift or plan.slope)
