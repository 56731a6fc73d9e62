"""truecal."""
