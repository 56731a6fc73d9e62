"""Every package of `src/truecal` has tests in the folder of its name."""

import pytest

from support.snippets import ROOT

SOURCE, TESTS = ROOT / "src" / "truecal", ROOT / "tests" / "unit"

PACKAGES = sorted(path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.glob("*/__init__.py"))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_has_tests(package):
    assert list((TESTS / package).rglob("test_*.py")), f"tests/unit/{package} has no tests"
