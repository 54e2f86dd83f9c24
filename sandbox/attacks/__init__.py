"""Attacks on a chamber by its candidate, each with the id of its row in the threat table."""
