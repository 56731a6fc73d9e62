"""Everything about one set of predictions: estimates, interval, test, verdict."""

from truecal.assessment.assess import Assessment, assess

__all__ = ["Assessment", "assess"]
