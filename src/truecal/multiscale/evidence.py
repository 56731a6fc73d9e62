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

The prior: scores are miscalibrated with odds 9 : 5. If so, the logistic block holds error, and the beta block does
with probability 1/2. The levels of bins form a chain: the first holds error with probability 1/2; a later one with
probability 1/2 if the one before does, and 1/(1 + D) otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from truecal._lib.types import FloatArray
from truecal.multiscale.curves import Curve
from truecal.multiscale.levels import Level

#: Energy of a block that holds error, in units of the noise of one degree of freedom times the root of their number.
_SLAB = 4.0
#: Prior odds of miscalibration.
PRIOR_ODDS = 1.8
_LARGEST_LOG = 600.0


@dataclass(frozen=True, eq=False)
class Block:
    """One step in resolution.

    Attributes
    ----------
    increment : float
        What it adds to the squared error; it may be negative.
    null_variance : float
        Variance of the increment if the block holds no error.
    support, freedom : float
        Statistic that is about chi-square if the block holds no error, and the degrees of freedom of its noise, D_e.
    n_bins : int
        Number of bins; 0 for the two smooth curves.
    level : Level or None
        The bins.
    added : float
        D: number of bins that a level adds; 0 for the two smooth curves, where D is `freedom`.
    """

    increment: float
    null_variance: float
    support: float
    freedom: float
    n_bins: int = 0
    level: Level | None = None
    added: float = 0.0

    @property
    def size(self) -> float:
        """D."""
        return self.added or self.freedom

    @property
    def log_bayes_factor(self) -> float:
        """Ln B; 0 for a block without freedom."""
        if self.freedom < 1e-6:
            return 0.0
        g, idle = _SLAB / math.sqrt(self.size), self.size - self.freedom
        support = self.support + idle - min(max(idle, 0.0), math.sqrt(2 * self.size))
        log = support * g / (2 * (1 + g)) - self.size / 2 * math.log1p(g)
        return min(max(log, -_LARGEST_LOG), _LARGEST_LOG)

    @property
    def shrinkage(self) -> float:
        """Share of the block's observed differences that is not noise, max(0, 1 - D/S)."""
        return max(0.0, 1 - self.freedom / self.support) if self.support > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the blocks say together.

    Attributes
    ----------
    probability : ndarray
        Probability that each block holds error, given miscalibration.
    log_evidence : float
        ln Z: logarithm of the Bayes factor of miscalibration against calibration.
    """

    probability: FloatArray
    log_evidence: float


def make_blocks(logistic: Curve, beta: Curve, levels: list[Level]) -> list[Block]:
    """Return the blocks, coarse to fine.

    Parameters
    ----------
    logistic, beta : Curve
        The smooth curves.
    levels : list of Level
        The bins, coarse to fine.
    """
    blocks = [
        Block(logistic.square, logistic.null_variance, logistic.support, logistic.freedom),
        Block(
            beta.square - logistic.square,
            max(beta.null_variance - logistic.null_variance, 0.0),
            max(beta.support - logistic.support, 0.0),
            max(beta.freedom - logistic.freedom, 0.0),
        ),
    ]
    smooth = beta.square
    for level in levels:
        if level.parent is None or level.filled > level.parent.filled:
            square = level.square + level.within
            blocks.append(_level_block(level, square - smooth))
            smooth = square
    return blocks


def _level_block(level: Level, increment: float) -> Block:
    """Return the block of one level; its evidence is the residual energy of the beta curve in units of its noise."""
    if level.parent is None:
        return _first_block(level, increment)
    null = level.null_variance
    if null <= 0 or level.noise_mean <= 0:
        return Block(increment, max(null, 0.0), 0.0, 0.0, level.filled, level)
    freedom = 2 * level.noise_mean**2 / null
    support = freedom + math.sqrt(2 * freedom / null) * level.error_increment
    return Block(increment, null, support, freedom, level.filled, level, level.filled - level.parent.filled)


def _first_block(level: Level, increment: float) -> Block:
    """Return the block of the coarsest level, where the fit may have taken nearly all the freedom of the residuals."""
    assert level.covariance is not None
    used = level.weight > 0
    weight = level.weight[used]
    sigma = level.covariance[np.ix_(used, used)] / np.sqrt(np.outer(weight, weight))
    trace, frobenius = float(np.trace(sigma)), float(np.sum(sigma**2))
    if trace <= 0 or frobenius <= 0:
        return Block(increment, 0.0, 0.0, 0.0, level.filled, level)
    freedom, null = trace**2 / frobenius, 2 * frobenius / level.size**2
    residual = float(np.sum(level.mean_error[used] ** 2 * weight))
    support = freedom + math.sqrt(freedom / frobenius) * (residual - trace)
    # Of its bins, the curve has fitted about two.
    return Block(increment, null, support, freedom, level.filled, level, max(level.filled - 2, 1))


def weigh(blocks: list[Block]) -> Posterior:
    """Return the posterior of the blocks, by one pass forwards and one backwards over the chain of levels."""
    beta = blocks[1].log_bayes_factor
    log_evidence = blocks[0].log_bayes_factor + np.logaddexp(0.0, beta) - math.log(2)
    probability = [1.0, 1 / (1 + math.exp(-beta))]
    levels = blocks[2:]
    entry = [0.5 if number == 0 else 1 / (1 + max(block.size, 1.0)) for number, block in enumerate(levels)]
    # Forward: log of P(data so far, state); the state is (out, in).
    forward: list[tuple[float, float]] = []
    out, inside = 0.0, -math.inf
    for block, enter in zip(levels, entry, strict=True):
        stay = 0.5
        new_out = np.logaddexp(out + math.log1p(-enter), inside + math.log(1 - stay))
        new_in = np.logaddexp(out + math.log(enter), inside + math.log(stay)) + block.log_bayes_factor
        out, inside = float(new_out), float(new_in)
        forward.append((out, inside))
    chain = float(np.logaddexp(out, inside))
    after_out, after_in = 0.0, 0.0
    backward: list[float] = []
    for number in range(len(levels) - 1, -1, -1):
        backward.append(math.exp(min(forward[number][1] + after_in - chain, 0.0)))
        gain, enter = levels[number].log_bayes_factor, entry[number]
        from_out = np.logaddexp(after_out + math.log1p(-enter), after_in + gain + math.log(enter))
        from_in = np.logaddexp(after_out, after_in + gain) + math.log(0.5)
        after_out, after_in = float(from_out), float(from_in)
    probability += backward[::-1]
    return Posterior(np.array(probability), float(log_evidence + chain))
