"""``python -m truecal``: the command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what it needs."""
    try:
        from truecal.cli import main as command_line
    except ImportError:
        sys.exit("The command line needs click and rich. Install them with: pip install 'truecal[app]'")
    command_line(prog_name="truecal")


if __name__ == "__main__":
    main()
