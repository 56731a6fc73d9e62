"""Monitoring of calibration over time, with alarms that may be looked at after every batch."""
