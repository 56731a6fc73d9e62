import numpy as np
import pytest

from truecal.cli._output import describe, naming
from truecal.exceptions import InputError, Remedy


def test_every_remedy_has_a_sentence_for_the_command_line():
    for remedy in Remedy:
        assert describe(InputError("is bad", remedy=remedy)).removeprefix("is bad. ") == (
            remedy.on_command_line.replace("{value}", "None")
        )


def test_arguments_become_options_and_columns():
    assert describe(InputError("must be >= 1", argument="n_bins")) == "--n-bins must be >= 1."
    assert describe(InputError("must be >= 1", argument="n_resamples")) == "--resamples must be >= 1."
    error = InputError("has 2 values", argument="y_true", first_row=0, value=7, remedy=Remedy.POS_LABEL)
    expected = "column 'y' has 2 values (first at row 1: 7). Choose the positive label with --pos-label."
    assert describe(error, {"y_true": "column 'y'"}) == expected


def test_the_file_is_named():
    with pytest.raises(InputError) as caught, naming("a.csv", {"y_proba": "column 'p'"}):
        raise InputError("is bad", argument="y_proba")
    assert str(caught.value) == "a.csv: column 'p' is bad."


def test_rows_are_those_of_the_file():
    error = InputError("is bad", argument="y_proba", first_row=1, value=7)
    with pytest.raises(InputError) as caught, naming("a.csv", {"y_proba": "column 'p'"}, np.array([0, 4, 5])):
        raise error
    assert str(caught.value) == "a.csv: column 'p' is bad (first at row 5: 7)."
