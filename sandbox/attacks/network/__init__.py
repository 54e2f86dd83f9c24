"""Group N: ways out by the network, and secrets. Importing registers them."""

from sandbox.attacks.network import egress, secrets

__all__ = ["egress", "secrets"]
