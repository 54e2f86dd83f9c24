"""Chambers that are tasks of this process, for tests: one's own, or rented."""
