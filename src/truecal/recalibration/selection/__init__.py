"""Choose a recalibrator, or leave the model alone.

An estimate of calibration error cannot show by itself whether to recalibrate: it is biased, and by another amount
for the model than for the recalibrated model. So two questions are asked, one after the other.

*Is there anything to correct?* A candidate must improve a proper score, the Brier score or the log loss, on rows
that it was not fitted to, by more than `z` times the standard deviation that the improvement would have if labels
were drawn from the model's own probabilities. For the Brier score the improvement is the fall of the squared l2
calibration error, less what the candidate blurs; the log loss is more sensitive to errors near 0 and 1.

*Which corrects it best?* Of the candidates that pass and the model itself, the one with the smallest criterion.
"""

from truecal._lib.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
