"""Fit a `Population` to predictions: Beta scores and a generalised linear calibration curve."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NotRequired, TypedDict, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from truecal._lib.checks import as_generator, check_choice, check_count
from truecal._lib.text import p_equals
from truecal._lib.types import FloatArray, RNGLike
from truecal.data.arrays import Reading, takes_predictions
from truecal.data.question import as_sample, refuse_clusters, refuse_imperfect
from truecal.data.sample import Sample
from truecal.exceptions import InputError, warn_user
from truecal.inference.resample import bootstrap, without_empty
from truecal.results import Result
from truecal.simulation._curves import Curve, GLMCurve
from truecal.simulation._likelihood import (
    BetaFit,
    GLMFit,
    fit_beta,
    fit_beta_as_paper,
    fit_glms,
    ks_distance,
)
from truecal.simulation._population import Population
from truecal.simulation._scores import BetaScores

#: Approximate minimum number of expected events of either label in a bin of the goodness-of-fit test.
_EVENTS_PER_BIN = 5


class GLMRow(TypedDict):
    """One row of `PopulationFit.glm_table`; the last three keys are present if standard errors were requested."""

    name: str
    link: str
    transform: str
    b0: float | None
    b1: float | None
    aic: float
    selected: bool
    converged: bool
    boundary: bool
    message: str
    b0_se: NotRequired[float | None]
    b1_se: NotRequired[float | None]
    selected_share: NotRequired[float]


@dataclass(frozen=True)
class GoodnessOfFit(Result):
    r"""Distance between the data and the fitted population.

    Attributes
    ----------
    ks_distance : float
        Kolmogorov-Smirnov distance between the scores and the fitted Beta, rounded in the same way. There is
        no p-value, because the parameters were estimated from the same scores.
    chi_square : float
        Hosmer-Lemeshow statistic of the curve, :math:`\sum_k (O_k - E_k)^2 / V_k`, with observed and expected
        positives and their variance under the curve. Bins consist of whole groups and have about the same
        variance, so that no bin depends on a handful of expected events.
    degrees_of_freedom : int
        Number of bins minus number of coefficients.
    pvalue : float
        Probability of a larger `chi_square` under the fitted curve; NaN without degrees of freedom.
    """

    ks_distance: float
    chi_square: float
    degrees_of_freedom: int
    pvalue: float


@dataclass(frozen=True, eq=False)
class PopulationFit(Result):
    """A population fitted to predictions, with all models that were compared.

    Attributes
    ----------
    population : Population
        Fitted scores and curve: `population.true_error()` is the calibration error of the fitted model.
    glm_table : tuple of dict
        The twelve models of the curve, smallest AIC first: `name`, `link`, `transform`, `b0`, `b1` (None where
        the model has no such term), `aic`, `selected`, `converged`, `boundary`, `message`; with standard
        errors also `b0_se`, `b1_se` and `selected_share`, the share of resamples that select the model.
    beta : BetaFit
        The fit of the scores.
    beta_se : tuple of float, or None
        Bootstrap standard errors of the Beta's a and b, if they were requested.
    goodness : GoodnessOfFit
        Distance between data and fit.
    n : float
        Rows, or total weight.
    n_excluded : float
        Rows excluded from the fit of the curve because their score is exactly 0 or 1, where a transform is
        infinite.
    method : str
        ``"mle"`` or ``"paper"``.
    target : str
        The event whose probability the scores are.
    messages : tuple of str
        Remarks on the fit.
    """

    _omitted: ClassVar[tuple[str, ...]] = ("population",)
    _derived: ClassVar[tuple[str, ...]] = ("converged",)

    population: Population
    glm_table: tuple[GLMRow, ...]
    beta: BetaFit
    beta_se: tuple[float, float] | None
    goodness: GoodnessOfFit
    n: float
    n_excluded: float
    method: str
    target: str
    messages: tuple[str, ...]

    @property
    def scores(self) -> BetaScores:
        """The fitted distribution of the scores."""
        return cast(BetaScores, self.population.scores)

    @property
    def curve(self) -> GLMCurve:
        """The fitted calibration curve E[Y | score]."""
        return cast(GLMCurve, self.population.curve)

    @property
    def selected(self) -> GLMRow:
        """The row of the selected model."""
        return self.glm_table[0]

    @property
    def converged(self) -> bool:
        """Whether the Beta and the selected curve are proper maxima of their likelihoods."""
        return self.beta.converged and self.selected["converged"]

    def __str__(self) -> str:
        a, b = (
            f"{name} = {value:.4f}" + ("" if self.beta_se is None else f" (se {self.beta_se[i]:.4f})")
            for i, (name, value) in enumerate((("a", self.beta.a), ("b", self.beta.b)))
        )
        test = self.goodness
        fit_of_curve = (
            f"chi-square {test.chi_square:.1f} on {test.degrees_of_freedom} df, {p_equals(test.pvalue)}"
        )
        return "\n".join(
            [
                f"Scores: Beta, {a}, {b}; {self.n:.10g} rows, KS distance {test.ks_distance:.3f}",
                f"Curve: {self.selected['name']}; {self.n - self.n_excluded:.10g} rows, {fit_of_curve}",
                "",
                *_table_lines(self.glm_table),
                *(f"Note: {message}" for message in self.messages),
            ]
        )


def _table_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the table of models in the layout of the paper's Table 3: smallest AIC first, the best one marked."""
    with_se = "b0_se" in rows[0]
    columns = ("b0", "b0_se", "b1", "b1_se") if with_se else ("b0", "b1")
    heads = [column[-2:] for column in columns] + ["chosen"] * with_se
    lines = [f"{'glm_name':<24}{'AIC':>11}" + "".join(f"{head:>8}" for head in heads)]
    for row in rows:
        mark = "*" if row["selected"] else " "
        entries = f"{row['aic']:10.2f}{mark}" + "".join(_entry(row[column]) for column in columns)
        if with_se:
            entries += f"{row['selected_share']:8.0%}"
        lines.append(
            f"{row['name']:<24}{entries.rstrip()}" + (f"  {row['message']}" if row["message"] else "")
        )
    return lines


