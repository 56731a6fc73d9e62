"""The statistical core: nested bins, smooth curves, evidence, influence."""
