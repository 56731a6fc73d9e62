"""Everything that makes a table or figure of the docs and is not in the paper: ``python -m experiments list``.

An experiment is a module with a function ``main`` that returns a `Page`; its keyword arguments are its options. Those
that compare truecal with what a paper says are made by `experiment`. Not part of the installed package.
"""
