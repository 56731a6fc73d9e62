"""Pictures: displays hold results and draw them with matplotlib; they never compute.

They follow scikit-learn's conventions: `from_predictions` and its like compute what is to be drawn, draw it and return
the display, whose `ax_` and `figure_` are matplotlib's; `plot(ax=None)` draws it again. Without `ax` there is a new
figure of `matplotlib.pyplot`, which a notebook shows and a script shows with `plt.show()`. No global
setting is touched, and matplotlib is imported when something is drawn.
"""

from truecal._lib.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
