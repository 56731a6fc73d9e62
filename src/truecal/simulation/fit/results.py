"""Results of `fit_population`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NotRequired, TypedDict, cast

from truecal.results import Result
from truecal.simulation._scores import BetaScores
from truecal.simulation.curves import GLMCurve
from truecal.simulation.fit.beta import BetaFit
from truecal.simulation.population import Population


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
            f"chi-square {test.chi_square:.1f} on {test.degrees_of_freedom} df, p = {test.pvalue:.2g}"
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


def _table_lines(rows: Sequence[GLMRow]) -> list[str]:
    """Return the table of models in the layout of the paper's Table 3: smallest AIC first, the best one marked."""
    with_se = "b0_se" in rows[0]
    heads = ("AIC", "b0", "se", "b1", "se", "chosen") if with_se else ("AIC", "b0", "b1")
    lines = [f"{'glm_name':<24}" + "".join(f"{head:>{11 if head == 'AIC' else 8}}" for head in heads)]
    for row in rows:
        entries = [f"{row['aic']:10.2f}{'*' if row['selected'] else ' '}", _entry(row["b0"])]
        if with_se:
            entries += [
                _entry(row["b0_se"]),
                _entry(row["b1"]),
                _entry(row["b1_se"]),
                f"{row['selected_share']:8.0%}",
            ]
        else:
            entries += [_entry(row["b1"])]
        lines.append(
            f"{row['name']:<24}"
            + "".join(entries).rstrip()
            + (f"  {row['message']}" if row["message"] else "")
        )
    return lines


def _entry(value: float | None) -> str:
    return " " * 8 if value is None else f"{value:8.2f}"
