"""Pictures: displays hold results and draw them with matplotlib; they never compute.

They follow scikit-learn's conventions: `from_predictions` and its like compute what is to be drawn, `plot(ax=None)`
draws it and returns the display, whose `ax_` and `figure_` are then matplotlib's. No global setting is touched, and
matplotlib is imported when something is drawn.
"""

from truecal.display.audit import AuditDisplay
from truecal.display.bias import BiasDisplay
from truecal.display.bin_count import BinCountDisplay
from truecal.display.calibration_plot import CalibrationPlotDisplay
from truecal.display.comparison import ComparisonDisplay
from truecal.display.curve import CurveDisplay
from truecal.display.decision import DecisionCurveDisplay
from truecal.display.miss_rate import MissRateDisplay
from truecal.display.monitor import MonitorDisplay
from truecal.display.reliability import ReliabilityDisplay
from truecal.display.risk_coverage import RiskCoverageDisplay
from truecal.display.scores import ScoreDisplay

__all__ = [
    "AuditDisplay",
    "BiasDisplay",
    "BinCountDisplay",
    "CalibrationPlotDisplay",
    "ComparisonDisplay",
    "CurveDisplay",
    "DecisionCurveDisplay",
    "MissRateDisplay",
    "MonitorDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "ScoreDisplay",
]
