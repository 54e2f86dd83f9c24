"""Chambers on machines that SkyPilot rents."""
