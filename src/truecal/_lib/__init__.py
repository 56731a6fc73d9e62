"""Helpers without statistics."""
