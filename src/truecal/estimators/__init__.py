"""The estimators, one idea per file; `truecal.estimators._registry` discovers them."""
