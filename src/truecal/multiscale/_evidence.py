r"""Evidence for error at each scale, one prior, and the posterior that weighs the scales.

The squared error is a sum of increments :math:`\theta = \sum_j \delta_j` over blocks, coarse to fine: the logistic
curve, what the beta curve adds, what 4 bins add, and what each finer level adds. Each block has an estimate of its
increment, the variance of that if the block holds no error, and a statistic S that is then about chi-square with D
degrees of freedom. If the block does hold error, S is taken to be :math:`1 + g` times as large, with
:math:`g = 4/\sqrt D`, an energy of about three standard deviations of the block's noise. Hence the Bayes factor

.. math:: \ln B = \frac{g}{2(1+g)} S - \frac D2 \ln(1 + g) .

For levels D is the number of bins that they add. Where labels in some bins hardly vary, as at scores near 0 and 1, the
noise has fewer degrees of freedom, :math:`D_e`. Such bins would show an error if there were one, so that their silence
speaks for calibration: S is moved to the mean :math:`D - \min(D - D_e, \sqrt{2D})`, lower by one standard deviation at
most.

The prior: scores are miscalibrated with odds :math:`9 N^{-1/4}`, which is 1.7 for 800 rows, and no more than 2.4: the
slab is an error of the size of the noise, and the smaller that is, the rarer. If so, the logistic block holds error,
and the beta block does with probability 1/2. The levels of bins form a chain: the first holds error with probability
1/2; a later one with probability 1/2 if the one before does, and 1/(1 + D) otherwise.

A level without evidence need not be without error: a jump of the curve leaves increments that are halved from level to
level, and soon too small to be seen. With :math:`q_j` the posterior probability that a block holds error, the
contributions to the squared error are therefore

.. math:: c_j = q_j \delta_j + (1 - q_j) \min\big(\tfrac12 c_{j-1}^+, \delta_j^+\big)

for all levels but the first, and :math:`q_j \delta_j` for the other blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truecal._lib.types import FloatArray
from truecal.multiscale import _constants as const
from truecal.multiscale._curves import Curve
from truecal.multiscale._levels import Levels
from truecal.multiscale._units import over


@dataclass(frozen=True, eq=False)
class Blocks:
    """Steps in resolution: the logistic curve, the beta curve, and the levels that are finer than the one before.

    Attributes
    ----------
    increment : ndarray of shape (n_blocks, n_samples)
        What each adds to the squared error; it may be negative.
    null_variance : ndarray
        Variance of the increment if the block holds no error.
    support, freedom : ndarray
        Statistic that is about chi-square if the block holds no error, and the degrees of freedom of its noise, D_e.
    size : ndarray
        D: `freedom` for the two curves, and the number of bins that a level adds.
    levels : list of int
        Numbers of the levels; the two curves have none.
    """

    increment: FloatArray
    null_variance: FloatArray
    support: FloatArray
    freedom: FloatArray
    size: FloatArray
    levels: list[int]

    @cached_property
    def log_bayes_factor(self) -> FloatArray:
        """ln B; 0 for a block without degrees of freedom."""
        size = np.maximum(self.size, 1e-6)
        g, idle = const.SLAB / np.sqrt(size), size - self.freedom
        support = self.support + idle - np.minimum(np.maximum(idle, 0.0), np.sqrt(2 * size))
        log = support * g / (2 * (1 + g)) - size / 2 * np.log1p(g)
        return np.where(
            self.freedom < 1e-6,
            0.0,
            np.minimum(np.maximum(log, -const.LARGEST_LOG_FACTOR), const.LARGEST_LOG_FACTOR),
        )

    @cached_property
    def shrinkage(self) -> FloatArray:
        """Share of the observed differences of a block that is not noise, max(0, 1 - D/S)."""
        return np.maximum(1 - self.freedom / np.where(self.support > 0, self.support, np.inf), 0.0) * (
            self.support > 0
        )


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior over the blocks.

    Attributes
    ----------
    probability : ndarray of shape (n_blocks, n_samples)
        Probability that each block holds error, given miscalibration.
    log_evidence : ndarray of shape (n_samples,)
        ln Z: logarithm of the Bayes factor of miscalibration against calibration.
    """

    probability: FloatArray
    log_evidence: FloatArray


