"""Assess three forecasts of late flights."""

import truecal

data = truecal.datasets.load("flights")
print(data.description, end="\n\n")
for model, y_proba in data.predictions.items():
    print(f"--- {model} ---", truecal.assess(data.y_true, y_proba, rng=0), sep="\n\n", end="\n\n")
