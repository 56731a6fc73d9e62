"""The estimators, one idea in each file. `truecal._registry` finds them by itself."""
