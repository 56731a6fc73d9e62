"""Which estimator to use on *your* data: fit a population, and compare the estimators with its known truth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from truecal._lib.checks import as_generator, check_norm
from truecal._lib.text import p_equals
from truecal._lib.types import FloatArray, NormLike, RNGLike
from truecal.data.arrays import Reading, takes_predictions
from truecal.data.question import as_sample, refuse_clusters, refuse_imperfect
from truecal.data.sample import Sample
from truecal.estimators._registry import DEFAULT_ESTIMATOR, TRUE_ERROR, get_estimator
from truecal.exceptions import InputError
from truecal.multiscale import LabelNull, omnibus_test
from truecal.results import Result
from truecal.simulation._fit import PopulationFit, fit_population
from truecal.simulation._study import bias_study

#: The default estimator first, the usual one last.
ESTIMATORS = (DEFAULT_ESTIMATOR, "em_sweep", "em_debias", "em_bin", "ew_bin")
#: Rows that the simulation draws in all, and the smallest and the largest number of repetitions.
_ROWS = 4_000_000
_REPEATS = (10, 250)
#: Larger samples are simulated with this many rows: bias that is left there does not come from the number of rows.
_MOST_SIMULATED_ROWS = 1_000_000
#: The default estimator is recommended if its error exceeds the smallest by no more than this factor.
_CLOSE = 1.1
#: Beyond these the fitted population is rejected.
_WORST_KS_DISTANCE = 0.1
_WORST_PVALUE = 0.01
_RESAMPLES = 199
#: Beyond this, the smallest p-value that the resamples give, the calibrated twin is compared as well.
_CALIBRATED_PVALUE = 1 / (_RESAMPLES + 1)


@dataclass(frozen=True)
class AdviceRow(Result):
    """One estimator: its value on the data, and how it did on populations like these.

    Attributes
    ----------
    estimator : str
        Its name.
    value : float
        Its value on the data.
    bias, bias_se, sd, rmse : float
        On the fitted population, with the Monte Carlo standard error of the bias.
    rmse_calibrated : float or None
        On its calibrated twin; None if the data clearly contradict calibration.
    corrected : float
        Value less bias, not below 0.
    """

    estimator: str
    value: float
    bias: float
    bias_se: float
    sd: float
    rmse: float
    rmse_calibrated: float | None
    corrected: float


@dataclass(frozen=True, eq=False)
class Advice(Result):
    """Bias and error of estimators on data like yours, and the estimator to use.

    Attributes
    ----------
    rows : tuple of AdviceRow
        One for each estimator; empty if the fit is rejected.
    recommended : str or None
        The default estimator, unless the root mean square error of another is smaller by more than 10%, over the
        populations that the data do not contradict. None if the fit is rejected.
    value, corrected : float or None
        Its value on the data, and that value less its bias.
    fit : PopulationFit
        The fitted population.
    true_error : float
        Its true error, which the estimators were compared with.
    n, repeats : int
        Size and number of the simulated samples.
    doubts : tuple of str
        Why the fit is rejected; empty if it is not.
    """

    rows: tuple[AdviceRow, ...]
    recommended: str | None
    value: float | None
    corrected: float | None
    fit: PopulationFit
    true_error: float
    n: int
    repeats: int
    doubts: tuple[str, ...]

    @property
    def reliable(self) -> bool:
        """Whether the fitted population resembles the data."""
        return not self.doubts

    def to_dict(self) -> dict[str, Any]:
        """Return the advice as plain Python objects."""
        content = super().to_dict()
        return {**content, "true_error_of_fit": content.pop("true_error"), "fit": self.fit.to_dict()}

    def __str__(self) -> str:
        if self.doubts:
            return "\n".join(
                [
                    "No recommendation: the fitted population does not resemble the data.",
                    *(f"{doubt[0].upper()}{doubt[1:]}." for doubt in self.doubts),
                ]
            )
        lines = [
            f"{self.repeats} simulated samples of {self.n} rows like these, true error {self.true_error:.4f}:",
            f"{'estimator':<14} {'value':>8} {'bias':>9} {'sd':>8} {'rmse':>8} {'corrected':>10}  rmse if calibrated",
        ]
        lines += [
            f"{row.estimator:<14} {row.value:8.4f} {row.bias:+9.4f} {row.sd:8.4f} {row.rmse:8.4f} "
            f"{row.corrected:10.4f}  {_shown(row.rmse_calibrated):>18}"
            for row in self.rows
        ]
        return "\n".join(
            [
                *lines,
                f"Recommended: {self.recommended}, {self.value:.4f}; less its bias {self.corrected:.4f}.",
            ]
        )


@takes_predictions
def advise(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    estimators: Iterable[str] = ESTIMATORS,
    norm: NormLike = 2,
    n_jobs: int = 1,
    progress: bool | None = None,
    rng: RNGLike = None,
    **reading: Unpack[Reading],
) -> Advice:
    """Fit a population to a sample, and measure the estimators' bias, spread and error on draws from it.

    A model with a Beta distribution of scores and one of the paper's twelve curves is fitted by maximum
    likelihood. If the data contradict it (the multiscale test of the labels against the fitted curve has a p-value of
    at most 0.01, or the scores are far from the Beta distribution), there is no recommendation: a simulation from a
    wrong population says nothing. Otherwise samples of the same size (a million rows at most) are drawn from it and,
    unless the data clearly contradict calibration (p <= 0.005), from its calibrated twin. Each estimator is compared
    with the known true errors. The default estimator is recommended unless another one has a root mean square error
    over these populations that is smaller by more than 10%: on curves outside the fitted family, which the simulation
    cannot show, the default has the smallest error on average (see the leaderboard in the documentation).

    Parameters
    ----------
    {predictions}
    estimators : iterable of str
        The estimators to compare; they must estimate the true calibration error.
    norm : float, "l1" or "l2"
        Order of the norm.
    n_jobs, progress
        As in `truecal.bias_study`.
    {weights}
    clusters : array-like, optional
        Not supported: rows are taken to be independent.
    {classes}
    rng : seed or numpy.random.Generator, optional
        Seed of the simulation.

    Returns
    -------
    Advice

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), AISTATS, sections 4 and 6.

    Examples
    --------
    >>> import truecal
    >>> y_true, y_proba = truecal.paper.population("resnet152_imgnet").sample(1000, rng=1)
    >>> advice = advise(y_true, y_proba, estimators=["ew_bin", "em_sweep"], rng=0)
    >>> advice.recommended
    'em_sweep'
    """
    norm = check_norm(norm)
    names = list(estimators)
    for name in names:
        if get_estimator(name).estimand != TRUE_ERROR:
            raise InputError(
                f"{name} estimates another quantity, and cannot be compared with the true error",
                argument="estimators",
                value=name,
            )
    sample = as_sample(y_true, y_proba, **reading)
    refuse_clusters(sample, "advise")
    refuse_imperfect(sample, "advise")
    n = min(max(1, round(sample.n)), _MOST_SIMULATED_ROWS)
    repeats = int(min(max(_ROWS / n, _REPEATS[0]), _REPEATS[1]))
    generator = as_generator(rng)
    fit = fit_population(sample)
    common: dict[str, Any] = {"fit": fit, "true_error": fit.population.true_error(norm), "n": n}
    doubts = _doubts(sample, fit, generator)
    if doubts:
        return Advice((), None, None, None, repeats=0, doubts=doubts, **common)
    populations = {"fit": fit.population}
    if _test_of(sample, sample.score, generator) > _CALIBRATED_PVALUE:
        populations["calibrated"] = fit.population.calibrated()
    study = bias_study(
        populations,
        estimators=names,
        sizes=[n],
        repeats=repeats,
        norm=norm,
        rng=generator,
        n_jobs=n_jobs,
        progress=progress,
    )
    twins = {row["estimator"]: row["rmse"] for row in study.rows if row["population"] == "calibrated"}
    rows = tuple(
        _row(sample, row, twins.get(row["estimator"]), norm)
        for row in study.rows
        if row["population"] == "fit"
    )
    error = {row.estimator: math.hypot(row.rmse, row.rmse_calibrated or 0.0) for row in rows}
    close = error.get(DEFAULT_ESTIMATOR, math.inf) <= _CLOSE * min(error.values())
    chosen = DEFAULT_ESTIMATOR if close else min(error, key=error.__getitem__)
    best = next(row for row in rows if row.estimator == chosen)
    return Advice(rows, chosen, best.value, best.corrected, repeats=repeats, doubts=(), **common)


def _row(sample: Sample, row: Mapping[str, Any], twin: float | None, norm: float) -> AdviceRow:
    value = get_estimator(row["estimator"])(sample, norm=norm).value
    simulated = {key: row[key] for key in ("bias", "bias_se", "sd", "rmse")}
    corrected = max(value - row["bias"], 0.0)
    return AdviceRow(row["estimator"], value, rmse_calibrated=twin, corrected=corrected, **simulated)


def _doubts(sample: Sample, fit: PopulationFit, rng: np.random.Generator) -> tuple[str, ...]:
    doubts = []
    if fit.goodness.ks_distance > _WORST_KS_DISTANCE:
        doubts.append(
            f"the scores differ from the fitted Beta distribution (Kolmogorov-Smirnov distance "
            f"{fit.goodness.ks_distance:.2f})"
        )
    pvalue = _test_of(sample, fit.population.curve(sample.score), rng)
    if pvalue <= _WORST_PVALUE:
        doubts.append(f"the labels contradict the fitted curve (multiscale test, {p_equals(pvalue)})")
    if not fit.converged:
        doubts.append("the likelihood of the fit has no maximum")
    return tuple(doubts)


def _test_of(sample: Sample, chance: FloatArray, rng: np.random.Generator) -> float:
    """Return the p-value of the hypothesis that labels are positive with these probabilities."""
    order = np.argsort(chance, kind="stable")
    null = LabelNull(chance[order], sample.count[order], sample.positives[order])
    return omnibus_test(null, _RESAMPLES, rng).pvalue


def _shown(rmse: float | None) -> str:
    return "contradicted" if rmse is None else f"{rmse:.4f}"
