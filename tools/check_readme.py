"""Run every command of README.md in a fresh copy and a fresh environment, and check its links.

``python tools/check_readme.py``, five minutes; ``--links`` only checks links. The copy is what git has (HEAD). Commands
are those of fences marked ``sh`` and ``console``, the Python examples, and commands in the text that begin with
``python``. `make test` is not run, nor what is marked "after the first release". Long experiments run with little data.
Links to files must exist in the copy; outside addresses are checked for their form, not fetched.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[1]
#: Commands that are run elsewhere, or cannot work yet.
NOT_RUN = ("make test",)
#: What makes a long command short.
SHORT = {"python -m experiments": "--quick", "python tools/intervals_at_zero.py": "--draws 1 --only truecal"}


def fences(page: str, kind: str) -> list[str]:
    """Return the contents of the fences of a kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def commands(page: str) -> Iterator[str]:
    """Yield the commands of a page, in order of kind: shell, console, text."""
    for fence in fences(page, "sh"):
        yield from (line.partition("  #")[0].strip() for line in fence.splitlines() if line.strip())
    for fence in fences(page, "console"):
        yield from (line[2:] for line in fence.splitlines() if line.startswith("$ "))
    for command in re.findall(r"`(python (?:-m|tools/)[^`]+)`", page):
        (short,) = (options for start, options in SHORT.items() if command.startswith(start))
        yield f"{command} {short}"


def bad_links(page: str, folder: Path) -> list[str]:
    """Return links of a page that lead nowhere: files that do not exist, addresses that are none."""
    found = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page):
        parts = urlsplit(target)
        if parts.scheme:
            good = parts.scheme == "https" and re.fullmatch(r"[\w-]+(\.[\w-]+)+", parts.netloc) is not None
        else:
            good = not parts.path or (folder / parts.path).exists()
        if not good:
            found.append(target)
    return found


def run_all(page: str, folder: Path) -> list[str]:
    """Run the commands and the Python examples in a copy, and return those that fail."""
    environment = folder / "environment"
    venv.create(environment, with_pip=True)
    paths = {**os.environ, "PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    paths.pop("PYTHONPATH", None)
    failed = []
    todo = [command for command in commands(page) if command not in NOT_RUN]
    example = folder / "readme_examples.py"
    example.write_text("\n".join(fences(page, "python")), encoding="utf-8")
    for command in [*todo, f"python {example.name}"]:
        print(f"$ {command}", flush=True)
        done = subprocess.run(command, shell=True, cwd=folder, env=paths, stdout=subprocess.DEVNULL)
        # `truecal test` answers "no" with 1; 2 means that the command was not understood.
        if done.returncode > (1 if command.startswith("truecal test") else 0):
            failed.append(f"exit code {done.returncode}: {command}")
    return failed


def main() -> int:
    """Print what fails, and return 1 if anything does."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)
        page = (folder / "README.md").read_text(encoding="utf-8")
        wrong = [f"link: {target}" for target in bad_links(page, folder)]
        if "--links" not in sys.argv:
            wrong += run_all(page, folder)
    print("\n".join(wrong) or "README.md: every command runs, and every link leads somewhere.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
