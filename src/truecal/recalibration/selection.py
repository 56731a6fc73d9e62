"""Choose a recalibrator, or leave the model alone.

An estimate of calibration error cannot show by itself whether to recalibrate: it is biased, and by another amount
for the model than for the recalibrated model. So two questions are asked, one after the other.

*Is there anything to correct?* A candidate must improve a proper score, the Brier score or the log loss, on rows
that it was not fitted to, by more than `z` times the standard deviation that the improvement would have if labels
were drawn from the model's own probabilities. For the Brier score the improvement is the fall of the squared l2
calibration error, less what the candidate blurs; the log loss is more sensitive to errors near 0 and 1.

*Which corrects it best?* Of the candidates that pass and the model itself, the one with the smallest criterion.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtri

from truecal import recalibration
from truecal._lib.checks import as_generator, check_choice, check_count, check_fraction, unknown_option
from truecal._lib.numeric import find_root
from truecal._lib.text import as_table, counted, counting, level, percent
from truecal._lib.types import FloatArray, NormLike, RNGLike
from truecal.data.sample import Sample
from truecal.estimators._registry import get_estimator, list_estimators
from truecal.exceptions import CalibrationWarning, InputError
from truecal.recalibration._base import PredictsProba, Recalibrator
from truecal.recalibration._contest import IDENTITY, PROPER_SCORES, CandidateScore, Contest, Criterion
from truecal.recalibration._fit_rows import FitRows
from truecal.recalibration._scores import read_scores
from truecal.recalibration._softmax import FEW_CLASSES
from truecal.results import Result

__all__ = ["CandidateScore", "Selection", "select_recalibrator"]

#: The default candidates, from the least to the most flexible.
CANDIDATES = {
    "temperature": recalibration.TemperatureScaling,
    "platt": recalibration.PlattScaling,
    "beta": recalibration.BetaCalibration,
    "isotonic": recalibration.IsotonicCalibration,
    "histogram": recalibration.HistogramBinning,
}

#: Further default candidates for three to `FEW_CLASSES` classes. In simulations with 500 to 2,000 rows the log loss of
#: the choice on new rows was lower by 0.003 to 0.025 where classes had different errors, and the same elsewhere.
VECTOR_CANDIDATES = {"vector": recalibration.VectorScaling, "dirichlet": recalibration.DirichletCalibration}

#: Candidates that can be given by name. Venn-Abers is not among the default ones: on stepped curves it lowered the log
#: loss of the choice by 0.01, but with 300 rows and smooth curves it raised it by 0.0003 to 0.001.
BY_NAME = {
    **CANDIDATES,
    **VECTOR_CANDIDATES,
    "spline": recalibration.SplineCalibration,
    "venn_abers": recalibration.VennAbersCalibration,
}

#: Threshold of the z statistic of a gain with folds. Of several values tried on simulated calibrated populations
#: 1.5 was taken: with 5 folds it left them alone in 98 to 99% of samples, 95 to 100% in each population (see
#: tests/statistical). A validation set needs a higher threshold: with folds, what chance adds in one is taken
#: from the others, which were fitted to its rows.
_Z_FOLDS = 1.5

#: On a validation set: probability that a calibrated model is changed, over all candidates.
_RISK = 0.05


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
        """What to expect of the choice on new rows, and which candidates do about as well; empty for ``"identity"``."""
        if self.leave_alone:
            return ""
        sentences = []
        best = self[self.chosen]
        if -best.difference - self.gain > 0.1 * best.difference_se:  # a smaller correction changes nothing
            size = f"about {self.gain:.4f}" if self.gain >= 5e-5 else "next to nothing"
            sentences.append(
                f"Expect a gain of {size} on new rows, since part of the largest gain is chance."
            )
        if self.near_ties:
            *others, last = self.near_ties
            names = f"{', '.join(others)} and {last} do" if others else f"{last} does"
            sentences.append(f"{names} about as well (a near tie).")
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
        heading = f"{level(self.candidates[0].interval.level)} interval"
        rows = [
            [
                f"{'*' if row.name == self.chosen else ' '}{row.name}",
                f"{row.criterion:.4f} ({row.criterion_se:.4f})",
                f"{row.difference:+.4f} ({row.difference_se:.4f})",
                f"{row.evidence:.1f}",
                percent(row.chosen_share, 0),
                f"{row.error:.4f}",
                f"{row.interval.low:.4f} to {row.interval.high:.4f}",
            ]
            for row in self.candidates
        ]
        head = ["", "value (se)", "difference (se)", "z", "chosen", "error", heading]
        return f"{self.criterion}, {self.design}, n = {self.n:g}\n{as_table(head, rows)}\n{self.verdict}"

    def __repr__(self) -> str:
        return f"<Selection {self.chosen!r} of {len(self.candidates)} by {self.criterion}>"

    def _fields(self) -> dict[str, Any]:
        return super()._fields() | {"recalibrator": repr(self.recalibrator)}


def select_recalibrator(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    candidates: Mapping[str, Any] | Iterable[Any] | None = None,
    criterion: str = "log_loss",
    norm: NormLike = 2,
    cv: int | ArrayLike = 5,
    validation: Sequence[Any] | Sample | None = None,
    input: str = "probabilities",
    confidence_level: float = 0.95,
    n_resamples: int = 100,
    sample_weight: ArrayLike | None = None,
    weighting: str | None = None,
    clusters: Any = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    multiclass: str | None = None,
    rng: RNGLike = None,
    **options: Any,
) -> Selection:
    r"""Choose a recalibrator by its effect on rows that it was not fitted to, or leave the model alone.

    With p the model's probabilities, q those of a candidate and S Brier's score or the log loss, a candidate
    passes if for either

    .. math:: \bar d > z\,\hat\sigma_0 , \qquad \bar d = \frac1n \sum_i S(p_i, y_i) - S(q_i, y_i) , \qquad
              \hat\sigma_0^2 = \frac1{n^2} \sum_i \mathrm{Var}_{Y \sim p_i}[S(p_i, Y) - S(q_i, Y)] ,

    that is, if such a gain would be unlikely for labels drawn from p. Of those that pass and the model itself the
    one with the smallest criterion is chosen. A calibrated model is left alone in at least 95 of 100 samples.

    The calibration error of each candidate is estimated in each fold by itself, and the squares are averaged. An
    estimate from all folds together would badly understate the error: what chance adds to the labels of one fold is
    missing from the fit that it is judged by, and over all folds these differences cancel.

    Parameters
    ----------
    y_true : array-like of shape (n,), (n, 1) or one-hot (n, K), or Sample
        Labels of the calibration rows: 0 and 1, the numbers of the columns, or `labels`. A `Sample` (or `Cells`) stands
        for both labels and scores; its rows are put into folds one by one.
    y_proba : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities, or logits if `input` is ``"logits"``, of rows that the model was not trained on.
    candidates : mapping, or iterable of str or recalibrators, optional
        What to choose from: names (``"temperature"``, ``"platt"``, ``"beta"``, ``"isotonic"``, ``"histogram"``,
        and for 3 to 10 classes ``"vector"`` and ``"dirichlet"``: all these by default; also ``"spline"`` and
        ``"venn_abers"``), or objects with `fit` and `transform` or `predict_proba`, those of other packages too.
    criterion : str
        What to minimise: ``"log_loss"``, ``"brier"`` or one of `truecal.list_estimators`.
    norm : float, "l1" or "l2"
        Order of the norm of the estimator.
    cv : int or array-like of shape (n,)
        Number of folds, drawn at random and without regard to the labels; or the fold of each row.
    validation : (y_true, y_proba), (y_true, y_proba, sample_weight) or Sample, optional
        Rows to compare candidates on instead of folds; candidates are then fitted to the rows above only.
    input : {"probabilities", "logits"}
        What `y_proba` are. That is never guessed.
    confidence_level : float
        Level of the intervals of the calibration errors.
    n_resamples : int
        Bootstrap resamples of the held-out rows, for standard errors and for how often each is chosen.
    sample_weight : array-like of shape (n,), optional
        Weights; weight 0 leaves a row out.
    weighting : {"sampling", "counts"}, optional
        What they mean for the variance: ``"counts"`` if a weight of 2 stands for two rows.
    clusters : array-like of shape (n,), optional
        Rows that depend on each other have the same value. Folds never split a cluster, resamples draw whole clusters,
        and a gain must exceed the variation between clusters.
    pos_label : label, optional
        The positive class of two.
    labels : sequence, optional
        The class of each column.
    multiclass : {"top", "classwise"}, optional
        What an estimator is computed for with several classes; the top label by default.
    rng : seed or numpy.random.Generator, optional
        Random seed of folds and resamples.
    **options
        Options of the estimator, such as `n_bins`.

    Returns
    -------
    Selection
        The choice, fitted to all rows, and how each candidate did.

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), Mitigating bias in calibration error estimation, AISTATS, Table 1.
    Gneiting, Raftery (2007), Strictly proper scoring rules, prediction, and estimation, JASA.

    Examples
    --------
    >>> from truecal import paper
    >>> from truecal.recalibration.selection import select_recalibrator
    >>> model = paper.population("resnet110_c100")
    >>> y_true, y_proba = model.sample(2000, rng=0)
    >>> selection = select_recalibrator(y_true, y_proba, candidates=["platt", "isotonic"], rng=0)
    >>> print(selection)
    log_loss of P(y = 1), 5 folds, n = 2000
                    value (se)   difference (se)     z  chosen   error      95% interval
     identity  0.7258 (0.0366)  +0.0000 (0.0000)   0.0      0%  0.2039  0.1826 to 0.2295
    *platt     0.3746 (0.0102)  -0.3512 (0.0276)  46.4     85%  0.0333  0.0000 to 0.0544
     isotonic  0.3809 (0.0127)  -0.3449 (0.0276)  40.0     15%  0.0059  0.0000 to 0.0789
    Use platt: log_loss of P(y = 1) is 0.3746 instead of 0.7258 (z = 46.4 against the null hypothesis of a
    calibrated model). Calibration error of held-out rows: 0.0333, 0.0000 to 0.0544 (95%), instead of 0.2039.
    >>> selection.transform([0.5, 0.99]).round(3)
    array([0.322, 0.709])
    >>> y_true, y_proba = model.calibrated().sample(2000, rng=0)
    >>> print(select_recalibrator(y_true, y_proba, rng=0).verdict)
    Leave the model alone. ...
    """
    generator = as_generator(rng)
    check_count("n_resamples", n_resamples)
    check_fraction("confidence_level", confidence_level)
    measure = _read_criterion(criterion, norm, multiclass, options)
    common: dict[str, Any] = {"pos_label": pos_label, "labels": labels}
    weight = {"sample_weight": sample_weight, "weighting": weighting, "clusters": clusters}
    rows = FitRows.read(y_true, y_proba, input, **weight, **common)
    if candidates is None:
        several = 3 <= rows.scores.n_classes <= FEW_CLASSES
        candidates = {**CANDIDATES, **(VECTOR_CANDIDATES if several else {})}
    entrants = _read_candidates(candidates, input)
    if validation is None:
        judged, about = (
            rows.compared(generator) if np.ndim(cv) == 0 else (rows, counted(len(rows.label), "row"))
        )
        judged, fold = judged.folds(cv, generator)
        predictions = _cross_predict(entrants, judged, fold)
        z, design = _Z_FOLDS, f"{len(np.unique(fold))} folds"
    else:
        judged = _read_validation(validation, input, weighting, common)
        if rows.scores.n_columns != judged.scores.n_columns:
            raise InputError(
                f"has {judged.scores.n_columns} columns of scores, but the rows to fit have "
                f"{rows.scores.n_columns}",
                argument="validation",
            )
        fold = np.zeros(len(judged.label), dtype=np.intp)
        predictions = {name: _predict(candidate, rows, judged) for name, candidate in entrants.items()}
        z, about = float(ndtri(1 - _RISK / len(entrants))), counted(len(judged.label), "validation row")
        design = f"{len(judged.label)} validation rows"
    contest = Contest(predictions, judged, fold, measure, z)
    chosen, results, ties = contest.decide(confidence_level, n_resamples, generator)
    probability = contest.probability[chosen]
    final = (
        recalibration.IdentityCalibration(input) if chosen == IDENTITY else copy.deepcopy(entrants[chosen])
    )
    return Selection(
        chosen=chosen,
        recalibrator=_fit(final, rows),
        candidates=results,
        criterion=measure.describe(rows),
        z=z,
        design=design,
        compared_on=about,
        gain=_expected_gain(next(one for one in results if one.name == chosen), z),
        near_ties=ties,
        n_failed=contest.count_impossible(chosen),
        n=judged.n,
        n_resamples=n_resamples,
        held_out=None
        if probability.ndim > 1
        else judged.sample_of(judged.label == 1, probability, judged.target),
    )


# --- Input ----------------------------------------------------------------------------------


def _read_criterion(name: str, norm: NormLike, multiclass: str | None, options: dict[str, Any]) -> Criterion:
    if multiclass is not None:
        check_choice("multiclass", multiclass, ("top", "classwise"))
    if name in PROPER_SCORES:
        if options:
            raise unknown_option(next(iter(options)), name)
        return Criterion(name, None, {}, multiclass)
    known = [word for spec in list_estimators() for word in (spec.name, *spec.aliases)]
    check_choice("criterion", name, [*PROPER_SCORES, *known])
    spec = get_estimator(name)
    spec.check_options(options)
    return Criterion(spec.name, spec, {"norm": norm, **options}, multiclass)


def _read_candidates(candidates: Mapping[str, Any] | Iterable[Any], given: str) -> dict[str, Any]:
    if isinstance(candidates, str):
        raise InputError(f"must be a list or a mapping. Got {candidates!r} instead", argument="candidates")
    if not isinstance(candidates, Mapping):
        parts = list(candidates)
        names = [part if isinstance(part, str) else type(part).__name__ for part in parts]
        if len(set(names)) < len(names):
            raise InputError(
                f"have duplicate names: {names}",
                argument="candidates",
                remedy="Pass a mapping from names to recalibrators.",
            )
        candidates = dict(zip(names, parts, strict=True))
    if IDENTITY in candidates:
        raise InputError("must not be called 'identity', which is the model unchanged", argument="candidates")
    if not candidates:
        raise InputError("must not be empty", argument="candidates")
    return {name: _read_candidate(name, part, given) for name, part in candidates.items()}


def _read_candidate(name: str, part: Any, given: str) -> Any:
    """Return an object with `fit` and `transform`, for a name, a class or an object of another package."""
    if isinstance(part, str):
        part = BY_NAME[check_choice("a candidate", part, BY_NAME)]
    if isinstance(part, type):
        part = part(input=given)
    if not hasattr(part, "transform") and hasattr(part, "predict_proba"):
        part = PredictsProba(part)
    if not (hasattr(part, "fit") and hasattr(part, "transform")):
        raise InputError(
            f"must have fit, and transform or predict_proba. Got {part!r} instead", argument="candidates"
        )
    if getattr(part, "input", given) != given:
        raise InputError(
            f"{name!r} takes {part.input}, but input={given!r} was passed", argument="candidates"
        )
    return part


def _read_validation(
    validation: Sequence[Any] | Sample, given: str, weighting: str | None, common: dict[str, Any]
) -> FitRows:
    if isinstance(validation, Sample):
        validation = (validation, None)
    if len(validation) not in (2, 3):
        raise InputError(
            "must be (y_true, y_proba), (y_true, y_proba, sample_weight) or a Sample", argument="validation"
        )
    y, scores, weight = (*validation, None)[:3]
    if weight is None:
        weighting = None
    if isinstance(y, Sample):
        common = dict.fromkeys(common)
    return FitRows.read(y, scores, given, sample_weight=weight, weighting=weighting, clusters=None, **common)


def _fit(candidate: Any, rows: FitRows) -> Any:
    if isinstance(candidate, Recalibrator):  # the rows are checked, and have their floor
        classes = np.arange(rows.scores.n_classes)
        return candidate._fit_read(rows.scores, rows.label.astype(np.intp), rows.weight, classes)
    if rows.weight is None:
        return candidate.fit(rows.scores.values, rows.label)
    return candidate.fit(rows.scores.values, rows.label, sample_weight=rows.weight)


def _predict(candidate: Any, train: FitRows, test: FitRows) -> FloatArray:
    """Return probabilities of `test` by the candidate fitted to `train`."""
    with warnings.catch_warnings():
        # A candidate that cannot be fitted well loses; if it wins, the fit to all rows will warn.
        warnings.simplefilter("ignore", CalibrationWarning)
        fitted = _fit(copy.deepcopy(candidate), train)
        if isinstance(fitted, Recalibrator):
            mapped = fitted._transform_read(test.scores)
        else:
            mapped = fitted.transform(test.scores.values)
    return read_scores(mapped, "probabilities").probabilities


def _cross_predict(entrants: dict[str, Any], rows: FitRows, fold: NDArray[np.intp]) -> dict[str, FloatArray]:
    predictions = {name: np.empty_like(rows.scores.probabilities) for name in entrants}
    for k in counting(np.unique(fold).tolist(), "recalibrators"):
        train, test = rows.take(fold != k), rows.take(fold == k)
        for name, candidate in entrants.items():
            predictions[name][fold == k] = _predict(candidate, train, test)
    return predictions


def _expected_gain(chosen: CandidateScore, z: float) -> float:
    r"""Return how much the criterion is expected to fall on new rows: the gain, corrected for having been chosen.

    A recalibrator is chosen only where its gain d exceeds a threshold c = d z / evidence, so that the gains of chosen
    ones are too large on average. The corrected gain is the :math:`\\delta` for which d is the median of normal gains
    with mean :math:`\\delta` and the standard error of d that exceed c, and 0 if that is negative.
    """
    gain, spread = -chosen.difference, chosen.difference_se
    if gain <= 0 or spread == 0 or not np.isfinite(chosen.evidence):
        return max(gain, 0.0)
    threshold = gain * z / chosen.evidence

    def excess(mean: float) -> float:
        return float(log_ndtr((mean - gain) / spread) - log_ndtr((mean - threshold) / spread) + np.log(2))

    return 0.0 if excess(0.0) >= 0 else find_root(excess, 0.0, gain)
