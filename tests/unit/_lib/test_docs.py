import importlib
import inspect
import pkgutil
import re

import truecal
from truecal._lib.docs import fill_docstring, with_arguments_of


def test_pieces_are_indented_as_the_line_that_they_replace():
    @fill_docstring(norm="norm : float\n    Order of the norm.\n\nmore")
    def measure(norm):
        """Measure.

        {norm}
        {other}
        """

    lines = inspect.getdoc(measure).splitlines()
    assert lines[2:] == ["norm : float", "    Order of the norm.", "", "more", "{other}"]


def test_a_function_without_docstring_stays_so():
    assert fill_docstring(a="b")(lambda: None).__doc__ is None


def test_no_docstring_has_a_place_left_to_fill():
    for module in pkgutil.walk_packages(truecal.__path__, "truecal."):
        if module.name.startswith(("truecal.integrations", "truecal.__main__")):
            continue
        functions = [one for one in vars(importlib.import_module(module.name)).values() if callable(one)]
        methods = [one for name in functions if inspect.isclass(name) for one in vars(name).values()]
        for one in (*functions, *methods):
            lines = (getattr(one, "__doc__", None) or "").splitlines()
            assert not [line for line in lines if re.fullmatch(r"\s*\{\w+\}\s*", line)], (module.name, one)


def test_a_function_can_have_the_arguments_of_another():
    def plan(error: float, *, power: float = 0.9) -> str:
        return f"{error} {power}"

    @with_arguments_of(plan)
    def size(*given, **options) -> int:
        return len(plan(*given, **options))

    assert str(inspect.signature(size)) == "(error: float, *, power: float = 0.9) -> int"
    assert size(0.1, power=0.75) == 8
