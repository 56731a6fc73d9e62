import pickle

import pytest

import truecal
from truecal.exceptions import CalibrationWarning, InputError, MissingExtraError, Remedy, show_value


def test_an_input_error_is_a_value_error_with_fields():
    error = InputError(
        "has 2 values outside [0, 1]",
        argument="y_proba",
        count=2,
        first_row=17,
        value=1.2,
        remedy=Remedy.PERCENT,
    )
    assert isinstance(error, ValueError)
    assert (error.argument, error.count, error.first_row, error.value) == ("y_proba", 2, 17, 1.2)
    assert str(error) == f"y_proba has 2 values outside [0, 1] (first at row 17: 1.2). {Remedy.PERCENT.value}"
    assert error.describe(argument="column 'p'", first_row_number=1, remedy="Use --percent.") == (
        "column 'p' has 2 values outside [0, 1] (first at row 18: 1.2). Use --percent."
    )


def test_a_problem_without_an_argument_is_a_sentence():
    assert str(InputError("there are no rows")) == "there are no rows."


@pytest.mark.parametrize(
    "error",
    [
        InputError("is wrong", argument="a", count=1, first_row=0, value=2, remedy="Fix it."),
        MissingExtraError("polars", extra="app", purpose="Reading"),
    ],
)
def test_errors_survive_a_worker_process(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy).keys() == vars(error).keys()


def test_a_missing_extra_names_the_command_that_installs_it():
    error = MissingExtraError("polars", extra="app", purpose="Reading Parquet")
    assert isinstance(error, ImportError)
    assert (
        str(error)
        == "Reading Parquet needs the package 'polars'. Install it with: pip install 'truecal[app]'"
    )


def test_values_are_short_in_messages():
    assert show_value(True) == "True"
    assert len(show_value("x" * 200)) == 60


def test_warnings_can_be_filtered_without_those_of_others():
    assert issubclass(CalibrationWarning, UserWarning)
    with pytest.warns(CalibrationWarning):
        truecal.estimate([1, 1, 0, 0], [0.0, 0.0, 1.0, 1.0], estimator="em_sweep")
