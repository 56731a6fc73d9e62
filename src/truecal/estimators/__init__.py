"""The estimators, one idea in each file. `truecal.estimators._registry` finds them by itself."""
