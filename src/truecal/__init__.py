"""Measure how far predicted probabilities are from the truth, and how sure one can be.

The public names are listed in the type stub beside this file and imported when they are first used, so
that ``import truecal`` and ``truecal --help`` are fast.
"""

from truecal._lib.lazy import attach

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = attach(__name__, __file__)
