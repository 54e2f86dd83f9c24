"""Group C, the chamber's part: a candidate that speaks for somebody else. Importing registers it."""

from sandbox.attacks.capture import relay, results, voices

__all__ = ["relay", "results", "voices"]