def _entry(value: float | None) -> str:
    return " " * 8 if value is None else f"{value:8.2f}"


@takes_predictions
def fit_population(
    y_true: ArrayLike | Sample,
    y_proba: ArrayLike | None = None,
    *,
    method: str = "mle",
    standard_errors: bool = False,
    n_resamples: int = 200,
    rng: RNGLike = None,
    **reading: Unpack[Reading],
) -> PopulationFit:
    r"""Fit the paper's model to predictions: Beta scores and the best of twelve calibration curves.

    .. math::

       c \sim \mathrm{Beta}(a, b), \qquad g(E[Y \mid c]) = b_0 + b_1\, t(c),

    by maximum likelihood. The pairs of link g and transform t are (logflip, logflip), (logit, logflip),
    (logit, logit) and (log, log), with logflip x = log(1 - x); each has :math:`b_0`, :math:`b_1` or both,
    and the model with the smallest AIC is selected. The result contains a population, from which the bias of any
    estimator on data like these can be simulated.

    Parameters
    ----------
    {predictions}
    method : {"mle", "paper"}
        How the Beta is fitted. ``"mle"`` treats scores that were rounded to 0 or 1 as interval-censored;
        ``"paper"`` shifts all scores by 1e-16 and searches a grid.
    standard_errors : bool
        Whether to compute bootstrap standard errors, which repeats the fit `n_resamples` times.
    n_resamples : int
        Number of bootstrap resamples.
    {weights}
    clusters : array-like, optional
        Not supported: rows are taken to be independent.
    {classes}
        ``multiclass="classwise"`` is an error: it would be one population per class. Choose a class with `pos_label`.
    rng : seed or numpy.random.Generator, optional
        Random seed of the bootstrap.

    Returns
    -------
    PopulationFit
        The population, the table of models, goodness of fit, and messages.

    Raises
    ------
    InputError
        If no score lies strictly between 0 and 1, so that neither part of the model can be fitted.

    Warns
    -----
    CalibrationWarning
        If the likelihood of the Beta or of the selected curve has no proper maximum, for example when all scores
        or all labels are equal.

    Notes
    -----
    Scores of exactly 0 or 1 are excluded from all fits of the curve, as in the published program, because transforms
    are infinite there.

    The tables printed in the paper differ from exact fits, for reasons given in the page on fits in the
    documentation.

    References
    ----------
    R. Roelofs, N. Cain, J. Shlens, M. C. Mozer, "Mitigating Bias in Calibration Error Estimation",
    AISTATS 2022, section 6 and Appendix A.

    D. W. Hosmer, S. Lemeshow, "Goodness of fit tests for the multiple logistic regression model",
    Communications in Statistics 9 (1980) 1043-1069.

    Examples
    --------
    >>> import truecal
    >>> population = truecal.Population(truecal.simulation.BetaScores(2.0, 0.5), truecal.simulation.PowerCurve(2.0))
    >>> fit = truecal.fit_population(*population.sample(5000, rng=0))
    >>> print(fit)  # the curve c**2 is log p = 2 log c
    Scores: Beta, a = 2.0067, b = 0.4971; 5000 rows, KS distance 0.008
    Curve: log_log_b1; 5000 rows, chi-square 4.2 on 9 df, p = 0.9
    <BLANKLINE>
    glm_name                        AIC      b0      b1
    log_log_b1                 4002.78*            1.93
    log_log_b0_b1              4004.78     0.00    1.93
    logit_logit_b0_b1          4008.62    -1.02    1.15
    ...
    >>> round(fit.population.true_error(), 3), round(population.true_error(), 3)
    (0.136, 0.144)
    """
    check_choice("method", method, ("mle", "paper"))
    check_count("n_resamples", n_resamples, at_least=2)
    generator = as_generator(rng)
    sample = as_sample(y_true, y_proba, **reading)
    refuse_clusters(sample, "fit_population")
    refuse_imperfect(sample, "fit_population")
    inside = _inside(sample)
    if not len(inside):
        raise InputError(
            f"fit_population needs scores strictly between 0 and 1. All {sample.n:.10g} are exactly 0 or 1",
            remedy="Model such scores with truecal.simulation.AtomScores or truecal.simulation.EmpiricalScores.",
        )
    beta = _fit_scores(sample, method)
    glms = fit_glms(inside.score, inside.count, inside.positives)
    order = sorted(range(len(glms)), key=lambda index: (glms[index].aic, not glms[index].converged))
    best = glms[order[0]]
    population, clipped = _population(beta, best)
    rows = [_row(fit, selected=fit is best) for fit in glms]
    failures = [beta.message, best.message and f"{best.name}: {best.message}."]
    for failure in filter(None, failures):
        warn_user(failure)
    beta_se, lost = None, ""
    if standard_errors:
        beta_se, lost = _add_standard_errors(rows, sample, method, n_resamples, generator)
    if best.boundary:
        clipped = f"{best.name}: the maximum lies on the boundary, where p is 0 or 1. {clipped}".rstrip()
    messages = [*failures, clipped, _about_rounding(beta), _about_excluded(sample, beta), lost]
    return PopulationFit(
        population=population,
        glm_table=tuple(rows[index] for index in order),
        beta=beta,
        beta_se=beta_se,
        goodness=_goodness(sample, inside, beta, population.curve, best.n_coefficients),
        n=sample.n,
        n_excluded=sample.n - inside.n,
        method=method,
        target=sample.target,
        messages=tuple(filter(None, messages)),
    )


