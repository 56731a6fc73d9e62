"""Benchmarks of truecal, alone (`core`) and against other packages (`peers`). Start them with run.py."""
