"""Chambers as sandboxes at Modal."""
