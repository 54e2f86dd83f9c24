"""Group X: what a candidate leaves behind, or forges, to reach beyond the outputs channel. Importing registers it."""

from sandbox.attacks.artifacts import content, forged, left_behind

__all__ = ["content", "forged", "left_behind"]
