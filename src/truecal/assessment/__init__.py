"""Assessment of a set of predictions in one call, and the data behind the plots."""

from truecal._lib.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
