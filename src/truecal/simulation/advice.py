"""Which estimator to believe on *your* data: fit a population, and see which estimator finds its truth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from truecal._lib.checks import as_generator, check_norm
from truecal._lib.types import RNGLike
from truecal.data.predictions import as_sample, refuse_clusters
from truecal.data.sample import Sample
from truecal.estimators._registry import TRUE_ERROR, get_estimator
from truecal.exceptions import InputError
from truecal.results import SCHEMA_VERSION
from truecal.simulation.fit.population import PopulationFit, fit_population
from truecal.simulation.study import bias_study

#: The recommended estimator first, the usual one last.
ESTIMATORS = ("multiscale", "em_sweep", "em_debias", "em_bin", "ew_bin")
#: Rows that the simulation draws in all, and the least and the most repetitions that this may mean.
_ROWS = 4_000_000
_REPEATS = (10, 250)
#: Larger samples are simulated with this many rows: what is left of a bias there is not owed to the number of rows.
_MOST_ROWS = 1_000_000
#: Beyond these the fitted population is too unlike the data to speak for it.
_WORST_KS_DISTANCE = 0.1
_WORST_CURVE_PVALUE = 1e-3


@dataclass(frozen=True, eq=False)
class Advice:
    """The bias of estimators on data like yours, and the estimator with the least error there.

    Attributes
    ----------
    rows : list of dict
        For each estimator: ``estimator``, ``value`` on the data, ``bias``, ``bias_se``, ``sd`` and ``rmse``
        in the simulation, ``corrected`` = value - bias, not below 0.
    recommended : str
        The estimator with the least root mean square error.
    value, corrected : float
        Its value on the data, and that less its bias.
    fit : PopulationFit
        The fitted population, `fit.population.true_error(norm)` being its truth.
    true_error : float
        That truth: what the estimators were to find in the simulation.
    n, repeats : int
        Size and number of the simulated samples.
    doubts : tuple of str
        Why the fit may be too poor to rely on; empty if it is good.
    """

    rows: list[dict[str, Any]]
    recommended: str
    value: float
    corrected: float
    fit: PopulationFit
    true_error: float
    n: int
    repeats: int
    doubts: tuple[str, ...]

    @property
    def reliable(self) -> bool:
        """Whether the fitted population is like the data."""
        return not self.doubts

    def to_dict(self) -> dict[str, Any]:
        """Return the advice as plain Python objects."""
        return {
            "schema_version": SCHEMA_VERSION,
            "rows": self.rows,
            "recommended": self.recommended,
            "value": self.value,
            "corrected": self.corrected,
            "true_error_of_fit": self.true_error,
            "n": self.n,
            "repeats": self.repeats,
            "doubts": list(self.doubts),
            "fit": self.fit.to_dict(),
        }

    def __str__(self) -> str:
        lines = [
            f"{self.repeats} simulated samples of {self.n} rows like these, truth {self.true_error:.4f}:",
            f"{'estimator':<14} {'value':>8} {'bias':>9} {'sd':>8} {'rmse':>8} {'corrected':>10}",
        ]
        lines += [
            f"{row['estimator']:<14} {row['value']:8.4f} {row['bias']:+9.4f} {row['sd']:8.4f} "
            f"{row['rmse']:8.4f} {row['corrected']:10.4f}"
            for row in self.rows
        ]
        lines += [f"Recommended: {self.recommended}, {self.value:.4f}; less its bias {self.corrected:.4f}."]
        lines += [f"Doubt: {doubt}" for doubt in self.doubts]
        return "\n".join(lines)


def advise(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    estimators: Iterable[str] = ESTIMATORS,
    norm: float = 2,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    multiclass: str | None = None,
    clusters: Any = None,
    rng: RNGLike = None,
    n_jobs: int = 1,
    progress: bool | None = None,
) -> Advice:
    """Fit a population to a sample, and measure the estimators' bias, spread and error on draws from it.

    A model with a Beta distribution of scores and one of the paper's twelve curves is fitted by maximum
    likelihood. Samples of the same size (a million rows at most) are drawn from it, each estimator is compared
    with its known truth, and the one with the least root mean square error is recommended. The constants of
    ``"multiscale"`` were chosen on populations of this family, among others, which favours it here; the page on it
    in the documentation has others.

    Parameters
    ----------
    y_true : array-like of shape (n,), (n, 1) or one-hot (n, K), or Sample
        Labels; or a `Sample` in place of labels and probabilities.
    y_proba : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities.
    estimators : iterable of str
        The estimators to compare; they must estimate the true calibration error.
    norm : float
        Order of the norm.
    sample_weight, pos_label, labels, multiclass
        As for `truecal.Sample.from_predictions`.
    clusters : array-like, optional
        Not supported: rows are taken to be independent.
    rng : int, Generator or None
        Seed of the simulation.
    n_jobs, progress
        As in `truecal.bias_study`.

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
    sample = as_sample(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
        multiclass=multiclass,
        clusters=clusters,
    )
    refuse_clusters(sample, "advise")
    n = min(max(1, round(sample.n)), _MOST_ROWS)
    repeats = int(min(max(_ROWS / n, _REPEATS[0]), _REPEATS[1]))
    fit = fit_population(sample)
    study = bias_study(
        {"fit": fit.population},
        estimators=names,
        sizes=[n],
        repeats=repeats,
        norm=norm,
        rng=as_generator(rng),
        n_jobs=n_jobs,
        progress=progress,
    )
    rows = [_row(sample, row, norm) for row in study.rows]
    best = min(rows, key=lambda row: row["rmse"])
    return Advice(
        rows=rows,
        recommended=best["estimator"],
        value=best["value"],
        corrected=best["corrected"],
        fit=fit,
        true_error=fit.population.true_error(norm),
        n=n,
        repeats=repeats,
        doubts=_doubts(fit),
    )


def _row(sample: Sample, row: Mapping[str, Any], norm: float) -> dict[str, Any]:
    value = get_estimator(row["estimator"])(sample, norm=norm).value
    kept = {key: row[key] for key in ("bias", "bias_se", "sd", "rmse")}
    return {"estimator": row["estimator"], "value": value, **kept, "corrected": max(value - row["bias"], 0.0)}


def _doubts(fit: PopulationFit) -> tuple[str, ...]:
    doubts = []
    if fit.goodness.ks_distance > _WORST_KS_DISTANCE:
        doubts.append(
            f"the scores are unlike the fitted Beta distribution (Kolmogorov-Smirnov distance "
            f"{fit.goodness.ks_distance:.2f})"
        )
    if not math.isnan(fit.goodness.pvalue) and fit.goodness.pvalue < _WORST_CURVE_PVALUE:
        doubts.append(f"the labels are unlike the fitted curve (chi-square p = {fit.goodness.pvalue:.1g})")
    if not fit.converged:
        doubts.append("the fit has no proper maximum")
    return tuple(doubts)
