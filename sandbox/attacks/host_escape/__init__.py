"""Group H: ways from the chamber to the host. Importing registers them."""

from sandbox.attacks.host_escape import inheritance, system_calls, walls

__all__ = ["inheritance", "system_calls", "walls"]
