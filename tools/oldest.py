"""Print a constraints file that pins truecal's run-time dependencies to their declared floors.

``numpy>=2.0`` in pyproject.toml becomes ``numpy==2.0``, for the core dependencies and the ``app`` extra.
Testing against them (`make test-all`) keeps the floors true. By hand:

    python tools/oldest.py > constraints.txt && pip install -e .[dev] -c constraints.txt
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def constraints(pyproject: Path = PYPROJECT) -> list[str]:
    """Turn every ``name>=floor`` of the core and of the ``app`` extra into ``name==floor``."""
    project = tomllib.loads(pyproject.read_text())["project"]
    requirements = project["dependencies"] + project["optional-dependencies"]["app"]
    lines = []
    for requirement in requirements:
        match = re.fullmatch(r"([\w.-]+)\s*>=\s*([\w.]+)", requirement)
        if match is None:
            sys.exit(f"{pyproject}: {requirement!r} is not of the form name>=floor")
        lines.append("{}=={}".format(*match.groups()))
    return lines


if __name__ == "__main__":
    print("\n".join(constraints()))
