"""Chambers without a daemon: the OCI runtime is driven directly, with runc or gVisor's runsc."""
