"""The report: an assessment as one HTML page that needs nothing else."""

from truecal._lib.checks import require
from truecal._lib.lazy import attach

# Before anything imports jinja2 and markupsafe, so that the error says what to install.
require("jinja2", extra="app", purpose="The report")

__getattr__, __dir__, __all__ = attach(__name__, __file__)
