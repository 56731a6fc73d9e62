"""Tests in other environments: every Python, the oldest and the newest dependencies, no extras, the sdist.

`make test-all` runs the default sessions, `nox --list` shows all. Arguments after `--` are passed to pytest.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import nox

PYPROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = nox.project.python_versions(PYPROJECT)
TEST = nox.project.dependency_groups(PYPROJECT, "test")
PYTEST = ("python", "-m", "pytest", "--ignore=tests/engines")
NIGHTLY = "https://pypi.anaconda.org/scientific-python-nightly-wheels/simple"

nox.options.sessions = ["tests", "oldest", "minimal", "sdist"]

# pyenv's shims fail for versions that are not active; the interpreters themselves always work.
_PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/3.*/bin")
os.environ["PATH"] = os.pathsep.join([*map(str, sorted(_PYENV)), os.environ["PATH"]])

#: The Python of this process, which `make test` uses, and the newest supported one on this machine.
OWN = f"{sys.version_info.major}.{sys.version_info.minor}"
NEWEST = next((python for python in reversed(PYTHONS) if shutil.which(f"python{python}")), OWN)


def pytest(session: nox.Session, *arguments: str) -> None:
    """Run the tests with the arguments of the command line, or else all but the slow ones on all cores."""
    session.run(*PYTEST, *(session.posargs or ("-n", "auto", "-m", "not slow")), *arguments)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Test with the newest dependencies."""
    session.install("-e", ".[app]", *TEST)
    pytest(session)


@nox.session(python=NEWEST)
def newest(session: nox.Session) -> None:
    """Test on the newest Python of this machine, if it is newer than the one that `make test` uses."""
    if NEWEST == OWN:
        session.skip(f"Python {OWN} is the newest supported one here, and `make test` uses it")
    tests(session)


@nox.session(python=PYTHONS[0])
def oldest(session: nox.Session) -> None:
    """Test with the oldest dependencies that pyproject.toml allows, those of the tests included."""
    project = PYPROJECT["project"]
    floors = [*project["dependencies"], *project["optional-dependencies"]["app"], *TEST]
    pins = [re.sub(r"^([\w-]+)>=([\d.]+)$", r"\1==\2", floor) for floor in floors]
    session.install("--only-binary=:all:", "-e", ".[app]", *pins)
    pytest(session)


@nox.session
def nightly(session: nox.Session) -> None:
    """Test with the nightly builds of the scientific packages (SPEC 4)."""
    session.install("-e", ".[app]", *TEST)
    session.install("--pre", "--upgrade", "--extra-index-url", NIGHTLY, "numpy", "scipy", "pandas")
    pytest(session)


@nox.session
def minimal(session: nox.Session) -> None:
    """Install the wheel without extras: every public name loads, and the estimators work."""
    session.install(".", "pytest", "hypothesis")
    session.run("python", "-c", "import truecal; [getattr(truecal, name) for name in truecal.__all__]")
    session.run("python", "-m", "pytest", "tests/contract", "tests/unit/estimators")


@nox.session
def sdist(session: nox.Session) -> None:
    """Build the sdist and the wheel, check their metadata, and run the tests of the unpacked sdist."""
    session.install("build", "twine", *TEST)
    shutil.rmtree("dist", ignore_errors=True)
    session.run("python", "-m", "build")
    archives = [str(path) for path in Path("dist").iterdir()]
    session.run("python", "-m", "twine", "check", "--strict", *archives)
    shutil.unpack_archive(next(Path("dist").glob("*.tar.gz")), session.create_tmp(), filter="data")
    session.chdir(next(Path(session.create_tmp()).glob("truecal-*")))
    session.install("-e", ".[app]")
    pytest(session)
