import numpy as np
import pytest

from truecal.cli._input.plan import refuse_outcomes
from truecal.exceptions import InputError

LABEL = np.arange(200) % 5 == 0


def refused(column, label=LABEL):
    try:
        refuse_outcomes({"x": column}, label, remedy="Leave it out.")
    except InputError as error:
        return "column 'x' has" in str(error) and str(error).endswith("Leave it out.")
    return False


@pytest.mark.parametrize(
    "column",
    [
        LABEL,
        np.where(LABEL, "yes", "no"),
        np.where(LABEL, None, "no").astype(object),
        np.where(LABEL, 1.5, np.nan),
        np.arange(200) % 10,
    ],
)
def test_a_column_that_determines_the_label_is_refused(column):
    assert refused(column)
    changed = np.array(LABEL)
    changed[-1] = ~changed[-1]
    assert not refused(column, changed)


def test_chance_is_not_refused():
    assert not refused(np.arange(200))  # one row for each value
    assert not refused(np.arange(200) // 5 + 100 * LABEL)
    assert not refused(np.arange(200) < 9, np.arange(200) < 9)  # nine rows of a label
    assert refused(np.arange(200) < 10, np.arange(200) < 10)
    assert not refused(np.arange(200) % 2, np.ones(200))


def test_several_classes():
    label = np.array(["a", "b", "c"])[np.arange(300) % 3]
    assert refused(np.arange(300) % 3, label)
    assert not refused(np.arange(300) % 2, label)


def test_the_first_rows_do_not_decide():
    label = np.arange(4000) % 2
    assert not refused(np.where(np.arange(4000) < 2000, label, 0), label)
