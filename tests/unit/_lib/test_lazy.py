import importlib
import inspect
import pkgutil
import re
import subprocess
import sys

import pytest

import truecal
from truecal._lib.lazy import fill_docstring, with_arguments_of


def test_names_are_those_of_the_stub():
    assert set(truecal.__all__) < set(dir(truecal))
    assert "estimate" in truecal.__all__
    for name in truecal.__all__:
        assert getattr(truecal, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'truecal' has no attribute 'nonsense'"):
        truecal.nonsense  # noqa: B018


def test_python_suggests_the_name_that_is_meant():
    done = subprocess.run(
        [sys.executable, "-c", "import truecal; truecal.asess"], capture_output=True, text=True
    )
    assert "Did you mean: 'assess'?" in done.stderr


def test_importing_loads_nothing_until_a_name_is_used():
    program = "import sys, truecal; assert 'numpy' not in sys.modules; truecal.estimate; assert 'numpy' in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("estimator", ["multiscale", "ew_bin", "em_debias"])
def test_a_first_estimate_waits_for_no_slow_import(estimator):
    slow = ["importlib.metadata", "joblib", "narwhals", "numpy.ma", "numpy.random"]
    slow += [f"scipy.{part}" for part in ("fft", "optimize", "sparse", "special", "stats")]
    call = f"truecal.calibration_error([0, 1, 1, 0], [0.1, 0.4, 0.8, 0.9], estimator={estimator!r})"
    program = f"import sys, truecal; {call}; print(*sorted(set({slow}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


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
