"""The binned error against the number of bins, and which number the sweep chooses."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truecal._lib.checks import check_choice, check_count, check_norm
from truecal._lib.types import FloatArray
from truecal.data import as_sample
from truecal.estimators._registry import get_estimator
from truecal.exceptions import InputError
from truecal.results import Result
from truecal.simulation import Study

#: How many numbers of bins are tried by default, up to how many times that of the sweep.
_TRIED, _BEYOND = 48, 4
_LABEL = re.compile(r"(e[wm])_bin\(n_bins=(\d+)\)")


@dataclass(frozen=True, eq=False)
class BinCounts(Result):
    """The binned error for several numbers of bins.

    Attributes
    ----------
    n_bins : ndarray of shape (k,)
        Numbers of bins, ascending.
    value : ndarray of shape (k,)
        The binned error with each; of simulations, its mean.
    value_se : ndarray of shape (k,)
        Monte Carlo standard error of a mean of simulations; zero for one sample.
    sweep_bins, sweep_value : float
        The number of bins that the sweep chooses, and its error; of simulations, their means.
    true_error : float or None
        The truth, where it is known.
    binning : str
        ``"em"`` or ``"ew"``.
    norm : float
        Order of the norm.
    n : float
        Number of rows.
    target : str
        What the scores are probabilities of, or which population was drawn from.
    """

    n_bins: NDArray[np.int64]
    value: FloatArray
    value_se: FloatArray
    sweep_bins: float
    sweep_value: float
    true_error: float | None
    binning: str
    norm: float
    n: float
    target: str


def bin_counts(
    y_true: Any,
    y_proba: Any = None,
    *,
    binning: str = "em",
    norm: float = 2,
    n_bins: Iterable[int] | None = None,
    true_error: float | None = None,
    **reading: Any,
) -> BinCounts:
    """Return the binned error of a sample for several numbers of bins.

    Parameters
    ----------
    y_true, y_proba
        Labels and probabilities as in `truecal.estimate`, or a `Sample` in place of both.
    binning : {"em", "ew"}
        Bins of equal mass or of equal width.
    norm : float
        Order of the norm.
    n_bins : iterable of int, optional
        Numbers of bins; by default from 1 to four times the sweep's choice.
    true_error : float, optional
        The true error, if it is known.
    **reading
        As in `truecal.estimate`: ``sample_weight``, ``pos_label``, ``labels``, ``multiclass``.

    Returns
    -------
    BinCounts

    Examples
    --------
    >>> import truecal
    >>> population = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
    >>> curve = bin_counts(*population.sample(1000, rng=0), n_bins=[1, 4, 16, 64], true_error=population.true_error())
    >>> curve.value.round(3).tolist(), round(curve.true_error, 3)
    ([0.15, 0.163, 0.17, 0.191], 0.183)
    >>> curve.sweep_bins, round(curve.sweep_value, 3)
    (13.0, 0.17)
    """
    sample = as_sample(y_true, y_proba, **reading)
    check_choice("binning", binning, ("em", "ew"))
    norm = check_norm(norm)
    sweep = get_estimator(f"{binning}_sweep")(sample, norm=norm)
    chosen = sweep.n_bins or 1
    if n_bins is None:
        most = max(64, min(_BEYOND * chosen, len(sample)))
        tried = np.unique(np.geomspace(1, most, _TRIED).round().astype(np.int64))
    else:
        tried = np.unique([check_count("n_bins", b) for b in n_bins])
    binned = get_estimator(f"{binning}_bin")
    return BinCounts(
        n_bins=tried,
        value=np.array([binned(sample, norm=norm, n_bins=int(b)).value for b in tried]),
        value_se=np.zeros(len(tried)),
        sweep_bins=float(chosen),
        sweep_value=sweep.value,
        true_error=true_error,
        binning=binning,
        norm=norm,
        n=sample.n,
        target=sample.target,
    )


def bin_counts_of_study(
    study: Study, *, population: str | None = None, n: int | None = None, binning: str = "em"
) -> BinCounts:
    """Return the mean binned error of simulations for several numbers of bins.

    Parameters
    ----------
    study : Study
        With the estimators ``{"estimator": "em_bin", "n_bins": b}`` for several b, and ``"em_sweep"``.
    population : str, optional
        Name of the population; optional if there is only one.
    n : int, optional
        Sample size; optional if there is only one.
    binning : {"em", "ew"}
        As in `bin_counts`.

    Examples
    --------
    >>> import truecal
    >>> square = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.PowerCurve(2))
    >>> choices = [{"estimator": "em_bin", "n_bins": b} for b in (2, 8, 32)]
    >>> study = truecal.bias_study(
    ...     {"square": square}, estimators=[*choices, "em_sweep"], sizes=[500], repeats=100, rng=0
    ... )
    >>> curve = bin_counts_of_study(study)
    >>> curve.value.round(3).tolist(), round(curve.true_error, 3)
    ([0.164, 0.183, 0.201], 0.183)
    """
    check_choice("binning", binning, ("em", "ew"))
    population = _only("population", population, [row["population"] for row in study.rows])
    n = _only("n", n, [row["n"] for row in study.rows])
    rows = [row for row in study.rows if row["population"] == population and row["n"] == n]
    found = {}
    for row in rows:
        match = _LABEL.fullmatch(row["estimator"])
        if match and match[1] == binning:
            found[int(match[2])] = row
    if not found:
        raise InputError(
            f"The study has no {binning}_bin with given numbers of bins for {population!r} at n = {n}. Add "
            f"{{'estimator': '{binning}_bin', 'n_bins': b}} for several b to its estimators."
        )
    sweep = next((row for row in rows if row["estimator"] == f"{binning}_sweep"), None)
    tried = sorted(found)
    return BinCounts(
        n_bins=np.array(tried),
        value=np.array([found[b]["mean"] for b in tried]),
        value_se=np.array([found[b]["bias_se"] for b in tried]),
        sweep_bins=math.nan if sweep is None else sweep["mean_bins"] or math.nan,
        sweep_value=math.nan if sweep is None else sweep["mean"],
        true_error=found[tried[0]]["true_error"],
        binning=binning,
        norm=found[tried[0]]["norm"],
        n=n,
        target=population,
    )


def _only(name: str, given: Any, values: list[Any]) -> Any:
    """Return the value that was asked for, or the only one that there is."""
    known = list(dict.fromkeys(values))
    if given is None and len(known) == 1:
        return known[0]
    if given not in known:
        shown = ", ".join(map(repr, known))
        raise InputError(f"must be one of {shown}. Got {given!r} instead", argument=name, value=given)
    return given
