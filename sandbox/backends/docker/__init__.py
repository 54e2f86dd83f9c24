"""Chambers on a Docker engine."""
