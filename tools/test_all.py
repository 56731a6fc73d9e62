"""Run the test suite on every supported Python of this machine, and once on the oldest dependencies.

Called by ``make test-all``; arguments are passed on to pytest. Each run has its own environment
(``.venv-3.12``, ``.venv-oldest``), which is used again as long as pyproject.toml does not change.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from oldest import constraints
from pythons import find_pythons

ROOT = Path(__file__).parents[1]


def make_environment(folder: Path, python: str, *pip_arguments: str) -> bool:
    """Install truecal with its test tools in ``folder``; False when pip finds no fitting packages."""
    wanted = "\n".join([python, *pip_arguments, (ROOT / "pyproject.toml").read_text()])
    stamp = folder / ".stamp"
    if stamp.exists() and stamp.read_text() == wanted:
        return True
    subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
    pip = [folder / "bin/python", "-m", "pip", "-qq", "--disable-pip-version-check"]
    # Wheels only: a release without a wheel for this Python is one that does not support it.
    install = [*pip, "install", "--only-binary=:all:", *pip_arguments, "-e", ".[dev]"]
    if subprocess.run(install, cwd=ROOT, check=False).returncode:
        return False
    stamp.write_text(wanted)
    return True


def run_tests(folder: Path, pytest_arguments: list[str]) -> bool:
    """Run pytest in one environment."""
    command = [folder / "bin/python", "-m", "pytest", *pytest_arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def main(pytest_arguments: list[str]) -> int:
    """Run everything, then say what passed."""
    found, skipped = find_pythons()
    for path, reason in skipped.items():
        print(f"skipped  {path}: {reason}")
    for path in found.values():
        print(f"found    {path}")
    outcomes: dict[str, str] = {}

    for (major, minor), path in found.items():
        name = f"Python {major}.{minor}"
        folder = ROOT / f".venv-{major}.{minor}"
        print(f"\n== {name}, newest dependencies", flush=True)
        if make_environment(folder, path):
            outcomes[name] = "passed" if run_tests(folder, pytest_arguments) else "FAILED"
        else:
            outcomes[name] = "FAILED: its packages could not be installed"

    pins = constraints()
    print(f"\n== oldest dependencies: {' '.join(pins)}", flush=True)
    name = "oldest dependencies"
    outcomes[name] = "FAILED: no Python here has wheels for them"
    # The newest Python that has wheels of these releases: old releases know nothing of new Pythons.
    for (major, minor), path in reversed(found.items()):
        if make_environment(ROOT / ".venv-oldest", path, *pins):
            outcomes[name] = "passed" if run_tests(ROOT / ".venv-oldest", pytest_arguments) else "FAILED"
            outcomes[name] += f" (on Python {major}.{minor})"
            break
        print(f"not on Python {major}.{minor}: no wheels for it", flush=True)

    print()
    for name, outcome in outcomes.items():
        print(f"{name}: {outcome}")
    return int(any(outcome.startswith("FAILED") for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
