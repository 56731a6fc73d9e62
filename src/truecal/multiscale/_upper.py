r"""Upper confidence limits of the l2 error, honest over a class of curves that was fixed before the labels were seen.

The scores are cut into B intervals (`truecal.multiscale._intervals`). In interval k, with share s of the rows, N
effective rows, mean score f, observed rate y and variance W of the scores, a curve has the mean error d = f - q. The
squared error is

.. math:: \theta = \sum_k s_k d_k^2 + H ,

where H is what the error varies inside intervals: as much as that of the beta curve, or as much as one jump between the
levels of the two neighbours, :math:`(x_k - x_{k-1})(x_{k+1} - x_k) + \mathrm{Var}\,x_k` with :math:`x = f - y`, where
these clearly differ; or, in all intervals or in those without a jump, 4/3 of the energy between their halves, less 0.7
standard deviations of its noise; or what the estimate found on finer scales. H uses the labels, but it can only make
limits longer.

The p-value of the hypothesis that the error is :math:`\varepsilon` or more is the largest probability

.. math:: p(\varepsilon) = \max_d P_d(T \le t), \qquad
    T = \sum_k s_k \Big(x_k + \frac{a_k}{2 N_k}\Big)^2, \quad a_k = 2 f_k - 1,

over curves whose error is :math:`\varepsilon`. The tilt a counts events more than their absence where events are rare.
An observed t is never taken to be below the 20% quantile of T for a calibrated model: a lucky fit is no evidence.

The curves are near the least favourable ones. They start from the observed gaps, shrunk to the energy :math:`E_0` that
is not noise, and put what is missing, :math:`\varepsilon^2 - H - E_0`, into one interval, towards 1/2, where labels
vary most. Two more have the same error everywhere: towards 1/2, and away from it as far as there is room, which makes
the mean of T smallest. Far from 0 the missing part is small, and the variance is that of the estimate. Near 0 it is all
there is, and the worst interval decides. With up to three intervals, curves in all directions are looked at, over every
possible sample if these are few. With one interval each direction has the test of its own that is best, which gives the
limits of Clopper and Pearson.

Given the scores the labels of intervals are independent, and the number of events in each is binomial, with the mean
and the variance of its rows: :math:`P_d(T \le t)` is a convolution. With many intervals the one that is moved counts
exactly, and the sum of the others has a gamma law with their mean and variance. Sampling of the scores adds a normal
error of variance :math:`S = (\sum s d^4 - (\sum s d^2)^2) / N`; the larger of the probabilities with it and without
it counts.
"""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from truecal._lib.numeric import find_root
from truecal._lib.types import FloatArray
from truecal.multiscale import _constants as const
from truecal.multiscale._units import IntArray

#: The arrays of an `UpperLimit`.
BY_INTERVAL = ("share", "rows", "score", "rate", "within", "ratio", "extra")


