"""The report: an assessment as one HTML page that needs nothing else."""

from truecal.report.page import render, render_notebook

__all__ = ["render", "render_notebook"]
