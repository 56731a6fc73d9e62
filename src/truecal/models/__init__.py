"""Known truth: score distributions, calibration curves, populations, and fits of them."""
