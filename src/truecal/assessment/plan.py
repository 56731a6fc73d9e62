"""How many rows with scores like these detect errors of several sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, chndtr, expit, logit

from truecal._lib.roots import find_root
from truecal._lib.types import FloatArray
from truecal.assessment.difference import inner_scores
from truecal.data.sample import Sample
from truecal.estimators._binning import thinned
from truecal.results import Result

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


def plan_rows(
    sample: Sample, errors: Sequence[float] = _ERRORS, *, design_effect: float = 1.0
) -> tuple[PlannedRows, ...]:
    r"""Return how many rows detect errors of several sizes, by the noncentral chi-square distribution.

    For a curve g the score test of level and slope has noncentrality :math:`n\,u' I^{-1} u` with
    :math:`u = E[(g - f) x]`, :math:`I = E[f (1 - f) x x']` and x = (1, logit f). The omnibus test, of which it is a
    part, needs about as many rows for such curves.

    Parameters
    ----------
    sample : Sample
        Rows with typical scores.
    errors : sequence of float
        The l2 errors to detect.
    design_effect : float
        How many times more rows are needed than if they were independent.
    """
    sample = thinned(sample)
    score, count, _ = inner_scores(sample)
    if not len(score):
        return ()
    share = count / sample.n
    design = np.column_stack([np.ones_like(score), logit(score)])
    information = (design.T * (share * score * (1 - score))) @ design
    inverse = np.linalg.pinv(information, rcond=1e-9, hermitian=True)
    degrees = int(np.linalg.matrix_rank(information, tol=1e-9 * float(np.trace(information)), hermitian=True))
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
    for error in errors:
        shifts = [n for n in (rows(up, error), rows(-up, error)) if n]
        plans.append(PlannedRows(error, max(shifts, default=None), rows(flat, error)))
    return tuple(plan for plan in plans if plan.level_shift or plan.slope)
