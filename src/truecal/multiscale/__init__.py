"""The statistical core: nested bins, smooth curves, evidence, limits, and the test of calibration."""

from truecal._lib.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