def _inside(sample: Sample) -> Sample:
    """Return the groups with a score strictly between 0 and 1."""
    keep = (sample.score > 0) & (sample.score < 1)
    return sample if keep.all() else without_empty(sample, keep * sample.count, sample.positives)


def _fit_scores(sample: Sample, method: str) -> BetaFit:
    if method == "paper":
        return fit_beta_as_paper(sample.score, sample.count)
    return fit_beta(sample.score, sample.count, sample.dtype)


def _population(beta: BetaFit, glm: GLMFit) -> tuple[Population, str]:
    """Return the fitted population, and a remark if its curve leaves [0, 1].

    A line that is at most 0 at all scores of the data may exceed 0 at other scores that the Beta draws. That is
    reported, but it is not a failure to warn of.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        population = Population(BetaScores(beta.a, beta.b), GLMCurve(glm.link, glm.transform, glm.b0, glm.b1))
    return population, " ".join(str(warning.message) for warning in caught)


def _about_rounding(beta: BetaFit) -> str:
    if beta.resolution is None or not beta.resolution.parts:
        return ""
    return f"All scores are multiples of 1/{beta.resolution.parts}; the Beta is fitted to scores rounded in this way."


def _about_excluded(sample: Sample, beta: BetaFit) -> str:
    if not (beta.n_at_zero or beta.n_at_one):
        return ""
    return (
        f"{beta.n_at_zero:.10g} scores are exactly 0 and {beta.n_at_one:.10g} exactly 1, of {sample.n:.10g}. "
        "They are excluded from the fit of the curve."
    )


def _row(fit: GLMFit, *, selected: bool) -> GLMRow:
    names = ("name", "link", "transform", "b0", "b1", "aic", "selected", "converged", "boundary", "message")
    row = {name: selected if name == "selected" else getattr(fit, name) for name in names}
    return cast(GLMRow, row)


def _goodness(
    sample: Sample, inside: Sample, beta: BetaFit, curve: Curve, n_coefficients: int
) -> GoodnessOfFit:
    p = np.asarray(curve(inside.score, 1 - inside.score))
    expected = inside.count * p
    variance = expected * (1 - p)
    total = float(variance.sum())
    n_bins = int(np.clip(total // _EVENTS_PER_BIN, 1, 10))
    middle = np.cumsum(variance) - variance / 2
    chi_square, n_used = 0.0, 0
    if total > 0:
        bins = np.minimum((middle * n_bins / total).astype(np.intp), n_bins - 1)
        excess, spread = np.bincount(bins, inside.positives - expected), np.bincount(bins, variance)
        n_used = int((spread > 0).sum())
        chi_square = float((excess[spread > 0] ** 2 / spread[spread > 0]).sum())
    df = max(n_used - n_coefficients, 0)
    return GoodnessOfFit(
        ks_distance=ks_distance(sample.score, sample.count, sample.dtype, beta.a, beta.b),
        chi_square=chi_square,
        degrees_of_freedom=df,
        pvalue=float(chdtrc(df, chi_square)) if df else math.nan,
    )


def _add_standard_errors(
    rows: Sequence[GLMRow], sample: Sample, method: str, n_resamples: int, rng: np.random.Generator
) -> tuple[tuple[float, float], str]:
    """Add standard errors from bootstrap samples to the models, and return those of (a, b), with a remark on them.

    Resamples in which a fit has no proper maximum carry no information on its spread; they are excluded and
    counted.
    """
    betas = np.full((n_resamples, 2), np.nan)
    lines = np.full((n_resamples, len(rows), 2), np.nan)
    times_selected = np.zeros(len(rows))
    for r in range(n_resamples):
        resample = bootstrap(sample, rng)
        beta = _fit_scores(resample, method)
        if beta.converged:
            betas[r] = beta.a, beta.b
        inside = _inside(resample)
        if not len(inside):
            continue
        glms = fit_glms(inside.score, inside.count, inside.positives)
        times_selected[np.argmin([fit.aic for fit in glms])] += 1
        for index, fit in enumerate(glms):
            if fit.converged:
                lines[r, index] = fit.b0 or 0.0, fit.b1 or 0.0
    lost = int(np.isnan(betas[:, 0]).sum())
    for index, row in enumerate(rows):
        b0_se, b1_se = _spread(lines[:, index])
        row["b0_se"] = None if row["b0"] is None else b0_se
        row["b1_se"] = None if row["b1"] is None else b1_se
        row["selected_share"] = float(times_selected[index] / n_resamples)
    return (
        _spread(betas),
        f"Beta: {lost} of {n_resamples} resamples have no fit and are excluded." if lost else "",
    )


def _spread(values: FloatArray) -> tuple[float, float]:
    """Return the standard deviation of each of two columns, without the rows that are NaN."""
    values = values[~np.isnan(values[:, 0])]
    if len(values) < 2:
        return math.nan, math.nan
    first, second = values.std(axis=0, ddof=1).tolist()
    return first, second
