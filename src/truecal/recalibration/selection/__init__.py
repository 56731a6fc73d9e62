"""Choose a recalibrator, or leave the model alone.

An estimate of calibration error cannot say by itself whether to recalibrate: it is biased, by another amount
for the model than for its recalibrated twin. So two questions are asked, one after the other.

*Is there anything to mend?* A candidate must improve a proper score, Brier's or the log loss, on rows that it
was not fitted to, by more than chance: by more than `z` times the spread that the improvement would have if
labels were drawn from the model's own probabilities. For Brier's score the improvement is the fall of the
squared l2 calibration error, less what the candidate blurs; the log loss sees best what is wrong near 0 and
near 1.

*Which mends it best?* Of the candidates that pass and the model itself, the one with the least criterion.
"""

from truecal.recalibration.selection.choose import select_recalibrator
from truecal.recalibration.selection.results import CandidateScore, Selection

__all__ = ["CandidateScore", "Selection", "select_recalibrator"]
