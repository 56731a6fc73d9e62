"""Fits of populations to data."""
