"""Distributions of predicted probabilities."""
