from truecal.inference.monitor._monitor import CalibrationMonitor as CalibrationMonitor
from truecal.inference.monitor._state import ChangePoint as ChangePoint
from truecal.inference.monitor._state import Diagnosis as Diagnosis
from truecal.inference.monitor._state import Look as Look
