# ruff: noqa: D205, D400
"""
Monitor a model over time
=========================

`WindowedStream` keeps the last hours or days in a summary of fixed size, and gives an estimate with an interval at any
time.
"""

from datetime import datetime, timedelta

import matplotlib.pyplot as plt

import truecal

# %%
# 1,000 predictions an hour. After 60 hours the model becomes overconfident, and the error of the last 24 hours rises.

scores = truecal.simulation.UniformScores()
good = truecal.Population(scores, truecal.simulation.IdentityCurve())
drifted = truecal.Population(scores, truecal.simulation.PowerCurve(1.4))
stream = truecal.WindowedStream(window=timedelta(hours=24), step=timedelta(hours=1))
hours, values, lows, highs = [], [], [], []
for hour in range(96):
    y, p = (good if hour < 60 else drifted).sample(1000, rng=hour)
    stream.update(y, p, time=datetime(2026, 3, 1) + timedelta(hours=hour))
    if hour >= 24 and hour % 3 == 0:
        estimate = truecal.estimate(stream.cells, confidence_level=0.95)
        hours.append(hour)
        values.append(100 * estimate.value)
        lows.append(100 * estimate.interval.low)
        highs.append(100 * estimate.interval.high)

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
ax.fill_between(hours, lows, highs, color="#0072B2", alpha=0.25, label="95% interval")
ax.plot(hours, values, color="#0072B2", linewidth=2, label="last 24 hours")
ax.axvline(60, color="#C8402C", linestyle="--", label="the model changes")
ax.set(xlabel="hour", ylabel="calibration error (%)", ylim=(0, None))
ax.legend(frameon=False, loc="upper left")
plt.show()
