import inspect

import pytest

import truecal
from truecal.data.arrays import Reading, takes_predictions

TAKE_PREDICTIONS = [
    name
    for name in truecal.__all__
    if inspect.isfunction(getattr(truecal, name))
    and "y_proba" in inspect.signature(getattr(truecal, name)).parameters
]


def test_the_keywords_are_written_out_in_the_signature_and_in_the_docstring():
    @takes_predictions
    def total(y_true, y_proba=None, *, digits: int = 2, **reading):
        """Return something.

        Parameters
        ----------
        {predictions}
        digits : int
            How many.
        {reading}
        {clusters}
        """

    parameters = inspect.signature(total).parameters
    assert list(parameters) == ["y_true", "y_proba", "digits", *Reading.__annotations__]
    assert all(parameters[name].default is None for name in Reading.__annotations__)
    lines = inspect.getdoc(total).splitlines()  # Python 3.13 removes the indentation itself
    starts = {line.partition(" : ")[0] for line in lines}
    assert {"y_true", "digits", "sample_weight", "clusters"} <= starts
    assert "{" not in total.__doc__.replace('{"sampling"', "")


@pytest.mark.parametrize("name", TAKE_PREDICTIONS)
def test_every_function_of_predictions_has_its_keywords_in_its_signature_and_docstring(name):
    function = getattr(truecal, name)
    parameters = inspect.signature(function).parameters
    assert {"pos_label", "labels", "multiclass", "clusters"} <= set(parameters)
    for parameter in parameters:
        assert parameter in function.__doc__, parameter


@pytest.mark.parametrize("name", sorted(set(TAKE_PREDICTIONS) - {"audit", "compare"}))
def test_an_unknown_keyword_is_refused(name):
    with pytest.raises((TypeError, truecal.exceptions.InputError), match="colour"):
        getattr(truecal, name)([0, 1, 0, 1], [0.2, 0.7, 0.4, 0.6], colour="red")
