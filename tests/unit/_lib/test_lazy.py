import subprocess
import sys

import pytest

import truecal


def test_names_are_those_of_the_stub():
    assert set(truecal.__all__) < set(dir(truecal))
    assert "estimate" in truecal.__all__
    for name in truecal.__all__:
        assert getattr(truecal, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'truecal' has no attribute 'nonsense'"):
        truecal.nonsense  # noqa: B018


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
