"""Pictures: displays hold results and draw them with matplotlib; they never compute.

They follow scikit-learn's conventions: `from_predictions` and its like compute what is to be drawn, `plot(ax=None)`
draws it and returns the display, whose `ax_` and `figure_` are then matplotlib's. No global setting is touched, and
matplotlib is imported when something is drawn.
"""

from truecal._lib.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
