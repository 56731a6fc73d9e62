"""The report: an assessment as one HTML page that needs nothing else."""

from truecal._lib.checks import require

# Before anything imports jinja2 and markupsafe, so that the error says what to install.
require("jinja2", extra="app", purpose="The report")

from truecal.report.page import render, render_notebook  # noqa: E402

__all__ = ["render", "render_notebook"]
