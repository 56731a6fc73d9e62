r"""An upper limit that holds for every rising curve: a simultaneous confidence band.

Take an interval of scores whose lowest is s. If the curve :math:`\mu` rises, labels in the interval are 1 at least as
often as with probability :math:`\mu(s)` each. So the upper Clopper-Pearson limit of the interval bounds :math:`\mu` at
its lowest score and below, and the lower limit bounds :math:`\mu` at its highest score and above (Dimitriadis, Dümbgen,
Henzi, Puke, Ziegel 2023). Over all intervals of a grid, each with its share of the error probability, this is a band
with guaranteed coverage in samples of any size. The largest error inside the band is a guaranteed upper limit of the
error over the scores at hand.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from truecal._lib.types import FloatArray
from truecal.data.sample import Sample


def band(sample: Sample, tail: float) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper limits of a rising curve at the scores of the sample, which hold together.

    Parameters
    ----------
    sample : Sample
        Independent rows, counted.
    tail : float
        Probability that the curve leaves the band anywhere.
    """
    n_bins = max(4, min(128, round(2 * sample.n ** (1 / 3))))
    rank = (np.cumsum(sample.count) - sample.count / 2) / sample.n
    place = np.minimum((rank * n_bins).astype(np.intp), n_bins - 1)
    place = np.cumsum(np.diff(place, prepend=place[0]) > 0)
    n_bins = int(place[-1]) + 1
    count, positives = np.bincount(place, sample.count), np.bincount(place, sample.positives)
    single = np.bincount(place) == 1  # one distinct score: the interval may begin or end at it

    first, last = np.triu_indices(n_bins)
    total = np.concatenate(([0.0], np.cumsum(count)))
    hits = np.concatenate(([0.0], np.cumsum(positives)))
    rows, ones = total[last + 1] - total[first], hits[last + 1] - hits[first]
    share = tail / (2 * len(first))
    upper = np.where(
        ones < rows, scipy.special.betaincinv(ones + 1, np.maximum(rows - ones, 1e-300), 1 - share), 1.0
    )
    lower = np.where(
        ones > 0, scipy.special.betaincinv(np.maximum(ones, 1e-300), rows - ones + 1, share), 0.0
    )

    from_here = np.ones(n_bins + 1)  # best upper limit of the intervals that begin at a bin
    np.minimum.at(from_here, first, upper)
    up_to_here = np.zeros(n_bins + 1)
    np.maximum.at(up_to_here, last + 1, lower)  # entry k: intervals that end before bin k
    high = np.where(single, from_here[:-1], from_here[1:])
    low = np.where(single, up_to_here[1:], up_to_here[:-1])
    high = np.minimum.accumulate(high[::-1])[::-1]
    low = np.maximum.accumulate(low)
    return low[place], np.maximum(high, low)[place]


def largest_error(sample: Sample, low: FloatArray, high: FloatArray, norm: float) -> float:
    """Return the largest error of curves inside the band."""
    gap = np.maximum(np.maximum(sample.score - low, high - sample.score), 0.0)
    return float((math.fsum(sample.count * gap**norm) / sample.n) ** (1 / norm))
