from truecal.inference.monitor._change import ChangePoint as ChangePoint
from truecal.inference.monitor._change import Diagnosis as Diagnosis
from truecal.inference.monitor._monitor import CalibrationMonitor as CalibrationMonitor
from truecal.inference.monitor._state import Look as Look
