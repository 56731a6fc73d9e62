"""Calibration over time: an alarm with a guarantee, when the change began, and what changed."""

from truecal._lib.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
