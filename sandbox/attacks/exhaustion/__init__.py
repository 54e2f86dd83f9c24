"""Group R: a candidate that takes more than its share. Importing registers it.

Every attack is bounded in counts, bytes and seconds: it does no harm where the limit under test is switched off.
"""

from sandbox.attacks.exhaustion import event_loop, processes, space, streams

__all__ = ["event_loop", "processes", "space", "streams"]
