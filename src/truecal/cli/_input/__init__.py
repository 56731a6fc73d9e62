"""Predictions from files."""
