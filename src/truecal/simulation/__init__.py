"""Populations with known truth: score distributions, calibration curves, fits, studies, planning."""

from truecal._lib.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
