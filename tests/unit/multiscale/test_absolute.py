"""The l1 error: no noise is taken for error, and what is resolved is found."""

import numpy as np
import pytest

from truecal.multiscale._error import absolute_error, analyse


def test_without_error_the_bounds_have_mean_zero_or_less(draw):
    values = []
    for seed in range(300):
        found = analyse(draw(500, seed=seed)).squared
        units, gap = found.units, found.gaps[1]
        levels = [(1.0, found.levels.levels[2], units.bin[0] >> (units.depth - 4), found.levels.square[2, 0])]
        smooth = absolute_error(units, [], gap, found.beta.sd(units.score), (1.0, 0.0))
        binned = absolute_error(units, levels, gap, np.ones((1, 500)), (0.0, 0.0))
        values.append([smooth.value, binned.below])
    values = np.array(values)
    assert (values.mean(axis=0) < 4 * values.std(axis=0) / np.sqrt(300)).all()


def test_a_constant_shift_has_the_same_error_in_both_norms(draw):
    core = analyse(draw(20_000, lambda p: np.clip(p - 0.1, 0, 1)))
    assert core.error(1) == pytest.approx(core.error(2), abs=0.006)


def test_bounds_are_ordered(draw):
    absolute = analyse(draw(2000, lambda p: np.clip(p + 0.1 * np.sin(20 * np.pi * p), 0, 1))).absolute
    assert absolute.below <= absolute.value
    assert (np.abs(absolute.sign) <= 1).all()
