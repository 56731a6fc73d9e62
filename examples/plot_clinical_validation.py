# ruff: noqa: D205, D400
"""
Clinical validation
===================

What a paper on a clinical prediction model reports about calibration, discrimination and clinical utility: O:E,
calibration intercept and slope, ICI, C statistic, a calibration plot and a decision curve, all with intervals.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, logit

import truecal

# %%
# A model that was developed elsewhere
# ------------------------------------
#
# 2,000 patients of 40 hospitals. The risks are too extreme, as those of an overfitted model are, and too high for this
# population; hospitals differ beyond what the model knows.

rng = np.random.default_rng(1)
hospital = np.repeat(np.arange(40), 50)
risk = rng.beta(1.6, 4.5, 2000)
chance = expit(-0.6 + 0.75 * logit(risk) + rng.normal(0, 0.25, 40)[hospital])
outcome = (rng.random(2000) < chance).astype(int)

print(truecal.weak_calibration(outcome, risk, clusters=hospital))

# %%
# The calibration plot
# --------------------
#
# The flexible curve may bend wherever the data show it. The dashed curve is the logistic model with the calibration
# intercept and slope. Below: predicted risks of patients with the event (upwards) and without.

truecal.display.CalibrationPlotDisplay.from_predictions(outcome, risk, clusters=hospital)
plt.show()

# %%
# ICI, E50, E90 and Emax
# ----------------------

print(truecal.calibration_index(outcome, risk, clusters=hospital))

# %%
# Is it useful?
# -------------
#
# The decision curve compares acting on the model with treating all and treating none. The dashed curve is what a
# logistic recalibration would reach.

truecal.display.DecisionCurveDisplay.from_predictions(
    outcome, risk, clusters=hospital, thresholds=np.arange(1, 61) / 100
)
plt.show()

# %%
# Miscalibration costs most at thresholds where risks are far off:

truecal.display.DecisionCurveDisplay.from_predictions(
    outcome, risk, clusters=hospital, thresholds=np.arange(1, 61) / 100, quantity="cost"
)
plt.show()

# %%
# Everything at once
# ------------------
#
# ``assess(..., clinical=True)`` holds all of it; ``.to_html("report.html")`` writes the report. On the command line
# that is ``truecal report predictions.csv --clinical --cluster hospital``.

assessment = truecal.assess(
    outcome, risk, clusters=hospital, clinical=True, thresholds=[0.1, 0.2], recalibration=False, rng=0
)
print(assessment.clinical.verdict)
