"""Which of two models is better calibrated, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from truecal._lib.checks import check_fraction, check_norm
from truecal.data import Rows, read_rows
from truecal.exceptions import InputError
from truecal.inference.interval import interval_of
from truecal.multiscale.analysis import analyse
from truecal.multiscale.difference import PairedRows, difference
from truecal.results import SCHEMA_VERSION, Interval


@dataclass(frozen=True)
class Comparison:
    """The calibration errors of two models, and their difference.

    Attributes
    ----------
    errors : tuple of float
        Calibration error of each model, by the default estimator.
    intervals : tuple of Interval
        Confidence interval for each.
    difference : float
        Error of the first less that of the second: negative if the first is better calibrated.
    interval : Interval
        Confidence interval for the true difference.
    pvalue : float
        Two-sided p-value of equal errors; the smallest level at which an interval leaves out 0.
    paired : bool
        Whether both models were evaluated on the same rows.
    n : tuple of float
        Number of rows of each.
    norm : float
        Order of the norm.
    names : tuple of str
        Names of the models.
    """

    errors: tuple[float, float]
    intervals: tuple[Interval, Interval]
    difference: float
    interval: Interval
    pvalue: float
    paired: bool
    n: tuple[float, float]
    norm: float
    names: tuple[str, str] = ("A", "B")

    @property
    def verdict(self) -> str:
        """One sentence on which is better calibrated."""
        first, second = self.names
        numbers = f"{self.errors[0]:.4f} against {self.errors[1]:.4f}, difference {self.interval}"
        if self.pvalue > 1 - self.interval.level:
            return f"No difference in calibration between {first} and {second} was found: {numbers}."
        better = first if self.difference < 0 else second
        return f"{better} is better calibrated: {numbers}, p = {self.pvalue:.2g}."

    def __str__(self) -> str:
        return self.verdict

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain Python objects."""
        return {
            "schema_version": SCHEMA_VERSION,
            "names": list(self.names),
            "errors": list(self.errors),
            "intervals": [one.to_dict() for one in self.intervals],
            "difference": self.difference,
            "interval": self.interval.to_dict(),
            "pvalue": self.pvalue,
            "paired": self.paired,
            "n": list(self.n),
            "norm": self.norm,
            "verdict": self.verdict,
        }


def compare(
    y_true: Any,
    y_proba_a: Any,
    y_proba_b: Any,
    *,
    y_true_b: Any = None,
    norm: float = 2,
    confidence_level: float = 0.95,
    names: tuple[str, str] = ("A", "B"),
    **reading: Any,
) -> Comparison:
    r"""Compare the calibration errors of two models.

    The variance of the difference is

    .. math:: \sigma_A^2 + \sigma_B^2 - 2 \rho\, \sigma_A \sigma_B + s_A^2 + s_B^2 - 2 \kappa\, n_A n_B

    with the first-order variances :math:`\sigma^2` of the errors, and :math:`s^2` what is left of their variances at an
    error of 0. For models on the same rows, :math:`\rho` is the correlation of the rows' influence on the two errors,
    which may be negative. Where an error is not established that correlation cannot be known, and the worst one, -1, is
    used: the price of validity is that small samples seldom show a difference from a model that may be calibrated.

    Parameters
    ----------
    y_true : array-like
        Labels of both models, or of the first.
    y_proba_a, y_proba_b : array-like
        Probabilities of the two models.
    y_true_b : array-like, optional
        Labels of the second model if it was evaluated on other rows.
    norm : {1, 2}
        Order of the norm.
    confidence_level : float
        Level of all intervals.
    names : tuple of str
        Names of the models.
    **reading
        `sample_weight`, `weights`, `clusters`, `pos_label`, `labels` and `multiclass`, as in `truecal.estimate`.

    Returns
    -------
    Comparison
        Both errors, their difference, and intervals for all three.

    Examples
    --------
    >>> import truecal
    >>> y, p = truecal.paper.population("resnet110_c100").sample(5000, rng=0)
    >>> recalibrated = truecal.paper.population("resnet110_c100").curve(p)
    >>> truecal.compare(y, p, recalibrated, names=("raw", "recalibrated")).verdict[:33]
    'recalibrated is better calibrated'
    """
    if check_norm(norm) not in (1, 2):
        raise InputError("must be 1 or 2 to compare models", argument="norm", value=norm)
    level = check_fraction("confidence_level", confidence_level)
    paired = y_true_b is None
    rows = (_one(y_true, y_proba_a, reading), _one(y_true if paired else y_true_b, y_proba_b, reading))
    samples = (rows[0].group(), rows[1].group())
    cores = (analyse(samples[0]), analyse(samples[1]))
    found = difference(*cores, _pair(*rows) if paired else None, norm=norm)
    return Comparison(
        errors=(cores[0].error(norm), cores[1].error(norm)),
        intervals=(interval_of(samples[:1], norm, level), interval_of(samples[1:], norm, level)),
        difference=found.reported,
        interval=Interval(*found.interval(level), level),
        pvalue=found.pvalue,
        paired=paired,
        n=(samples[0].n, samples[1].n),
        norm=norm,
        names=names,
    )


def _one(y_true: Any, y_proba: Any, reading: dict[str, Any]) -> Rows:
    rows = read_rows(y_true, y_proba, **reading)
    if len(rows) > 1:
        raise InputError(
            "compare takes one class at a time",
            remedy="Choose a class with pos_label, or the top label with multiclass='top'.",
        )
    return rows[0]


def _pair(first: Rows, second: Rows) -> PairedRows:
    cluster = first.cluster
    return PairedRows((first.label, second.label), (first.score, second.score), first.weight, cluster)
