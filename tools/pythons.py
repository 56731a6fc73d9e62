"""Find the CPython interpreters of this machine that truecal supports."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 11)
NEWEST_KNOWN = (3, 14)

# `ensurepip` is asked for because Debian ships pythons without it, which cannot make environments.
_PROBE = "import ensurepip, sys; print(*sys.version_info[:2], sys.implementation.name)"

Version = tuple[int, int]


def probe(path: str) -> Version | str:
    """Give the version of an interpreter, or the reason why it cannot be used."""
    try:
        done = subprocess.run([path, "-c", _PROBE], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        # A traceback ends with its cause; a pyenv shim for an inactive version begins with it.
        return lines[-1] if lines[0].startswith("Traceback") else lines[0]
    major, minor, implementation = done.stdout.split()
    return (int(major), int(minor)) if implementation == "cpython" else f"{implementation}, not cpython"


def candidates() -> list[str]:
    """List paths to try: this interpreter, then every python3.x on PATH and in pyenv."""
    names = [f"python3.{minor}" for minor in range(OLDEST[1], NEWEST_KNOWN[1] + 1)]
    folders = os.environ.get("PATH", "").split(os.pathsep)
    on_path = [shutil.which(name, path=folder) for folder in folders for name in ("python3", *names)]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    in_pyenv = sorted(str(path) for path in pyenv.glob("3.*/bin/python3"))
    return list(dict.fromkeys([sys.executable, *filter(None, on_path), *in_pyenv]))


def find_pythons() -> tuple[dict[Version, str], dict[str, str]]:
    """Give one interpreter per supported version (oldest first), and the skipped ones with the reason."""
    found: dict[Version, str] = {}
    skipped: dict[str, str] = {}
    for path in candidates():
        version = probe(path)
        if isinstance(version, str):
            skipped[path] = version
        elif version < OLDEST:
            skipped[path] = f"Python {version[0]}.{version[1]} is older than {OLDEST[0]}.{OLDEST[1]}"
        else:
            found.setdefault(version, path)
    return dict(sorted(found.items())), skipped
