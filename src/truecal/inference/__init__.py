"""Estimates, intervals, tests and comparisons."""
