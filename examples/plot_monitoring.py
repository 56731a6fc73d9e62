# ruff: noqa: D205, D400
"""
Monitor a model over time
=========================

`CalibrationMonitor` may be looked at after every batch: the probability that a calibrated model ever raises an alarm is
at most 5%.
"""

from datetime import datetime, timedelta

import matplotlib.pyplot as plt

import truecal

# %%
# 500 predictions a day. After 40 days its probabilities are too high.

scores = truecal.simulation.UniformScores()
good = truecal.Population(scores, truecal.simulation.IdentityCurve())
drifted = truecal.Population(scores, truecal.simulation.PowerCurve(1.4))
monitor = truecal.CalibrationMonitor(alpha=0.05)
for day in range(60):
    y, p = (good if day < 40 else drifted).sample(500, rng=day)
    monitor.update(y, p, time=datetime(2026, 3, 1) + timedelta(days=day))
print(monitor)

# %%
# The e-value on a logarithmic scale; the error of the level and the root mean square error, with bounds that hold at
# all times at once; and the change point with its confidence interval.

monitor.plot()
plt.show()
