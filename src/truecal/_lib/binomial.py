"""Many draws from each of many binomial distributions."""

from __future__ import annotations

import numpy as np

from truecal._lib.types import FloatArray

#: Draws that are made at once, on average, so that the tables for them stay in the cache.
_AT_ONCE = 1 << 17
#: Equal parts of [0, 1] for each of which a guide says where to begin; a power of two, so that scaling rounds nothing.
_PARTS = 1024


def draw_binomials(count: FloatArray, chance: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Return independent draws from binomial distributions, whole numbers of shape (size, distributions).

    Uniform numbers are looked up in a table of each distribution function, which is several times quicker than
    accepting or rejecting proposals as NumPy does. That is left to do where a table would be longer than the draws.

    Parameters
    ----------
    count, chance : ndarray
        Number of trials of each distribution, and their probability of success.
    size : int
        Number of draws from each.
    rng : numpy.random.Generator
        Source of randomness.

    Examples
    --------
    >>> draw_binomials(np.array([9.0, 100.0]), np.array([1.0, 0.5]), 99, np.random.default_rng(0))[:3]
    array([[ 9., 51.],
           [ 9., 57.],
           [ 9., 31.]])
    """
    rare = np.minimum(chance, 1 - chance)
    # Outcomes further from the most frequent one have, on either side, a probability of about 2^-53 together.
    reach = np.ceil(8.5 * np.sqrt(count * rare * (1 - rare)) + 12).astype(np.int64)
    drawn, step = np.empty((size, len(count))), max(1, _AT_ONCE // max(size, 1))
    for first in range(0, len(count), step):
        some = slice(first, first + step)
        widest = int(reach[some].max())
        if 2 * widest < size:
            found = _look_up(count[some], rare[some], widest, size, rng)
        else:  # one call for each, in which NumPy sets up a distribution only once
            each = zip(count[some].astype(np.int64), rare[some], strict=True)
            found = np.array([rng.binomial(trials, p, size) for trials, p in each], dtype=np.float64)
        often = np.flatnonzero(chance[some] > 0.5)
        found[often] = count[some][often, np.newaxis] - found[often]
        drawn[:, some] = found.T
    return drawn


def _look_up(
    count: FloatArray, chance: FloatArray, reach: int, size: int, rng: np.random.Generator
) -> FloatArray:
    """Return draws, of shape (distributions, size): the first outcome whose cumulative probability is above a uniform.

    The search begins where a guide says for the leading digits of the uniform number (Chen and Asau 1974, On generating
    random variates from an empirical distribution, AIIE Transactions 6, 163-166).
    """
    mode = np.floor((count + 1) * chance)
    cumulative = _distribution(count, chance, mode, reach)
    table, row = cumulative.ravel(), np.arange(len(count))[:, np.newaxis]
    above = np.ceil(cumulative * _PARTS).astype(np.intp) + (_PARTS + 1) * row
    guide = np.bincount(above.ravel(), minlength=(_PARTS + 1) * len(count)).cumsum()
    uniform = rng.random((len(count), size))
    place = guide.take((uniform * _PARTS).astype(np.intp) + (_PARTS + 1) * row).ravel()
    uniform = uniform.reshape(-1)
    low = np.flatnonzero(table.take(place) <= uniform)
    while len(low):
        place[low] += 1
        low = low[table.take(place.take(low)) <= uniform.take(low)]
    # From the place in all tables to that in its own, whose middle is the mode.
    first = mode[:, np.newaxis] - reach - cumulative.shape[1] * row
    return np.asarray(place.reshape(len(count), size) + first)


def _distribution(count: FloatArray, chance: FloatArray, mode: FloatArray, reach: int) -> FloatArray:
    """Return cumulative probabilities of the outcomes up to `reach` from the modes, from the ratios of neighbours."""
    odds = np.maximum(chance, np.finfo(np.float64).tiny) / (1 - chance)
    found, step = np.ones((len(count), 2 * reach + 1)), np.arange(1, reach + 1)
    sides = ((mode, odds, found[:, reach + 1 :]), (count - mode, 1 / odds, found[:, reach - 1 :: -1]))
    for middle, factor, side in sides:
        outcome = middle[:, np.newaxis] + step
        ratio = np.maximum(count[:, np.newaxis] + 1 - outcome, 0.0) / outcome
        ratio *= factor[:, np.newaxis]
        np.cumprod(ratio, axis=1, out=side)
    np.cumsum(found, axis=1, out=found)
    found /= found[:, -1:].copy()
    return found
