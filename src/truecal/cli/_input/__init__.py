"""Reading predictions from files."""

from truecal._lib.checks import require

require("polars", extra="app", purpose="Reading tables")
