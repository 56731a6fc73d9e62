from truecal import power, spiegelhalter_test
from truecal._lib.docs import CLUSTERS, PREDICTIONS, READING, fill_docstring
from truecal.simulation import detectable_error


def test_pieces_are_indented_as_the_line_that_they_replace():
    @fill_docstring(norm="norm : float\n    Order of the norm.\n\nmore")
    def measure(norm):
        """Measure.

        {norm}
        {other}
        """

    lines = measure.__doc__.splitlines()
    indent = lines[-2][: lines[-2].index("{")]
    assert lines[2:6] == [f"{indent}norm : float", f"{indent}    Order of the norm.", "", f"{indent}more"]
    assert lines[6] == f"{indent}{{other}}"


def test_a_function_without_docstring_stays_so():
    assert fill_docstring(a="b")(lambda: None).__doc__ is None


def test_help_has_no_place_left_to_fill():
    for function in (spiegelhalter_test, detectable_error, power):
        assert "{predictions}" not in function.__doc__
        assert "{options}" not in function.__doc__
    for piece in (PREDICTIONS, READING):
        assert piece.splitlines()[0] in spiegelhalter_test.__doc__
    assert not CLUSTERS.endswith("\n")