def make_blocks(logistic: Curve, beta: Curve, levels: Levels) -> Blocks:
    """Return the blocks, coarse to fine."""
    filled = np.array([level.filled for level in levels.levels]).reshape(-1, len(beta.square))
    added = filled[1:] - filled[:-1]
    finer = (added > 0).all(axis=-1).nonzero()[0]  # samples that are analysed together have the same levels
    kept = [0, *(finer + 1).tolist()] if len(filled) else []

    def blocks(of_logistic: FloatArray, of_beta: FloatArray, of_levels: FloatArray) -> FloatArray:
        return np.concatenate([[of_logistic, of_beta], of_levels[kept]])

    increment = blocks(logistic.square, beta.square, levels.square + levels.within)
    increment[1:] -= increment[:-1].copy()
    null = blocks(logistic.null_variance, beta.null_variance, levels.null_variance)
    freedom = blocks(logistic.freedom, beta.freedom, levels.noise_mean)
    support = blocks(logistic.support, beta.support, levels.error_increment)
    for of_curve in (null, freedom, support):
        of_curve[1] = np.maximum(of_curve[1] - of_curve[0], 0.0)
    size = freedom.copy()
    if kept:
        # Of the bins of the coarsest level, the curves have fitted about two.
        size[2] = np.maximum(filled[0] - 2, 1)
        size[3:] = added[finer]
        # The evidence of a level is the residual energy of the beta curve in units of its noise. If the fit has taken
        # out nearly all of that, the variance is a difference of nearly equal numbers, and needs a lower bound.
        mean = np.maximum(freedom[2:], 0.0)
        null[2:] = np.maximum(null[2:], 2 * mean**2 / (const.MOST_FREEDOM * size[2:]))
        variance = np.where(null[2:] > 0, null[2:], 1.0)
        freedom[2:] = 2 * mean**2 / variance
        support[2:] = freedom[2:] + np.sqrt(2 * freedom[2:] / variance) * support[2:]
        null[2], support[2], freedom[2] = _first_level(levels)
    return Blocks(increment, null, support, freedom, size, kept)


def _first_level(levels: Levels) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return null variance, support and freedom of the coarsest level.

    There the fit may have used nearly all degrees of freedom of the residuals.
    """
    level = levels.levels[0]
    weight = level.weight
    sigma = over(levels.covariance, np.sqrt(weight[:, :, np.newaxis] * weight[:, np.newaxis]))
    trace, frobenius = np.trace(sigma, axis1=-2, axis2=-1), np.square(sigma).sum(axis=(-2, -1))
    noisy = (trace > 0) & (frobenius > 0)
    frobenius = np.where(noisy, frobenius, 1.0)
    freedom = np.where(noisy, trace**2 / frobenius, 0.0)
    residual = np.vecdot(level.mean_error**2, weight)
    support = freedom + np.sqrt(freedom / frobenius) * (residual - trace)
    return np.where(noisy, 2 * frobenius, 0.0) / levels.size**2, support, freedom


def weigh(blocks: Blocks) -> Posterior:
    r"""Return the posterior of the blocks, by one pass forwards and one backwards over the chain of levels.

    With B the Bayes factor of a level that is entered with probability e, the odds r that it holds error given the
    coarser data, and the ratio s of the probabilities of the finer data if it does and if it does not, are

    .. math:: r_j = B_j \frac{e_j + r_{j-1}/2}{1 - e_j + r_{j-1}/2}, \qquad
        s_{j-1} = \frac{(1 + s_j B_j) / 2}{1 - e_j + s_j B_j e_j} .

    The Bayes factor of all levels is the product of the denominators of r and of 1 + r of the last.
    """
    factor = np.exp(blocks.log_bayes_factor)
    enter = 1 / (1 + np.maximum(blocks.size, 1.0))
    enter[2:3] = 0.5
    stay = 1 - enter
    odds, out, after = np.zeros_like(factor), np.ones_like(factor), np.ones_like(factor)
    for number in range(2, len(factor)):
        half = odds[number - 1] / 2
        out[number] = stay[number] + half
        odds[number] = (enter[number] + half) / out[number] * factor[number]
    log_evidence = np.log(out).sum(axis=0) + np.log1p(odds[-1])
    for number in range(len(factor) - 1, 2, -1):
        gain = after[number] * factor[number]
        after[number - 1] = (1 + gain) / (2 * (stay[number] + gain * enter[number]))
    odds[1] = factor[1]
    odds *= after
    probability = odds / (1 + odds)
    probability[0] = 1.0
    # Increments of the levels are measured from the beta curve: as far as one of them counts, so does the curve.
    probability[1] = probability[1:].max(axis=0)
    log_evidence += blocks.log_bayes_factor[0] + np.log1p(factor[1]) - math.log(2)
    return Posterior(probability, log_evidence)


def prior_odds(size: float) -> float:
    """Return the prior odds of miscalibration for a number of rows."""
    return float(const.PRIOR_ODDS * max(size, const.PRIOR_FEWEST_ROWS) ** -0.25)


def contributions(blocks: Blocks, posterior: Posterior) -> FloatArray:
    """Return what each block contributes to the squared error: see the module's docstring."""
    found, rest = posterior.probability * blocks.increment, 1 - posterior.probability
    for number in range(3, len(found)):
        tail = np.minimum(const.UNSEEN_SHARE * found[number - 1], blocks.increment[number])
        found[number] += rest[number] * np.maximum(tail, 0.0)
    return found
