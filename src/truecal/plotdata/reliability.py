"""Reliability curves: how often each score comes true, with the band that calibration would allow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from truecal._lib.checks import as_generator, check_choice, check_count, check_fraction
from truecal._lib.isotonic import isotonic_rate
from truecal._lib.types import FloatArray, RNGLike
from truecal.data.sample import Sample
from truecal.estimators._binning import (
    EqualMass,
    EqualWidth,
    IntArray,
    merge_groups,
    monotone_sweep,
    partition,
    summarize_bins,
)
from truecal.inference.resample import redraws
from truecal.results import SCHEMA_VERSION, BinTable

#: Samples of more groups are seen through this many cells of equal mass and as many of equal width. Finer
#: ones cost time and cannot be seen in a picture.
_CELLS = 1000

_RULES = {"em": EqualMass, "ew": EqualWidth}


@dataclass(frozen=True, eq=False)
class Reliability:
    """The calibration curve of a sample, isotonic and binned, each with its consistency band.

    The band is where the curve would lie, with probability `band_level` at each place, if the model were
    perfectly calibrated: labels are drawn anew from the scores, and the curve is made again.

    Attributes
    ----------
    score : ndarray of shape (k,)
        Scores, ascending; at most some thousand, others are merged with their neighbours.
    label : ndarray of shape (k,)
        Isotonic (CORP) estimate of how often each score comes true.
    lower, upper : ndarray of shape (k,)
        The band of the isotonic curve; NaN if none was asked for.
    bins : BinTable
        The bins.
    bins_lower, bins_upper : ndarray
        The band of the mean label of each bin; NaN if none was asked for.
    band_level : float
        Level of both bands; NaN if none was asked for.
    n_bins : int
        Number of bins asked for, or chosen by the sweep.
    binning : str
        ``"em"`` for bins of equal mass, ``"ew"`` for bins of equal width.
    n : float
        Number of rows, or the total weight.
    target : str
        What the scores are probabilities of.
    """

    score: FloatArray
    label: FloatArray
    lower: FloatArray
    upper: FloatArray
    bins: BinTable
    bins_lower: FloatArray
    bins_upper: FloatArray
    band_level: float
    n_bins: int
    binning: str
    n: float
    target: str

    @property
    def has_band(self) -> bool:
        """Whether there are bands."""
        return not math.isnan(self.band_level)

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as plain lists; where there is no band, its place holds None."""
        bands = zip(self.bins.to_rows(), _plain(self.bins_lower), _plain(self.bins_upper), strict=True)
        return {
            "schema_version": SCHEMA_VERSION,
            "target": self.target,
            "n": self.n,
            "band_level": self.band_level if self.has_band else None,
            "isotonic": {key: _plain(getattr(self, key)) for key in ("score", "label", "lower", "upper")},
            "binning": self.binning,
            "n_bins": self.n_bins,
            "bins": [{**row, "band_lower": low, "band_upper": high} for row, low, high in bands],
        }


def reliability_curve(
    sample: Sample,
    *,
    n_bins: int | Literal["sweep"] = 15,
    binning: str = "em",
    band_level: float | None = 0.9,
    n_resamples: int = 1000,
    rng: RNGLike = None,
) -> Reliability:
    """Return the isotonic and the binned calibration curve with their consistency bands.

    Parameters
    ----------
    sample : Sample
        The predictions.
    n_bins : int or "sweep"
        Number of bins; ``"sweep"`` for as many as keep the labels rising.
    binning : {"em", "ew"}
        Bins of equal mass or of equal width.
    band_level : float or None
        Level of the bands, at each place; None for no bands.
    n_resamples : int
        How often labels are drawn anew.
    rng : int, Generator or None
        Seed of the resampling.

    Returns
    -------
    Reliability

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), PNAS; Bröcker, Smith (2007), Weather and Forecasting.

    Examples
    --------
    >>> import truecal
    >>> from truecal.data import read
    >>> calibrated = truecal.Population(truecal.simulation.UniformScores(), truecal.simulation.IdentityCurve())
    >>> (sample,) = read(*calibrated.sample(2000, rng=5))
    >>> curve = reliability_curve(sample, n_bins=5, rng=0)
    >>> ((curve.bins_lower <= curve.bins.mean_label) & (curve.bins.mean_label <= curve.bins_upper)).tolist()
    [True, True, True, True, True]
    """
    rule = _RULES[check_choice("binning", binning, _RULES)](sample)
    n_bins = monotone_sweep(rule) if n_bins == "sweep" else check_count("n_bins", n_bins)
    n_resamples = check_count("n_resamples", n_resamples)
    if band_level is not None:
        check_fraction("band_level", band_level)
        if not sample.whole:
            raise ValueError(
                "The band needs whole-number weights, which say how many rows there were. Got weights with "
                "fractions. Pass band_level=None for the curve without it."
            )
    cut = partition(rule, n_bins)
    bins = summarize_bins(sample, cut)
    cell_start = _cells(sample, cut.start)
    cells = sample if len(cell_start) == len(sample) else merge_groups(sample, cell_start)
    curves, means = np.full((2, len(cells)), np.nan), np.full((2, len(bins)), np.nan)
    if band_level is not None:
        tails = ((1 - band_level) / 2, (1 + band_level) / 2)
        start = np.searchsorted(cell_start, cut.start)
        curves, means = _bands(cells, start, tails, n_resamples, as_generator(rng))
    return Reliability(
        score=cells.score,
        # The fit is that of all groups; a cell shows its mean.
        label=np.add.reduceat(isotonic_rate(sample.count, sample.positives) * sample.count, cell_start)
        / cells.count,
        lower=curves[0],
        upper=curves[1],
        bins=bins,
        bins_lower=means[0],
        bins_upper=means[1],
        band_level=math.nan if band_level is None else band_level,
        n_bins=n_bins,
        binning=binning,
        n=sample.n,
        target=sample.target,
    )


def _cells(sample: Sample, bins_start: IntArray) -> IntArray:
    """Return where cells begin: narrow in score and in mass, and none in two bins, so that they serve both."""
    if len(sample) <= 2 * _CELLS:
        return np.arange(len(sample))
    starts = (partition(rule(sample), _CELLS).start for rule in (EqualMass, EqualWidth))
    return np.unique(np.concatenate([bins_start, *starts]))


def _bands(
    cells: Sample, start: IntArray, tails: tuple[float, float], n_resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the quantiles of the isotonic curve at each cell, and of the mean label of each bin."""
    curves, means = np.empty((n_resamples, len(cells))), np.empty((n_resamples, len(start)))
    count = np.add.reduceat(cells.count, start)
    for row, redrawn in enumerate(redraws(cells, n_resamples, rng=rng)):
        curves[row] = isotonic_rate(redrawn.count, redrawn.positives)
        means[row] = np.add.reduceat(redrawn.positives, start) / count
    return np.quantile(curves, tails, axis=0), np.quantile(means, tails, axis=0)


def _plain(values: FloatArray) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]
