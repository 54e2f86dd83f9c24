"""Scores what came out of a chamber, outside of it."""
