"""What `fit_population` returns, and how it prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict, cast

from truecal.results import SCHEMA_VERSION
from truecal.simulation.curves import GLMCurve
from truecal.simulation.fit.beta import BetaFit
from truecal.simulation.population import Population
from truecal.simulation.scores.beta import BetaScores


class GLMRow(TypedDict):
    """One row of `PopulationFit.glm_table`; the last three keys come with standard errors."""

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
class GoodnessOfFit:
    r"""How far the data are from the fitted population.

    Attributes
    ----------
    ks_distance : float
        Kolmogorov-Smirnov distance between the scores and the fitted Beta, both rounded alike. It has no
        p-value, because the parameters come from the same scores.
    chi_square : float
        Hosmer-Lemeshow statistic of the curve, :math:`\sum_k (O_k - E_k)^2 / V_k`, with observed and expected
        positives and their variance under the curve. Bins hold whole groups and have about the same
        variance, so that no bin rests on a handful of expected events.
    degrees_of_freedom : int
        Bins less coefficients.
    pvalue : float
        Chance of a greater `chi_square` if the curve were right; NaN without degrees of freedom.
    """

    ks_distance: float
    chi_square: float
    degrees_of_freedom: int
    pvalue: float


@dataclass(frozen=True, eq=False)
class PopulationFit:
    """A population fitted to predictions, with the models that were compared on the way.

    Attributes
    ----------
    population : Population
        Fitted scores and curve: `population.true_error()` is the calibration error of the fitted model.
    glm_table : tuple of dict
        The twelve models of the curve, least AIC first: `name`, `link`, `transform`, `b0`, `b1` (None where
        the model has no such term), `aic`, `selected`, `converged`, `boundary`, `message`; with standard
        errors also `b0_se`, `b1_se` and `selected_share`, the share of resamples that select the model.
    beta : BetaFit
        The fit of the scores.
    beta_se : tuple of float, or None
        Bootstrap standard errors of the Beta's a and b, if they were asked for.
    goodness : GoodnessOfFit
        Distance between data and fit.
    n : float
        Rows, or total weight.
    n_excluded : float
        Rows left out of the curve's fit: their score is exactly 0 or 1, where a transform is infinite.
    method : str
        ``"mle"`` or ``"paper"``.
    target : str
        What the scores are probabilities of.
    messages : tuple of str
        What a reader of the fit must know.
    """

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

    def to_dict(self) -> dict[str, Any]:
        """Return the fit as plain Python objects, ready for JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "method": self.method,
            "target": self.target,
            "n": self.n,
            "n_excluded": self.n_excluded,
            "converged": self.converged,
            "scores": {
                "distribution": "beta",
                "a": self.beta.a,
                "b": self.beta.b,
                "a_se": None if self.beta_se is None else _finite(self.beta_se[0]),
                "b_se": None if self.beta_se is None else _finite(self.beta_se[1]),
                "ks_distance": self.goodness.ks_distance,
            },
            "curve": {
                "name": self.selected["name"],
                "chi_square": self.goodness.chi_square,
                "degrees_of_freedom": self.goodness.degrees_of_freedom,
                "pvalue": _finite(self.goodness.pvalue),
            },
            "glm_table": [
                {key: _finite(value) if isinstance(value, float) else value for key, value in row.items()}
                for row in self.glm_table
            ],
            "messages": list(self.messages),
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _table_lines(rows: Sequence[GLMRow]) -> list[str]:
    """Lay the models out as Table 3 of the paper does: least AIC first, the best one marked."""
    with_se = "b0_se" in rows[0]
    heads = ("AIC", "b0", "se", "b1", "se", "chosen") if with_se else ("AIC", "b0", "b1")
    lines = [f"{'glm_name':<24}" + "".join(f"{head:>{11 if head == 'AIC' else 8}}" for head in heads)]
    for row in rows:
        cells = [f"{row['aic']:10.2f}{'*' if row['selected'] else ' '}", _cell(row["b0"])]
        if with_se:
            cells += [
                _cell(row["b0_se"]),
                _cell(row["b1"]),
                _cell(row["b1_se"]),
                f"{row['selected_share']:8.0%}",
            ]
        else:
            cells += [_cell(row["b1"])]
        lines.append(
            f"{row['name']:<24}" + "".join(cells).rstrip() + (f"  {row['message']}" if row["message"] else "")
        )
    return lines


def _cell(value: float | None) -> str:
    return " " * 8 if value is None else f"{value:8.2f}"
