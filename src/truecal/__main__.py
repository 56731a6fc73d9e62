"""``python -m truecal``: the command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or report what it needs."""
    try:
        from truecal.cli import main as command_line
    except ImportError:
        print(
            "truecal: the command line needs click. Install it with: pip install 'truecal[app]'",
            file=sys.stderr,
        )
        sys.exit(2)
    command_line(prog_name="truecal")


if __name__ == "__main__":
    main()
