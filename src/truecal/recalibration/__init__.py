"""Recalibrators learn the observed frequency at each score and correct the scores; `selection` chooses one."""

from truecal._lib.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
