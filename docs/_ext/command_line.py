"""The commands with their options, from the command line itself."""

from __future__ import annotations

from typing import Any

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from truecal.cli import COMMANDS, main


class CommandReference(SphinxDirective):
    """``{command-reference}``: a section for each command with what ``--help`` says."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        context = click.Context(main, info_name="truecal")
        found: list[nodes.Node] = []
        for name, summary in COMMANDS.items():
            command = main.get_command(context, name)
            if command is None:
                continue
            own = click.Context(
                command, info_name=name, parent=context, terminal_width=88, max_content_width=88
            )
            section = nodes.section(ids=[nodes.make_id(f"command {name}")])
            section += nodes.title("", "", nodes.literal("", f"truecal {name}"))
            section += nodes.paragraph(text=summary)
            section += nodes.literal_block(text=command.get_help(own), language="text")
            found.append(section)
        return found


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("command-reference", CommandReference)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
