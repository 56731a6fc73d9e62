"""What truecal does today, through public names: `python -m golden` compares it with the record.

`make golden` compares, `make golden-record` makes the record again. It is made again in the commit that changes
behaviour, and that commit says why. See CONTRIBUTING.md.
"""