@dataclass(frozen=True, eq=False)
class UpperLimit:
    """What the upper limit of one sample, or of several classes together, needs to know.

    Attributes
    ----------
    share, rows, score, rate, within : ndarray of shape (n_intervals,)
        s, N, f, y and W.
    inside : float
        H.
    size : float
        Number of rows behind the shares.
    largest : float
        Largest error that the scores allow.
    constant, slope : float
        Variance of T that comes from labels of different intervals which depend on each other: the sum of `constant`
        and `slope` times the squared error.
    resolution : int
        Number of intervals of one sample, or of the class that has fewest.
    every_score : bool
        Whether every distinct score is an interval.
    ratio, extra : ndarray of shape (n_intervals,)
        The variance of labels at the rate q is `ratio` times that of 0 and 1, and `extra`.
    binary : bool
        Whether labels are the truth, so that numbers of events are binomial; otherwise rates have normal laws.
    """

    share: FloatArray
    rows: FloatArray
    score: FloatArray
    rate: FloatArray
    within: FloatArray
    ratio: FloatArray
    extra: FloatArray
    inside: float
    size: float
    largest: float
    constant: float = 0.0
    slope: float = 0.0
    resolution: int = 0
    every_score: bool = False
    binary: bool = True
    _transforms: dict[tuple[float, int], NDArray[np.complex128]] = field(init=False, default_factory=dict)

    def __len__(self) -> int:
        return len(self.share)

    # --- the statistic -----------------------------------------------------------------------------

    @cached_property
    def gap(self) -> FloatArray:
        """Observed mean error x of each interval."""
        return self.score - self.rate

    @cached_property
    def tilt(self) -> FloatArray:
        """The shift a of the module's docstring; 0 where rates are normal."""
        return 2 * self.score - 1 if self.binary else np.zeros(len(self))

    @cached_property
    def terms(self) -> FloatArray:
        """What each interval adds to T."""
        return self.share * (self.gap + self.tilt / (2 * self.rows)) ** 2

    @cached_property
    def least(self) -> float:
        """Quantile of T for a calibrated model, by a gamma law."""
        mean, variance, *_ = self._moments(np.zeros(len(self))).sum(axis=1)
        if mean <= 0 or variance <= sys.float_info.min:
            return 0.0
        return float(scipy.special.gammaincinv(mean**2 / variance, const.LUCKY_QUANTILE) * variance / mean)

    @cached_property
    def statistic(self) -> float:
        """The observed T, or its smallest value that counts."""
        return max(float(self.terms.sum()), self.least)

    @cached_property
    def base(self) -> FloatArray:
        """The observed gaps, shrunk to the energy that is not noise."""
        if self.binary:
            noise = np.maximum(self.rate * (1 - 2 * self.score) + self.score**2 - self.within, 0.0)
        else:
            noise = self.noise(np.clip(self.rate, 0.0, 1.0))
        total = float(self.share @ self.gap**2)
        energy = max(total - float(self.share @ (noise / self.rows)), 0.0)
        return self.gap * math.sqrt(energy / total) if total > 0 else self.gap

    @cached_property
    def energy(self) -> float:
        """E_0."""
        return float(self.share @ self.base**2)

    # --- curves ------------------------------------------------------------------------------------

    def noise(self, rate: FloatArray, interval: IntArray | slice = slice(None)) -> FloatArray:
        """Return the variance of a label at rates of intervals."""
        noise = np.maximum(rate * (1 - rate) - self.within[interval], 0.0)
        return np.asarray(self.extra[interval] + self.ratio[interval] * noise)

    def _moments(self, gap: FloatArray) -> FloatArray:
        """Return, for each interval of a curve, mean and variance of its term of T, s d^2 and s d^4.

        The variance is exact if all scores of an interval are equal, and else within a few percent.
        """
        rate = self.score - gap
        noise = self.noise(rate)
        b, factor, variance = 2 * self.rows * gap + self.tilt, self.share / self.rows**2, self.rows * noise
        square = gap**2
        skewed = 1 - 6 * noise - 2 * b * (1 - 2 * rate) if self.binary else 0.0
        return np.stack(
            [
                factor * (b**2 / 4 + variance),
                factor**2 * variance * np.maximum(skewed + 2 * variance + b**2, 0.0),
                self.share * square,
                self.share * square**2,
            ]
        )

    @cached_property
    def _base_moments(self) -> FloatArray:
        return self._moments(self.base)

    def _added(self, second: FloatArray, fourth: FloatArray) -> FloatArray:
        """Return what the sampling of the scores and the dependence of labels add to the variance of T."""
        spread = np.maximum(fourth - second**2, 0.0) / self.size
        return np.asarray(spread + self.constant + self.slope * second)

    @cached_property
    def _room(self) -> FloatArray:
        return np.maximum(self.score, 1 - self.score)

    @cached_property
    def _direction(self) -> FloatArray:
        """Sign of an error towards 1/2, and beyond."""
        return np.where(self.score < 0.5, -1.0, 1.0)

    def _curves(self, energy: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return curves of some energy beyond E_0: errors of those that move one interval, others, and moments of T.

        An error is NaN if its interval has no room for it. The moments, for all curves, are mean, variance and the
        variance that is added.
        """
        size = np.sqrt(self.base**2 + (energy - self.energy) / self.share)
        gap = self._direction * np.where(size <= self._room, size, np.nan)
        sums = self._base_moments.sum(axis=1, keepdims=True) + (self._moments(gap) - self._base_moments)
        everywhere = np.empty((0, len(self)))
        if len(self) <= 3:
            everywhere = _directions(self.share, self.score, energy)
        if self.share @ self._room**2 >= energy:
            inwards = self._everywhere(energy)
            outwards = np.where(np.abs(inwards) <= 1 - self._room, -inwards, inwards)
            everywhere = np.concatenate([everywhere, [inwards, outwards]])
        sums = np.concatenate([sums, self._moments(everywhere).sum(axis=2)], axis=1)
        mean, variance, second, fourth = sums
        return gap, everywhere, np.stack([mean, variance, self._added(second, fourth)])

    def _approximate(self, law: FloatArray) -> FloatArray:
        """Return the probabilities of T <= t by a gamma law; 0 for curves that do not exist."""
        mean, variance = law[0], np.maximum(law[1] + law[2], 1e-300)
        t = self.statistic + float((self.share / self.rows**2).min())
        return np.asarray(np.nan_to_num(scipy.special.gammainc(mean**2 / variance, t * mean / variance)))

    # --- p-values ----------------------------------------------------------------------------------

    def pvalue(self, error: float) -> float:
        """Return the p-value of the hypothesis that the error is `error` or more."""
        return max(self._pvalue(one, exact=True) for one in [error, *self._beyond(error)])

    def _beyond(self, error: float) -> list[float]:
        """Return larger errors at which p may rise again: few rows are a coarse grid. Up to three scores are exact."""
        if len(self) <= 3 or self.size >= const.RISING_ROWS or error <= 0:
            return []
        least, most = (
            math.log(self.largest / (factor * error)) / math.log(const.RISING_RATIO)
            for factor in (const.RISING_REACH, 1.0)
        )
        steps = range(max(math.ceil(least), 1), math.ceil(most))
        return [self.largest * const.RISING_RATIO**-step for step in steps]

    def _pvalue(self, error: float, *, exact: bool) -> float:
        if error >= self.largest:
            return 0.0
        energy = error**2 - self.inside
        if len(self) == 1:
            return self._one_interval(math.sqrt(energy)) if energy > 0 else 1.0
        if energy <= self.energy:
            return 1.0
        gap, others, law = self._curves(energy)
        rough = self._approximate(law)
        if not exact:
            return float(rough.max())
        kept = self._kept(rough)
        one, more = kept[kept < len(self)], kept[kept >= len(self)]
        if len(self) > const.MOST_CONVOLVED:
            found = [self._mixed(k, float(gap[k]), law[:, k]) for k in one] + list(rough[more])
        else:
            spread = np.sqrt(law[2])
            found = [
                self._convolved(one, gap[one], spread[one]),
                self._convolved(None, others[more - len(self)], spread[more]),
            ]
            if self._can_enumerate:
                found.append(self._enumerated(others))
        if self.binary and not self._counted and self.rows.min() < const.FEW_EFFECTIVE_ROWS:
            found.append(rough)
        return min(max((float(np.max(part, initial=0.0)) for part in found), default=0.0), 1.0)

    def _kept(self, rough: FloatArray) -> IntArray:
        """Return the curves whose exact probability may be the largest: with few intervals, more of them."""
        order = np.argsort(-rough)
        if len(self) > const.FEW_INTERVALS:
            kept = order[: const.CURVES_KEPT]
            return kept[rough[kept] > 0]
        others = order[order >= len(self)]
        kept = np.concatenate([np.arange(len(self)), others[: const.CURVES_KEPT_FEW]])
        return np.asarray(kept[rough[kept] > rough.max() / 4])

    def _one_interval(self, gap: float) -> float:
        """Return the larger of the p-values of the two directions."""
        (f,), (y,), (n,), (w,) = self.score, self.rate, self.rows, self.within
        if not self.binary:
            rate = f + gap * np.array([1.0, -1.0])
            sd = np.sqrt(np.maximum(self.noise(rate), 1e-300) / n)
            below_rate = scipy.special.ndtr((y - rate) / sd * [1.0, -1.0])
            return float(np.where((rate >= 0) & (rate <= 1), below_rate, 0.0).max())
        above = _binomial_below(n * y, n, f + gap, w)
        below = _binomial_below(n * (1 - y), n, 1 - f + gap, w)
        return max(above, below)

    def _mixed(self, moved: int, gap: float, law: FloatArray) -> float:
        """Return P(T <= t) with the one interval that is moved counted exactly, and a gamma law for the others."""
        where = np.array([moved])
        _, value, probability = self._events(where, self.score[where] - gap, np.inf)
        mean, variance = law[0] - probability @ value, law[1] + law[2]
        variance -= max(float(probability @ value**2) - float(probability @ value) ** 2, 0.0)
        variance = max(variance, 1e-12 * mean**2)
        rest = np.maximum(self.statistic - value, 0.0) * mean / variance
        return float(probability @ scipy.special.gammainc(mean**2 / variance, rest))

    # --- exact laws --------------------------------------------------------------------------------

    @cached_property
    def _counted(self) -> bool:
        """Whether effective numbers of rows are whole, as those of counted rows are."""
        return np.array_equal(self.rows, np.rint(self.rows))

    @cached_property
    def _can_enumerate(self) -> bool:
        """Whether every possible sample can be looked at: two or three scores, with few rows."""
        few = len(self) <= 3 and float(np.prod(self.rows + 1)) <= const.MOST_ENUMERATED
        return few and self._counted and not self.within.any() and self.binary

    def _enumerated(self, gap: FloatArray) -> FloatArray:
        """Return P(T <= t) of curves over all samples, given the rows at each score."""
        order = np.argsort(self.rows)  # the largest last: what is left for it is a range of events
        rest, chance = np.array([self.statistic * (1 + 1e-9)]), np.ones((len(gap), 1))
        for k in order:
            events, rows = np.arange(int(self.rows[k]) + 1.0), self.rows[k]
            rate = (self.score[k] - gap[:, k])[:, np.newaxis]
            law = np.exp(_log_binomial(rows, events, np.clip(rate, 0.0, 1.0)))
            middle = rows * self.score[k] + self.tilt[k] / 2
            if k == order[-1]:
                reach = rows * np.sqrt(np.maximum(rest, 0.0) / self.share[k])
                first = np.clip(np.ceil(middle - reach), 0, rows + 1).astype(np.intp)
                last = np.clip(np.floor(middle + reach), -1, rows).astype(np.intp)
                below = np.pad(np.cumsum(law, axis=1), ((0, 0), (1, 0)))
                inside = np.where((rest >= 0) & (first <= last), below[:, last + 1] - below[:, first], 0.0)
                return np.asarray(np.sum(chance * inside, axis=1))
            rest = (rest[:, np.newaxis] - self.share[k] * ((middle - events) / rows) ** 2).ravel()
            chance = (chance[:, :, np.newaxis] * law[:, np.newaxis]).reshape(len(gap), -1)
        raise AssertionError("there is no interval")

    @cached_property
    def _step(self) -> float:
        """Step of the grid of the convolution."""
        energy = self._rough**2 - self.inside
        *_, law = self._curves(max(energy, self.energy * (1 + 1e-9)))
        spread = float(np.nan_to_num(law[2]).max())
        return max(self.statistic + 3 * math.sqrt(spread), 1e-6 * self.largest**2) / const.GRID_STEPS

    def _convolved(self, moved: IntArray | None, gap: FloatArray, spread: FloatArray) -> FloatArray:
        """Return P(T <= t) with normal errors of these standard deviations; all intervals move if `moved` is None."""
        if len(spread) == 0:
            return spread
        # Labels that agree with scores of 0 and 1 make t tiny beside the error that the sampling of scores adds.
        h = max(self._step, 3 * float(spread.max()) / const.MOST_STEPS)
        # Rounded as the terms are, so that ties are ties.
        observed = self.statistic > self.least
        at = int(np.rint(self.terms / h).sum()) if observed else int(self.statistic / h)
        last = at + math.ceil(3 * float(spread.max()) / h)
        size = 1 << math.ceil(math.log2(2 * (last + len(self))))
        if moved is None:
            each = np.tile(np.arange(len(self)), len(gap))
            product = self._transform(each, (self.score - gap).ravel(), h, size)
            product = product.reshape(len(gap), len(self), -1).prod(axis=1)
        else:
            base, others = self._base_transform(h, size), np.ones((len(moved), len(self), 1), dtype=np.bool_)
            others[np.arange(len(moved)), moved] = False
            product = self._transform(moved, self.score[moved] - gap, h, size)
            product *= np.where(others, base, 1.0).prod(axis=1)
        grid = np.arange(last + 1)
        law = np.fft.irfft(product, size, axis=1)[:, : last + 1] * np.exp(const.DAMPING / size * grid)
        distance = (at + 0.5 - grid) * h / np.maximum(spread, h / 8)[:, np.newaxis]
        # A normal error would give half of a large atom at t away.
        smeared = np.sum(law * scipy.special.ndtr(distance), axis=1)
        return np.asarray(np.maximum(law[:, : at + 1].sum(axis=1), smeared))

    def _base_transform(self, h: float, size: int) -> NDArray[np.complex128]:
        if (h, size) not in self._transforms:
            rate = self.score - self.base
            self._transforms[h, size] = self._transform(np.arange(len(self)), rate, h, size)
        return self._transforms[h, size]

    def _transform(self, interval: IntArray, rate: FloatArray, h: float, size: int) -> NDArray[np.complex128]:
        """Return the transforms of the laws of terms on a grid of step h, damped."""
        row, value, probability = self._events(interval, rate, h * size / 2)
        cell = np.rint(value / h).astype(np.intp)
        kept = cell < size // 2
        cell, row = cell[kept], row[kept]
        damped = probability[kept] * np.exp(-const.DAMPING / size * cell)
        laws = np.bincount(row * size + cell, damped, len(interval) * size).reshape(-1, size)
        return np.fft.rfft(laws, axis=1)

    def _events(
        self, interval: IntArray, rate: FloatArray, most: float
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return interval, value and probability of terms at some rates, as far as values are below `most`.

        The events of an interval are binomial, with the mean and variance of rows whose probabilities differ; their
        number of trials is the mixture of two whole numbers with the right mean.
        """
        columns = (self.rows, self.score, self.tilt, self.share)
        rows, score, tilt, share = (column[interval] for column in columns)
        if not self.binary:
            sd = np.sqrt(self.noise(rate, interval) / rows)
            normal = scipy.special.ndtri((np.arange(const.NORMAL_PARTS) + 0.5) / const.NORMAL_PARTS)
            row = np.repeat(np.arange(len(interval)), len(normal))
            gap = (score - rate)[row] + sd[row] * np.tile(normal, len(interval))
            return row, share[row] * gap**2, np.full(len(row), 1 / len(normal))
        rate = np.clip(rate, 0.0, 1.0)  # a score less an error of its own size may round to less than 0
        flip = rate > 0.5  # the rarer label is counted
        q = np.where(flip, 1 - rate, rate)
        middle = rows * np.where(flip, 1 - score, score) + np.where(flip, -tilt, tilt) / 2
        within = np.minimum(self.within[interval], 0.9 * q * (1 - q))
        chance = q + np.divide(within, q, out=np.zeros_like(q), where=q > 0)
        trials = rows * np.divide(q, chance, out=np.ones_like(q), where=within > 0)
        whole = np.floor(trials + 1e-9)
        part = np.maximum(trials - whole, 0.0) * (trials - whole > 1e-9)
        mixed = np.flatnonzero(part > 0)
        row = np.concatenate([np.arange(len(interval)), mixed])
        trials = np.concatenate([whole, whole[mixed] + 1])
        factor = np.concatenate([1 - part, part[mixed]])
        mean, sd = trials * chance[row], np.sqrt(trials * (chance * (1 - chance))[row])
        reach, spread = np.sqrt(most / share[row]) * rows[row], const.EVENT_REACH * sd + 15
        first = np.maximum(np.maximum(np.ceil(middle[row] - reach), np.floor(mean - spread)), 0.0)
        last = np.minimum(np.minimum(np.floor(middle[row] + reach), np.ceil(mean + spread)), trials)
        stride = np.maximum(np.floor(sd / const.EVENT_POINTS), 1.0)
        count = np.maximum((last - first) // stride + 1, 0).astype(np.intp)
        of = np.repeat(np.arange(len(row)), count)
        events = first[of] + stride[of] * (np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count))
        row, trials, stride = row[of], trials[of], stride[of]
        value = share[row] * ((middle[row] - events) / rows[row]) ** 2
        log = _log_binomial(trials, events, chance[row])
        return row, value, factor[of] * stride * np.exp(log)

    # --- limits ------------------------------------------------------------------------------------

    def limit(self, tail: float) -> float:
        """Return the limit that the error exceeds with probability `tail` at most."""
        target = float(scipy.special.ndtri(tail))
        guess = self._rough * (1 - const.GUESS_SLOPE * (target - const.GUESS_QUANTILE))
        found, rises = self._search(target, guess, exact=True), True
        while rises:
            higher = [one for one in self._beyond(found) if self._pvalue(one, exact=True) > tail]
            rises = bool(higher)
            if rises:
                found = self._search(target, max(higher) * const.RISING_RATIO, exact=True, least=max(higher))
        return found

    @cached_property
    def _rough(self) -> float:
        """The limit at 5%, by the gamma law."""
        guess = math.sqrt(self.inside + self.energy + 2 * self.statistic)
        return self._search(const.GUESS_QUANTILE, guess, exact=False)

    def _search(self, target: float, guess: float, *, exact: bool, least: float = 0.0) -> float:
        """Return the error, above `least`, at which the normal quantile of the p-value falls to `target`."""
        low = max(math.sqrt(self.inside + (0.0 if len(self) == 1 else self.energy)), least)
        high = self.largest
        if low >= high:
            return high
        known: dict[float, float] = {low: 9.0, high: -9.0}

        def height(error: float) -> float:
            if error not in known:
                value = float(scipy.special.ndtri(self._pvalue(error, exact=exact))) - target
                known[error] = min(max(value, -9.0), 9.0)
            return known[error]

        step = 0.02
        while True:  # until the limit is closely bracketed
            if not low < guess < high:
                guess = (low + high) / 2
            change = height(guess)
            low, high = (guess, high) if change > 0 else (low, guess)
            if high - low <= 0.5 * high or len(known) > 3 + const.LIMIT_MOST_STEPS:
                break
            guess *= 1 + math.copysign(max(1.5 * const.GUESS_SLOPE * abs(change), step), change)
            step *= 2
        tolerance = (const.LIMIT_TOLERANCE if exact else 1e-2) * high
        root = find_root(height, low, high, xtol=tolerance)
        step = const.LIMIT_MARGIN * root if exact else tolerance
        while (found := min(root + step, high)) < high and exact and height(found) > 0:
            step *= 4
        return found

    # --- plans -------------------------------------------------------------------------------------

    def margin(self, error: float, bound: float, tail: float, power: float, factor: float) -> float:
        """Return by how much a p-value at some quantile of T is below `tail`, in normal quantiles, with more rows.

        The number of intervals grows with the number of rows, unless every score is one.
        """
        pieces = max(round(factor**const.INTERVAL_RATE), 1) if self.within.any() else 1
        more = self._repeated(pieces, factor)
        truth = max(error**2 - more.inside, 0.0)
        gap = more.base * math.sqrt(truth / more.energy) if more.energy > 0 else more._everywhere(truth)
        mean, variance, second, fourth = more._moments(gap).sum(axis=1)
        variance = float(variance + more._added(second, fourth))
        if mean <= 0 or variance <= 0:
            statistic = mean
        else:
            statistic = float(scipy.special.gammaincinv(mean**2 / variance, power) * variance / mean)
        sample = replace(more, rate=np.clip(more.score - more._everywhere(statistic), 0.0, 1.0))
        height = scipy.special.ndtri(tail) - scipy.special.ndtri(sample._pvalue(bound, exact=len(self) == 1))
        return float(min(max(height, -9.0), 9.0))

    def _repeated(self, pieces: int, factor: float) -> UpperLimit:
        """Return the limit for `factor` times as many rows, with each interval cut into `pieces` alike."""
        arrays: dict[str, Any] = {name: np.repeat(getattr(self, name), pieces) for name in BY_INTERVAL}
        arrays["share"] /= pieces
        arrays["rows"] *= factor / pieces
        arrays["within"] /= pieces**2
        return replace(
            self,
            **arrays,
            inside=self.inside / pieces**2,
            size=self.size * factor,
            constant=self.constant / factor**2,
            slope=self.slope / factor,
        )

    def _everywhere(self, energy: float) -> FloatArray:
        """Return the curve that has the same error in all intervals, towards 1/2, as far as there is room."""
        return np.asarray(self._direction * _capped(self._room, self.share, energy))


def _log_binomial(trials: FloatArray | float, events: FloatArray, chance: FloatArray) -> FloatArray:
    """Return the logarithms of binomial probabilities."""
    gammaln = scipy.special.gammaln
    ways = gammaln(trials + 1) - gammaln(events + 1) - gammaln(trials - events + 1)
    return np.asarray(
        ways + scipy.special.xlogy(events, chance) + scipy.special.xlog1py(trials - events, -chance)
    )


def _capped(room: FloatArray, share: FloatArray, energy: float) -> FloatArray:
    """Return one error for all intervals, cut off at their room, with the given energy."""
    order = np.argsort(room)
    square, part = room[order] ** 2, share[order]
    used = np.cumsum(part * square)
    free = np.cumsum(part[::-1])[::-1]
    level = (energy - (used - part * square)) / free  # if all before are full
    first = int(np.argmax(level <= square)) if (level <= square).any() else len(room) - 1
    return np.asarray(np.minimum(room, math.sqrt(max(float(level[first]), 0.0))))


def _directions(share: FloatArray, score: FloatArray, energy: float) -> FloatArray:
    """Return curves of some energy in all directions of two or three intervals, one in each row.

    All rates but one are on a grid that is dense at the ends of what is possible; the last one has the rest of the
    energy.
    """
    reach = np.sqrt(energy / share)
    low, high = np.maximum(score - reach, 0.0), np.minimum(score + reach, 1.0)
    n = len(share)
    grid = (
        low
        + (high - low) * np.sin(np.linspace(0, np.pi / 2, const.RATES_BY_INTERVALS[n]))[:, np.newaxis] ** 2
    )
    rates = np.concatenate([grid, score[np.newaxis]])
    found = []
    for free in range(n):
        others = [k for k in range(n) if k != free]
        gap = np.zeros((len(rates) ** (n - 1), n))
        gap[:, others] = score[others] - np.array(list(itertools.product(*rates[:, others].T)))
        rest = energy - gap**2 @ share
        possible = rest >= -1e-12 * energy  # the ends of the grid leave nothing, up to rounding
        gap, rest = gap[possible], np.maximum(rest[possible], 0.0)
        for sign in (-1, 1):
            gap[:, free] = sign * np.sqrt(rest / share[free])
            rate = score[free] - gap[:, free]
            found.append(gap[(rate >= -1e-12) & (rate <= 1 + 1e-12)])
    return np.asarray(score - np.clip(score - np.concatenate(found), 0.0, 1.0))


def _binomial_below(events: float, rows: float, rate: float, within: float) -> float:
    """Return the probability of that many events or fewer; rows need not be whole numbers."""
    if rate >= 1:
        return 1.0 if rate == 1 and events >= rows else 0.0
    flip = rate > 0.5  # the rarer label is counted
    q = 1 - rate if flip else rate
    within = min(within, 0.9 * q * (1 - q))
    chance = q + within / q
    trials = rows * q / chance
    if flip:  # P(trials - others <= events): others at least rows - events
        least = rows - events
        if least <= 0:
            return 1.0
        return float(scipy.special.betainc(least, max(trials - least + 1, 1e-12), chance))
    return 1.0 if events >= trials else float(scipy.special.betaincc(events + 1, trials - events, chance))
