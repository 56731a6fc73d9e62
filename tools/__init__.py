"""Helpers for developers: interpreters, oldest dependencies, the tests on all of them."""
