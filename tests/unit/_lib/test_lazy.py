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
