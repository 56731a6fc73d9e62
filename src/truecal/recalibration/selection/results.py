"""The result of a selection: the choice, the scores of each candidate, and the reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from truecal._lib.checks import check_choice
from truecal._lib.text import counted, level
from truecal._lib.types import FloatArray
from truecal.data.sample import Sample
from truecal.results import Interval, Result

#: The name of the unchanged model.
IDENTITY = "identity"


@dataclass(frozen=True)
class CandidateScore(Result):
    """How one candidate did on rows that it was not fitted to.

    Attributes
    ----------
    name : str
        Its name; ``"identity"`` is the unchanged model.
    criterion, criterion_se : float
        The criterion, smaller is better, and its bootstrap standard error.
    difference, difference_se : float
        The criterion minus that of the identity, with its standard error; negative is better.
    brier_gain, log_loss_gain : float
        How much the proper score improves over the identity; positive is better.
    evidence : float
        The larger of the two gains, each divided by its standard deviation under the null hypothesis that the
        model is calibrated: a z statistic.
    passes : bool
        Whether that exceeds the threshold `Selection.z`.
    chosen_share : float
        Share of the resamples in which it was chosen.
    error : float
        Calibration error on held-out rows by the default estimator: the root mean square over folds. It is that of
        recalibrators fitted without one fold; the one that is returned has seen all rows and does slightly better.
    interval : Interval
        Confidence interval of that error.
    """

    name: str
    criterion: float
    criterion_se: float
    difference: float
    difference_se: float
    brier_gain: float
    log_loss_gain: float
    evidence: float
    passes: bool
    chosen_share: float
    error: float
    interval: Interval


@dataclass(frozen=True, eq=False)
class Selection(Result):
    """The recalibrator that was chosen, and why.

    Attributes
    ----------
    chosen : str
        Name of the choice; ``"identity"`` to leave the model unchanged.
    recalibrator : object
        The choice, fitted to all rows (not those of `validation`). For ``"identity"`` it returns the model's
        own probabilities, so that `transform` can be called whatever was chosen.
    candidates : tuple of CandidateScore
        One for each candidate, the identity first.
    criterion : str
        What was minimised, and for what.
    z : float
        Threshold of the evidence.
    design : str
        How rows were held out.
    compared_on : str
        The rows on which candidates were compared: all of them, merged or drawn if there are more than 10,000.
    gain : float
        How much the criterion is expected to fall on new rows. It is smaller than the gain of the held-out rows, which
        was large enough to be chosen by chance, too; 0 for ``"identity"``.
    near_ties : tuple of str
        Other candidates that pass and whose criterion exceeds that of the choice by at most one standard error of the
        difference: the data do not tell them apart.
    n_failed : float
        Number of held-out rows, or their weight, that have a label to which the choice gives a probability of exactly
        0. The log loss of such a row is infinite; the criterion counts it as in `truecal.recalibration`.
    n : int or float
        Number of held-out rows, or their weight.
    n_resamples : int
        Number of resamples behind standard errors and shares.
    held_out : Sample or None
        The held-out rows with the probabilities of the choice, from fits without these rows; None for more than two
        classes.
    """

    _omitted: ClassVar[tuple[str, ...]] = ("held_out",)
    _derived: ClassVar[tuple[str, ...]] = ("leave_alone", "verdict")

    chosen: str
    recalibrator: Any
    candidates: tuple[CandidateScore, ...]
    criterion: str
    z: float
    design: str
    n: float
    n_resamples: int
    held_out: Sample | None = None
    compared_on: str = ""
    gain: float = 0.0
    near_ties: tuple[str, ...] = ()
    n_failed: float = 0.0

    @property
    def leave_alone(self) -> bool:
        """Whether to leave the model as it is."""
        return self.chosen == IDENTITY

    def transform(self, scores: ArrayLike) -> FloatArray:
        """Return the probabilities that the choice makes of new scores.

        Parameters
        ----------
        scores : array-like
            Scores of the kind and shape that the choice was fitted to.
        """
        return np.asarray(self.recalibrator.transform(scores), dtype=np.float64)

    def __getitem__(self, name: str) -> CandidateScore:
        check_choice("a candidate", name, [candidate.name for candidate in self.candidates])
        return next(candidate for candidate in self.candidates if candidate.name == name)

    @property
    def outlook(self) -> str:
        """What to expect of the choice on new rows, and what does about as well; empty for ``"identity"``."""
        if self.leave_alone:
            return ""
        sentences = []
        if f"{self.gain:.4f}" != f"{-self[self.chosen].difference:.4f}":
            size = f"about {self.gain:.4f}" if self.gain >= 5e-5 else "next to nothing"
            sentences.append(f"Expect a gain of {size} on new rows: large gains are chosen, also by chance.")
        if self.near_ties:
            does = "do" if len(self.near_ties) > 1 else "does"
            sentences.append(f"{' and '.join(self.near_ties)} {does} about as well (a near tie).")
        if self.n_failed:
            rows = counted(self.n_failed, "held-out row")
            sentences.append(
                f"For {rows} it gave the label a probability of 0: the log loss itself is infinite."
            )
        return " ".join(sentences)

    @property
    def verdict(self) -> str:
        """The choice and its reason, in two sentences."""
        rest = self.candidates[1:]
        if not self.leave_alone:
            best = self[self.chosen]
            worse = f" The log loss grows by {-best.log_loss_gain:.2g}." if best.log_loss_gain < 0 else ""
            outlook = f" {self.outlook}" if self.outlook else ""
            return (
                f"Use {self.chosen}: {self.criterion} is {best.criterion:.4f} instead of "
                f"{self.candidates[0].criterion:.4f} (z = {best.evidence:.1f} against the null hypothesis of a "
                f"calibrated model).{worse}{outlook} Calibration error of held-out rows: {best.error:.4f}, "
                f"{best.interval}, instead of {self.candidates[0].error:.4f}."
            )
        passed = ", ".join(candidate.name for candidate in rest if candidate.passes)
        if passed:
            return f"Leave the model alone. {passed} would improve a proper score, but not {self.criterion}."
        best = max(rest, key=lambda candidate: candidate.evidence)
        if best.evidence <= 0:
            return "Leave the model alone. No candidate improves it on rows that it was not fitted to."
        return (
            f"Leave the model alone. The largest gain, of {best.name}, has z = {best.evidence:.1f} against the null "
            f"hypothesis of a calibrated model; {self.z:.3g} is required."
        )

    def __str__(self) -> str:
        width = max(len(candidate.name) for candidate in self.candidates) + 1
        heading = f"{level(self.candidates[0].interval.level)} interval"
        lines = [
            f"{self.criterion}, {self.design}, n = {self.n:g}",
            f"{'':{width}}    value (se)      difference (se)         z  chosen   error  {heading}",
        ]
        for row in self.candidates:
            mark = "*" if row.name == self.chosen else " "
            lines.append(
                f"{mark + row.name:{width}} {row.criterion:8.4f} ({row.criterion_se:.4f})  "
                f"{row.difference:+8.4f} ({row.difference_se:.4f})  "
                f"{row.evidence:8.1f}  {row.chosen_share:6.0%}  {row.error:.4f}  "
                f"{row.interval.low:.4f} to {row.interval.high:.4f}"
            )
        return "\n".join([*lines, self.verdict])

    def __repr__(self) -> str:
        return f"<Selection {self.chosen!r} of {len(self.candidates)} by {self.criterion}>"

    def _fields(self) -> dict[str, Any]:
        return super()._fields() | {"recalibrator": repr(self.recalibrator)}
