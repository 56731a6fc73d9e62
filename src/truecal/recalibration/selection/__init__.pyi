from truecal.recalibration.selection._compare import CandidateScore as CandidateScore
from truecal.recalibration.selection._select import Selection as Selection
from truecal.recalibration.selection._select import select_recalibrator as select_recalibrator
