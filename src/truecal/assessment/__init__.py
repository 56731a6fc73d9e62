"""Everything about one set of predictions: estimates, interval, test, groups, recalibration, verdict."""

from truecal.assessment.assess import Assessment, assess
from truecal.assessment.difference import Difference
from truecal.assessment.groups import Group, Groups
from truecal.assessment.plan import PlannedRows
from truecal.assessment.recalibration import Recalibration

__all__ = ["Assessment", "Difference", "Group", "Groups", "PlannedRows", "Recalibration", "assess"]
