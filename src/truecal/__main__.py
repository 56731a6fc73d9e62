"""``python -m truecal``: the command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or report what it needs."""
    try:
        from truecal.cli import main as command_line
    except ImportError:
        sys.exit(_without_click(sys.argv[1:]))
    command_line(prog_name="truecal")


def _without_click(arguments: list[str]) -> int:
    """Answer what can be answered without the packages of the command line, and return the exit code."""
    needs = "the command line needs click. Install it with: pip install 'truecal[app]'"
    if arguments == ["--version"]:
        from truecal import __version__

        print(f"truecal, version {__version__}")
        return 0
    if arguments in (["--help"], ["-h"]):
        print(
            f"Usage: truecal COMMAND [ARGS]...\n\nMeasure the calibration of predicted probabilities: {needs}"
        )
        return 0
    print(f"truecal: {needs}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
