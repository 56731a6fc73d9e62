"""Everything about one set of predictions: estimates, interval, test, groups, recalibration, verdict."""
