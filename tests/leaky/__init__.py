"""Judges with one known hole each, and the same judges without it: what `audit` must find, and must not blame."""
