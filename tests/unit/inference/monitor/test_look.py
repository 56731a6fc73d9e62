import numpy as np

from truecal.inference.monitor.look import LOOK_NUMBERS, exp_or_infinity, look_of, numbers_of


def test_a_look_survives_its_numbers():
    row = [float(k) for k in range(len(LOOK_NUMBERS))]
    row[LOOK_NUMBERS.index("alarm")] = 1.0
    row[LOOK_NUMBERS.index("change_alarm")] = 0.0
    look = look_of(np.array(row), "2026-11-16")
    assert (look.alarm, look.change_alarm, look.time) == (True, False, "2026-11-16")
    assert numbers_of(look) == row


def test_large_evidence_is_infinite():
    assert exp_or_infinity(0.0) == 1.0
    assert exp_or_infinity(1e4) == float("inf")
